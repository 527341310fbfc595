//! Why a store did not do as asked.
//!
//! Never: a key or a part of a response in a text.

use resilience::error::with_causes;

use crate::body::BoxError;

/// Why a store did not do as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another holder has the key, or the record is gone.
    #[error("the lease was lost: another request holds the key, or its record is gone")]
    Stale,
    /// No answer came in time; what was asked may have been done.
    #[error("the store did not answer in time")]
    TimedOut,
    /// Every record is in progress and there is room for no other.
    #[error("the store is full of requests in progress")]
    Full,
    /// The store cannot be reached or refused.
    #[error("the store failed: {}", with_causes(&**.0))]
    Unavailable(#[source] BoxError),
    /// A record that this library did not write.
    #[error("a stored record is damaged: {0}")]
    Corrupt(&'static str),
}

impl StoreError {
    /// For stores: whatever their client reports.
    pub fn unavailable(error: impl Into<BoxError>) -> Self {
        Self::Unavailable(error.into())
    }
}
