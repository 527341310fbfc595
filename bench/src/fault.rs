//! The one error of this program: a sentence for whoever runs it.
//!
//! Never: be matched on; a measurement that fails is told and ended, not repaired.

use std::fmt;
use std::io;

/// What went wrong, in words.
#[derive(Debug)]
pub(crate) struct Fault(String);

/// What every fallible function here returns.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// From a sentence.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<tokio::task::JoinError> for Fault {
    fn from(error: tokio::task::JoinError) -> Self {
        Self(format!("a task of the bench ended badly: {error}"))
    }
}

/// Puts before an error what was being done.
pub(crate) trait While<T> {
    /// `what` names the step, for example "reading the token".
    fn while_(self, what: &str) -> Result<T>;
}

impl<T, E: fmt::Display> While<T> for std::result::Result<T, E> {
    fn while_(self, what: &str) -> Result<T> {
        self.map_err(|error| Fault(format!("{what}: {error}")))
    }
}
