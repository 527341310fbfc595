//! The retry policies, breaker defaults and judgement of the TypeScript library
//! `@yildizpay/http-adapter`, number for number.
//!
//! There `n` counts failed tries from 1, `attempts` counts all calls, nothing but the decorrelated
//! policy is capped, and the decorrelated policy keeps no state. What is *not* taken over are its
//! faults in arithmetic: a wait never overflows, and never exceeds the maximum that was asked for.
//! Never: be better than the original where that changes a number.

use std::time::Duration;

use crate::breaker::rules::{HalfOpen, OpenFor, Rules, Trip};
use crate::chance::Chance;
use crate::classify::{Answer, Call, Class, Classify, ErrorKind, Retryability, Vote};
use crate::retry::{Replay, RetryAfterRule, RetryBuilder, RetryPolicy, Waits};
use crate::retry_after::RetryAfter;

/// Calls in all, unless told otherwise.
pub const ATTEMPTS: u32 = 3;
/// The wait of `fixed_delay`, unless told otherwise.
pub const FIXED_DELAY: Duration = Duration::from_millis(1_000);
/// The step of `linear_backoff`, unless told otherwise.
pub const LINEAR_STEP: Duration = Duration::from_millis(500);
/// The base of both jittered policies, unless told otherwise.
pub const JITTER_BASE: Duration = Duration::from_millis(100);
/// The longest wait of `decorrelated_jitter`, unless told otherwise.
pub const DECORRELATED_MAX: Duration = Duration::from_millis(30_000);

const EXPONENTIAL_BASE: Duration = Duration::from_millis(100);
const EXPONENTIAL_JITTER: Duration = Duration::from_millis(50);

/// One of the five formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// `2^n × 100 ms + U[0, 50 ms)`.
    Exponential,
    /// `delay`.
    Fixed {
        /// The wait.
        delay: Duration,
    },
    /// `n × step`.
    Linear {
        /// The step.
        step: Duration,
    },
    /// `U[0, 2^n × base)`.
    FullJitter {
        /// Half of what the first wait can be.
        base: Duration,
    },
    /// `U[base, min(max, base × 3^n))`.
    Decorrelated {
        /// The shortest wait.
        base: Duration,
        /// The longest wait.
        max: Duration,
    },
}

impl Formula {
    /// The wait after `n` failed tries, from 1.
    pub fn backoff(&self, n: u32, chance: &mut dyn Chance) -> Duration {
        match *self {
            Self::Exponential => times(EXPONENTIAL_BASE, 2, n).saturating_add(below(
                Duration::ZERO,
                EXPONENTIAL_JITTER,
                chance,
            )),
            Self::Fixed { delay } => delay,
            Self::Linear { step } => step.saturating_mul(n),
            Self::FullJitter { base } => below(Duration::ZERO, times(base, 2, n), chance),
            Self::Decorrelated { base, max } => {
                below(base.min(max), times(base, 3, n).min(max), chance)
            }
        }
    }
}

impl Waits for Formula {
    fn wait(&self, retry: u32, _last: Duration, chance: &mut dyn Chance) -> Duration {
        self.backoff(retry.saturating_add(1), chance)
    }
}

/// `base × factor^n`, or the longest there is.
fn times(base: Duration, factor: u32, n: u32) -> Duration {
    base.saturating_mul(factor.saturating_pow(n))
}

/// From `low` to just below `high`.
fn below(low: Duration, high: Duration, chance: &mut dyn Chance) -> Duration {
    chance.between(low, high.saturating_sub(Duration::from_micros(1)).max(low))
}

/// `exponential(attempts)`.
pub fn exponential(attempts: u32) -> RetryBuilder {
    policy(Formula::Exponential, attempts)
}

/// `fixedDelay(attempts, delayMs)`.
pub fn fixed_delay(attempts: u32, delay: Duration) -> RetryBuilder {
    policy(Formula::Fixed { delay }, attempts)
}

/// `linearBackoff(attempts, stepMs)`.
pub fn linear_backoff(attempts: u32, step: Duration) -> RetryBuilder {
    policy(Formula::Linear { step }, attempts)
}

/// `fullJitter(attempts, baseMs)`.
pub fn full_jitter(attempts: u32, base: Duration) -> RetryBuilder {
    policy(Formula::FullJitter { base }, attempts)
}

/// `decorrelatedJitter(attempts, baseMs, maxDelayMs)`.
pub fn decorrelated_jitter(attempts: u32, base: Duration, max: Duration) -> RetryBuilder {
    policy(Formula::Decorrelated { base, max }, attempts)
}

/// That library looks neither at the method nor at `Retry-After`.
fn policy(formula: Formula, attempts: u32) -> RetryBuilder {
    RetryPolicy::custom(formula)
        .max_calls(attempts)
        .retry_after(RetryAfterRule::ignore())
        .replay(Replay::Always)
}

/// Its breaker: five failures in a row, open for 60 s, one probe, one success.
pub const fn breaker() -> Rules {
    Rules {
        enabled: true,
        trip: Trip::consecutive(5),
        open_for: OpenFor::fixed(Duration::from_millis(60_000)),
        half_open: HalfOpen::probes(1).close_after(1),
    }
}

/// Its judgement: 429, 502, 503, 504, timeouts, resets and refused connections may be retried, and
/// whatever is not a success counts against the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpAdapterClassify;

impl Classify for HttpAdapterClassify {
    fn classify(&self, _call: &Call, answer: Answer, hint: RetryAfter) -> Class {
        let retryable = match answer {
            Answer::Status(200..=299) => return Class::SUCCESS,
            Answer::Status(status) => matches!(status, 429 | 502..=504),
            Answer::Failed(kind) => matches!(
                kind,
                ErrorKind::Timeout
                    | ErrorKind::ConnectTimeout
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionRefused
            ),
        };
        let retry = if retryable { Retryability::Transient } else { Retryability::Never };
        Class::of(retry, Vote::Failure).hinted(hint)
    }
}

#[cfg(test)]
mod tests;
