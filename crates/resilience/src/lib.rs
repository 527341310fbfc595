//! Pure policies for calls that may fail: backoff, retry, circuit breaker, rate, window.
//!
//! Nothing here sleeps, reads a clock or draws chance by itself: `Timestamp`s and a `Chance` are
//! passed in.
//! Never: HTTP, webhooks, storage, tokio.

pub mod backoff;
pub mod breaker;
pub mod chance;
pub mod clock;
pub mod error;
pub mod rate;
pub mod retry;
pub mod retry_after;
pub mod window;

pub use backoff::Backoff;
pub use breaker::{
    Admission, Breaker, Change, Config as BreakerConfig, Forced, Permit, Snapshot, State,
};
pub use chance::{Chance, FromOs, Seeded};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use error::PolicyError;
pub use rate::Rate;
pub use retry::{Next, RetryAfterMode, RetryPolicy, Stop, Term, Tried};
pub use retry_after::RetryAfter;
pub use window::{Round, Window};
