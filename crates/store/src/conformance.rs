//! What every backend must do: one suite per trait, each sentence of the traits' documentation a
//! case.
//!
//! In comes a way to open a backend on a clock that stands still; each case gets a new one. `check`
//! runs a suite and names every case that failed.
//! Never: know a backend, or look at anything but the traits.
#![expect(clippy::unwrap_used, reason = "only tests use these suites")]

pub mod alerts;
pub mod backend;
pub mod counts;
pub mod dead_letters;
pub mod directory;
pub mod history;
pub mod inbox;
pub mod ledger;
pub mod notices;
pub mod prune;
pub mod queue;
pub mod recall;
pub mod recoveries;
pub mod revocations;
pub mod samples;
pub mod tasks;
pub mod world;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use resilience::ManualClock;

pub use backend::{Backend, Open, START, Stores};
use world::World;

/// A case takes no longer, however slow the disk.
const CASE_TIME_MAX: Duration = Duration::from_secs(60);

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

/// Runs every case of `suite` on a backend of its own, and panics with the names of those that
/// failed.
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
