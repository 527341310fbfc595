//! What is owed after outages, in the reference model.
//!
//! Never: know which letters.

use std::ops::Bound;

use domain::ids::EndpointKey;

use super::MemoryStore;
use super::writer::Tx;
use crate::Reply;
use crate::ledger::Turn;
use crate::recoveries::{Recoveries, Recovery};
use crate::tasks::{RELAPSED, TaskKind, TaskStatus};

impl Recoveries for MemoryStore {
    fn ready(&self, after: Option<EndpointKey>, limit: usize) -> Reply<'_, Vec<Recovery>> {
        self.read(move |state| {
            let beyond = after.map_or(Bound::Unbounded, Bound::Excluded);
            let owed = state.recoveries.range((beyond, Bound::Unbounded));
            owed.map(|(_, recovery)| *recovery).filter(|it| it.ready).take(limit).collect()
        })
    }

    fn recovery(&self, endpoint: EndpointKey) -> Reply<'_, Option<Recovery>> {
        self.read(move |state| state.recoveries.get(&endpoint).copied())
    }

    fn forget(&self, recovery: Recovery) -> Reply<'static, ()> {
        self.shared.write(move |tx| {
            let owed = &mut tx.state.recoveries;
            if owed.get(&recovery.endpoint) == Some(&recovery) {
                owed.remove(&recovery.endpoint);
                tx.rows += 1;
            }
            Ok(())
        })
    }
}

/// An outage began or ended: what puts letters back stops, and what is owed is noted.
pub(super) fn turn(tx: &mut Tx<'_>, endpoint: EndpointKey, turn: Turn) {
    let now = tx.now;
    let runs = tx.state.tasks.values_mut().filter(|task| {
        task.status == TaskStatus::Running
            && task.spec.endpoint == Some(endpoint)
            && task.spec.work.kind() == TaskKind::Outage
    });
    for task in runs {
        (task.status, task.error) = (TaskStatus::Stopped, Some(RELAPSED.to_owned()));
        task.updated_at = now;
    }
    let (since, ready) = match turn {
        Turn::Failed(since) => (since, false),
        Turn::Recovered(since) => (since, true),
    };
    let before = tx.state.recoveries.get(&endpoint).map_or(since, |owed| owed.since);
    let recovery = Recovery { endpoint, since: before.min(since), ready };
    tx.state.recoveries.insert(endpoint, recovery);
    tx.rows += 1;
    tx.recovered |= ready;
}
