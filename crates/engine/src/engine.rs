//! The engine's door: a handle for the server.
//!
//! Never: hold lane state; the dispatcher in `run` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::application::AppSnapshot;
use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use resilience::Forced;
use store::StoreError;
use store::commits::{BatchStats, Commits, Fresh};
use store::directory::IdOrUid;
use store::inbox::Accepted;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::ingest::{self, Post};
use crate::parts::{BreakerView, Parts, Stores};
use crate::roster::Roster;
use crate::run::{self, Command};

/// A handle on the running engine.
#[derive(Clone)]
pub struct Engine {
    stores: Stores,
    roster: Arc<Roster>,
    commands: mpsc::UnboundedSender<Command>,
    repairs: Arc<AtomicU64>,
}

/// The engine's tasks, to wait for.
pub struct Running {
    dispatcher: JoinHandle<()>,
    commands: mpsc::UnboundedSender<Command>,
}

/// Forwards what the writer says to roster and dispatcher.
struct Hub {
    roster: Arc<Roster>,
    commands: mpsc::UnboundedSender<Command>,
    batches: run::BatchMetrics,
}

impl Commits for Hub {
    fn fresh(&self, rows: Vec<Fresh>) {
        let _gone = self.commands.send(Command::Fresh(rows));
    }

    fn directory_changed(&self, app: AppKey, endpoint: Option<EndpointKey>) {
        self.roster.forget(app);
        let _gone = self.commands.send(Command::Changed(app, endpoint));
    }

    fn batch(&self, stats: BatchStats) {
        self.batches.observe(stats);
    }
}

impl Engine {
    /// Starts the engine on the current runtime. `attach` gives the store its `Commits` before
    /// anything is accepted.
    pub async fn start(
        parts: Parts,
        attach: impl FnOnce(Arc<dyn Commits>),
    ) -> Result<(Self, Running), StoreError> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let stores = parts.stores.clone();
        let roster = Arc::new(Roster::new(Arc::clone(&stores.directory)));
        attach(Arc::new(Hub {
            roster: Arc::clone(&roster),
            commands: commands.clone(),
            batches: run::BatchMetrics::new(),
        }));
        let repairs = Arc::new(AtomicU64::new(0));
        let dispatcher = run::start(parts, commands.clone(), inbox, Arc::clone(&repairs)).await?;
        let running = Running { dispatcher, commands: commands.clone() };
        Ok((Self { stores, roster, commands, repairs }, running))
    }

    /// The store, for reads and for the directory.
    pub const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Accepts a message; `Ok` once it is durable.
    pub async fn ingest(&self, post: Post) -> Result<Accepted, StoreError> {
        ingest::ingest(&self.roster, &*self.stores.inbox, post).await
    }

    /// An application with its endpoints, from the cache.
    pub async fn app(
        &self,
        org: PublicId,
        which: &IdOrUid,
    ) -> Result<Option<Arc<AppSnapshot>>, StoreError> {
        self.roster.app(org, which).await
    }

    /// How often the poll found due rows that their lane had missed: a fault in the rules of lanes,
    /// 0 in tests.
    pub fn lane_repairs(&self) -> u64 {
        self.repairs.load(Ordering::Relaxed)
    }

    /// Waits until the lanes have seen every directory change that was committed before this call.
    pub async fn settled(&self) {
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Settled(reply));
        let _gone = wait.await;
    }

    /// The breaker of an endpoint.
    pub async fn breaker(&self, endpoint: EndpointKey) -> Option<BreakerView> {
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Breaker(endpoint, reply));
        wait.await.ok()
    }

    /// Forces a breaker, or gives it back to itself; answers once that is stored.
    pub async fn force(
        &self,
        endpoint: EndpointKey,
        forced: Option<Forced>,
    ) -> Result<(), StoreError> {
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::Force(endpoint, forced, reply));
        wait.await.unwrap_or(Err(StoreError::Overloaded))
    }

    /// Whether a send of this delivery is under way. One whose result is on its way to the ledger
    /// is waited for: whoever has read its attempt is not told that it is still out.
    pub async fn in_flight(
        &self,
        endpoint: EndpointKey,
        message: MessageKey,
    ) -> Result<bool, StoreError> {
        let (reply, wait) = oneshot::channel();
        let _gone = self.commands.send(Command::InFlight(endpoint, message, reply));
        wait.await.unwrap_or(Err(StoreError::Overloaded))
    }
}

impl Running {
    /// Stops starting sends, lets those in flight end within `grace` (longer ones are dropped and
    /// stay pending), commits their results, and ends.
    pub async fn drain(self, grace: Duration) {
        let _gone = self.commands.send(Command::Drain(grace));
        let _ended = self.dispatcher.await;
    }
}

#[cfg(test)]
mod tests;
