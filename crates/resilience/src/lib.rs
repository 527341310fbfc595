//! Policies for calls that may fail: backoff, retry, retry budget, circuit breaker (of one process
//! or shared by many), rate, window.
//!
//! The core decides and does nothing else: time comes in as a [`Timestamp`], chance as a
//! [`Chance`], and what follows is a value. Around it stand thin parts for applications, which
//! carry the decisions out with a clock and a [`Sleeper`] of the caller's choice.
//!
//! # Retry
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use resilience::{RetryAfterRule, RetryBudget, RetryPolicy};
//!
//! let retry = RetryPolicy::full_jitter(Duration::from_millis(100))
//!     .cap(Duration::from_secs(30))
//!     .max_calls(4)
//!     .max_elapsed(Duration::from_secs(60))
//!     .retry_after(RetryAfterRule::exact().cap(Duration::from_secs(60)))
//!     .budget(RetryBudget::ratio(0.2).floor_per_sec(10))
//!     .build()?;
//!
//! let answer = retry.run(|| async { Ok::<_, std::io::Error>("done") }).await?;
//! assert_eq!(answer, "done");
//! # Ok(())
//! # }
//! ```
//!
//! # Circuit breaker
//!
//! ```
//! use std::time::Duration;
//! use resilience::circuit::{CircuitBreaker, Trip, Window};
//!
//! let breaker = CircuitBreaker::builder("payments")
//!     .trip(
//!         Trip::failure_rate(0.5)
//!             .window(Window::calls(50))
//!             .or_slow(Duration::from_secs(2), 0.8),
//!     )
//!     .build()?;
//!
//! match breaker.try_acquire() {
//!     Ok(permit) => permit.success(),
//!     Err(rejected) => println!("{rejected}"),
//! }
//! # Ok::<(), resilience::ConfigError>(())
//! ```
//!
//! Breakers go inside retries, so that they see every call: `retry.run(|| breaker.call(…))`.
//!
//! # Features
//!
//! None is on by default; the crate then needs no runtime and starts no thread.
//!
//! | feature | adds |
//! |---|---|
//! | `tokio` | `TokioSleeper`, whose clock is tokio's, and `Retry::run` |
//! | `http` | conversions from the types of the `http` crate |
//! | `conformance` | the traces that every breaker store must pass |
//!
//! On `wasm32-unknown-unknown` there is no clock and no source of chance to read: `SystemClock`,
//! `SteadyClock`, `TokioSleeper` and `FromOs` do not exist there, and the builders ask for a clock
//! and a seed. Waits go through a [`Sleeper`] of the host's timers.
//!
//! Never: HTTP, webhooks, storage; a runtime outside the feature that brings it.

pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod chance;
pub mod circuit;
pub mod classify;
pub mod clock;
pub mod compat;
pub mod error;
pub mod rate;
pub mod retry;
pub mod retry_after;
mod ring;
mod seeds;
pub mod share;
pub mod shared;
pub mod sleep;
pub mod window;

pub use backoff::{Backoff, Factor, Jitter};
pub use breaker::{
    Admission, Breaker, Change, Config as BreakerConfig, Counts, Forced, Permit, Rules, Snapshot,
    State,
};
pub use budget::{RetryBudget, Withdrawal};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use chance::FromOs;
pub use chance::{Chance, Seeded};
pub use circuit::{
    BreakerObserver, BreakerRegistry, CallError, CircuitBreaker, HalfOpen, OpenFor, RejectReason,
    Rejected, Trip,
};
pub use classify::{
    Answer, Call, Class, Classify, DefaultClassify, ErrorKind, Outcome, Retryability, Vote,
};
pub use clock::{Clock, ManualClock, Timestamp};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use clock::{SteadyClock, SystemClock};
pub use error::ConfigError;
pub use rate::Rate;
pub use retry::{
    Next, Replay, Retry, RetryAfterMode, RetryAfterRule, RetryBuilder, RetryError, RetryInfo,
    RetryPolicy, RetryPredicate, RetrySession, Runner, Stop, StopReason, Term, TooLong, Tried,
    Waits,
};
pub use retry_after::RetryAfter;
pub use share::Share;
pub use sleep::Sleeper;
#[cfg(all(feature = "tokio", not(all(target_family = "wasm", target_os = "unknown"))))]
pub use sleep::TokioSleeper;
pub use window::{Round, Window};
