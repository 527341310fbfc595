//! What a receiver's own wish does to the wait.
//!
//! In: the wait as asked, the computed one. Out: which of them counts.
//! Never: follow a wish for longer than it says, shorten one.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::terms::Term;
use crate::chance::Chance;
use crate::error::ConfigError;
use crate::retry_after::RetryAfter;

/// A hint is never followed faster than this.
pub(super) const FOLLOWED_MIN: Duration = Duration::from_secs(1);
/// What can be read as a status.
const STATUSES: RangeInclusive<u16> = 100..=999;
/// The most that jitter adds to a hint.
const JITTER_MAX: Duration = Duration::from_secs(1);

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

/// What a hint above the longest that is followed does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooLong {
    /// The longest is waited.
    #[default]
    Cap,
    /// No further call is made: it would come too early anyway.
    GiveUp,
}

/// Whether, how far and how long hints are followed.
///
/// On top of a hint comes a little, at most a tenth of it and at most 1 s, so that those told the
/// same do not all come back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfterRule {
    pub(super) mode: RetryAfterMode,
    pub(super) max: Duration,
    pub(super) too_long: TooLong,
    /// Of answers with these statuses only; none: of all.
    pub(super) only: Option<&'static [u16]>,
}

impl Default for RetryAfterRule {
    fn default() -> Self {
        Self::exact()
    }
}

impl RetryAfterRule {
    /// The hint replaces the computed wait, shorter or longer; at most 60 s.
    pub const fn exact() -> Self {
        Self {
            mode: RetryAfterMode::Exact,
            max: Duration::from_secs(60),
            too_long: TooLong::Cap,
            only: None,
        }
    }

    /// The hint can only lengthen the computed wait; at most 60 s.
    pub const fn at_least() -> Self {
        Self { mode: RetryAfterMode::AtLeast, ..Self::exact() }
    }

    /// Hints change nothing.
    pub const fn ignore() -> Self {
        Self { mode: RetryAfterMode::Ignore, ..Self::exact() }
    }

    /// The longest hint that is followed.
    #[must_use]
    pub const fn cap(mut self, longest: Duration) -> Self {
        self.max = longest;
        self
    }

    /// What a longer hint does.
    #[must_use]
    pub const fn when_longer(mut self, too_long: TooLong) -> Self {
        self.too_long = too_long;
        self
    }

    /// Hints of answers with these statuses, each from 100 to 999, are followed, and no others; of
    /// all if not set.
    #[must_use]
    pub const fn only(mut self, statuses: &'static [u16]) -> Self {
        self.only = Some(statuses);
        self
    }

    /// Whether the hint of an answer with this status counts.
    pub(super) fn heeds(&self, status: Option<u16>) -> bool {
        self.only.is_none_or(|only| status.is_some_and(|status| only.contains(&status)))
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let followed = self.max >= FOLLOWED_MIN;
        ConfigError::unless(followed, "retry_after.cap", "must be at least 1 s")?;
        let Some(only) = self.only else { return Ok(()) };
        const ONLY: &str = "retry_after.only";
        ConfigError::unless(!only.is_empty(), ONLY, "must name a status, or be left out")?;
        let real = only.iter().all(|status| STATUSES.contains(status));
        ConfigError::unless(real, ONLY, "must name statuses from 100 to 999")
    }

    /// Whether this hint asks for more than is followed, and that ends it.
    pub(super) fn gives_up(&self, hint: RetryAfter) -> bool {
        let asked = match hint {
            RetryAfter::Wait(asked) => asked,
            RetryAfter::Absent | RetryAfter::Unusable => return false,
        };
        self.mode != RetryAfterMode::Ignore && self.too_long == TooLong::GiveUp && asked > self.max
    }

    /// The wait that counts, of the computed one and the hint.
    pub(super) fn apply(
        &self,
        own: Duration,
        hint: RetryAfter,
        chance: &mut dyn Chance,
    ) -> (Duration, Term) {
        let asked = match (self.mode, hint) {
            (RetryAfterMode::Ignore, _) | (_, RetryAfter::Absent | RetryAfter::Unusable) => {
                return (own, Term::Backoff);
            }
            (RetryAfterMode::Exact | RetryAfterMode::AtLeast, RetryAfter::Wait(wait)) => {
                lengthened(wait.min(self.max).max(FOLLOWED_MIN), chance)
            }
        };
        if self.mode == RetryAfterMode::AtLeast && own >= asked {
            return (own, Term::Backoff);
        }
        (asked, Term::RetryAfter)
    }
}

/// A little longer, so that those told the same do not all come back at the same moment.
fn lengthened(wait: Duration, chance: &mut dyn Chance) -> Duration {
    let room = (wait / 10).min(JITTER_MAX);
    wait.saturating_add(chance.between(Duration::ZERO, room))
}
