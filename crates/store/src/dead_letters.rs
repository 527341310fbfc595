//! Dead letters: listing, replay, deletion.
//!
//! Replay is conditional on `dead`, so that a second click changes nothing.
//! Never: touch the attempts of a delivery; history stays.

use domain::dead_letter::{DeadLetter, DeadReason};
use domain::edit::Edit;
use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use resilience::Timestamp;

use crate::Reply;
use crate::inbox::{Accepted, NewMessage};
use crate::page::{Looked, PageOf};
use crate::recall::Once;

/// Which dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// Only of this application; else of the whole organisation.
    pub app: Option<AppKey>,
    /// Only of this endpoint.
    pub endpoint: Option<EndpointKey>,
    /// Only for these reasons; empty for all.
    pub reasons: Vec<DeadReason>,
    /// Only these event types; empty for all.
    pub event_types: Vec<String>,
    /// Given up before then, by [`keys_within`](crate::page::keys_within).
    pub before: Option<Timestamp>,
    /// Given up at or after then.
    pub after: Option<Timestamp>,
    /// Only of this run of refusals; with its endpoint.
    pub run: Option<Timestamp>,
}

/// What a replay came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// Pending again, budget and age restarted.
    Pending,
    /// It is not dead (any more).
    NotDead,
    /// Its payload is gone.
    PayloadGone,
    /// Its endpoint was deleted.
    NoEndpoint,
}

/// A dead letter's message with another payload.
#[derive(Clone, Debug)]
pub struct Edited {
    /// The message that goes out instead.
    pub message: NewMessage,
    /// Who changed what.
    pub edit: Edit,
}

/// Reads and moves of dead letters.
pub trait DeadLetters: Send + Sync {
    /// Looks at dead letters of the organisation by place (time of death).
    fn list(
        &self,
        org: PublicId,
        filter: DeadFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<DeadLetter, u64>>;
    /// How many there are.
    fn count(&self, org: PublicId, filter: DeadFilter) -> Reply<'_, u64>;
    /// One dead letter.
    fn dead_letter(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Reply<'_, Option<DeadLetter>>;
    /// Puts one back, due now; handed to `Commits::fresh`.
    fn replay(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, Replayed> {
        self.replay_once((message, endpoint), None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn replay_once(
        &self,
        letter: (MessageKey, EndpointKey),
        once: Once<Replayed>,
    ) -> Reply<'static, Replayed>;
    /// Accepts `edited`, keeps the edit as long as its message, and closes the dead letter as
    /// superseded, in one transaction; `None` when it is not dead.
    fn replay_edited(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
        edited: Edited,
    ) -> Reply<'static, Option<Accepted>> {
        self.replay_edited_once((message, endpoint), edited, None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn replay_edited_once(
        &self,
        letter: (MessageKey, EndpointKey),
        edited: Edited,
        once: Once<Option<Accepted>>,
    ) -> Reply<'static, Option<Accepted>>;
    /// The edit that made a message, if one did.
    fn edit(&self, message: MessageKey) -> Reply<'_, Option<Edit>>;
    /// Deletes one from the list; `false` when it is not dead.
    fn delete(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, bool>;
}
