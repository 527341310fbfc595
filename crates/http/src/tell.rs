//! Telling those who only listen.
//!
//! Never: let a panic of theirs go further.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a listener. What one that panics leaves half done is its own; nothing of a request is in
/// its reach. The panic hook has reported it.
pub(crate) fn tell(listener: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(listener));
}
