//! Stores for circuit breakers that processes share.
//!
//! Each is a [`BreakerStore`](resilience::shared::BreakerStore): every step is one round trip,
//! atomic, by the server's clock. Nothing is held between two steps, so that a process that dies
//! holds nobody up.
//!
//! ```no_run
//! # async fn request() -> std::io::Result<&'static str> { Ok("paid") }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use redis::Client;
//! use redis::aio::ConnectionManager;
//! use resilience::shared::SharedBreaker;
//! use resilience::{TokioSleeper, Trip};
//! use shared::RedisBreakerStore;
//!
//! let connection = ConnectionManager::new(Client::open("redis://127.0.0.1/")?).await?;
//! let store = RedisBreakerStore::new(connection);
//! let breaker = SharedBreaker::builder("payments", store, TokioSleeper::new())
//!     .trip(Trip::consecutive(5))
//!     .build()?;
//! tokio::spawn(breaker.driver());
//!
//! let answer = breaker.call(request()).await?;
//! # assert_eq!(answer, "paid");
//! # Ok(())
//! # }
//! ```
//!
//! | feature | store |
//! |---|---|
//! | `redis` | `RedisBreakerStore` |
//! | `postgres` | `PgBreakerStore` |
//!
//! Neither is on by default.
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
