//! Tower layers: one policy each, to be put together.
//!
//! From the outside in: timeout for all, retry, breaker, timeout for each attempt, bulkhead. Errors
//! are boxed, as tower's own layers do it.
//! Never: keep state in a service, which is cloned and dropped at will; it lives in the layer.

mod breaker;
mod bulkhead;
mod judge;
mod retry;
mod timeout;

pub use breaker::{BreakerFuture, BreakerService, CircuitBreakerLayer};
pub use bulkhead::{BulkheadFuture, BulkheadLayer, BulkheadService, HeldBody};
pub use retry::{RetryFuture, RetryLayer, RetryService};
pub use timeout::{DeadlineBody, TimeoutFuture, TimeoutLayer, TimeoutService};
