//! One judgement of how a call ended, for retry, breaker and budget alike.
//!
//! In: plain facts: what was called, and the status or the kind of error. Out: a [`Class`]: may it
//! be tried again, does it speak for or against the receiver's health, how long to wait.
//! Never: see bodies or headers, decide whether a call is in fact repeated.

mod facts;
#[cfg(feature = "http")]
mod http;

use std::error::Error;

pub use facts::{Answer, Call, ErrorKind, Method};

use crate::retry_after::RetryAfter;

/// Whether a call may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retryability {
    /// The same call would end the same way.
    Never,
    /// Nothing was done with it: it never left, or was turned away unread. Safe for any method.
    NotSent,
    /// It may pass, but the receiver may have acted on the call that failed.
    Transient,
}

/// What a result says about the receiver's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// It is well.
    Success,
    /// It is not.
    Failure,
    /// Nothing: refused, throttled, cancelled, our own fault.
    Ignore,
}

/// How a call is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// For the retry policy.
    pub retry: Retryability,
    /// For the breaker.
    pub breaker: Vote,
    /// What the receiver asked for.
    pub retry_after: RetryAfter,
}

impl Class {
    /// It went well.
    pub const SUCCESS: Self = Self::of(Retryability::Never, Vote::Success);
    /// It failed in a way that may pass.
    pub const TRANSIENT: Self = Self::of(Retryability::Transient, Vote::Failure);
    /// It failed for good, and not through the receiver's fault.
    pub const REFUSED: Self = Self::of(Retryability::Never, Vote::Ignore);

    /// A class without a hint.
    pub const fn of(retry: Retryability, breaker: Vote) -> Self {
        Self { retry, breaker, retry_after: RetryAfter::Absent }
    }

    /// The same with the receiver's hint; only a class that may be retried takes one.
    #[must_use]
    pub const fn hinted(mut self, hint: RetryAfter) -> Self {
        if !matches!(self.retry, Retryability::Never) {
            self.retry_after = hint;
        }
        self
    }
}

/// Judges how calls end.
pub trait Classify: Send + Sync {
    /// The class of one call. `hint` is its `Retry-After`, as read.
    fn classify(&self, call: &Call, answer: Answer, hint: RetryAfter) -> Class;
}

impl<F: Fn(&Call, Answer, RetryAfter) -> Class + Send + Sync> Classify for F {
    fn classify(&self, call: &Call, answer: Answer, hint: RetryAfter) -> Class {
        self(call, answer, hint)
    }
}

/// The library's own table; the page on backoff and retry lists it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultClassify;

impl Classify for DefaultClassify {
    fn classify(&self, _: &Call, answer: Answer, hint: RetryAfter) -> Class {
        let class = match answer {
            Answer::Status(status) => of_status(status),
            Answer::Failed(kind) => of_error(kind),
        };
        class.hinted(hint)
    }
}

const fn of_status(status: u16) -> Class {
    use Retryability::{Never, NotSent};
    match status {
        200..=399 => Class::SUCCESS,
        // Turned away before anything was done with it. A receiver that throttles is not ill.
        425 => Class::of(NotSent, Vote::Failure),
        429 => Class::of(NotSent, Vote::Ignore),
        408 | 500 | 502..=504 => Class::TRANSIENT,
        501 => Class::REFUSED,
        500..=599 => Class::of(Never, Vote::Failure),
        // Refusals say nothing about health: as successes they would hide an outage they are mixed
        // with, as failures five wrong paths would open the breaker.
        _ => Class::REFUSED,
    }
}

const fn of_error(kind: ErrorKind) -> Class {
    match kind {
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectTimeout
        | ErrorKind::Dns
        | ErrorKind::StreamRefused
        | ErrorKind::NotSent => Class::of(Retryability::NotSent, Vote::Failure),
        ErrorKind::ConnectionReset | ErrorKind::Timeout => Class::TRANSIENT,
        ErrorKind::HostUnreachable | ErrorKind::Tls | ErrorKind::Protocol => {
            Class::of(Retryability::Never, Vote::Failure)
        }
        // Whoever is turned away at a bound of our own is not to come back at once.
        ErrorKind::Cancelled
        | ErrorKind::CircuitOpen
        | ErrorKind::Overloaded
        | ErrorKind::Invalid
        | ErrorKind::Other => Class::REFUSED,
    }
}

/// How a call ended, with its judgement: what predicates and sessions look at.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Outcome<'a> {
    /// What was called.
    pub call: Call,
    /// How it ended.
    pub answer: Answer,
    /// How that was judged.
    pub class: Class,
    /// The error itself, if there is one.
    pub error: Option<&'a (dyn Error + 'static)>,
}

impl<'a> Outcome<'a> {
    /// An outcome and its class.
    pub const fn new(call: Call, answer: Answer, class: Class) -> Self {
        Self { call, answer, class, error: None }
    }

    /// Any error of an operation that may be repeated.
    pub const fn transient() -> Self {
        Self::new(Call::SAFE, Answer::Failed(ErrorKind::Other), Class::TRANSIENT)
    }

    /// An error that is not worth a retry.
    pub const fn refused() -> Self {
        Self::new(Call::SAFE, Answer::Failed(ErrorKind::Other), Class::REFUSED)
    }

    /// The same with the error itself.
    #[must_use]
    pub const fn with_error(mut self, error: &'a (dyn Error + 'static)) -> Self {
        self.error = Some(error);
        self
    }

    /// The same with what the receiver asked for.
    #[must_use]
    pub const fn with_hint(mut self, hint: RetryAfter) -> Self {
        self.class = self.class.hinted(hint);
        self
    }

    /// Whether its class may be retried at all.
    pub const fn is_retryable(&self) -> bool {
        !matches!(self.class.retry, Retryability::Never)
    }

    /// Whether the receiver certainly did nothing with the call: it never left, or was turned away
    /// unread.
    pub const fn is_not_sent(&self) -> bool {
        match self.answer {
            Answer::Failed(kind) if kind.is_not_sent() => true,
            _ => matches!(self.class.retry, Retryability::NotSent),
        }
    }

    /// Whether it ended with this status.
    pub fn status_is(&self, status: u16) -> bool {
        self.answer == Answer::Status(status)
    }

    /// The status, if there was an answer.
    pub const fn status(&self) -> Option<u16> {
        match self.answer {
            Answer::Status(status) => Some(status),
            Answer::Failed(_) => None,
        }
    }

    /// The kind of error, if there was no answer.
    pub const fn error_kind(&self) -> Option<ErrorKind> {
        match self.answer {
            Answer::Failed(kind) => Some(kind),
            Answer::Status(_) => None,
        }
    }

    /// The error, if it is of this type.
    pub fn error_as<E: Error + 'static>(&self) -> Option<&'a E> {
        self.error.and_then(|error| error.downcast_ref())
    }
}

#[cfg(test)]
mod tests;
