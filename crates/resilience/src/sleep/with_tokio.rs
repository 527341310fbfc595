//! Waiting by tokio. Not on a bare WebAssembly host, where tokio's clock cannot be read.
//!
//! Never: spawn, or need more of tokio than its timers.

use std::time::Duration;

use super::Sleeper;
use crate::clock::{Clock, SystemClock, Timestamp};

/// Tokio's clock and timers, so that `start_paused` holds both.
///
/// It shows the time of day at its making, moved on by what has passed on tokio's clock since.
#[derive(Clone, Copy, Debug)]
pub struct TokioSleeper {
    started: Timestamp,
    instant: tokio::time::Instant,
}

impl TokioSleeper {
    /// Starts at the machine's time of day.
    pub fn new() -> Self {
        Self::starting_at(SystemClock.now())
    }

    /// Starts at `time`.
    pub fn starting_at(time: Timestamp) -> Self {
        Self { started: time, instant: tokio::time::Instant::now() }
    }
}

impl Default for TokioSleeper {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioSleeper {
    fn now(&self) -> Timestamp {
        self.started.plus(self.instant.elapsed())
    }
}

impl Sleeper for TokioSleeper {
    type Sleep = tokio::time::Sleep;

    fn sleep(&self, span: Duration) -> Self::Sleep {
        tokio::time::sleep(span)
    }
}
