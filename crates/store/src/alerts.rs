//! Alerts: rules, routes and silences that operators set, incidents, and what is to be told.
//!
//! What follows from an evaluation is written in one transaction, notifications included; each of
//! them leaves in the transaction that accepts its message. So a crash loses none and doubles none.
//! Never: evaluate, or word a message.

use domain::alert::evaluate::{Settlement, Telling};
use domain::alert::incident::Incident;
use domain::alert::reading::Failing;
use domain::alert::route::{Route, Silence};
use domain::alert::rule::Rule;
use domain::ids::{AppKey, PublicId};
use resilience::Timestamp;

use crate::Reply;
use crate::inbox::{Accepted, NewMessage};
use crate::page::PageOf;

/// What an evaluation begins from, beside what settings say.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    /// Rules, by name.
    pub rules: Vec<Rule>,
    /// Routes, by name.
    pub routes: Vec<Route>,
    /// Silences, by id.
    pub silences: Vec<Silence>,
    /// Incidents that are open or were resolved since the time that was asked for, newest first.
    pub recent: Vec<Incident>,
}

/// A notification that was not sent yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its place in the order of commits; never given twice.
    pub place: u64,
    /// Where it goes, and what it says.
    pub telling: Telling,
}

/// Rules, routes, silences, incidents, notifications.
pub trait Alerts: Send + Sync {
    /// What an evaluation begins from.
    fn configured(&self, resolved_since: Timestamp) -> Reply<'_, Configured>;
    /// Keeps a rule in place of the one of that name.
    fn put_rule(&self, rule: Rule) -> Reply<'static, ()>;
    /// Takes a rule out; whether it was there.
    fn delete_rule(&self, name: String) -> Reply<'static, bool>;
    /// Keeps a route in place of the one of that name.
    fn put_route(&self, route: Route) -> Reply<'static, ()>;
    /// Takes a route out; whether it was there.
    fn delete_route(&self, name: String) -> Reply<'static, bool>;
    /// Keeps a silence; those that are over go.
    fn put_silence(&self, silence: Silence) -> Reply<'static, ()>;
    /// Takes a silence out; whether it was there.
    fn delete_silence(&self, id: PublicId) -> Reply<'static, bool>;
    /// Incidents in order of their id, that is of their beginning.
    fn incidents(&self, page: PageOf<PublicId>) -> Reply<'_, Vec<Incident>>;
    /// One incident.
    fn incident(&self, id: PublicId) -> Reply<'_, Option<Incident>>;
    /// Notes that somebody looks at an incident which fires, and keeps what is told of that;
    /// `false` and nothing when it does not fire, or somebody looks at it already.
    fn acknowledge(
        &self,
        id: PublicId,
        at: Timestamp,
        tellings: Vec<Telling>,
    ) -> Reply<'static, bool>;
    /// Writes what follows from an evaluation, all of it or nothing. That somebody looks at an
    /// incident stays as it is. Incidents that were resolved before `forget_before` go, a few at a
    /// time.
    fn settle(&self, settlement: Settlement, forget_before: Timestamp) -> Reply<'static, ()>;
    /// The oldest notifications beyond `after`, in order, at most `limit`.
    fn tellings(&self, after: u64, limit: usize) -> Reply<'_, Vec<Kept>>;
    /// Accepts the message of a notification and takes the notification out, in one transaction;
    /// `None` when it is not there any more. It stays while the application is gone, or has changed
    /// since `app_version`.
    fn post_telling(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>>;
    /// Takes out a notification that was sent otherwise, or is not to be sent any more.
    fn discard_telling(&self, place: u64) -> Reply<'static, ()>;
    /// Endpoints that have failed without a success since `since` or longer, those that fail for
    /// longest first, at most `limit`. Left out are endpoints that are deleted or disabled, and
    /// those of the application `but_of`.
    fn failing(
        &self,
        since: Timestamp,
        but_of: Option<AppKey>,
        limit: usize,
    ) -> Reply<'_, Vec<Failing>>;
}

/// Resolved incidents that go with one settlement.
pub(crate) const FORGOTTEN_MAX: usize = 20;
