//! How one request has fared under a policy so far, and what follows from its next failure.
//!
//! The checks come in a fixed order: worth a retry, safe to repeat, calls left, wait, fits the
//! time, paid for by the budget. A paid retry that is never made goes back into the budget.
//! Never: hold the policy; whoever holds both passes it in.

use std::fmt;
use std::time::Duration;

use super::decide::{Refusal, decide};
use super::settings::Settings;
use super::terms::{Next, Tried};
use crate::budget::Withdrawal;
use crate::chance::Chance;
use crate::classify::{ErrorKind, Outcome, Retryability};
use crate::clock::Timestamp;
use crate::retry_after::RetryAfter;

/// Why no further call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The failure is not one that passes.
    NotRetryable,
    /// The first call may have been acted on, and acting twice may do harm.
    UnsafeMethod,
    /// The body cannot be sent again.
    BodyNotReplayable,
    /// All calls are used up.
    CallsExhausted,
    /// The time is used up, or the wait would not fit into it.
    Elapsed,
    /// The receiver asked for a longer wait than is followed.
    RetryAfterTooLong,
    /// The retry budget is empty.
    BudgetEmpty,
    /// A circuit breaker let the call not through.
    CircuitOpen,
    /// The caller gave up.
    Cancelled,
}

impl StopReason {
    /// In words that follow "gave up:".
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotRetryable => "the failure is not one that passes",
            Self::UnsafeMethod => "it is not safe to repeat",
            Self::BodyNotReplayable => "the body cannot be sent again",
            Self::CallsExhausted => "all calls are used up",
            Self::Elapsed => "the time is used up",
            Self::RetryAfterTooLong => "the receiver asked for too long a wait",
            Self::BudgetEmpty => "the retry budget is empty",
            Self::CircuitOpen => "the circuit breaker is open",
            Self::Cancelled => "the caller gave up",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryInfo {
    /// Calls made.
    pub calls: u32,
    /// From the beginning of the first to the end of the last. None where nobody looked at a clock:
    /// a [`Runner`](super::Runner) does only for a policy that asks for it, by `max_elapsed`, a
    /// budget or `timed`.
    pub elapsed: Option<Duration>,
    /// Why there was no further call; none when the last one succeeded.
    pub stop: Option<StopReason>,
}

/// One request so far.
pub(super) struct Course {
    pub(super) tried: Tried,
    paid: Option<Withdrawal>,
}

impl From<Tried> for Course {
    fn from(tried: Tried) -> Self {
        Self { tried, paid: None }
    }
}

impl Settings {
    /// A request at its first call, which earns the budget its share.
    pub(super) fn begin(&self, now: Timestamp) -> Course {
        if let Some(budget) = &self.budget {
            budget.deposit(now);
        }
        Course::from(Tried { calls: 0, last_delay: Duration::ZERO, begun: now })
    }
}

impl Course {
    /// The call failed: when to make another, or why not.
    pub(super) fn failed(
        &mut self,
        settings: &Settings,
        outcome: &Outcome<'_>,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Next<StopReason> {
        self.calling();
        self.tried.calls = self.tried.calls.saturating_add(1);
        if let Some(stop) = refusal(settings, outcome) {
            return Next::Stop(stop);
        }
        let heeded = settings.hint.heeds(outcome.status());
        let hint = if heeded { outcome.class.retry_after } else { RetryAfter::Absent };
        match decide(&settings.limits(), self.tried, hint, now, chance) {
            Next::Again { at, delay, term } => {
                if let Some(budget) = &settings.budget {
                    let Some(paid) = budget.withdraw(now) else {
                        return Next::Stop(StopReason::BudgetEmpty);
                    };
                    self.paid = Some(paid);
                }
                self.tried.last_delay = delay;
                Next::Again { at, delay, term }
            }
            Next::Stop(Refusal::Calls) => Next::Stop(StopReason::CallsExhausted),
            Next::Stop(Refusal::Age) => Next::Stop(StopReason::Elapsed),
            Next::Stop(Refusal::Hint) => Next::Stop(StopReason::RetryAfterTooLong),
        }
    }

    /// The next call is made.
    pub(super) fn calling(&mut self) {
        if let Some(paid) = self.paid.take() {
            paid.spend();
        }
    }

    /// How it went, after the failure that `stop` ended it with, or after a success.
    pub(super) fn ended(&self, stop: Option<StopReason>, now: Option<Timestamp>) -> RetryInfo {
        let calls = match stop {
            None => self.tried.calls.saturating_add(1),
            // The last one was not let through.
            Some(StopReason::CircuitOpen) => self.tried.calls.saturating_sub(1),
            Some(_) => self.tried.calls,
        };
        RetryInfo { calls, elapsed: now.map(|now| now.since(self.tried.begun)), stop }
    }
}

/// Why this failure ends it, whatever is left.
fn refusal(settings: &Settings, outcome: &Outcome<'_>) -> Option<StopReason> {
    let worth = match &settings.predicate {
        Some(predicate) => predicate.should_retry(outcome),
        None => outcome.class.retry != Retryability::Never,
    };
    match outcome.error_kind() {
        _ if worth => {}
        Some(ErrorKind::CircuitOpen) => return Some(StopReason::CircuitOpen),
        Some(ErrorKind::Cancelled) => return Some(StopReason::Cancelled),
        _ => return Some(StopReason::NotRetryable),
    }
    if !outcome.call.replayable {
        return Some(StopReason::BodyNotReplayable);
    }
    (!settings.replay.allows(outcome)).then_some(StopReason::UnsafeMethod)
}
