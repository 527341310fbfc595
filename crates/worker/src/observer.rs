//! Whoever watches a worker.
//!
//! Observers are told, never asked; one that panics is logged and changes nothing.
//! Never: called with a body.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::error::QueueError;
use crate::message::Message;

/// What was done with a message after its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settlement {
    /// It is done with.
    Completed,
    /// It is tried again.
    Scheduled {
        /// After so long.
        delay: Duration,
        /// Because of this.
        error: String,
    },
    /// It was set aside.
    DeadLettered {
        /// Why, in a word.
        reason: String,
        /// The whole story.
        description: String,
    },
    /// It was given back, and this attempt is not counted.
    Returned,
    /// The lease was lost: what came of the attempt was not recorded, and the message is or will be
    /// received again.
    LeaseLost,
}

/// How an attempt ended.
#[derive(Debug)]
pub struct Settled<'a> {
    /// Of which message.
    pub message: &'a Message,
    /// What was done with it.
    pub settlement: &'a Settlement,
    /// From its receipt on.
    pub took: Duration,
}

/// Watches a worker; every method does nothing unless it is written.
pub trait WorkerObserver: Send + Sync {
    /// A message was received and its handler begins.
    fn on_started(&self, _message: &Message) {}
    /// An attempt is over.
    fn on_settled(&self, _settled: &Settled<'_>) {}
    /// The queue failed at `step`; it is asked again.
    fn on_queue_error(&self, _step: &'static str, _error: &QueueError) {}
}

/// All observers of one worker.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn WorkerObserver>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl WorkerObserver + 'static) {
        self.0.push(Arc::new(observer));
    }

    pub(crate) fn tell(&self, what: impl Fn(&dyn WorkerObserver)) {
        for observer in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| what(&**observer))).is_err() {
                tracing::error!("a worker's observer panicked");
            }
        }
    }
}
