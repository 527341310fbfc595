//! Retry as a tower layer.
//!
//! In: requests of any body. Below: the same request as often as the policy says, its body equal
//! byte for byte. Out: the last answer with [`RetryInfo`](resilience::RetryInfo) in its extensions,
//! or the last error as [`GaveUp`](crate::GaveUp).
//! Never: retry what cannot or must not be sent twice, wait where the policy does not.

mod course;
mod future;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::HeaderName;
use http::{Request, Response};
use http_body::Body;
use resilience::{Classify, Outcome, Retry};
use tower_layer::Layer;
use tower_service::Service;

use self::course::{Course, Settings};
pub use self::future::RetryFuture;
use super::judge::Judge;
use crate::errors::BoxError;
use crate::replay::ReplayBody;

/// Bodies up to this are kept for another attempt, unless told otherwise.
const REPLAY_BYTES: u64 = 64 << 10;
/// Of a failed answer so much is read, unless told otherwise.
const DRAIN_BYTES: u64 = 64 << 10;

/// Retries requests under a policy.
///
/// ```
/// use std::time::Duration;
/// use http_adapter::RetryLayer;
/// use http_adapter::resilience::{RetryBudget, RetryPolicy};
///
/// let retry = RetryPolicy::full_jitter(Duration::from_millis(100))
///     .max_calls(4)
///     .budget(RetryBudget::ratio(0.2).floor_per_sec(10))
///     .build()?;
/// let layer = RetryLayer::new(retry).max_replay_body(1 << 20);
/// # Ok::<(), http_adapter::resilience::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct RetryLayer {
    settings: Settings,
}

impl RetryLayer {
    /// Retries under this policy, whose budget all services of the layer share.
    pub fn new(retry: Retry) -> Self {
        Self {
            settings: Settings {
                retry,
                judge: Judge::default(),
                replay_bytes_max: REPLAY_BYTES,
                drain_bytes_max: DRAIN_BYTES,
                on_retry: None,
            },
        }
    }

    /// Judges answers and errors; the library's table if not set.
    #[must_use]
    pub fn classify(mut self, classify: impl Classify + 'static) -> Self {
        self.settings.judge.classify = Arc::new(classify);
        self
    }

    /// The header that makes a repeat of any method safe; `idempotency-key` if not set.
    #[must_use]
    pub fn key_header(mut self, name: HeaderName) -> Self {
        self.settings.judge.key_header = name;
        self
    }

    /// A body of known length up to this is kept for another attempt; 64 KiB if not set.
    #[must_use]
    pub const fn max_replay_body(mut self, bytes: u64) -> Self {
        self.settings.replay_bytes_max = bytes;
        self
    }

    /// Of a failed answer up to this is read during the wait, so that its connection can be used
    /// again; 64 KiB if not set.
    #[must_use]
    pub const fn drain_on_retry(mut self, bytes: u64) -> Self {
        self.settings.drain_bytes_max = bytes;
        self
    }

    /// Hears of each retry before its wait: which attempt failed, from 1, how, and the wait. It
    /// should be quick; a panic in it ends there.
    #[must_use]
    pub fn on_retry(
        mut self,
        hear: impl Fn(u32, &Outcome<'_>, Duration) + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_retry = Some(Arc::new(hear));
        self
    }
}

impl fmt::Debug for RetryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("retry", &self.settings.retry).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        RetryService { inner, settings: self.settings.clone() }
    }
}

/// A service whose requests are retried.
#[derive(Clone)]
pub struct RetryService<S> {
    inner: S,
    settings: Settings,
}

impl<S: fmt::Debug> fmt::Debug for RetryService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for RetryService<S>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    R: Body,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = RetryFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was found ready makes the call; its clone stays.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        let (parts, body) = request.into_parts();
        RetryFuture::new(ready, body, Course::new(self.settings.clone(), parts))
    }
}
