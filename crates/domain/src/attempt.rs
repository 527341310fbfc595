//! An attempt: the facts of one send. What was answered, how long it took, what went wrong.
//!
//! Never: judge; `classify` and `verdict` do that.

use std::time::Duration;

use bytes::Bytes;
use resilience::{RetryAfter, Timestamp};

use crate::delivery::Trigger;

/// What one send came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// 1 for the first send of this delivery; never restarts.
    pub number: u32,
    /// One clock reading, used for the signature, the row and the API.
    pub started_at: Timestamp,
    /// From before DNS to the last byte read.
    pub took: Duration,
    /// Why it was made.
    pub trigger: Trigger,
    /// What came of it.
    pub outcome: Outcome,
    /// A reused connection died before any answer byte and the request was sent once more.
    pub resent: bool,
}

/// What came of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The final status line and all headers came in.
    Answered(Answer),
    /// They did not.
    Failed(Failure),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The final status, 200 to 999.
    pub status: u16,
    /// What `Retry-After` said.
    pub retry_after: RetryAfter,
    /// The first bytes of the body, as they came.
    pub body: Bytes,
    /// Why the body is not whole, if it is not.
    pub cut: Option<Cut>,
    /// Scheme, host and port of `Location` on a 3xx.
    pub redirect_origin: Option<String>,
}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It was longer than what is read.
    Cap,
    /// The deadline passed.
    Deadline,
    /// The connection broke.
    Reset,
}

impl Cut {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cap => "cap",
            Self::Deadline => "deadline",
            Self::Reset => "reset",
        }
    }
}

/// Why no answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// In words, for the owner of the endpoint; no secrets, no path of the URL.
    pub text: String,
}

/// Kinds of failure before the final status and headers were in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The name did not resolve.
    Dns,
    /// No connection.
    Connect,
    /// The TLS handshake or the certificate failed.
    Tls,
    /// The connection broke, or the peer does not speak HTTP.
    Reset,
    /// The deadline passed.
    Timeout,
    /// The address may not be dialled.
    Forbidden,
    /// Our own fault, before the request was written.
    Internal,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::Timeout,
        Self::Forbidden,
        Self::Internal,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Forbidden => "forbidden",
            Self::Internal => "internal",
        }
    }

    /// Whether it happened before a connection stood.
    pub const fn before_connection(self) -> bool {
        matches!(self, Self::Dns | Self::Connect)
    }
}

impl Attempt {
    /// The answer's status, 0 when there was none.
    pub const fn status(&self) -> u16 {
        match &self.outcome {
            Outcome::Answered(answer) => answer.status,
            Outcome::Failed(_) => 0,
        }
    }

    /// What `Retry-After` said.
    pub const fn retry_after(&self) -> RetryAfter {
        match &self.outcome {
            Outcome::Answered(answer) => answer.retry_after,
            Outcome::Failed(_) => RetryAfter::Absent,
        }
    }
}
