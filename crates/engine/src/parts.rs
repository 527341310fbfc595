//! What the engine is built from, and what it shows of a breaker.
//!
//! Never: start anything.

use std::sync::Arc;

use resilience::{Chance, Clock, Forced, Timestamp};
use store::dead_letters::DeadLetters;
use store::directory::Directory;
use store::history::History;
use store::inbox::Inbox;
use store::ledger::Ledger;
use store::queue::Queue;

use crate::events::Observer;
use crate::settings::Settings;
use crate::transport::Transport;

/// The store, role by role.
#[derive(Clone)]
#[expect(missing_docs, reason = "each field is the trait it names")]
pub struct Stores {
    pub inbox: Arc<dyn Inbox>,
    pub queue: Arc<dyn Queue>,
    pub ledger: Arc<dyn Ledger>,
    pub directory: Arc<dyn Directory>,
    pub dead_letters: Arc<dyn DeadLetters>,
    pub history: Arc<dyn History>,
}

impl Stores {
    /// All roles from one backend.
    pub fn of<S>(store: &Arc<S>) -> Self
    where
        S: Inbox + Queue + Ledger + Directory + DeadLetters + History + 'static,
    {
        Self {
            inbox: Arc::clone(store) as _,
            queue: Arc::clone(store) as _,
            ledger: Arc::clone(store) as _,
            directory: Arc::clone(store) as _,
            dead_letters: Arc::clone(store) as _,
            history: Arc::clone(store) as _,
        }
    }
}

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
