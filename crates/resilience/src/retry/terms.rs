//! The words of a decision: what was tried, what follows, and why.
//!
//! Plain values, no rules.
//! Never: decide.

use std::time::Duration;

use crate::clock::Timestamp;

/// What has been tried so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Calls made, the one that just failed included.
    pub calls: u32,
    /// The wait before that call, zero if it was the first; decorrelated jitter builds on it.
    pub last_delay: Duration,
    /// From when the age counts.
    pub begun: Timestamp,
}

/// The term that set a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The policy's own backoff.
    Backoff,
    /// The receiver's hint.
    RetryAfter,
    /// Either would have gone past the age limit: the last call is made at the limit.
    AgeLimit,
}

/// Why no further call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All calls are used up.
    Calls,
    /// The age limit has passed.
    Age,
}

/// What happens next; `S` says why nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<S = Stop> {
    /// Another call.
    Again {
        /// When; never past the age limit.
        at: Timestamp,
        /// How long that is from now.
        delay: Duration,
        /// Which term set it.
        term: Term,
    },
    /// No further call.
    Stop(S),
}
