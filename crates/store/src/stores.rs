//! A store seen as its traits, for those who use several of them.
//!
//! Never: know which backend it is.

use std::sync::Arc;

use crate::alerts::Alerts;
use crate::counts::Counts;
use crate::dead_letters::DeadLetters;
use crate::directory::Directory;
use crate::history::History;
use crate::inbox::Inbox;
use crate::ledger::Ledger;
use crate::nodes::{Alone, Nodes};
use crate::notices::Notices;
use crate::prune::Prune;
use crate::queue::Queue;
use crate::recall::Recall;
use crate::recoveries::Recoveries;
use crate::revocations::Revocations;
use crate::tasks::Tasks;

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
    pub prune: Arc<dyn Prune>,
    pub tasks: Arc<dyn Tasks>,
    pub revocations: Arc<dyn Revocations>,
    pub notices: Arc<dyn Notices>,
    pub recall: Arc<dyn Recall>,
    pub recoveries: Arc<dyn Recoveries>,
    pub counts: Arc<dyn Counts>,
    pub alerts: Arc<dyn Alerts>,
    pub nodes: Arc<dyn Nodes>,
}

impl Stores {
    /// All roles from one backend that nobody else uses.
    pub fn of<S>(store: &Arc<S>) -> Self
    where
        S: Inbox
            + Queue
            + Ledger
            + Directory
            + DeadLetters
            + History
            + Prune
            + Tasks
            + Revocations
            + Notices
            + Recall
            + Recoveries
            + Counts
            + Alerts
            + 'static,
    {
        Self {
            inbox: Arc::clone(store) as _,
            queue: Arc::clone(store) as _,
            ledger: Arc::clone(store) as _,
            directory: Arc::clone(store) as _,
            dead_letters: Arc::clone(store) as _,
            history: Arc::clone(store) as _,
            prune: Arc::clone(store) as _,
            tasks: Arc::clone(store) as _,
            revocations: Arc::clone(store) as _,
            notices: Arc::clone(store) as _,
            recall: Arc::clone(store) as _,
            recoveries: Arc::clone(store) as _,
            counts: Arc::clone(store) as _,
            alerts: Arc::clone(store) as _,
            nodes: Arc::new(Alone),
        }
    }

    /// The same, for a backend that other nodes use too.
    #[must_use]
    pub fn among(self, nodes: Arc<dyn Nodes>) -> Self {
        Self { nodes, ..self }
    }
}
