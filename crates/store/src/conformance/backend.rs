//! A backend as the suites see it: its traits, and ways to attach and reopen it.
//!
//! Never: know which backend it is.

use std::sync::Arc;

use resilience::{ManualClock, Timestamp};

use crate::commits::Commits;
pub use crate::stores::Stores;

/// When every case begins.
pub const START: Timestamp = Timestamp::from_secs(1_790_000_000);

/// A store that a case may use up.
pub trait Backend: Send + Sync {
    /// Its traits, as it is open now.
    fn stores(&self) -> Stores;
    /// Who is told of commits.
    fn attach(&self, commits: Arc<dyn Commits>);
    /// Closes it and opens what was committed.
    fn reopen(&mut self);
}

/// Opens a new, empty backend that reads its time from the clock.
pub type Open = fn(Arc<ManualClock>) -> Box<dyn Backend>;
