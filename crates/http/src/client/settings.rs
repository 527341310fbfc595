//! What an adapter was built with.
//!
//! Never: change afterwards.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use resilience::{Classify, Retry};
use url::Url;

use super::correlation::Correlation;
use super::interceptor::DynInterceptor;
use super::keys::IdempotencyKeys;
use super::observer::Observers;
use super::transport::Transport;
use crate::bulkhead::Bulkhead;
use crate::source::Breakers;

/// Which of retry and breaker goes around the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The breaker sees each attempt and ends the retries when it opens.
    #[default]
    RetryOutsideBreaker,
    /// The breaker sees a request with all its attempts as one call, as the TypeScript library does
    /// it: a request that is being retried goes on although the breaker has opened meanwhile.
    BreakerOutsideRetry,
}

pub(super) struct Settings {
    pub(super) base: Url,
    /// Host and port: every request goes below the base.
    pub(super) host: String,
    pub(super) transport: Box<dyn Transport>,
    /// Without a policy: one of a single call.
    pub(super) retry: Retry,
    pub(super) once: Retry,
    pub(super) breakers: Option<Breakers>,
    pub(super) order: Order,
    pub(super) bulkhead: Option<Bulkhead>,
    pub(super) classify: Arc<dyn Classify>,
    pub(super) total_timeout: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) headers: HeaderMap,
    /// Credentials come last.
    pub(super) interceptors: Vec<Arc<dyn DynInterceptor>>,
    pub(super) observers: Observers,
    pub(super) correlation: Correlation,
    pub(super) keys: IdempotencyKeys,
    pub(super) replay_bytes_max: u64,
    pub(super) drain_bytes_max: usize,
    pub(super) response_bytes_max: usize,
}
