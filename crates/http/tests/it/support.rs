//! What the tests share.

use std::time::Duration;

use http_adapter::resilience::circuit::{BreakerBuilder, CircuitBreaker};
use http_adapter::resilience::{Retry, RetryPolicy, TokioSleeper};
use http_adapter::testing::MockTransport;
use http_adapter::{HttpAdapter, HttpAdapterBuilder};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// An adapter over a script.
pub(crate) fn over(mock: &MockTransport) -> HttpAdapterBuilder {
    HttpAdapter::builder("https://api.test/v1").transport(mock.clone())
}

/// So many calls, one second apart.
pub(crate) fn calls(calls: u32) -> Retry {
    RetryPolicy::fixed(SECOND).max_calls(calls).build().unwrap()
}

/// A breaker by tokio's clock.
pub(crate) fn breaker(name: &str) -> BreakerBuilder {
    CircuitBreaker::builder(name).clock(TokioSleeper::new())
}
