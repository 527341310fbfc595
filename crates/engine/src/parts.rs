//! What the engine is built from, and what it shows of a breaker.
//!
//! Never: start anything.

use std::sync::Arc;

use resilience::{Chance, Clock, Forced, Timestamp};
pub use store::Stores;

use crate::admit::Held;
use crate::announce::Wording;
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
    /// What is said of a notice.
    pub wording: Wording,
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
    /// What else holds the lane.
    pub hold: Option<Held>,
    /// When this was true.
    pub as_of: Timestamp,
}

/// When a delivery that is due may be sent, as far as its lane knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextSend {
    /// When it is due and has its turn.
    WhenDue,
    /// Not before then.
    NotBefore(Timestamp),
    /// Nobody knows: a probe is out, or somebody has to do something first.
    Unknown,
}

impl NextSend {
    /// Not before when what is due at `due` is sent; `None`: that is past, and nobody knows.
    pub fn of(self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::WhenDue => Some(due),
            Self::NotBefore(until) => Some(due.max(until)),
            Self::Unknown => (due > now).then_some(due),
        }
    }
}
