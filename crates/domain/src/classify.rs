//! What an attempt means: one class for each row of the classifier's table, and the words for it.
//!
//! In: the facts of one send and which answers are retried. Out: a class.
//! Never: read the body of an answer; the status decides.

use crate::attempt::{Attempt, FailureKind, Outcome};
use crate::policy::RetryOn;

/// What a send came to, as the verdict, the breaker and the metrics see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// 2xx.
    Success,
    /// 429: the receiver asks for fewer; retried, holds the lane, no failure of the breaker's.
    Throttled,
    /// An answer that is retried, or none at all.
    Transient,
    /// 410: nothing more is to be sent there.
    Gone,
    /// The receiver refuses this message.
    Rejected,
    /// The address may not be dialled.
    Forbidden,
    /// Our own fault: it says nothing about the receiver.
    Internal,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Throttled,
        Self::Transient,
        Self::Gone,
        Self::Rejected,
        Self::Forbidden,
        Self::Internal,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Throttled => "throttled",
            Self::Transient => "transient",
            Self::Gone => "gone",
            Self::Rejected => "rejected",
            Self::Forbidden => "forbidden",
            Self::Internal => "internal",
        }
    }

    /// Whether another send may mend it.
    pub const fn is_retried(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient)
    }
}

/// The class of an attempt.
///
/// A 410 is retried when `retry_on` says so, by `all` or by a list that holds it.
pub fn classify(attempt: &Attempt, retry_on: &RetryOn) -> Class {
    match &attempt.outcome {
        Outcome::Answered(answer) => of_answer(answer.status, retry_on),
        Outcome::Failed(failure) => of_failure(failure.kind),
    }
}

/// The class of an attempt by the usual classifier, from what is kept of it: the answer's status,
/// or why there was none. It is the same for every policy, so that figures can be added up.
pub fn usual_class(status: u16, failure: Option<FailureKind>) -> Class {
    failure.map_or_else(|| of_answer(status, &RetryOn::Transient), of_failure)
}

const fn of_failure(kind: FailureKind) -> Class {
    match kind {
        FailureKind::Forbidden => Class::Forbidden,
        FailureKind::Internal => Class::Internal,
        FailureKind::Dns
        | FailureKind::Connect
        | FailureKind::Tls
        | FailureKind::Reset
        | FailureKind::Timeout => Class::Transient,
    }
}

fn of_answer(status: u16, retry_on: &RetryOn) -> Class {
    match status {
        200..=299 => Class::Success,
        429 if retry_on.includes(429) => Class::Throttled,
        _ if retry_on.includes(status) => Class::Transient,
        410 => Class::Gone,
        _ => Class::Rejected,
    }
}

/// What went wrong, for the owner of the endpoint; `None` if nothing did.
pub fn describe(attempt: &Attempt) -> Option<String> {
    let answer = match &attempt.outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Failed(failure) if failure.text.is_empty() => {
            return Some(failure.kind.name().to_owned());
        }
        Outcome::Failed(failure) => return Some(failure.text.clone()),
    };
    let status = answer.status;
    match (status, &answer.redirect_origin) {
        (200..=299, _) => None,
        (304, _) => Some("the receiver answered 304, which takes no message".to_owned()),
        (300..=399, Some(origin)) => Some(format!(
            "the receiver answered {status} and points to {origin}; redirects are not followed: \
             update the URL"
        )),
        (300..=399, None) => {
            Some(format!("the receiver answered {status} and does not say where to: check the URL"))
        }
        (410, _) => Some("the receiver answered 410: it is gone for good".to_owned()),
        (429, _) => Some("the receiver answered 429: it asks for fewer requests".to_owned()),
        (600.., _) => {
            Some(format!("the receiver answered {status}, which is not a valid HTTP status"))
        }
        _ => Some(format!("the receiver answered {status}")),
    }
}

#[cfg(test)]
mod tests;
