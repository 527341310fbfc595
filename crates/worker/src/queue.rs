//! What a queue does for its consumers, and what it guarantees.
//!
//! At least once: a message stays in the queue until it is settled. A lease hides it from other
//! consumers for a while; when the lease lapses, it is received again. All times are those of the
//! queue's own clock, so that consumers' clocks need not agree.
//! Never: a message settled by a stale token; a message lost because a consumer died.

use std::future::Future;
use std::time::Duration;

use resilience::Timestamp;

use crate::error::QueueError;
use crate::message::{DeadLetter, History, LeaseToken, Message, NewMessage};

/// What a consumer asks for.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// At most this many messages; at least 1.
    pub max: usize,
    /// How long to wait while there is none.
    pub wait: Duration,
    /// For how long each is hidden from others.
    pub lease: Duration,
}

/// A queue, as its consumers see it: all that an adapter for a broker must implement.
///
/// Every method may be called again after a failure whose outcome is unknown
/// ([`QueueError::Unavailable`]); if the first call had taken effect, the second is refused as
/// [`QueueError::Stale`].
pub trait Queue: Send + Sync + 'static {
    /// Takes messages that are due, as soon as there is one, or none after the wait.
    ///
    /// Each is leased, and **its attempt is counted now**, durably, not when the handler fails: a
    /// message that kills its consumers is thereby bounded. So is the time noted in
    /// [`History::begun`], unless it is there. Of any number of concurrent callers one
    /// gets a message. A message whose lease has lapsed is due again. When the returned future is
    /// dropped, or its answer is lost, what it took comes back when the lease lapses.
    fn receive(
        &self,
        ask: Receive,
    ) -> impl Future<Output = Result<Vec<Message>, QueueError>> + Send;

    /// The message is done with: removes it.
    fn complete(&self, token: &LeaseToken) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Gives the message back, hidden until `due` (not at all if that has passed), with `attempt`
    /// attempts counted so far and this history. In one step: it is at no time neither leased nor
    /// waiting.
    fn schedule_at(
        &self,
        token: &LeaseToken,
        due: Timestamp,
        attempt: u32,
        history: &History,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Sets the message aside after so many `attempts`, with a reason (a word) and a description,
    /// where operators find it. In one step, like [`Queue::schedule_at`].
    fn dead_letter(
        &self,
        token: &LeaseToken,
        attempts: u32,
        reason: &str,
        description: &str,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Prolongs the lease to `lease` from now.
    fn extend(
        &self,
        token: &LeaseToken,
        lease: Duration,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;
}

/// How many messages are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Due and not received.
    pub ready: u64,
    /// Held back until they are due.
    pub scheduled: u64,
    /// Received and not settled.
    pub leased: u64,
    /// Set aside.
    pub dead: u64,
}

/// The other side of a queue of our own: putting in, looking, and what operators do.
pub trait QueueAdmin: Queue {
    /// Puts a message in, durably as far as the queue is. Returns its id, or none if a message with
    /// the given id is there already.
    fn enqueue(
        &self,
        message: NewMessage,
    ) -> impl Future<Output = Result<Option<String>, QueueError>> + Send;

    /// How many messages are where. What has lapsed or fallen due since the last receive may still
    /// be counted where it was.
    fn counts(&self) -> impl Future<Output = Result<Counts, QueueError>> + Send;

    /// Dead letters, the oldest first, after skipping some.
    fn dead_letters(
        &self,
        skip: usize,
        max: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, QueueError>> + Send;

    /// Makes a dead letter due again, as if it had never been tried. Returns whether there was one.
    fn replay(&self, id: &str) -> impl Future<Output = Result<bool, QueueError>> + Send;

    /// Removes a dead letter for good. Returns whether there was one.
    fn discard(&self, id: &str) -> impl Future<Output = Result<bool, QueueError>> + Send;
}
