//! Who watches requests from outside.
//!
//! Never: change what is watched; a panic in an observer ends there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use resilience::RetryInfo;

use super::context::Context;
use super::error::HttpError;
use super::response::Response;
use crate::tell::tell;

/// Hears how requests go; implement what you need. Calls are made in the request's own task and
/// should be quick.
pub trait HttpObserver: Send + Sync + 'static {
    /// An attempt is about to be sent; the context says which.
    fn on_start(&self, context: &Context) {
        let _ = context;
    }

    /// Attempt `attempt`, from 1, failed with `error`; another one follows after `delay`.
    fn on_retry(&self, attempt: u32, error: &HttpError, delay: Duration) {
        let _ = (attempt, error, delay);
    }

    /// The request succeeded. The body is as it was received; the time is that of all attempts and
    /// waits.
    fn on_success(&self, response: &Response<Bytes>, info: &RetryInfo) {
        let _ = (response, info);
    }

    /// The request failed for good, or was dropped by its caller.
    fn on_failure(&self, error: &HttpError, elapsed: Duration) {
        let _ = (error, elapsed);
    }
}

/// All observers of an adapter.
#[derive(Clone, Default)]
pub(super) struct Observers(Vec<Arc<dyn HttpObserver>>);

impl Observers {
    pub(super) fn add(&mut self, observer: Arc<dyn HttpObserver>) {
        self.0.push(observer);
    }

    pub(super) fn tell(&self, what: impl Fn(&dyn HttpObserver)) {
        for observer in &self.0 {
            tell(|| what(&**observer));
        }
    }
}
