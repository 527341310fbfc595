//! What every backend must do: one suite per trait, each sentence of the traits' documentation a case.
//!
//! In comes a way to open a backend on a clock that stands still; each case gets a new one. `check` runs a suite and
//! names every case that failed.
//! Never: know a backend, or look at anything but the traits.
#![expect(clippy::unwrap_used, reason = "only tests use these suites")]

pub mod dead_letters;
pub mod directory;
pub mod history;
pub mod inbox;
pub mod ledger;
pub mod queue;
pub mod samples;
pub mod world;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use resilience::{ManualClock, Timestamp};

use crate::commits::Commits;
use crate::dead_letters::DeadLetters;
use crate::directory::Directory;
use crate::history::History;
use crate::inbox::Inbox;
use crate::ledger::Ledger;
use crate::queue::Queue;
use world::World;

/// A case takes no longer, however slow the disk.
const CASE_TIME_MAX: Duration = Duration::from_secs(60);

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

/// One case of a suite.
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    /// Runs it; it panics when the backend is wrong.
    pub run: fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Lists functions as cases.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$($crate::conformance::Case {
            name: stringify!($name),
            run: |world| Box::pin($name(world)),
        }),*]
    };
}
use cases;

/// When every case begins.
pub const START: Timestamp = Timestamp::from_secs(1_790_000_000);

/// Runs every case of `suite` on a backend of its own, and panics with the names of those that failed.
pub async fn check(suite: &'static [Case], open: Open) {
    let mut failed = Vec::new();
    for case in suite {
        let clock = Arc::new(ManualClock::new(START));
        let world = World::new(open(Arc::clone(&clock)), clock);
        let run = tokio::spawn(tokio::time::timeout(CASE_TIME_MAX, (case.run)(world)));
        if !matches!(run.await, Ok(Ok(()))) {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
}
