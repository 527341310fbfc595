//! The tables of the reference model and the questions more than one trait asks of them.
//!
//! A delivery has at most one scheduled pending row; beside it may stand rows for manual sends, and
//! one closed row when it ended otherwise than delivered. Delivered is a successful attempt.
//! Never: know who asks, or leave `rows_of` and `numbers` behind the tables they index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::alert::evaluate::Telling;
use domain::alert::incident::Incident;
use domain::alert::route::{Route, Silence};
use domain::alert::rule::Rule;
use domain::application::Application;
use domain::attempt::Attempt;
use domain::delivery::{DeliveryState, Pending};
use domain::edit::Edit;
use domain::endpoint::Endpoint;
use domain::event_type::EventType;
use domain::ids::{AppKey, AttemptKey, EndpointKey, KeyMaker, MessageKey, PublicId};
use domain::message::Message;
use domain::notice::Notice;
use resilience::Timestamp;

use super::facts::Fact;
use crate::history::{AttemptRow, DeliveryRow};
use crate::ledger::{LaneState, Suspect};
use crate::notices::Mail;
use crate::page::{Direction, LOOK_ROWS_MAX, Looked, PageOf};
use crate::recall::Kept;
use crate::recoveries::Recovery;
use crate::revocations::Expired;
use crate::tasks::Task;

/// Everything that is committed.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    last_key: u64,
    pub(super) apps: BTreeMap<AppKey, Live<Application>>,
    pub(super) endpoints: BTreeMap<EndpointKey, Live<Endpoint>>,
    /// Every URL an endpoint ever had, and since when.
    pub(super) urls: BTreeMap<EndpointKey, Vec<(Timestamp, String)>>,
    pub(super) event_types: BTreeMap<(PublicId, String), EventType>,
    pub(super) messages: BTreeMap<MessageKey, Arc<Message>>,
    /// By the message that each made.
    pub(super) edits: BTreeMap<MessageKey, Edit>,
    pub(super) event_ids: BTreeMap<(AppKey, String), MessageKey>,
    pub(super) ingest_keys: BTreeMap<[u8; 16], UsedKey>,
    pub(super) pending: BTreeMap<Place, Pending>,
    /// `pending` by message.
    rows_of: BTreeSet<(MessageKey, EndpointKey, Timestamp, bool)>,
    pub(super) closed: BTreeMap<(MessageKey, EndpointKey), Closed>,
    pub(super) attempts: BTreeMap<AttemptKey, AttemptRow>,
    /// `attempts` by delivery and number.
    pub(super) numbers: BTreeMap<(MessageKey, EndpointKey, u32), AttemptKey>,
    pub(super) lanes: BTreeMap<EndpointKey, LaneState>,
    pub(super) suspects: Vec<Suspect>,
    pub(super) recoveries: BTreeMap<EndpointKey, Recovery>,
    /// By the key of their id.
    pub(super) tasks: BTreeMap<u64, Task>,
    /// Until when, by hash.
    pub(super) revoked: BTreeMap<[u8; 32], Timestamp>,
    pub(super) expired: Vec<Expired>,
    /// By their place.
    pub(super) notices: BTreeMap<u64, Notice>,
    /// By their place.
    pub(super) mails: BTreeMap<u64, Mail>,
    /// Until the next start.
    pub(super) keeps_mails: bool,
    /// By scope.
    pub(super) answers: BTreeMap<[u8; 16], Kept>,
    /// Whatever is counted, in the order it was committed.
    pub(super) facts: Vec<Fact>,
    /// By name.
    pub(super) alert_rules: BTreeMap<String, Rule>,
    /// By name.
    pub(super) alert_routes: BTreeMap<String, Route>,
    pub(super) silences: BTreeMap<PublicId, Silence>,
    pub(super) incidents: BTreeMap<PublicId, Incident>,
    /// By their place.
    pub(super) tellings: BTreeMap<u64, Telling>,
}

/// Where a pending row stands; last whether it is for a manual send.
pub(super) type Place = (EndpointKey, Timestamp, MessageKey, bool);

/// A row of the directory; deleted ones stay for history.
#[derive(Clone, Debug)]
pub(super) struct Live<T> {
    pub(super) row: Arc<T>,
    pub(super) deleted: bool,
}

/// What an idempotency key was used for.
#[derive(Clone, Debug)]
pub(super) struct UsedKey {
    pub(super) message: MessageKey,
    pub(super) body: [u8; 16],
    pub(super) at: Timestamp,
}

/// How a delivery ended, if not delivered.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub(super) state: DeliveryState,
    pub(super) at: Timestamp,
    pub(super) place: u64,
    pub(super) sends: u32,
    pub(super) error: Option<String>,
    /// A dead letter that was deleted: still dead, but in no list, and not to be replayed.
    pub(super) discarded: bool,
    /// Of which run of refusals it is.
    pub(super) run: Option<Timestamp>,
}

impl<T> Live<T> {
    pub(super) fn new(row: T) -> Self {
        Self { row: Arc::new(row), deleted: false }
    }

    /// The row, unless it was deleted.
    pub(super) const fn alive(&self) -> Option<&Arc<T>> {
        if self.deleted { None } else { Some(&self.row) }
    }
}

impl State {
    /// The next key, larger than all before.
    pub(super) fn draw(&mut self, now: Timestamp) -> u64 {
        self.last_key = KeyMaker::new(self.last_key, 0).draw(now);
        self.last_key
    }

    pub(super) fn live_app(&self, key: AppKey) -> Option<&Arc<Application>> {
        self.apps.get(&key)?.alive()
    }

    pub(super) fn live_endpoint(&self, key: EndpointKey) -> Option<&Arc<Endpoint>> {
        self.endpoints.get(&key)?.alive()
    }

    /// Raises the version of an application, and returns it.
    pub(super) fn raise(&mut self, key: AppKey) -> i64 {
        let Some(app) = self.apps.get_mut(&key) else { return 0 };
        let row = Arc::make_mut(&mut app.row);
        row.version += 1;
        row.version
    }

    /// Adds a pending row; a second manual send at the very same time is due 1 µs later.
    pub(super) fn insert_pending(&mut self, mut row: Pending) -> Pending {
        while self.pending.contains_key(&place(&row)) {
            row.due_at = Timestamp::from_micros(row.due_at.as_micros() + 1);
        }
        self.pending.insert(place(&row), row);
        self.rows_of.insert(mirror(&row));
        row
    }

    pub(super) fn remove_pending(&mut self, row: &Pending) {
        self.pending.remove(&place(row));
        self.rows_of.remove(&mirror(row));
    }

    /// Pending rows of one endpoint, earliest first.
    pub(super) fn pending_to(&self, endpoint: EndpointKey) -> impl Iterator<Item = &Pending> {
        let first = (endpoint, Timestamp::from_micros(i64::MIN), MessageKey(0), false);
        let last = (endpoint, Timestamp::MAX, MessageKey(u64::MAX), true);
        self.pending.range(first..=last).map(|(_, row)| row)
    }

    /// Pending rows of one delivery, earliest first.
    fn pending_of(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> impl Iterator<Item = &Pending> {
        let first = (message, endpoint, Timestamp::from_micros(i64::MIN), false);
        let rows = self.rows_of.range(first..=(message, endpoint, Timestamp::MAX, true));
        rows.filter_map(|&(message, endpoint, due_at, manual)| {
            self.pending.get(&(endpoint, due_at, message, manual))
        })
    }

    /// The scheduled row of a delivery.
    pub(super) fn scheduled(&self, message: MessageKey, endpoint: EndpointKey) -> Option<Pending> {
        let mut rows = self.pending_of(message, endpoint);
        rows.find(|row| !row.trigger.is_extra()).copied()
    }

    /// Attempts of one delivery, by number.
    pub(super) fn attempts_for(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> impl DoubleEndedIterator<Item = &AttemptRow> {
        let numbers = self.numbers.range((message, endpoint, 0)..=(message, endpoint, u32::MAX));
        numbers.filter_map(|(_, key)| self.attempts.get(key))
    }

    /// The URL an endpoint had at `at`.
    pub(super) fn url(&self, endpoint: EndpointKey, at: Timestamp) -> String {
        let urls = self.urls.get(&endpoint).map_or(&[][..], Vec::as_slice);
        let then = urls.iter().rev().find(|(since, _)| *since <= at).or_else(|| urls.first());
        then.map(|(_, url)| url.clone()).unwrap_or_default()
    }

    /// The largest number of an attempt of this delivery.
    pub(super) fn sends(&self, message: MessageKey, endpoint: EndpointKey) -> u32 {
        let mut numbers =
            self.numbers.range((message, endpoint, 0)..=(message, endpoint, u32::MAX));
        numbers.next_back().map_or(0, |(&(_, _, number), _)| number)
    }

    /// Where one delivery stands; `None` when nothing is known but failed sends.
    pub(super) fn delivery(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Option<DeliveryRow> {
        let scheduled = self.scheduled(message, endpoint);
        let manual = || self.pending_of(message, endpoint).next().copied();
        let (state, due_at) = if let Some(row) = scheduled {
            (DeliveryState::Pending, Some(row.due_at))
        } else if let Some(closed) = self.closed.get(&(message, endpoint)) {
            (closed.state, None)
        } else if self.attempts_for(message, endpoint).any(|row| is_success(&row.attempt)) {
            (DeliveryState::Delivered, None)
        } else {
            (DeliveryState::Pending, Some(manual()?.due_at))
        };
        Some(DeliveryRow { endpoint, state, due_at, sends: self.sends(message, endpoint) })
    }

    /// Where every delivery of a message stands, by endpoint.
    pub(super) fn deliveries(&self, message: MessageKey) -> Vec<DeliveryRow> {
        let (low, high) = (EndpointKey(i64::MIN), EndpointKey(i64::MAX));
        let first = (message, low, Timestamp::from_micros(i64::MIN), false);
        let pending = self.rows_of.range(first..=(message, high, Timestamp::MAX, true));
        let closed = self.closed.range((message, low)..=(message, high));
        let attempts = self.numbers.range((message, low, 0)..=(message, high, u32::MAX));
        let endpoints: BTreeSet<EndpointKey> = (pending.map(|&(_, endpoint, _, _)| endpoint))
            .chain(closed.map(|(&(_, endpoint), _)| endpoint))
            .chain(attempts.map(|(&(_, endpoint, _), _)| endpoint))
            .collect();
        endpoints.into_iter().filter_map(|endpoint| self.delivery(message, endpoint)).collect()
    }
}

/// The key of a pending row.
pub(super) fn place(row: &Pending) -> Place {
    (row.endpoint, row.due_at, row.message, row.trigger.is_extra())
}

/// The same by message.
fn mirror(row: &Pending) -> (MessageKey, EndpointKey, Timestamp, bool) {
    (row.message, row.endpoint, row.due_at, row.trigger.is_extra())
}

/// Whether a receiver answered 2xx.
pub(super) fn is_success(attempt: &Attempt) -> bool {
    (200..300).contains(&attempt.status())
}

/// One page of `rows`, which come in ascending order of `place`.
pub(super) fn page<T, P: Ord>(
    rows: impl DoubleEndedIterator<Item = T>,
    page: &PageOf<P>,
    place: impl Fn(&T) -> P,
) -> Vec<T> {
    in_order(rows, page, place).take(page.limit).collect()
}

/// One look at `rows`, which come in ascending order of their place: `take` shows what is wanted of
/// a row, and `is_full` whether that is enough.
pub(super) fn look<T, U, P: Ord + Copy>(
    rows: impl DoubleEndedIterator<Item = (P, T)>,
    page: &PageOf<P>,
    mut take: impl FnMut(T) -> Option<U>,
    is_full: impl Fn(&[U]) -> bool,
) -> Looked<U, P> {
    let mut found = Vec::new();
    if page.limit == 0 {
        return Looked::nothing();
    }
    for (at, (place, row)) in in_order(rows, page, |(place, _)| *place).enumerate() {
        found.extend(take(row));
        if found.len() >= page.limit || is_full(&found) || at + 1 >= LOOK_ROWS_MAX {
            return Looked { rows: found, reached: Some(place) };
        }
    }
    Looked { rows: found, reached: None }
}

/// Rows strictly beyond the page's beginning, in its direction.
fn in_order<'a, T: 'a, P: Ord>(
    rows: impl DoubleEndedIterator<Item = T> + 'a,
    page: &'a PageOf<P>,
    place: impl Fn(&T) -> P + 'a,
) -> Box<dyn Iterator<Item = T> + 'a> {
    let beyond = move |row: &T| match (&page.beyond, page.direction) {
        (None, _) => true,
        (Some(beyond), Direction::Descending) => place(row) < *beyond,
        (Some(beyond), Direction::Ascending) => place(row) > *beyond,
    };
    match page.direction {
        Direction::Descending => Box::new(rows.rev().filter(beyond)),
        Direction::Ascending => Box::new(rows.filter(beyond)),
    }
}
