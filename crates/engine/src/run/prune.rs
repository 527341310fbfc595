//! Pruning: what is old enough is taken away, piece by piece, until nothing is left.
//!
//! One piece at a time is on its way to the store, and a pause lies between two, so that a batch
//! holds at most one of them and most hold none.
//! Never: decide what goes; the store knows what a message is needed for.

use std::sync::Arc;
use std::time::Duration;

use domain::nodes::Chore;
use resilience::Timestamp;
use store::StoreError;
use store::prune::Pruned;

use super::{Command, Dispatcher};

/// Between two pieces.
const PAUSE: Duration = Duration::from_millis(5);

impl Dispatcher {
    /// Begins to prune, if it is time.
    pub(super) fn prune(&mut self, now: Timestamp) {
        let does = self.share.does(Chore::Prune);
        if does && !self.draining && self.pruner.begin(now) {
            self.prune_piece(Duration::ZERO);
        }
    }

    fn prune_piece(&self, pause: Duration) {
        let (prune, clock) = (Arc::clone(&self.stores.prune), Arc::clone(&self.clock));
        let (keep, from) = (self.settings.retention, self.pruner.from());
        self.report(async move {
            tokio::time::sleep(pause).await;
            Command::Pruned(prune.prune(clock.now(), keep, from).await)
        });
    }

    /// A piece was done, or not.
    pub(super) fn pruned(&mut self, answer: Result<Pruned, StoreError>) {
        match answer {
            Ok(pruned) => {
                self.telemetry.pruned.count(pruned.counts);
                let more = self.pruner.done(&pruned);
                if more && !self.draining && self.share.does(Chore::Prune) {
                    self.prune_piece(PAUSE);
                } else if more {
                    self.pruner.failed();
                }
            }
            Err(error) => {
                tracing::warn!(%error, "old rows not pruned; trying again");
                self.pruner.failed();
            }
        }
    }
}
