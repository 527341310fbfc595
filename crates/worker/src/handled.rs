//! What came of one run of a handler.
//!
//! In: whatever the handler returned. Out: done, again, or refused, with the error, the wish for a
//! time, and what it says about the health of whatever the handler calls.
//! Never: decide when, or whether there is another attempt.

use std::time::Duration;

use resilience::{Class, Outcome, RetryAfter, Retryability, Vote};

use crate::error::BoxError;

/// How a handler ended with a message.
#[derive(Debug)]
pub struct Handled {
    pub(crate) end: End,
    pub(crate) vote: Vote,
}

#[derive(Debug)]
pub(crate) enum End {
    Done,
    Retry { error: BoxError, hint: RetryAfter },
    Reject { reason: String, error: BoxError },
}

impl Handled {
    /// The message is done with.
    #[must_use]
    pub fn done() -> Self {
        Self { end: End::Done, vote: Vote::Success }
    }

    /// It failed in a way that may pass; for the breaker a failure.
    pub fn retry(error: impl Into<BoxError>) -> Self {
        let end = End::Retry { error: error.into(), hint: RetryAfter::Absent };
        Self { end, vote: Vote::Failure }
    }

    /// It would fail in the same way again: the message is set aside under this reason, a word such
    /// as `bad_schema`. It says nothing to the breaker.
    pub fn reject(reason: impl Into<String>, error: impl Into<BoxError>) -> Self {
        let end = End::Reject { reason: reason.into(), error: error.into() };
        Self { end, vote: Vote::Ignore }
    }

    /// As a classifier of the resilience library judged the call that failed.
    pub fn classed(class: Class, error: impl Into<BoxError>) -> Self {
        let handled = match class.retry {
            Retryability::Never => Self::reject("refused", error),
            Retryability::NotSent | Retryability::Transient => Self::retry(error),
        };
        handled.hinted(class.retry_after).vote(class.breaker)
    }

    /// The receiver asked to be left alone for so long. Only a retry takes it, and follows it as a
    /// `Retry-After`: as the policy's rule says, for at least 1 s and at most the rule's cap (1 h
    /// under the worker's own policy, 60 s under one of yours), with up to a tenth and at most 1 s
    /// on top. Zero is 1 s too.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        self.hinted(RetryAfter::Wait(wait))
    }

    /// Says something else to the breaker, such as nothing for a receiver that throttles.
    #[must_use]
    pub fn vote(self, vote: Vote) -> Self {
        Self { vote, ..self }
    }

    fn hinted(mut self, asked: RetryAfter) -> Self {
        if let End::Retry { hint, .. } = &mut self.end {
            *hint = asked;
        }
        self
    }
}

/// Done, or an error that may pass.
impl<E: Into<BoxError>> From<Result<(), E>> for Handled {
    fn from(result: Result<(), E>) -> Self {
        match result {
            Ok(()) => Self::done(),
            Err(error) => Self::retry(error),
        }
    }
}

impl End {
    /// The outcome as a retry policy reads it.
    pub(crate) fn outcome<'a>(error: &'a BoxError, hint: RetryAfter) -> Outcome<'a> {
        Outcome::transient().with_hint(hint).with_error(&**error)
    }
}

/// An error with everything that lies under it, in one line of bounded length.
pub(crate) fn told(error: &BoxError) -> String {
    const CHARS_MAX: usize = 1_000;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CHARS_MAX).collect()
}
