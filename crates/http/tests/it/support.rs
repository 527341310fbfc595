//! What the tests share.

use std::time::Duration;

use http_adapter::resilience::circuit::{BreakerBuilder, CircuitBreaker};
use http_adapter::resilience::{Retry, RetryPolicy, TokioSleeper};
use http_adapter::testing::MockTransport;
use http_adapter::{HttpAdapter, HttpAdapterBuilder, HttpError, HttpObserver};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

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

/// Keeps the paused clock from moving by itself while the runtime waits for a socket.
pub(crate) struct Held(#[expect(dead_code, reason = "held, not read")] std::sync::mpsc::Sender<()>);

impl Held {
    pub(crate) fn new() -> Self {
        let (held, end) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || end.recv().is_err());
        Self(held)
    }
}

/// Tells the test of waits.
pub(crate) struct Waits(UnboundedSender<Duration>);

/// An observer, and what it hears of waits.
pub(crate) fn waits() -> (Waits, UnboundedReceiver<Duration>) {
    let (tell, waits) = unbounded_channel();
    (Waits(tell), waits)
}

impl HttpObserver for Waits {
    fn on_retry(&self, _: u32, _: &HttpError, delay: Duration) {
        let _ = self.0.send(delay);
    }
}
