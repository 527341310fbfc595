//! What is done with a message after an attempt: the one decision.
//!
//! In: the message, how the attempt ended, the policy, the time, a `Chance`. Out: completed, again
//! at a time, set aside with reason and description, or given back.
//! Never: I/O, a clock, a count of its own: the attempts are those that the queue counted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use resilience::{Chance, Next, Retry, RetryAfter, RetrySession, StopReason, Timestamp, Tried};

use crate::error::BoxError;
use crate::handled::{End, told};
use crate::message::{History, Message};

/// A retry that the budget does not pay for is put off by this, and up to as much again. So is one
/// about which the policy's own code panics.
const PUT_OFF: Duration = Duration::from_secs(10);

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The handler came back.
    Handled(End),
    /// The handler panicked, with this message.
    Panicked(String),
    /// The handler took longer than this, and was dropped.
    TimedOut(Duration),
    /// The worker shuts down; the handler was dropped, or never begun.
    Cut,
    /// It has been received too often already; the handler was not begun.
    Exhausted,
}

/// What is done with the message.
#[derive(Debug)]
pub(crate) enum Verdict {
    Complete,
    Again(Again),
    Bury { attempts: u32, reason: String, description: String },
    Return,
}

/// Another attempt.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) due: Timestamp,
    pub(crate) history: History,
    /// Holds what the budget paid, until the message is scheduled.
    pub(crate) session: RetrySession,
}

/// A message under a policy.
pub(crate) struct Case<'a> {
    pub(crate) message: &'a Message,
    pub(crate) retry: &'a Retry,
    pub(crate) now: Timestamp,
}

impl Case<'_> {
    /// Whether it has been received more often than the policy allows calls: its handler then
    /// killed its consumers, or else it would have been set aside.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.message.attempt > self.retry.max_calls()
    }

    /// Decides.
    pub(crate) fn verdict(&self, ended: Ended, chance: &mut dyn Chance) -> Verdict {
        match ended {
            Ended::Handled(End::Done) => Verdict::Complete,
            Ended::Handled(End::Reject { reason, error }) => self.bury(reason, &told(&error)),
            Ended::Handled(End::Retry { error, hint }) => self.failed(&error, hint, chance),
            Ended::Panicked(text) => {
                self.failed(&format!("the handler panicked: {text}").into(), NO_HINT, chance)
            }
            Ended::TimedOut(limit) => {
                let text = format!("the handler took longer than {limit:?}");
                self.failed(&text.into(), NO_HINT, chance)
            }
            Ended::Cut => Verdict::Return,
            Ended::Exhausted => {
                let last = self.message.history.last_error.as_deref();
                let last = last.unwrap_or("none; consumers died or lost the lease every time");
                // This one is not begun: those before are what was tried.
                self.bury_after(self.message.attempt.saturating_sub(1), "crashed".to_owned(), last)
            }
        }
    }

    fn failed(&self, error: &BoxError, hint: RetryAfter, chance: &mut dyn Chance) -> Verdict {
        let history = &self.message.history;
        let tried = Tried {
            calls: self.message.attempt.saturating_sub(1),
            last_delay: history.last_wait,
            begun: self.begun(),
        };
        let mut session = self.retry.resume(tried);
        let outcome = End::outcome(error, hint);
        let next = catch_unwind(AssertUnwindSafe(|| session.failed(&outcome, self.now, chance)));
        let (due, delay) = match next {
            Ok(Next::Again { at, delay, .. }) => (at, delay),
            // A policy's own code that panics has said nothing: the attempts that the queue counts
            // bound it.
            Ok(Next::Stop(StopReason::BudgetEmpty)) | Err(_) => {
                let delay = chance.between(PUT_OFF, PUT_OFF * 2);
                (self.now.plus(delay), delay)
            }
            Ok(Next::Stop(stop)) => return self.bury(word(stop).to_owned(), &told(error)),
        };
        let history =
            History { begun: Some(self.begun()), last_wait: delay, last_error: Some(told(error)) };
        Verdict::Again(Again { due, history, session })
    }

    fn bury(&self, reason: String, last_error: &str) -> Verdict {
        self.bury_after(self.message.attempt, reason, last_error)
    }

    fn bury_after(&self, attempts: u32, reason: String, last_error: &str) -> Verdict {
        let description = format!(
            "attempt {} of at most {}; enqueued {}, first tried {}, given up {}; last error: {}",
            attempts,
            self.retry.max_calls(),
            date(self.message.enqueued_at),
            date(self.begun()),
            date(self.now),
            last_error,
        );
        Verdict::Bury { attempts, reason, description }
    }

    /// When the first attempt began; where the queue did not note it, this one.
    fn begun(&self) -> Timestamp {
        self.message.history.begun.unwrap_or(self.message.received_at)
    }
}

const NO_HINT: RetryAfter = RetryAfter::Absent;

const fn word(stop: StopReason) -> &'static str {
    match stop {
        StopReason::CallsExhausted => "attempts_exhausted",
        StopReason::Elapsed => "too_old",
        StopReason::RetryAfterTooLong => "retry_after_too_long",
        _ => "not_retryable",
    }
}

/// RFC 3339.
fn date(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests;
