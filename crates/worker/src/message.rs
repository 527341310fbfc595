//! A message as it is put in, as it is received, and as a dead letter.
//!
//! Plain values; bodies and attributes are the application's and pass through unread.
//! Never: printed with their body.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use resilience::Timestamp;

/// A message to be put into a queue.
#[derive(Clone, Default)]
pub struct NewMessage {
    /// What it is known by. Given, a second message with the same id is not put in while the first
    /// is there; not given or empty, the queue chooses one.
    pub id: Option<String>,
    /// What the handler gets.
    pub body: Bytes,
    /// What the handler gets besides.
    pub attributes: BTreeMap<String, String>,
    /// What ties it to other messages and to log lines.
    pub correlation: Option<String>,
    /// How long it is held back before it is received for the first time.
    pub delay: Duration,
}

impl NewMessage {
    /// A message with this body and nothing else.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Known by this id.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// With one more attribute.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// With this correlation.
    #[must_use]
    pub fn correlation(self, correlation: impl Into<String>) -> Self {
        Self { correlation: Some(correlation.into()), ..self }
    }

    /// Held back for so long.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

impl fmt::Debug for NewMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMessage")
            .field("id", &self.id)
            .field("body_bytes", &self.body.len())
            .field("correlation", &self.correlation)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// What earlier attempts left behind. The queue keeps it as it is, beside the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// When the first attempt began, by its receipt: a queue notes it there, with the count, so
    /// that it is known though nobody lived to tell. None in a message that was never received, or
    /// whose queue cannot note it: then the first attempt that was told of counts.
    pub begun: Option<Timestamp>,
    /// The wait before this attempt, zero before the first.
    pub last_wait: Duration,
    /// What went wrong last.
    pub last_error: Option<String>,
}

/// A message that was received. All times are those of the queue's clock.
#[derive(Clone)]
pub struct Message {
    /// The same at every attempt.
    pub id: Arc<str>,
    /// As it was put in.
    pub body: Bytes,
    /// As they were put in.
    pub attributes: Arc<BTreeMap<String, String>>,
    /// As it was put in.
    pub correlation: Option<Arc<str>>,
    /// How often it has been received, this time included: 1 at first.
    pub attempt: u32,
    /// When it was put in.
    pub enqueued_at: Timestamp,
    /// When it was received this time.
    pub received_at: Timestamp,
    /// What earlier attempts left.
    pub history: History,
    /// The right to settle it.
    pub token: LeaseToken,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("body_bytes", &self.body.len())
            .field("correlation", &self.correlation)
            .finish_non_exhaustive()
    }
}

/// The right to settle a message: of one attempt, as long as its lease lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseToken {
    message: Arc<str>,
    proof: Arc<str>,
}

impl LeaseToken {
    /// For queues: which message, and whatever proves that it is held (a fencing number, a lock
    /// token, a receipt handle).
    #[must_use]
    pub fn new(message: impl Into<Arc<str>>, proof: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), proof: proof.into() }
    }

    /// The id of the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What proves that it is held.
    #[must_use]
    pub fn proof(&self) -> &str {
        &self.proof
    }

    /// The fencing number, in queues that have one: larger than that of every attempt before. A
    /// resource that remembers the largest it saw can refuse the others.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        self.proof.parse().ok()
    }
}

/// A message that was set aside.
#[derive(Clone)]
pub struct DeadLetter {
    /// The message's id.
    pub id: Arc<str>,
    /// As it was put in.
    pub body: Bytes,
    /// As they were put in.
    pub attributes: BTreeMap<String, String>,
    /// As it was put in.
    pub correlation: Option<String>,
    /// How many attempts were made, those counted that ended with their consumer.
    pub attempts: u32,
    /// When it was put in.
    pub enqueued_at: Timestamp,
    /// When it was set aside.
    pub died_at: Timestamp,
    /// Why, in a word.
    pub reason: String,
    /// What was tried, what went wrong, and when.
    pub description: String,
}

impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("id", &self.id)
            .field("attempts", &self.attempts)
            .field("reason", &self.reason)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}
