//! HTTP calls that survive a bad day: an adapter for those who call, and tower layers for those who
//! build their own stack.
//!
//! [`HttpAdapter`] is a client for one API over any `tower` service or over reqwest: retry with
//! `Retry-After` and a budget, circuit breaker, bulkhead, timeouts for each attempt and for all of
//! them, interceptors, validators, credentials, idempotency keys, observers. The policies are those
//! of the crate `resilience`; nothing here decides anew what they decide.
//!
//! [`RetryLayer`], [`CircuitBreakerLayer`], [`BulkheadLayer`] and [`TimeoutLayer`] are the same for
//! a stack of services. What they share lives in the layer, so that services made anew for every
//! route or request see one state.
//!
//! Never: decides whether a failure may pass (that is `resilience::classify`), draws chance or
//! reads a clock of its own, hides an error.
//!
//! ```
//! # #[cfg(feature = "testing")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use http_adapter::resilience::{CircuitBreaker, RetryPolicy};
//! use http_adapter::testing::MockTransport;
//! use http_adapter::{Bulkhead, HttpAdapter};
//!
//! // In a program: a reqwest client, or any service of `http` requests.
//! let transport = MockTransport::new();
//! transport.reply_once(503, "").reply_once(200, r#"{"name":"Ada"}"#);
//!
//! let api = HttpAdapter::builder("https://api.example.com/v1")
//!     .transport(transport.clone())
//!     .retry(RetryPolicy::full_jitter(Duration::from_millis(100)).max_calls(4).build()?)
//!     .breaker(CircuitBreaker::builder("api"))
//!     .bulkhead(Bulkhead::new(64)?.queue(128))
//!     .build()?;
//!
//! let user = api.get("users/1").send_json::<serde_json::Value>().await?;
//! assert_eq!(user.body()["name"], "Ada");
//! assert_eq!(user.info().map(|info| info.calls), Some(2));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "testing"))]
//! # fn main() {}
//! ```

mod bulkhead;
#[cfg(feature = "client")]
mod client;
mod errors;
mod fault;
mod host;
mod layer;
mod replay;
mod source;
mod tell;
#[cfg(feature = "testing")]
pub mod testing;

pub use resilience;

pub use bulkhead::{Bulkhead, BulkheadPermit};
#[cfg(feature = "reqwest")]
pub use client::Reqwest;
#[cfg(feature = "client")]
pub use client::{
    ApiKey, Basic, Bearer, Body, Context, Flow, HttpAdapter, HttpAdapterBuilder, HttpError,
    HttpErrorKind, HttpObserver, IdempotencyKeys, Interceptor, Invalid, OrInvalid, Order,
    RequestBuilder, Response,
};
pub use errors::{Answered, BoxError, BulkheadFull, GaveUp, TimedOut};
pub use fault::fault_of;
pub use layer::{
    BreakerFuture, BreakerService, BulkheadFuture, BulkheadLayer, BulkheadService,
    CircuitBreakerLayer, DeadlineBody, HeldBody, RetryFuture, RetryLayer, RetryService,
    TimeoutFuture, TimeoutLayer, TimeoutService,
};
pub use replay::ReplayBody;
pub use resilience::ConfigError;
pub use source::Breakers;
