//! How a wait is spread.
//!
//! In: the longest that the wait can be, already under its cap. Out: a draw within it. The range is
//! shifted under the cap, never cut there, so jitter is not lost where it is needed most.
//! Never: exceed the longest wait, go below zero.

use std::time::Duration;

use crate::chance::Chance;
use crate::error::ConfigError;
use crate::share::Share;

/// What is drawn in place of a computed wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// The wait itself.
    #[default]
    None,
    /// Anything from zero to the wait.
    Full,
    /// Anything from half the wait to the wait.
    Equal,
    /// The wait, less or more by this share of it. Where more would exceed the cap, the whole range
    /// moves down below it.
    Proportional(Share),
}

impl Jitter {
    /// Less or more by `share` of the wait: 0.25 is a quarter.
    pub fn proportional(share: f64) -> Self {
        Self::Proportional(Share::of(share))
    }

    /// Draws in place of `wait`, at most `cap`.
    pub(super) fn draw(self, wait: Duration, cap: Duration, chance: &mut dyn Chance) -> Duration {
        match self {
            Self::None => wait,
            Self::Full => chance.between(Duration::ZERO, wait),
            Self::Equal => chance.between(wait / 2, wait),
            Self::Proportional(share) => {
                let (low, high) = Self::ends(share, wait, cap);
                chance.between(low, high)
            }
        }
    }

    /// From where to where. Above the cap the proportion between the ends is kept, with the upper
    /// end at the cap.
    fn ends(share: Share, wait: Duration, cap: Duration) -> (Duration, Duration) {
        let (low, high) =
            (wait.saturating_sub(share.of_span(wait)), wait.saturating_add(share.of_span(wait)));
        if high <= cap {
            return (low, high);
        }
        let (whole, part) = (u128::from(Share::WHOLE), u128::from(share.millionths()));
        let low = cap.as_micros() * whole.saturating_sub(part) / (whole + part);
        (u64::try_from(low).map_or(cap, Duration::from_micros), cap)
    }

    /// The longest draw in place of `wait`.
    pub(super) fn longest(self, wait: Duration, cap: Duration) -> Duration {
        match self {
            Self::None | Self::Full | Self::Equal => wait,
            Self::Proportional(share) => Self::ends(share, wait, cap).1,
        }
    }

    /// The expected draw in place of `wait`.
    pub(super) fn mean(self, wait: Duration, cap: Duration) -> Duration {
        match self {
            Self::None => wait,
            Self::Full => wait / 2,
            Self::Equal => wait / 4 * 3,
            Self::Proportional(share) => {
                let (low, high) = Self::ends(share, wait, cap);
                low / 2 + high / 2
            }
        }
    }

    /// Checks the share.
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        match self {
            Self::Proportional(share) => {
                ConfigError::unless(share.is_valid(), "jitter", "must be above 0 and at most 1")
            }
            Self::None | Self::Full | Self::Equal => Ok(()),
        }
    }
}
