//! Whether a failed call is made again, and when: the limits, the backoff and the receiver's own
//! hint.
//!
//! In: what has been tried, the hint, the time, a `Chance`. Out: the time of the next call and
//! which term set it, or why there is none. All counts are of calls, the first included:
//! `calls_max` 3 is 3 calls.
//! Never: decide whether the failure is worth a retry at all, sleep, keep state between calls.

mod builder;
mod course;
mod decide;
mod hint;
mod predicate;
mod run;
mod session;
mod settings;
mod terms;

use std::time::Duration;

use crate::backoff::Backoff;
use crate::chance::Chance;
use crate::clock::Timestamp;
use crate::error::ConfigError;
use crate::retry_after::RetryAfter;
pub use builder::RetryBuilder;
pub use course::{RetryInfo, StopReason};
pub use decide::Waits;
use decide::{Limits, Overrun, decide};
pub use hint::{RetryAfterMode, RetryAfterRule, TooLong};
pub use predicate::{Replay, RetryPredicate};
pub use run::{RetryError, Runner};
pub use session::{Retry, RetrySession};
pub use terms::{Next, Stop, Term, Tried};

/// How often, how far apart and for how long a call is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The wait before each retry.
    pub backoff: Backoff,
    /// All calls together, the first included.
    pub calls_max: u32,
    /// Wall time from the beginning to the last call; a long first call uses it up too.
    pub age_max: Duration,
    /// What a hint does.
    pub retry_after: RetryAfterMode,
    /// The longest hint followed; what jitter adds (up to 1 s) comes on top.
    pub retry_after_max: Duration,
}

impl Default for RetryPolicy {
    /// 20 calls with full jitter from 2 s to 1 h, within 24 h; hints are followed up to 24 h.
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(3_600);
        Self {
            backoff: Backoff::FullJitter { base: Duration::from_secs(2), cap: HOUR },
            calls_max: 20,
            age_max: HOUR * 24,
            retry_after: RetryAfterMode::Exact,
            retry_after_max: HOUR * 24,
        }
    }
}

impl RetryPolicy {
    /// Checks every field and names the first that breaks a rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.backoff.validate()?;
        ConfigError::unless(self.calls_max >= 1, "calls_max", "must be at least 1")?;
        ConfigError::unless(!self.age_max.is_zero(), "age_max", "must be above zero")?;
        let followed = self.retry_after_max >= hint::FOLLOWED_MIN;
        ConfigError::unless(followed, "retry_after_max", "must be at least 1 s")
    }

    /// Decides after a failed call that is worth a retry.
    pub fn next(
        &self,
        tried: Tried,
        hint: RetryAfter,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Next {
        let limits = Limits {
            waits: &self.backoff,
            calls_max: self.calls_max,
            age_max: Some(self.age_max),
            overrun: Overrun::CallAtLimit,
            hint: RetryAfterRule {
                mode: self.retry_after,
                max: self.retry_after_max,
                too_long: TooLong::Cap,
                only: None,
            },
        };
        match decide(&limits, tried, hint, now, chance) {
            Next::Again { at, delay, term } => Next::Again { at, delay, term },
            Next::Stop(decide::Refusal::Calls) => Next::Stop(Stop::Calls),
            Next::Stop(decide::Refusal::Age | decide::Refusal::Hint) => Next::Stop(Stop::Age),
        }
    }

    /// The expected sum of all waits when every call fails at once and no hint is given.
    pub fn mean_life(&self) -> Duration {
        self.backoff.mean_total(self.calls_max.saturating_sub(1))
    }

    /// The most that all waits can be together when no hint is given. The age limit is not applied.
    pub fn longest_life(&self) -> Duration {
        self.backoff.longest_total(self.calls_max.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests;
