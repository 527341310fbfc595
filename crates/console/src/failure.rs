//! Why a command did not succeed, and with which exit status it ends.
//!
//! Never: a secret, or a control character of somebody else's text in what is said.

use std::error::Error;

/// Why a command did not succeed. What is said is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It was called wrongly.
    #[error("{0}")]
    Usage(String),
    /// The server refused, or there is no such thing.
    #[error("{0}")]
    Refused(String),
    /// There was no answer of a server.
    #[error("{0}")]
    Unreachable(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
    /// Whoever read standard output does so no more; nothing is wrong.
    #[error("standard output was closed")]
    Closed,
}

impl Failure {
    /// The exit status: 0 if nobody is there to read, 1 refused or anything else, 2 wrong usage,
    /// 3 unreachable.
    #[must_use]
    pub const fn status(&self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::Refused(_) | Self::Other(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
        }
    }
}

/// What lies at the bottom of an error: the sentence that says most.
pub(crate) fn root(fault: &dyn Error) -> String {
    let mut last = fault;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
