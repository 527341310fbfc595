//! Whether a failed call is made again, and when: the limits, the backoff and the receiver's own
//! hint.
//!
//! In: what has been tried, the hint, the time, a `Chance`. Out: the time of the next call and
//! which term set it, or why there is none. All counts are of calls, the first included:
//! `calls_max` 3 is 3 calls.
//! Never: decide whether the failure is worth a retry at all, sleep, keep state between calls.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::chance::Chance;
use crate::clock::Timestamp;
use crate::error::PolicyError;
use crate::retry_after::RetryAfter;

/// A hint is never followed faster than this.
const HINT_MIN: Duration = Duration::from_secs(1);
/// The most that jitter adds to a hint.
const HINT_JITTER_MAX: Duration = Duration::from_secs(1);

/// What a `Retry-After` hint does to the computed delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryAfterMode {
    /// It replaces the computed delay, shorter or longer.
    #[default]
    Exact,
    /// It can only lengthen the computed delay.
    AtLeast,
    /// Nothing.
    Ignore,
}

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

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
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
    Stop(Stop),
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
    pub fn validate(&self) -> Result<(), PolicyError> {
        self.backoff.validate()?;
        PolicyError::unless(self.calls_max >= 1, "calls_max", "must be at least 1")?;
        PolicyError::unless(!self.age_max.is_zero(), "age_max", "must be above zero")?;
        let followed = self.retry_after_max >= HINT_MIN;
        PolicyError::unless(followed, "retry_after_max", "must be at least 1 s")
    }

    /// Decides after a failed call that is worth a retry.
    pub fn next(
        &self,
        tried: Tried,
        hint: RetryAfter,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Next {
        let limit = tried.begun.plus(self.age_max);
        if tried.calls >= self.calls_max {
            return Next::Stop(Stop::Calls);
        }
        if now >= limit {
            return Next::Stop(Stop::Age);
        }
        let (delay, term) = self.wait(tried, hint, chance);
        let at = now.plus(delay);
        if at > limit {
            return Next::Again { at: limit, delay: limit.since(now), term: Term::AgeLimit };
        }
        Next::Again { at, delay, term }
    }

    /// The expected sum of all waits when every call fails at once and no hint is given.
    pub fn mean_life(&self) -> Duration {
        self.backoff.mean_total(self.calls_max.saturating_sub(1))
    }

    /// The most that all waits can be together when no hint is given. The age limit is not applied.
    pub fn longest_life(&self) -> Duration {
        self.backoff.longest_total(self.calls_max.saturating_sub(1))
    }

    fn wait(&self, tried: Tried, hint: RetryAfter, chance: &mut dyn Chance) -> (Duration, Term) {
        let retry = tried.calls.saturating_sub(1);
        let own = self.backoff.delay(retry, tried.last_delay, chance);
        let asked = match (self.retry_after, hint) {
            (RetryAfterMode::Ignore, _) | (_, RetryAfter::Absent | RetryAfter::Unusable) => {
                return (own, Term::Backoff);
            }
            (RetryAfterMode::Exact | RetryAfterMode::AtLeast, RetryAfter::Wait(wait)) => {
                lengthened(wait.min(self.retry_after_max).max(HINT_MIN), chance)
            }
        };
        if self.retry_after == RetryAfterMode::AtLeast && own >= asked {
            return (own, Term::Backoff);
        }
        (asked, Term::RetryAfter)
    }
}

/// A little longer, so that those told the same do not all come back at the same moment.
fn lengthened(wait: Duration, chance: &mut dyn Chance) -> Duration {
    let room = (wait / 10).min(HINT_JITTER_MAX);
    wait.saturating_add(chance.between(Duration::ZERO, room))
}

#[cfg(test)]
mod tests;
