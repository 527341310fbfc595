//! What handlers may reach: the engine, the clock, settings, tokens, bounds. Roles, no concrete
//! types.
//!
//! Never: a store, a transport or a clock by name; `app` knows those.

use std::sync::Arc;

use engine::Engine;
use resilience::{Clock, FromOs, Timestamp};
use store::StoreError;

use crate::config::Settings;
use crate::http::auth::Tokens;
use crate::http::idempotency::Answers;
use crate::http::limits::Budget;
use crate::telemetry::metrics::Metrics;

/// Shared by all requests.
pub(crate) struct Shared {
    /// The running engine, and through it the store.
    pub(crate) engine: Engine,
    /// The wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Settings.
    pub(crate) settings: Settings,
    /// Checks tokens.
    pub(crate) tokens: Tokens,
    /// Bounds the bodies being read.
    pub(crate) budget: Budget,
    /// Held from reading a row of the directory to writing it changed, so that no change is lost.
    pub(crate) edits: tokio::sync::Mutex<()>,
    /// Answers that were given under an idempotency key.
    pub(crate) answers: Answers,
    /// Counts requests.
    pub(crate) metrics: Metrics,
}

impl Shared {
    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// Random bytes for ids and secrets.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    FromOs::fill(&mut bytes)
        .map_err(|_| StoreError::Unavailable("the system gives no random bytes".to_owned()))?;
    Ok(bytes)
}
