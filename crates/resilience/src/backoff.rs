//! How long to wait before the n-th retry.
//!
//! In: the retry number, the delay before it, a `Chance`. Out: a delay, never above the cap. Jitter
//! is drawn under the cap, so it is not lost there. The state is the caller's: nothing to reset.
//! Never: overflow, draw through floating point, count retries.

mod decorrelated;
mod factor;
mod jitter;

use std::time::Duration;

use crate::chance::Chance;
use crate::error::ConfigError;
pub use factor::Factor;
pub use jitter::Jitter;

/// From this retry on every doubling sequence stands at its cap, whatever its base, and the spread
/// of decorrelated jitter has all but stopped changing.
const SETTLED: u32 = 512;

/// A rule for the wait before each retry. Retry 0 is the first retry, the second call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Always `base`.
    Fixed {
        /// The wait.
        base: Duration,
    },
    /// `base × (retry + 1)`, at most `cap`.
    Linear {
        /// The first wait, and the step.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// `base × 2^retry`, at most `cap`; no jitter.
    Exponential {
        /// The first wait.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// Evenly drawn from zero to `min(cap, base × 2^retry)`.
    FullJitter {
        /// The most that the first wait can be.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// Evenly drawn from `base` to `min(cap, 3 × the last wait)`, the last wait taken as at least
    /// `base`.
    ///
    /// The well-known formula cuts at the cap *after* the draw and so gives exactly `cap` up to two
    /// times in three; here the range is cut instead.
    DecorrelatedJitter {
        /// The shortest wait.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// The listed waits in order; past the end the last repeats; an empty list gives zero.
    Schedule {
        /// The waits.
        delays: Vec<Duration>,
    },
    /// `base × factor^retry`, at most `cap`; no jitter.
    Geometric {
        /// The first wait.
        base: Duration,
        /// By what each wait is longer than the one before.
        factor: Factor,
        /// The longest wait.
        cap: Duration,
    },
    /// The waits of another rule, spread.
    Spread {
        /// The other rule.
        of: Box<Self>,
        /// How each of its waits is spread.
        jitter: Jitter,
    },
}

impl Backoff {
    /// The wait before `retry`; `last` is the wait before the retry before it, zero at first.
    pub fn delay(&self, retry: u32, last: Duration, chance: &mut dyn Chance) -> Duration {
        match self {
            Self::FullJitter { cap, .. } => Jitter::Full.draw(self.longest(retry), *cap, chance),
            Self::Spread { of, jitter } => {
                jitter.draw(of.delay(retry, last, chance), of.cap(), chance)
            }
            Self::DecorrelatedJitter { base, cap } => {
                let high = last.max(*base).saturating_mul(3).min(*cap);
                chance.between(*base.min(cap), high)
            }
            Self::Fixed { .. }
            | Self::Linear { .. }
            | Self::Exponential { .. }
            | Self::Geometric { .. }
            | Self::Schedule { .. } => self.longest(retry),
        }
    }

    /// The most that the wait before `retry` can be.
    ///
    /// Decorrelated jitter: when every earlier wait came from this backoff. After a longer wait of
    /// another origin its bound is the cap.
    pub fn longest(&self, retry: u32) -> Duration {
        match self {
            Self::Fixed { base } => *base,
            Self::Linear { base, cap } => grown(*base, u128::from(retry) + 1, *cap),
            Self::Exponential { base, cap } | Self::FullJitter { base, cap } => {
                grown(*base, 2_u128.saturating_pow(retry), *cap)
            }
            Self::DecorrelatedJitter { base, cap } => {
                grown(*base, 3_u128.saturating_pow(retry.saturating_add(1)), *cap)
            }
            Self::Schedule { delays } => {
                let place = usize::try_from(retry).unwrap_or(usize::MAX);
                delays.get(place).or_else(|| delays.last()).copied().unwrap_or(Duration::ZERO)
            }
            Self::Geometric { base, factor, cap } => {
                from_nanos(factor.grow(base.as_nanos(), retry, cap.as_nanos()))
            }
            Self::Spread { of, jitter } => jitter.longest(of.longest(retry), of.cap()),
        }
    }

    /// What no wait exceeds.
    pub fn cap(&self) -> Duration {
        match self {
            Self::Linear { cap, .. }
            | Self::Exponential { cap, .. }
            | Self::FullJitter { cap, .. }
            | Self::DecorrelatedJitter { cap, .. }
            | Self::Geometric { cap, .. } => *cap,
            Self::Fixed { .. } | Self::Schedule { .. } => Duration::MAX,
            Self::Spread { of, .. } => of.cap(),
        }
    }

    /// The expected wait before `retry`.
    ///
    /// Decorrelated jitter has no closed formula under a cap: this is computed, and a few per cent
    /// off at worst.
    pub fn mean(&self, retry: u32) -> Duration {
        match self {
            Self::FullJitter { .. } => self.longest(retry) / 2,
            Self::Spread { of, jitter } => jitter.mean(of.mean(retry), of.cap()),
            Self::DecorrelatedJitter { base, cap } => {
                let count = retry.saturating_add(1).min(SETTLED);
                decorrelated::means(*base, *cap, count).last().unwrap_or(*base)
            }
            Self::Fixed { .. }
            | Self::Linear { .. }
            | Self::Exponential { .. }
            | Self::Geometric { .. }
            | Self::Schedule { .. } => self.longest(retry),
        }
    }

    /// The expected sum of the first `retries` waits; quick for any number of them.
    pub fn mean_total(&self, retries: u32) -> Duration {
        match self {
            Self::DecorrelatedJitter { base, cap } => {
                let means = decorrelated::means(*base, *cap, retries.min(SETTLED));
                let (rising, level) = means.fold((Duration::ZERO, *base), |(sum, _), mean| {
                    (sum.saturating_add(mean), mean)
                });
                rising.saturating_add(level.saturating_mul(retries.saturating_sub(SETTLED)))
            }
            Self::FullJitter { .. } => self.longest_total(retries) / 2,
            Self::Fixed { .. }
            | Self::Linear { .. }
            | Self::Exponential { .. }
            | Self::Geometric { .. }
            | Self::Schedule { .. } => self.longest_total(retries),
            Self::Spread { .. } => self.total(retries, |retry| self.mean(retry)),
        }
    }

    /// The most that the first `retries` waits can be together; quick for any number of them.
    ///
    /// A factor near 1, and a spread linear rule, may still grow after 512 retries: beyond them it
    /// is a lower bound.
    pub fn longest_total(&self, retries: u32) -> Duration {
        match self {
            Self::Linear { base, cap } => linear_total(*base, *cap, retries),
            Self::Fixed { .. }
            | Self::Exponential { .. }
            | Self::FullJitter { .. }
            | Self::DecorrelatedJitter { .. }
            | Self::Geometric { .. }
            | Self::Schedule { .. }
            | Self::Spread { .. } => self.total(retries, |retry| self.longest(retry)),
        }
    }

    /// The sum over the first `retries`, each one added until the waits have settled.
    fn total(&self, retries: u32, wait: impl Fn(u32) -> Duration) -> Duration {
        let settled = self.settled();
        let rising = (0..retries.min(settled)).map(&wait);
        let level = wait(settled).saturating_mul(retries.saturating_sub(settled));
        rising.fold(level, Duration::saturating_add)
    }

    /// From which retry on all waits are taken as alike.
    fn settled(&self) -> u32 {
        match self {
            Self::Fixed { .. } => 0,
            Self::Schedule { delays } => u32::try_from(delays.len()).unwrap_or(u32::MAX),
            Self::Spread { of, .. } => of.settled(),
            Self::Linear { .. }
            | Self::Exponential { .. }
            | Self::FullJitter { .. }
            | Self::DecorrelatedJitter { .. }
            | Self::Geometric { .. } => SETTLED,
        }
    }

    /// Checks the rules between the fields.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Fixed { base } => base_is_real(*base),
            Self::Linear { base, cap }
            | Self::Exponential { base, cap }
            | Self::FullJitter { base, cap }
            | Self::DecorrelatedJitter { base, cap } => {
                base_is_real(*base)?;
                ConfigError::unless(cap >= base, "backoff.cap", "must not be below base")
            }
            Self::Schedule { delays } => {
                ConfigError::unless(!delays.is_empty(), "backoff.delays", "must not be empty")
            }
            Self::Geometric { base, factor, cap } => {
                base_is_real(*base)?;
                factor.validate()?;
                ConfigError::unless(cap >= base, "backoff.cap", "must not be below base")
            }
            Self::Spread { of, jitter } => {
                let draws = matches!(
                    **of,
                    Self::FullJitter { .. } | Self::DecorrelatedJitter { .. } | Self::Spread { .. }
                );
                ConfigError::unless(!draws, "jitter", "must not be set where jitter is built in")?;
                of.validate()?;
                jitter.validate()
            }
        }
    }
}

const fn base_is_real(base: Duration) -> Result<(), ConfigError> {
    ConfigError::unless(!base.is_zero(), "backoff.base", "must be above zero")
}

/// `base × factor`, at most `cap`.
fn grown(base: Duration, factor: u128, cap: Duration) -> Duration {
    from_nanos(base.as_nanos().saturating_mul(factor)).min(cap)
}

fn linear_total(base: Duration, cap: Duration, retries: u32) -> Duration {
    let steps = cap.as_nanos().checked_div(base.as_nanos()).unwrap_or(0);
    let rising = steps.min(u128::from(retries));
    let climbed = base.as_nanos().saturating_mul(rising * (rising + 1) / 2);
    let level = grown(base, u128::MAX, cap).as_nanos();
    from_nanos(climbed.saturating_add(level.saturating_mul(u128::from(retries) - rising)))
}

/// A span of that many nanoseconds, or the longest there is.
fn from_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND)) {
        (Ok(secs), Ok(rest)) => Duration::new(secs, rest),
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests;
