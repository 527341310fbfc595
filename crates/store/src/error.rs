//! What can go wrong in a store.
//!
//! Never: carry SQL, payloads or secrets in the text that callers see.

use thiserror::Error;

/// A call of a store failed; what it was to write is not written, unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// There is no such row.
    #[error("no such {0}")]
    Missing(&'static str),
    /// A unique name is taken.
    #[error("{0} is taken")]
    Conflict(&'static str),
    /// More is waiting than may wait; try again shortly.
    #[error("overloaded")]
    Overloaded,
    /// Nothing can be committed now: disk full, read-only, connection lost.
    #[error("storage unavailable: {0}")]
    Unavailable(String),
    /// The file is not ours, or is damaged.
    #[error("storage unusable: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Overloaded | Self::Unavailable(_))
    }
}
