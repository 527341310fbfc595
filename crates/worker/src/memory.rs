//! A queue in this process's memory, within a bound.
//!
//! It is what the others are compared with. Time is that of the sleeper which is passed in.
//! Never: more messages than the bound says, dead letters included; anything after a restart.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use resilience::{ConfigError, Sleeper, Timestamp, TokioSleeper};
use tokio::sync::Notify;

use crate::error::QueueError;
use crate::message::{DeadLetter, History, LeaseToken, Message, NewMessage};
use crate::queue::{Counts, Queue, QueueAdmin, Receive};

/// A queue in memory: for tests, and for one process whose messages may be lost with it. Clones are
/// the same queue.
pub struct MemoryQueue<S = TokioSleeper> {
    inner: Arc<Inner<S>>,
}

struct Inner<S> {
    sleeper: S,
    messages_max: usize,
    shelf: Mutex<Shelf>,
    /// Told when a message comes in or back.
    news: Notify,
}

impl MemoryQueue {
    /// For at most this many messages, at least 1, dead letters included; another is refused as
    /// [`QueueError::Full`]. By tokio's clock.
    pub fn bounded(messages_max: usize) -> Result<Self, ConfigError> {
        Self::with(messages_max, TokioSleeper::new())
    }
}

impl<S> MemoryQueue<S> {
    /// The same by this clock.
    pub fn with(messages_max: usize, sleeper: S) -> Result<Self, ConfigError> {
        ConfigError::unless(messages_max > 0, "messages_max", "must be at least 1")?;
        let (shelf, news) = (Mutex::default(), Notify::new());
        Ok(Self { inner: Arc::new(Inner { sleeper, messages_max, shelf, news }) })
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.inner.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for MemoryQueue<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S> fmt::Debug for MemoryQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryQueue")
            .field("messages_max", &self.inner.messages_max)
            .finish_non_exhaustive()
    }
}

type Id = Arc<str>;

#[derive(Default)]
struct Shelf {
    entries: HashMap<Id, Entry>,
    ready: VecDeque<Id>,
    /// By due time, then in the order of their coming.
    scheduled: BTreeSet<(Timestamp, u64, Id)>,
    leased: BTreeSet<(Timestamp, u64, Id)>,
    dead: VecDeque<Id>,
    /// Numbers ids, places and leases.
    last: u64,
}

struct Entry {
    message: NewMessage,
    enqueued_at: Timestamp,
    attempt: u32,
    history: History,
    /// The end of the lease and its number, while it is held.
    held: Option<(Timestamp, u64)>,
    died: Option<(Timestamp, String, String)>,
}

impl Shelf {
    const fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Moves what is due and what has lapsed to the ready ones.
    fn promote(&mut self, now: Timestamp) {
        while let Some((_, _, id)) = self.scheduled.pop_first_due(now) {
            self.ready.push_back(id);
        }
        while let Some((_, _, id)) = self.leased.pop_first_due(now) {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.held = None;
                self.ready.push_back(id);
            }
        }
    }

    /// When the next one falls due or lapses.
    fn next_due(&self) -> Timestamp {
        let first = |set: &BTreeSet<(Timestamp, u64, Id)>| set.first().map(|(at, ..)| *at);
        let dues = [first(&self.scheduled), first(&self.leased)];
        dues.into_iter().flatten().min().unwrap_or(Timestamp::MAX)
    }

    fn take(&mut self, now: Timestamp, ask: Receive) -> Vec<Message> {
        self.promote(now);
        let mut taken = Vec::new();
        while taken.len() < ask.max.max(1)
            && let Some(id) = self.ready.pop_front()
        {
            let fence = self.next();
            if let Some(entry) = self.entries.get_mut(&id) {
                let until = now.plus(ask.lease);
                entry.attempt = entry.attempt.saturating_add(1);
                entry.history.begun.get_or_insert(now);
                entry.held = Some((until, fence));
                self.leased.insert((until, fence, Arc::clone(&id)));
                taken.push(entry.message(&id, fence, now));
            }
        }
        taken
    }

    /// The entry, if the token holds it; it is then held no longer.
    fn release(&mut self, token: &LeaseToken) -> Result<(Id, &mut Entry), QueueError> {
        let (id, entry) = self.entries.get_key_value(token.message()).ok_or(QueueError::Stale)?;
        let held = entry.held.filter(|(_, fence)| token.fence() == Some(*fence));
        let (until, fence) = held.ok_or(QueueError::Stale)?;
        let id = Arc::clone(id);
        self.leased.remove(&(until, fence, Arc::clone(&id)));
        let entry = self.entries.get_mut(&id).ok_or(QueueError::Stale)?;
        entry.held = None;
        Ok((id, entry))
    }

    fn put(&mut self, id: Id, now: Timestamp, due: Timestamp) {
        if due <= now {
            self.ready.push_back(id);
        } else {
            let place = self.next();
            self.scheduled.insert((due, place, id));
        }
    }

    /// Takes a dead letter out of the list.
    fn unbury(&mut self, id: &str) -> Option<Id> {
        let place = self.dead.iter().position(|dead| &**dead == id)?;
        self.dead.remove(place)
    }
}

trait PopDue {
    fn pop_first_due(&mut self, now: Timestamp) -> Option<(Timestamp, u64, Id)>;
}

impl PopDue for BTreeSet<(Timestamp, u64, Id)> {
    fn pop_first_due(&mut self, now: Timestamp) -> Option<(Timestamp, u64, Id)> {
        self.first().is_some_and(|(at, ..)| *at <= now).then(|| self.pop_first()).flatten()
    }
}

impl Entry {
    fn message(&self, id: &Id, fence: u64, now: Timestamp) -> Message {
        Message {
            id: Arc::clone(id),
            body: self.message.body.clone(),
            attributes: Arc::new(self.message.attributes.clone()),
            correlation: self.message.correlation.as_deref().map(Into::into),
            attempt: self.attempt,
            enqueued_at: self.enqueued_at,
            received_at: now,
            history: self.history.clone(),
            token: LeaseToken::new(Arc::clone(id), fence.to_string()),
        }
    }

    fn dead_letter(&self, id: &Id) -> Option<DeadLetter> {
        let (died_at, reason, description) = self.died.clone()?;
        Some(DeadLetter {
            id: Arc::clone(id),
            body: self.message.body.clone(),
            attributes: self.message.attributes.clone(),
            correlation: self.message.correlation.clone(),
            attempts: self.attempt,
            enqueued_at: self.enqueued_at,
            died_at,
            reason,
            description,
        })
    }
}

impl<S> Queue for MemoryQueue<S>
where
    S: Sleeper<Sleep: Send> + 'static,
{
    async fn receive(&self, ask: Receive) -> Result<Vec<Message>, QueueError> {
        let end = self.inner.sleeper.now().plus(ask.wait);
        loop {
            let news = self.inner.news.notified();
            let now = self.inner.sleeper.now();
            let (taken, next) = {
                let mut shelf = self.shelf();
                (shelf.take(now, ask), shelf.next_due())
            };
            if !taken.is_empty() || now >= end {
                return Ok(taken);
            }
            // Clocks of milliseconds wake a little early.
            let span = next.min(end).since(now).max(Duration::from_millis(1));
            tokio::select! {
                () = news => {}
                () = self.inner.sleeper.sleep(span) => {}
            }
        }
    }

    async fn complete(&self, token: &LeaseToken) -> Result<(), QueueError> {
        let mut shelf = self.shelf();
        let (id, _) = shelf.release(token)?;
        shelf.entries.remove(&id);
        Ok(())
    }

    async fn schedule_at(
        &self,
        token: &LeaseToken,
        due: Timestamp,
        attempt: u32,
        history: &History,
    ) -> Result<(), QueueError> {
        let now = self.inner.sleeper.now();
        let mut shelf = self.shelf();
        let (id, entry) = shelf.release(token)?;
        entry.attempt = attempt;
        entry.history = history.clone();
        shelf.put(id, now, due);
        self.inner.news.notify_waiters();
        Ok(())
    }

    async fn dead_letter(
        &self,
        token: &LeaseToken,
        attempts: u32,
        reason: &str,
        description: &str,
    ) -> Result<(), QueueError> {
        let now = self.inner.sleeper.now();
        let mut shelf = self.shelf();
        let (id, entry) = shelf.release(token)?;
        entry.attempt = attempts;
        entry.died = Some((now, reason.to_owned(), description.to_owned()));
        shelf.dead.push_back(id);
        Ok(())
    }

    async fn extend(&self, token: &LeaseToken, lease: Duration) -> Result<(), QueueError> {
        let until = self.inner.sleeper.now().plus(lease);
        let mut shelf = self.shelf();
        let (id, _) = shelf.release(token)?;
        let fence = token.fence().ok_or(QueueError::Stale)?;
        let entry = shelf.entries.get_mut(&id).ok_or(QueueError::Stale)?;
        entry.held = Some((until, fence));
        shelf.leased.insert((until, fence, id));
        Ok(())
    }
}

impl<S> QueueAdmin for MemoryQueue<S>
where
    S: Sleeper<Sleep: Send> + 'static,
{
    async fn enqueue(&self, message: NewMessage) -> Result<Option<String>, QueueError> {
        let now = self.inner.sleeper.now();
        let mut shelf = self.shelf();
        let given = message.id.clone().filter(|id| !id.is_empty());
        if given.as_deref().is_some_and(|id| shelf.entries.contains_key(id)) {
            return Ok(None);
        }
        if shelf.entries.len() >= self.inner.messages_max {
            return Err(QueueError::Full);
        }
        let id = given.unwrap_or_else(|| shelf.next().to_string());
        let due = now.plus(message.delay);
        let entry = Entry {
            message,
            enqueued_at: now,
            attempt: 0,
            history: History::default(),
            held: None,
            died: None,
        };
        shelf.entries.insert(id.as_str().into(), entry);
        shelf.put(id.as_str().into(), now, due);
        self.inner.news.notify_waiters();
        Ok(Some(id))
    }

    async fn counts(&self) -> Result<Counts, QueueError> {
        let shelf = self.shelf();
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        Ok(Counts {
            ready: count(shelf.ready.len()),
            scheduled: count(shelf.scheduled.len()),
            leased: count(shelf.leased.len()),
            dead: count(shelf.dead.len()),
        })
    }

    async fn dead_letters(&self, skip: usize, max: usize) -> Result<Vec<DeadLetter>, QueueError> {
        let shelf = self.shelf();
        let ids = shelf.dead.iter().skip(skip).take(max);
        Ok(ids.filter_map(|id| shelf.entries.get(id)?.dead_letter(id)).collect())
    }

    async fn replay(&self, id: &str) -> Result<bool, QueueError> {
        let mut shelf = self.shelf();
        let Some(id) = shelf.unbury(id) else { return Ok(false) };
        if let Some(entry) = shelf.entries.get_mut(&id) {
            (entry.attempt, entry.history, entry.died) = (0, History::default(), None);
            shelf.ready.push_back(id);
        }
        self.inner.news.notify_waiters();
        Ok(true)
    }

    async fn discard(&self, id: &str) -> Result<bool, QueueError> {
        let mut shelf = self.shelf();
        let Some(id) = shelf.unbury(id) else { return Ok(false) };
        Ok(shelf.entries.remove(&id).is_some())
    }
}
