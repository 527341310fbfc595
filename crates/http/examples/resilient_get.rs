//! A GET that survives a busy server: retry with a budget, a breaker, timeouts, and what happened.
//!
//! ```text
//! cargo run -p peyk-http --example resilient_get -- http://127.0.0.1:8080 path
//! ```
#![expect(clippy::print_stdout, reason = "it is an example: what it shows is its purpose")]

use std::process::ExitCode;
use std::time::Duration;

use http_adapter::resilience::{
    CircuitBreaker, OpenFor, RetryAfterRule, RetryBudget, RetryPolicy, Trip,
};
use http_adapter::{BoxError, Bulkhead, HttpAdapter, HttpError, HttpObserver};

/// Says what the adapter does meanwhile.
struct Says;

impl HttpObserver for Says {
    fn on_retry(&self, attempt: u32, error: &HttpError, delay: Duration) {
        println!("attempt {attempt} failed ({error}); next in {delay:?}");
    }
}

fn adapter(base: &str) -> Result<HttpAdapter, BoxError> {
    let retry = RetryPolicy::full_jitter(Duration::from_millis(200))
        .cap(Duration::from_secs(5))
        .max_calls(4)
        .retry_after(RetryAfterRule::exact().cap(Duration::from_secs(10)))
        .budget(RetryBudget::ratio(0.2).floor_per_sec(1))
        .build()?;
    let breaker = CircuitBreaker::builder("example")
        .trip(Trip::consecutive(5))
        .open_for(OpenFor::fixed(Duration::from_secs(30)));
    Ok(HttpAdapter::builder(base)
        .retry(retry)
        .breaker(breaker)
        .bulkhead(Bulkhead::new(16)?.queue(32))
        .attempt_timeout(Duration::from_secs(3))
        .total_timeout(Duration::from_secs(20))
        .correlation_id("x-correlation-id")
        .observer(Says)
        .build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(base), Some(path)) = (arguments.next(), arguments.next()) else {
        println!("usage: resilient_get BASE_URL PATH");
        return Ok(ExitCode::FAILURE);
    };
    match adapter(&base)?.get(path).decode_text().send().await {
        Ok(response) => {
            println!("{} after {:?}", response.status(), response.info());
            println!("{}", response.body());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            println!("{error}");
            println!("{}", serde_json::to_string_pretty(&error)?);
            Ok(ExitCode::FAILURE)
        }
    }
}
