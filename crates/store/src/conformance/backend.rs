//! A backend as the suites see it: its traits, and ways to attach and reopen it.
//!
//! Never: know which backend it is.

use std::sync::Arc;

use resilience::{ManualClock, Timestamp};

use crate::commits::Commits;
use crate::dead_letters::DeadLetters;
use crate::directory::Directory;
use crate::history::History;
use crate::inbox::Inbox;
use crate::ledger::Ledger;
use crate::queue::Queue;

/// When every case begins.
pub const START: Timestamp = Timestamp::from_secs(1_790_000_000);

/// One backend, seen as its traits.
#[derive(Clone)]
#[expect(missing_docs, reason = "the fields are the traits")]
pub struct Stores {
    pub inbox: Arc<dyn Inbox>,
    pub queue: Arc<dyn Queue>,
    pub ledger: Arc<dyn Ledger>,
    pub directory: Arc<dyn Directory>,
    pub dead_letters: Arc<dyn DeadLetters>,
    pub history: Arc<dyn History>,
}

impl Stores {
    /// All traits of one value.
    pub fn of<T>(store: &Arc<T>) -> Self
    where
        T: Inbox + Queue + Ledger + Directory + DeadLetters + History + 'static,
    {
        Self {
            inbox: Arc::<T>::clone(store),
            queue: Arc::<T>::clone(store),
            ledger: Arc::<T>::clone(store),
            directory: Arc::<T>::clone(store),
            dead_letters: Arc::<T>::clone(store),
            history: Arc::<T>::clone(store),
        }
    }
}

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
