//! What handlers may reach: the engine, the clock, settings, tokens, bounds. Roles, no concrete
//! types.
//!
//! Never: a store, a transport or a clock by name; `app` knows those.

use std::cell::RefCell;
use std::sync::Arc;

use engine::Engine;
use engine::trace::Tracing;
use resilience::{Clock, FromOs, Timestamp};
use store::StoreError;

use crate::config::Settings;
use crate::http::idempotency::Answers;
use crate::http::iterators::Iterators;
use crate::http::limits::Budget;
use crate::http::origin::Origin;
use crate::http::token_rate::TokenRates;
use crate::http::tokens::Tokens;
use crate::reports::Reports;
use crate::schema_check::SchemaCheck;
use crate::storage_check::StorageCheck;
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
    /// Seals iterators of lists.
    pub(crate) iterators: Iterators,
    /// Where links lead.
    pub(crate) origin: Origin,
    /// Bounds the requests of each token.
    pub(crate) token_rates: TokenRates,
    /// Holds payloads against schemas.
    pub(crate) schemas: Arc<SchemaCheck>,
    /// Bounds the bodies being read.
    pub(crate) budget: Budget,
    /// See [`Shared::edit`].
    pub(crate) edits: Edits,
    /// Answers that were given under an idempotency key.
    pub(crate) answers: Answers,
    /// Background tasks that only count.
    pub(crate) reports: Reports,
    /// Whether the storage commits.
    pub(crate) storage: StorageCheck,
    /// What is made of traces.
    pub(crate) tracing: Tracing,
    /// Counts requests.
    pub(crate) metrics: Metrics,
}

/// Edits of this process, one at a time.
pub(crate) type Edits = tokio::sync::Mutex<()>;

/// An edit, here and on every node.
pub(crate) struct Edit<'a> {
    _here: tokio::sync::MutexGuard<'a, ()>,
    _everywhere: store::nodes::Edit,
}

impl Shared {
    /// Held from reading a row of the directory to writing it changed, so that no change is lost.
    pub(crate) async fn edit(&self) -> Result<Edit<'_>, StoreError> {
        let here = self.edits.lock().await;
        let everywhere = self.engine.stores().nodes.edit().await?;
        Ok(Edit { _here: here, _everywhere: everywhere })
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

thread_local! {
    /// Random bytes that the system gave and nobody has used.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// 12 random bytes for a message's id. They come from the system, many at a time.
pub(crate) fn random_for_id() -> Result<[u8; 12], StoreError> {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < 12 {
            *spare = random::<3_072>()?.to_vec();
        }
        let mut bytes = [0; 12];
        let rest = spare.len() - bytes.len();
        bytes.copy_from_slice(&spare[rest..]);
        spare.truncate(rest);
        Ok(bytes)
    })
}

/// Random bytes for secrets and rare ids.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    FromOs::fill(&mut bytes)
        .map_err(|_| StoreError::Unavailable("the system gives no random bytes".to_owned()))?;
    Ok(bytes)
}
