//! This node's place among the others: says each second that it lives, looks who else does, and
//! takes or gives away partitions as `domain::nodes` decides.
//!
//! It has a connection of its own, so that no batch keeps it from being heard.
//! Never: take what somebody owns, or add to the share before the engine was told.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::limits::{HEARTBEAT_EVERY, LEASE};
use domain::nodes::owners::Owners;
use domain::nodes::shares::{self, Member, Plan};
use domain::nodes::{NodeId, Partition, Partitions};
use resilience::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use super::conn::{Conn, value};
use super::ears::stopped;
use super::fault::Fault;
use super::link::{Pool, connect};
use super::node::{self, Seen};
use super::shared::Shared;
use crate::StoreError;
use crate::nodes::Peers;

/// A round that takes longer is given up with its connection.
const ROUND_MAX: Duration = Duration::from_secs(3);
/// Several nodes write: what waits is counted so often.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// Keeps this node's place.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    pool: Pool,
    /// Somebody came, went, or gave something away.
    moved: Arc<Notify>,
    /// Since when it was heard without a gap.
    steady: Option<Instant>,
    beaten: Option<Instant>,
    /// What each other node said last, and when that was first seen.
    said: HashMap<NodeId, (Timestamp, Instant)>,
    /// Own partitions on their way out.
    leaving: Partitions,
    counted: Instant,
    told: bool,
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>, pool: Pool, moved: Arc<Notify>) -> Self {
        let leaving = Partitions::default();
        let counted = Instant::now();
        Self {
            shared,
            pool,
            moved,
            steady: None,
            beaten: None,
            said: HashMap::new(),
            leaving,
            counted,
            told: false,
        }
    }

    /// Keeps it until the store closes or the node is declared dead; leaves then.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let next = Instant::now() + HEARTBEAT_EVERY;
            match timeout(ROUND_MAX, self.round()).await {
                Ok(Ok(true)) => self.heard(),
                Ok(Ok(false)) => {
                    tracing::error!("other nodes have declared this one dead");
                    return self.shared.share.end();
                }
                Ok(Err(fault)) => self.unheard(&fault.told()),
                Err(_) => self.unheard(&StoreError::Overloaded),
            }
            let next = self.next_silence().map_or(next, |at| next.min(at));
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.moved.notified() => {}
                () = stopped(&mut stop) => return self.leave().await,
            }
        }
    }

    fn heard(&mut self) {
        if std::mem::take(&mut self.told) {
            tracing::info!("the database hears this node again");
        }
    }

    fn unheard(&mut self, fault: &StoreError) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(%fault, "the database does not hear that this node lives; trying again");
        }
    }

    /// One look around; `false` when this node was declared dead.
    pub(super) async fn round(&mut self) -> Result<bool, Fault> {
        let conn = connect(&self.pool).await?;
        let looked = self.look(&conn).await;
        if looked.is_err() {
            conn.end();
        }
        looked
    }

    async fn look(&mut self, conn: &Conn) -> Result<bool, Fault> {
        let (me, share) = (self.shared.me, Arc::clone(&self.shared.share));
        let begun = share.renewal();
        if !me.beat(conn).await? {
            return Ok(false);
        }
        share.renewed(begun);
        self.beat();
        self.tell_time(conn).await?;
        let mut seen = node::look(conn).await?;
        let mut gone = self.bury_silent(conn, &seen.nodes).await?;
        if has_orphans(&seen) && !gone {
            node::clear(conn).await?;
            gone = true;
        }
        if gone {
            seen = node::look(conn).await?;
        }
        self.settle(conn, &seen).await?;
        if seen.nodes.len() > 1 {
            // The writer alone knows what it committed; nobody waits for it here.
            drop(self.shared.door.change(|tx| Box::pin(tx.raise_floor())));
        }
        self.count(conn, seen.nodes.len()).await?;
        Ok(true)
    }

    /// Says what time the database has.
    async fn tell_time(&self, conn: &Conn) -> Result<(), Fault> {
        let Some(clock) = &self.shared.common else { return Ok(()) };
        let asked = clock.asks();
        if let Some(said) = node::time(conn).await? {
            clock.hears(asked, said);
        }
        Ok(())
    }

    /// Declares nodes dead that are silent for too long; whether any is gone.
    async fn bury_silent(&mut self, conn: &Conn, nodes: &[node::Row]) -> Result<bool, Fault> {
        let members = self.hear(nodes);
        let steady = self.steady.map_or(Duration::ZERO, |since| since.elapsed());
        let dead = shares::dead(self.shared.me.id, &members, steady);
        let mut gone = false;
        for dead in nodes.iter().filter(|node| dead.contains(&node.id)) {
            match node::bury(conn, dead).await {
                Ok(true) => {
                    tracing::warn!(node = dead.id.0, "a node is silent: what it had is taken over");
                    gone = true;
                }
                Ok(false) => {}
                // It has a transaction open, which the server ends by itself.
                Err(fault) if fault.is_lock_taken() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(gone)
    }

    /// For how long each has said nothing, by this node's own steady clock: that of the database
    /// may be set, or be another one after a fail-over.
    fn hear(&mut self, nodes: &[node::Row]) -> Vec<Member> {
        let now = Instant::now();
        self.said.retain(|id, _| nodes.iter().any(|node| node.id == *id));
        let hears = |node: &node::Row| {
            let said = self.said.entry(node.id).or_insert((node.heartbeat, now));
            if said.0 != node.heartbeat {
                *said = (node.heartbeat, now);
            }
            Member { id: node.id, works: node.works, silent: now - said.1 }
        };
        nodes.iter().map(hears).collect()
    }

    /// When the next one would have been silent for too long.
    fn next_silence(&self) -> Option<Instant> {
        let now = Instant::now();
        let others = self.said.iter().filter(|(id, _)| **id != self.shared.me.id);
        let ends = others.map(|(_, (_, since))| *since + LEASE + Duration::from_millis(1));
        ends.filter(|end| *end > now).min()
    }

    fn beat(&mut self) {
        let now = Instant::now();
        let gap = self.beaten.is_none_or(|last| now - last > HEARTBEAT_EVERY * 3);
        if gap || self.steady.is_none() {
            self.steady = Some(now);
        }
        self.beaten = Some(now);
    }

    /// Takes what it should have, and begins to give away what it should not.
    async fn settle(&mut self, conn: &Conn, seen: &Seen) -> Result<(), Fault> {
        self.tell_peers(seen);
        self.shared.share.set_asked(seen.nodes.iter().filter(|node| node.is_asked).count());
        let members = self.hear(&seen.nodes);
        let (me, share) = (self.shared.me, &self.shared.share);
        let owned: Partitions = places(&seen.owners, me.id);
        self.leaving = self.leaving.without(self.leaving.without(owned));
        let leaving = self.leaving;
        let leaves = |place| partition(place).is_some_and(|it| leaving.contains(it));
        let attached = self.shared.attached.load(Ordering::SeqCst);
        let Plan { take, shed } = shares::plan(me.id, &members, &seen.owners, leaves);
        if !take.is_empty() {
            let taken = me.take(conn, &take).await?;
            if let Some(commits) = self.shared.commits.get().filter(|_| attached) {
                commits.acquired(taken);
            }
            share.add(taken);
        }
        if let Some(commits) = self.shared.commits.get().filter(|_| attached && !shed.is_empty()) {
            let shed: Partitions = shed.into_iter().filter_map(partition).collect();
            self.leaving = self.leaving.and(shed);
            share.take_out(shed);
            commits.shed(shed);
        }
        Ok(())
    }

    /// Says who else is there, where to reach them, and what they own.
    fn tell_peers(&self, seen: &Seen) {
        let others = seen.nodes.iter().filter(|node| node.id != self.shared.me.id);
        let nodes = others.filter_map(|node| Some((node.id, node.address.clone()?))).collect();
        let now = Peers { owners: Owners::new(&seen.owners), nodes };
        self.shared.peers.send_if_modified(|peers| {
            let differs = **peers != now;
            if differs {
                *peers = Arc::new(now);
            }
            differs
        });
    }

    /// Alone, this node knows how much waits; with others it has to count.
    async fn count(&mut self, conn: &Conn, nodes: usize) -> Result<(), Fault> {
        if nodes < 2 || self.counted.elapsed() < COUNT_EVERY {
            return Ok(());
        }
        self.counted = Instant::now();
        let count = value::<i64>(conn, "SELECT count(*) FROM pending", &[]).await?;
        self.shared.depth.store(count.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    async fn leave(self) {
        let left = async { self.shared.me.leave(&connect(&self.pool).await?).await };
        if !matches!(timeout(ROUND_MAX, left).await, Ok(Ok(()))) {
            tracing::warn!("this node could not say that it leaves; others wait for its lease");
        }
    }
}

fn partition(place: usize) -> Option<Partition> {
    u16::try_from(place).ok().map(Partition)
}

fn places(owners: &[Option<NodeId>], of: NodeId) -> Partitions {
    let owned = owners.iter().enumerate().filter(|(_, owner)| **owner == Some(of));
    owned.filter_map(|(place, _)| partition(place)).collect()
}

/// Whether something is owned by a node that is not there.
fn has_orphans(seen: &Seen) -> bool {
    let mut owners = seen.owners.iter().flatten();
    owners.any(|owner| seen.nodes.iter().all(|node| node.id != *owner))
}
