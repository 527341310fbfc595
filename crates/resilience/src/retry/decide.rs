//! The one decision after a failed call: limits, wait, hint.
//!
//! In: the limits, what was tried, the hint, the time. Out: when, or why not. The server's policy
//! and the library's sessions are two settings of it.
//! Never: judge the failure, count, keep state.

use std::time::Duration;

use super::hint::RetryAfterRule;
use super::terms::{Next, Term, Tried};
use crate::backoff::Backoff;
use crate::chance::Chance;
use crate::clock::Timestamp;
use crate::retry_after::RetryAfter;

/// A rule for waits that is not one of [`Backoff`]'s.
///
/// ```
/// use std::time::Duration;
/// use resilience::{Chance, RetryPolicy, Waits};
///
/// struct Fibonacci;
///
/// impl Waits for Fibonacci {
///     fn wait(&self, retry: u32, _last: Duration, _chance: &mut dyn Chance) -> Duration {
///         let (now, _) = (0..retry.min(40)).fold((1, 1), |(a, b), _| (b, a + b));
///         Duration::from_millis(now)
///     }
/// }
///
/// assert!(RetryPolicy::custom(Fibonacci).max_calls(5).build().is_ok());
/// ```
pub trait Waits: Send + Sync {
    /// The wait before `retry`, 0 being the first; `last` is the wait before the one before it,
    /// zero at first.
    fn wait(&self, retry: u32, last: Duration, chance: &mut dyn Chance) -> Duration;
}

impl Waits for Backoff {
    fn wait(&self, retry: u32, last: Duration, chance: &mut dyn Chance) -> Duration {
        self.delay(retry, last, chance)
    }
}

/// What happens to a wait that ends past the age limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overrun {
    /// It is cut: the last call is made at the limit.
    CallAtLimit,
    /// No further call.
    Stop,
}

/// Why there is no further call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Calls,
    Age,
    Hint,
}

/// Everything that bounds the calls.
pub(super) struct Limits<'a> {
    pub(super) waits: &'a dyn Waits,
    pub(super) calls_max: u32,
    pub(super) age_max: Option<Duration>,
    pub(super) overrun: Overrun,
    pub(super) hint: RetryAfterRule,
}

/// Decides after a failed call that is worth a retry.
pub(super) fn decide(
    limits: &Limits<'_>,
    tried: Tried,
    hint: RetryAfter,
    now: Timestamp,
    chance: &mut dyn Chance,
) -> Next<Refusal> {
    let limit = limits.age_max.map_or(Timestamp::MAX, |age| tried.begun.plus(age));
    if tried.calls >= limits.calls_max {
        return Next::Stop(Refusal::Calls);
    }
    if now >= limit {
        return Next::Stop(Refusal::Age);
    }
    if limits.hint.gives_up(hint) {
        return Next::Stop(Refusal::Hint);
    }
    let retry = tried.calls.saturating_sub(1);
    let own = limits.waits.wait(retry, tried.last_delay, chance);
    let (delay, term) = limits.hint.apply(own, hint, chance);
    let at = now.plus(delay);
    match limits.overrun {
        Overrun::CallAtLimit if at > limit => {
            Next::Again { at: limit, delay: limit.since(now), term: Term::AgeLimit }
        }
        Overrun::Stop if at >= limit && limits.age_max.is_some() => Next::Stop(Refusal::Age),
        Overrun::CallAtLimit | Overrun::Stop => Next::Again { at, delay, term },
    }
}
