//! Waiting, as something that is passed in.
//!
//! A sleeper is a clock that can also wait by it, so that a test that stops the one stops the
//! other.
//! Never: name a runtime outside the feature that brings it.

#[cfg(all(feature = "tokio", not(all(target_family = "wasm", target_os = "unknown"))))]
mod with_tokio;

use std::future::Future;
use std::time::Duration;

use crate::clock::Clock;
#[cfg(all(feature = "tokio", not(all(target_family = "wasm", target_os = "unknown"))))]
pub use with_tokio::TokioSleeper;

/// Waits by its own clock.
///
/// What comes back need not be `Send`: a runtime on one thread, as in a browser, can implement it
/// too.
pub trait Sleeper: Clock {
    /// One wait.
    type Sleep: Future<Output = ()>;

    /// Waits for `span`. Dropping it ends the wait.
    fn sleep(&self, span: Duration) -> Self::Sleep;
}

impl<S: Sleeper + ?Sized> Sleeper for &S {
    type Sleep = S::Sleep;

    fn sleep(&self, span: Duration) -> Self::Sleep {
        (**self).sleep(span)
    }
}

impl<S: Sleeper + ?Sized> Sleeper for std::sync::Arc<S> {
    type Sleep = S::Sleep;

    fn sleep(&self, span: Duration) -> Self::Sleep {
        (**self).sleep(span)
    }
}
