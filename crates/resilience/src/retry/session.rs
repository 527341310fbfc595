//! A policy that is ready for use, and the course of one request under it, without I/O.
//!
//! In: how each call ended, the time, a `Chance`. Out: when to call again, or a typed reason why
//! not.
//! Never: sleep, call, share anything between two sessions but the budget.

use std::fmt;
use std::sync::Arc;

use super::course::{Course, RetryInfo, StopReason};
use super::settings::Settings;
use super::terms::{Next, Tried};
use crate::chance::{Chance, Seeded};
use crate::classify::Outcome;
use crate::clock::Timestamp;

/// A retry policy, checked and ready. Clones share its budget and its source of seeds.
///
/// ```
/// use std::time::Duration;
/// use resilience::{Jitter, RetryPolicy};
///
/// let retry = RetryPolicy::exponential(Duration::from_millis(100))
///     .cap(Duration::from_secs(10))
///     .jitter(Jitter::Full)
///     .max_calls(4)
///     .build()?;
/// assert_eq!(retry.max_calls(), 4);
/// # Ok::<(), resilience::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Retry {
    settings: Arc<Settings>,
}

impl Retry {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings) }
    }

    /// All calls together, the first included.
    pub fn max_calls(&self) -> u32 {
        self.settings.calls
    }

    /// A generator for one session, unlike any other's.
    pub fn chance(&self) -> Seeded {
        self.settings.seeds.next()
    }

    /// Begins one request at its first call, which earns the budget its share.
    pub fn session(&self, now: Timestamp) -> RetrySession {
        RetrySession { settings: Arc::clone(&self.settings), course: self.settings.begin(now) }
    }

    /// Goes on with a request whose course was kept elsewhere, such as in a queue: the calls that
    /// have failed so far, and the wait before the one that comes.
    pub fn resume(&self, tried: Tried) -> RetrySession {
        RetrySession { settings: Arc::clone(&self.settings), course: Course::from(tried) }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("max_calls", &self.settings.calls)
            .field("max_elapsed", &self.settings.elapsed)
            .field("retry_after", &self.settings.hint)
            .field("replay", &self.settings.replay)
            .field("budget", &self.settings.budget)
            .finish_non_exhaustive()
    }
}

/// One request under a policy.
///
/// Call, and when it fails ask [`RetrySession::failed`]; wait as told, tell
/// [`RetrySession::calling`], call again. Dropped during a wait, it gives the paid retry back.
///
/// ```
/// use std::time::Duration;
/// use resilience::{Next, Outcome, RetryPolicy, StopReason, Timestamp};
///
/// let retry = RetryPolicy::fixed(Duration::from_secs(1)).max_calls(2).build()?;
/// let mut now = Timestamp::from_secs(1_000);
/// let (mut session, mut chance) = (retry.session(now), retry.chance());
/// let Next::Again { at, .. } = session.failed(&Outcome::transient(), now, &mut chance) else {
///     unreachable!()
/// };
/// now = at;
/// session.calling();
/// let last = session.failed(&Outcome::transient(), now, &mut chance);
/// assert_eq!(last, Next::Stop(StopReason::CallsExhausted));
/// # Ok::<(), resilience::ConfigError>(())
/// ```
pub struct RetrySession {
    settings: Arc<Settings>,
    course: Course,
}

impl RetrySession {
    /// The call failed: when to make another, or why not.
    pub fn failed(
        &mut self,
        outcome: &Outcome<'_>,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Next<StopReason> {
        self.course.failed(&self.settings, outcome, now, chance)
    }

    /// The wait is over and the next call is made: from here on the retry has been spent.
    pub fn calling(&mut self) {
        self.course.calling();
    }

    /// Calls that have failed so far.
    pub const fn failures(&self) -> u32 {
        self.course.tried.calls
    }

    /// How it went, after the last failure.
    pub fn stopped(&self, stop: StopReason, now: Timestamp) -> RetryInfo {
        self.course.ended(Some(stop), Some(now))
    }

    /// How it went, after a success.
    pub fn succeeded(&self, now: Timestamp) -> RetryInfo {
        self.course.ended(None, Some(now))
    }
}

impl fmt::Debug for RetrySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetrySession").field("tried", &self.course.tried).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
