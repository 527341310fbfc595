//! Faults that every backend has.
//!
//! Never: a stored value in the text.

use crate::StoreError;

/// The file is not ours, or is damaged; `why` is a plain sentence.
pub(crate) fn corrupt(why: &str) -> StoreError {
    StoreError::Corrupt(why.into())
}

/// A row that does not read as what was written.
pub(crate) fn unreadable() -> StoreError {
    corrupt("a stored row cannot be read")
}

/// Nothing can be done any more, or not by this store.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
