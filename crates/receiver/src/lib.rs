//! For those who receive webhooks: is it genuine, and was it handled before?
//!
//! Two tower layers on `http` types, for axum and for whatever else speaks tower.
//! [`WebhookVerifyLayer`] reads the raw body, checks the signature and passes the same bytes on.
//! [`IdempotencyLayer`] lets one request per key reach the handler and answers every repeat with
//! the recorded first response. Verify, then dedupe, then handle.
//!
//! Records live in memory ([`MemoryIdempotencyStore`]), in Redis (feature `redis`) or in PostgreSQL
//! (feature `postgres`). What a crash of the process means:
//!
//! | store | the handler's effects |
//! |---|---|
//! | memory | at least once: a restart forgets every record |
//! | Redis | at least once: a crash between effect and record runs the handler again |
//! | PostgreSQL | the same; exactly once if the handler commits the record with its own effects |
//!
//! Never: parses a body, follows a redirect, retries a handler by itself.
//!
//! ```
//! use std::time::Duration;
//! use receiver::webhook::WebhookVerifier;
//! use receiver::{IdempotencyLayer, KeySource, MemoryIdempotencyStore, WebhookVerifyLayer};
//!
//! let verifier = WebhookVerifier::standard()
//!     .secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?
//!     .build()?;
//! let idempotency = IdempotencyLayer::builder(MemoryIdempotencyStore::default())
//!     .key(KeySource::webhook_id())
//!     .lease(Duration::from_secs(60))
//!     .build()?;
//!
//! async fn handle() -> &'static str {
//!     "handled"
//! }
//! // The layer added last is the outermost: verify, then dedupe, then handle.
//! let app: axum::Router = axum::Router::new()
//!     .route("/webhooks", axum::routing::post(handle))
//!     .layer(idempotency)
//!     .layer(WebhookVerifyLayer::new(verifier));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod builder;
mod error;
mod fingerprint;
mod idempotency;
mod key;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod problem;
#[cfg(feature = "redis")]
mod redis;
mod run;
mod running;
mod settings;
mod store;
mod stored;
mod verify;

pub use webhook;

pub use body::ResponseBody;
pub use builder::IdempotencyBuilder;
pub use error::StoreError;
pub use fingerprint::{Fingerprint, FingerprintOf};
pub use idempotency::{IdempotencyLayer, IdempotencyService};
pub use key::{KEY_BYTES_MAX, KeySource, ScopedKey};
pub use memory::MemoryIdempotencyStore;
#[cfg(feature = "postgres")]
pub use postgres::{PgIdempotency, PgIdempotencyStore};
#[cfg(feature = "redis")]
pub use redis::RedisIdempotencyStore;
pub use resilience::ConfigError;
pub use running::Running;
pub use settings::{AfterCrash, InProgress, Missing, StoreFailure};
pub use store::{Begin, BeginRequest, IdempotencyStore, LeaseToken};
pub use stored::StoredResponse;
pub use verify::{WebhookVerifyLayer, WebhookVerifyService};
