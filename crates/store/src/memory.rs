//! The reference model: every trait over plain maps behind one lock.
//!
//! It is the oracle that other backends are compared with, and the store of the simulation: commits
//! can be made slow, fail, and be looked at as a restart would see them. Each call is applied whole
//! or not at all.
//! Never: touch a disk, or be clever; where speed and clearness differ, clearness wins.

mod alerts;
#[cfg(feature = "conformance")]
mod backend;
mod counts;
mod dead_letters;
mod directory;
mod facts;
mod history;
mod inbox;
mod ledger;
mod notices;
mod prune;
mod queue;
mod recall;
mod recoveries;
mod revocations;
mod state;
mod tasks;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use domain::ids::MessageKey;
use domain::message::Message;
use resilience::Clock;

use crate::Reply;
use crate::commits::Commits;
use crate::history::{AttemptRow, DeliveryRow};
use state::State;
use writer::Shared;

/// All traits of the store, in memory.
pub struct MemoryStore {
    shared: Arc<Shared>,
}

impl MemoryStore {
    /// An empty store that reads the time of its commits from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Self::with(clock, State::default())
    }

    fn with(clock: Arc<dyn Clock>, state: State) -> Arc<Self> {
        Arc::new(Self { shared: Arc::new(Shared::new(clock, state)) })
    }

    /// Who is told of commits from now on.
    pub fn attach(&self, commits: Arc<dyn Commits>) {
        self.shared.attach(commits);
    }

    /// Each commit from now on waits so long, on tokio's clock, before it is applied; what is asked
    /// meanwhile goes into the next one.
    pub fn commit_delay(&self, delay: Duration) {
        self.shared.delay(delay);
    }

    /// The next `count` writes change nothing and answer [`crate::StoreError::Unavailable`].
    pub fn fail_next(&self, count: u32) {
        self.shared.fail_next(count);
    }

    /// What a restart now would find: everything committed, nothing else, and nobody attached.
    pub fn crash_image(&self) -> Arc<Self> {
        let mut state = self.shared.state().clone();
        state.keeps_mails = false;
        Self::with(Arc::clone(&self.shared.clock), state)
    }

    /// Every message, oldest first.
    pub fn all_messages(&self) -> Vec<Arc<Message>> {
        self.shared.state().messages.values().cloned().collect()
    }

    /// Where every delivery stands, by message, then endpoint.
    pub fn all_deliveries(&self) -> Vec<(MessageKey, DeliveryRow)> {
        let state = self.shared.state();
        let messages = state.messages.keys();
        messages
            .flat_map(|&key| state.deliveries(key).into_iter().map(move |row| (key, row)))
            .collect()
    }

    /// Every pending row, by endpoint, due time, message.
    pub fn all_pending(&self) -> Vec<Pending> {
        self.shared.state().pending.values().copied().collect()
    }

    /// Every attempt, in the order they were recorded.
    pub fn all_attempts(&self) -> Vec<AttemptRow> {
        self.shared.state().attempts.values().cloned().collect()
    }

    /// Answers with what `look` finds when the reply is first polled.
    fn read<'a, T: 'a>(&'a self, look: impl FnOnce(&State) -> T + Send + 'a) -> Reply<'a, T> {
        Box::pin(async move { Ok(look(&self.shared.state())) })
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
