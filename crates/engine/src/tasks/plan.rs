//! What the next piece of a task holds: read from where the last one ended, in order.
//!
//! A task is about what there was when it began: places and messages that are younger than the
//! task are not looked at, and so it ends. What belongs to an outage may die a little later.
//! Never: change anything, or decide for good; the store looks again.

use std::sync::Arc;

use domain::application::AppSnapshot;
use domain::dead_letter::DeadReason;
use domain::delivery::DeliveryState;
use domain::endpoint::Endpoint;
use domain::fanout;
use domain::ids::{AttemptKey, EndpointKey, MessageKey, key_time};
use domain::limits::PAGE_ROWS_MAX;
use resilience::Timestamp;
use store::dead_letters::DeadFilter;
use store::history::{AttemptFilter, AttemptRow, MessageFilter, SentFilter};
use store::page::{Direction, Looked, PageOf};
use store::tasks::{Act, During, END, Letters, Piece, Task, WHOLE_APP, Work};
use store::{StoreError, Stores};

type Place = (u64, MessageKey, Act);

/// How long an outage that is over still makes dead letters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling {
    /// Until then.
    pub(super) until: Timestamp,
    /// That is past.
    pub(super) is_over: bool,
}

/// Rows looked at for one piece.
const LOOK_MAX: usize = PAGE_ROWS_MAX;
/// Rows looked at for one piece at least, where most that are found are wanted: a row that is read
/// and not sent is read again for the next piece.
const LOOK_MIN: usize = 16;

/// What is to be sent to an endpoint next, at most `most`.
pub(super) async fn replays(
    stores: &Stores,
    task: &Task,
    (app, endpoint): (&AppSnapshot, &Arc<Endpoint>),
    (from, most, settling): (u64, usize, Settling),
) -> Result<Piece, StoreError> {
    let search = Search { stores, task, endpoint, from, most };
    match &task.spec.work {
        Work::Recover(during) => search.recover(app, *during).await,
        Work::DeadLetters(letters) if letters.ids.is_empty() => search.letters(app, letters).await,
        Work::DeadLetters(letters) => search.named(letters).await,
        Work::Outage(since) => search.outage(app, *since, settling).await,
        Work::Missing(during) => search.missing(*during).await,
        Work::Again(filter, class) => search.again(filter, *class).await,
        Work::Purge => Ok(search.gathered().piece(endpoint.key, None)),
    }
}

/// The next payloads to delete.
pub(super) async fn purges(stores: &Stores, task: &Task, from: u64) -> Result<Piece, StoreError> {
    let filter = MessageFilter::default();
    let page = page(from, MessageKey, LOOK_MAX);
    let found = stores.history.messages(task.spec.app, filter, page, false).await?;
    let mut gathered = Gathered::new(task, from, LOOK_MAX);
    for message in found.rows {
        if !gathered.takes(message.key.0) {
            break;
        }
        if !message.payload_gone {
            gathered.acts.push((message.key.0, message.key, Act::Purge));
        }
    }
    Ok(gathered.piece(WHOLE_APP, found.reached.map(|key| key.0)))
}

/// Rows after a place.
fn page<P>(from: u64, key: impl FnOnce(u64) -> P, limit: usize) -> PageOf<P> {
    let beyond = (from > 0).then(|| key(from));
    PageOf { beyond, direction: Direction::Ascending, limit }
}

/// What was found, and how far it was looked.
struct Gathered {
    before: u64,
    from: u64,
    most: usize,
    acts: Vec<Place>,
    reached: u64,
    is_closed: bool,
}

impl Gathered {
    fn new(task: &Task, from: u64, most: usize) -> Self {
        let before = task.id.key();
        Self { before, from, most, acts: Vec::new(), reached: from, is_closed: false }
    }

    /// Whether what stands at this place is to be looked at; if not, nothing behind it is.
    fn takes(&mut self, place: u64) -> bool {
        let is_younger = place >= self.before;
        self.is_closed = is_younger || self.acts.len() >= self.most;
        self.reached = match (is_younger, self.is_closed) {
            (true, _) => END,
            (false, true) => self.reached,
            (false, false) => place,
        };
        !self.is_closed
    }

    /// The piece, from a look that `looked` up to there, or to the end of the list.
    fn piece(self, endpoint: EndpointKey, looked: Option<u64>) -> Piece {
        let reached = if self.is_closed { self.reached } else { looked.unwrap_or(END) };
        Piece { endpoint, from: self.from, acts: self.acts, reached }
    }
}

struct Search<'a> {
    stores: &'a Stores,
    task: &'a Task,
    endpoint: &'a Arc<Endpoint>,
    from: u64,
    most: usize,
}

impl Search<'_> {
    fn gathered(&self) -> Gathered {
        Gathered::new(self.task, self.from, self.most)
    }

    /// So many rows are worth a look where most of them are wanted.
    fn few(&self) -> usize {
        self.most.clamp(LOOK_MIN, LOOK_MAX)
    }

    async fn recover(&self, app: &AppSnapshot, during: During) -> Result<Piece, StoreError> {
        // What died before the span had no send in it.
        let filter = DeadFilter { after: during.since, ..DeadFilter::default() };
        self.dead(app, filter, Some(during)).await
    }

    async fn letters(&self, app: &AppSnapshot, letters: &Letters) -> Result<Piece, StoreError> {
        let filter = DeadFilter {
            reasons: letters.reasons.clone(),
            event_types: letters.event_types.clone(),
            before: letters.during.until,
            after: letters.during.since.max(letters.run),
            run: letters.run,
            ..DeadFilter::default()
        };
        self.dead(app, filter, None).await
    }

    /// What died of an outage, also while it settles if the outage was why: it was too old when its
    /// turn came at last, or its last send had begun before.
    async fn outage(
        &self,
        app: &AppSnapshot,
        since: Timestamp,
        settling: Settling,
    ) -> Result<Piece, StoreError> {
        let filter = DeadFilter {
            app: Some(app.app.key),
            endpoint: Some(self.endpoint.key),
            reasons: vec![DeadReason::Exhausted, DeadReason::Expired],
            after: Some(since),
            ..DeadFilter::default()
        };
        let page = page(self.from, |place| place, self.few());
        let found = self.stores.dead_letters.list(app.app.org, filter, page).await?;
        let began = key_time(self.task.id.key());
        let mut gathered = Gathered { before: END, ..self.gathered() };
        for letter in found.rows {
            if !gathered.takes(letter.place) {
                break;
            }
            let is_older = letter.place < self.task.id.key();
            let is_late = letter.reason == DeadReason::Expired
                || letter.last_attempt_at.is_some_and(|at| at < began);
            if is_older || (is_late && letter.dead_at < settling.until) {
                gathered.acts.push((letter.place, letter.message, Act::Return));
            }
        }
        let so_far = (!settling.is_over).then_some(gathered.reached);
        Ok(gathered.piece(self.endpoint.key, found.reached.or(so_far)))
    }

    /// Dead letters in order of their place, and only those with a send in the span, if there is
    /// one.
    async fn dead(
        &self,
        app: &AppSnapshot,
        filter: DeadFilter,
        sent: Option<During>,
    ) -> Result<Piece, StoreError> {
        let (app_key, endpoint) = (Some(app.app.key), Some(self.endpoint.key));
        let filter = DeadFilter { app: app_key, endpoint, ..filter };
        let most = if sent.is_some() { LOOK_MAX } else { self.few() };
        let page = page(self.from, |place| place, most);
        let found = self.stores.dead_letters.list(app.app.org, filter, page).await?;
        let mut gathered = self.gathered();
        for letter in found.rows {
            if !gathered.takes(letter.place) {
                break;
            }
            let wanted = match sent {
                None => true,
                Some(during) => self.failed_in(letter.message, during).await?,
            };
            if wanted {
                gathered.acts.push((letter.place, letter.message, Act::Replay));
            }
        }
        Ok(gathered.piece(self.endpoint.key, found.reached))
    }

    /// Whether a send of the message to the endpoint was begun in the span. None of a dead letter
    /// was answered 2xx.
    async fn failed_in(&self, message: MessageKey, during: During) -> Result<bool, StoreError> {
        let mut beyond = None;
        loop {
            let found = self.attempts(message, beyond, Direction::Ascending, LOOK_MAX).await?;
            if found.rows.iter().any(|row| during.holds(row.attempt.started_at)) {
                return Ok(true);
            }
            beyond = found.reached;
            if beyond.is_none() {
                return Ok(false);
            }
        }
    }

    async fn attempts(
        &self,
        message: MessageKey,
        beyond: Option<AttemptKey>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked<AttemptRow, AttemptKey>, StoreError> {
        let filter =
            AttemptFilter { endpoint: Some(self.endpoint.key), ..AttemptFilter::default() };
        let page = PageOf { beyond, direction, limit };
        self.stores.history.attempts_of(message, filter, page).await
    }

    /// Dead letters that were asked for one by one; their places are their messages.
    async fn named(&self, letters: &Letters) -> Result<Piece, StoreError> {
        let own = (letters.ids.iter())
            .filter(|(endpoint, message)| *endpoint == self.endpoint.key && message.0 > self.from);
        let mut rest: Vec<MessageKey> = own.map(|(_, message)| *message).collect();
        rest.sort_unstable();
        let mut gathered = self.gathered();
        for message in rest {
            if !gathered.takes(message.0) {
                break;
            }
            let letter = self.stores.dead_letters.dead_letter(message, self.endpoint.key).await?;
            if letter.is_some_and(|letter| letters.takes(&letter)) {
                gathered.acts.push((message.0, message, Act::Replay));
            }
        }
        Ok(gathered.piece(self.endpoint.key, None))
    }

    async fn missing(&self, during: During) -> Result<Piece, StoreError> {
        let filter =
            MessageFilter { before: during.until, after: during.since, ..MessageFilter::default() };
        let page = page(self.from, MessageKey, LOOK_MAX);
        let found = self.stores.history.messages(self.task.spec.app, filter, page, false).await?;
        let mut gathered = self.gathered();
        for message in found.rows {
            if !gathered.takes(message.key.0) {
                break;
            }
            let spec = &message.spec;
            if fanout::wants(self.endpoint, &spec.event_type, &spec.channels)
                && self.never_sent(message.key).await?
            {
                gathered.acts.push((message.key.0, message.key, Act::Send));
            }
        }
        Ok(gathered.piece(self.endpoint.key, found.reached.map(|key| key.0)))
    }

    async fn never_sent(&self, message: MessageKey) -> Result<bool, StoreError> {
        let known = self.stores.history.deliveries(message).await?;
        Ok(known.iter().all(|row| row.endpoint != self.endpoint.key))
    }

    async fn again(&self, filter: &SentFilter, class: Option<u16>) -> Result<Piece, StoreError> {
        let page = page(self.from, MessageKey, LOOK_MAX);
        let (app, endpoint) = (self.task.spec.app, self.endpoint.key);
        let found = self.stores.history.messages_to(app, endpoint, filter.clone(), page).await?;
        let mut gathered = self.gathered();
        for sent in found.rows {
            let message = sent.message.key;
            if !gathered.takes(message.0) {
                break;
            }
            let act = match sent.delivery.state {
                DeliveryState::Dead(_) => Some(Act::Replay),
                DeliveryState::Delivered => Some(Act::Resend),
                // What waits is sent anyway, and what was cancelled never is.
                DeliveryState::Pending | DeliveryState::Cancelled(_) => None,
            };
            if let Some(act) = act
                && self.is_of_class(message, class).await?
            {
                gathered.acts.push((message.0, message, act));
            }
        }
        Ok(gathered.piece(self.endpoint.key, found.reached.map(|key| key.0)))
    }

    /// Whether the last send was answered with this class of status, 0 for no answer.
    async fn is_of_class(
        &self,
        message: MessageKey,
        class: Option<u16>,
    ) -> Result<bool, StoreError> {
        let Some(class) = class else { return Ok(true) };
        let last = self.attempts(message, None, Direction::Descending, 1).await?;
        Ok(last.rows.iter().any(|row| row.attempt.status() / 100 * 100 == class))
    }
}
