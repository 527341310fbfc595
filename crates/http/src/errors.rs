//! The errors that the layers add to those of the service below.
//!
//! Never: wrap an error without keeping it as its source.

use std::error::Error;
use std::time::Duration;

use resilience::{RetryInfo, StopReason};

/// Any error that may cross a thread, as tower's layers give it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// No answer came within the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {after:?}")]
#[non_exhaustive]
pub struct TimedOut {
    /// The time there was.
    pub after: Duration,
}

impl TimedOut {
    pub(crate) const fn new(after: Duration) -> Self {
        Self { after }
    }
}

/// A bulkhead had neither a place nor room in its queue. The call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bulkhead full: {running} calls running, {queued} waiting")]
#[non_exhaustive]
pub struct BulkheadFull {
    /// Places, all of them taken.
    pub running: usize,
    /// Places in the queue, all of them taken.
    pub queued: usize,
}

impl BulkheadFull {
    pub(crate) const fn new(running: usize, queued: usize) -> Self {
        Self { running, queued }
    }
}

/// The last error of a request that was retried or could have been, and how it came to be the last.
#[derive(Debug, thiserror::Error)]
#[error("{source} (calls made: {}; gave up: {})", info.calls, self.stop())]
#[non_exhaustive]
pub struct GaveUp {
    /// The error itself.
    pub source: BoxError,
    /// How often and how long it was tried.
    pub info: RetryInfo,
}

impl GaveUp {
    pub(crate) const fn new(source: BoxError, info: RetryInfo) -> Self {
        Self { source, info }
    }

    /// Why there was no further call.
    pub fn stop(&self) -> StopReason {
        self.info.stop.unwrap_or(StopReason::NotRetryable)
    }
}
