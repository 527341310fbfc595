//! The errors that the layers add to those of the service below.
//!
//! Never: wrap an error without keeping it as its source.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
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

/// An answer that counted as a failure, where only an error can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("answered {status}")]
#[non_exhaustive]
pub struct Answered {
    /// Its status.
    pub status: StatusCode,
}

impl Answered {
    pub(crate) const fn new(status: StatusCode) -> Self {
        Self { status }
    }
}

/// The last error of a request that was retried or could have been, and how it came to be the last.
#[derive(Debug, thiserror::Error)]
#[error("{source} (calls made: {}; gave up: {}{})", info.calls, self.stop(), self.told())]
#[non_exhaustive]
pub struct GaveUp {
    /// The error itself; where a circuit breaker ended it, its rejection.
    pub source: BoxError,
    /// What the attempt before that one came to, if there was one: its error, or [`Answered`].
    pub before: Option<BoxError>,
    /// How often and how long it was tried.
    pub info: RetryInfo,
}

impl GaveUp {
    pub(crate) const fn new(source: BoxError, before: Option<BoxError>, info: RetryInfo) -> Self {
        Self { source, before, info }
    }

    /// What the last attempt came to that was made: this error, or what was before it where a
    /// circuit breaker let the last one not through. None where it let none through.
    pub fn last_error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match self.stop() {
            StopReason::CircuitOpen => self.before.as_deref(),
            _ => Some(&*self.source),
        }
    }

    fn told(&self) -> String {
        match &self.before {
            Some(before) if self.stop() == StopReason::CircuitOpen => {
                format!("; last error: {before}")
            }
            _ => String::new(),
        }
    }

    /// Why there was no further call.
    pub fn stop(&self) -> StopReason {
        self.info.stop.unwrap_or(StopReason::NotRetryable)
    }
}
