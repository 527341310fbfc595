//! What the engine is built from, and what it shows of a breaker.
//!
//! Never: start anything.

use std::sync::Arc;

use resilience::{Chance, Clock, Forced, Timestamp};
pub use store::Stores;

use crate::events::Observer;
use crate::settings::Settings;
use crate::transport::Transport;

/// What the engine is built from.
pub struct Parts {
    /// Settings.
    pub settings: Settings,
    /// The store.
    pub stores: Stores,
    /// The way out.
    pub transport: Arc<dyn Transport>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub chance: Box<dyn Chance>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// Where ids in flight also stand, so that a delivery that kills the process is found; `None`
    /// for no such file.
    pub inflight_path: Option<std::path::PathBuf>,
}

/// A breaker as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerView {
    /// `closed`, `open` or `halfOpen`.
    pub state: &'static str,
    /// Since when.
    pub since: Timestamp,
    /// When it lets a probe through.
    pub open_until: Option<Timestamp>,
    /// Failures in a row.
    pub consecutive_failures: u32,
    /// Whether somebody forced it.
    pub forced: Option<Forced>,
    /// When this was true.
    pub as_of: Timestamp,
}
