//! Recall: answers that were given under an idempotency key, for a request that comes again.
//!
//! Whoever changes something may hand in how its answer reads; the answer is then written in the
//! transaction of the change, so that after a crash there are both or neither. Messages need none
//! of this: their row is their answer.
//! Never: word an answer, or judge whether it may be given again; the caller does both.

use std::fmt;

use bytes::Bytes;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, EndpointKey, PublicId};
use resilience::Timestamp;

use crate::Reply;

/// What a request made, which its answer tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// Nothing that could be deleted by itself.
    Nothing,
    /// An application.
    Application(AppKey),
    /// An endpoint.
    Endpoint(EndpointKey),
    /// An event type; another one may get its name later.
    EventType {
        /// Whose.
        org: PublicId,
        /// Its name.
        name: String,
        /// Tells it from a later one.
        created_at: Timestamp,
    },
}

/// An answer as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its status.
    pub status: u16,
    /// Its body, byte for byte.
    pub body: Bytes,
    /// What it tells of.
    pub made: Made,
}

/// An answer that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Hash of the request's body.
    pub body: [u8; 16],
    /// When it was kept.
    pub at: Timestamp,
    /// The answer.
    pub told: Told,
}

/// Words the answer to a change that came to `T`; `None` where there is nothing to remember.
pub type Tell<T> = Box<dyn FnOnce(&T) -> Option<Told> + Send>;

/// How the answer to a change that comes to `T` is remembered.
pub struct Remember<T> {
    /// By what.
    pub key: IngestKey,
    /// How it reads.
    pub tell: Tell<T>,
}

/// What a change is remembered by, if it is.
pub type Once<T> = Option<Remember<T>>;

impl<T> fmt::Debug for Remember<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remember").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Reads and writes of answers.
pub trait Recall: Send + Sync {
    /// The last answer under this scope, unless it was pruned.
    fn recall(&self, scope: [u8; 16]) -> Reply<'_, Option<Kept>>;
    /// Keeps an answer whose change is no single one of the store, in place of an older one.
    fn keep(&self, key: IngestKey, told: Told) -> Reply<'static, ()>;
}
