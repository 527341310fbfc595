//! Parts for tests: a Redis, PostgreSQL, PgBouncer or Prometheus server or a proxy of one's own,
//! gone when it is dropped, and input for fuzz tests.
//!
//! Each server listens on a free port of loopback, keeps its files in a temporary folder and is
//! killed even if the test that started it is. Any number run side by side. Whatever keeps a
//! server from starting fails the test with a sentence that says what to do.
//! Never: a skipped test, a server that was running before, a dependency of anything but tests.
//!
//! ```
//! let mut redis = testparts::Redis::start();
//! assert!(redis.url().starts_with("redis://127.0.0.1:"));
//! redis.stop();
//! redis.restart();
//!
//! let postgres = testparts::Postgres::start();
//! let url = postgres.fresh_database();
//! assert_eq!(postgres.sql(&url, "SELECT 6 * 7"), "42");
//! ```

mod bouncer;
mod log;
mod port;
mod postgres;
mod process;
mod programs;
mod prometheus;
mod proxy;
mod redis;
#[cfg(feature = "fuzz")]
mod spoilt;
mod template;
mod user;

pub use bouncer::PgBouncer;
pub use postgres::Postgres;
pub use prometheus::Prometheus;
pub use proxy::Proxy;
pub use redis::Redis;
#[cfg(feature = "fuzz")]
pub use spoilt::spoilt;
