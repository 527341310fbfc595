//! Stores for circuit breakers that processes share.
//!
//! Each is a [`BreakerStore`](resilience::shared::BreakerStore): every step is one round trip,
//! atomic, by the server's clock. Nothing is held between two steps, so that a process that dies
//! holds nobody up.
//! Never: a lock around a call, a clock of the client's, a breaker without an end.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod words;

#[cfg(feature = "postgres")]
pub use postgres::PgBreakerStore;
#[cfg(feature = "redis")]
pub use redis::RedisBreakerStore;
