//! What several nodes on one store have of each other: who serves which endpoint, for how long, and
//! how a change reaches the node that serves what it changes.
//!
//! A store that only one process uses has one node, which owns everything for ever: the defaults
//! here.
//! Never: decide who owns what; `domain::nodes` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use domain::ids::{EndpointKey, MessageKey};
use domain::nodes::owners::Owners;
use domain::nodes::{Chore, NodeId, Partition, Partitions, Standing};
use resilience::{Clock, Forced, Timestamp};
use tokio::sync::{Notify, watch};

use crate::Reply;
use crate::ledger::LaneState;

/// What somebody decides about a lane, wherever it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All or nothing is sent, until somebody decides otherwise; `None`: what the rules say.
    Forced(Option<Forced>),
    /// Nothing but a probe now and then.
    Suspended,
    /// This delivery was put back by hand, and is let through where refusals hold its lane.
    LetOne(MessageKey),
}

/// What this node owns, and whether it may still act on it.
///
/// Whoever writes asks it before a commit whether a row is handed over here or told to another
/// node; a partition leaves it before its lanes are stopped, and comes to it after the engine was
/// told.
pub struct Share {
    owned: [AtomicU64; 4],
    /// How many nodes answer the API.
    asked: AtomicU32,
    lease: Option<Lease>,
}

/// A lease that has to be renewed.
struct Lease {
    /// Goes on while the machine sleeps, and is never set.
    clock: Arc<dyn Clock>,
    /// When the last renewal that succeeded was begun.
    renewed: AtomicI64,
    ended: AtomicBool,
    end: Notify,
}

impl Share {
    /// Everything, for ever.
    pub fn whole() -> Arc<Self> {
        let owned = words(Partitions::ALL).map(AtomicU64::new);
        Arc::new(Self { owned, asked: AtomicU32::new(1), lease: None })
    }

    /// Nothing yet, under a lease that is not held yet; `clock` goes on while the machine sleeps.
    pub fn leased(clock: Arc<dyn Clock>) -> Arc<Self> {
        let lease = Lease {
            clock,
            renewed: AtomicI64::new(i64::MIN),
            ended: AtomicBool::new(false),
            end: Notify::new(),
        };
        let owned = [0; 4].map(AtomicU64::new);
        Arc::new(Self { owned, asked: AtomicU32::new(1), lease: Some(lease) })
    }

    /// Whether other nodes may use the same store.
    pub const fn is_shared(&self) -> bool {
        self.lease.is_some()
    }

    /// What it owns, less what it gives away.
    pub fn owned(&self) -> Partitions {
        Partitions::from_words(self.owned.each_ref().map(|word| word.load(Ordering::SeqCst)))
    }

    /// Whether it serves this endpoint.
    pub fn owns(&self, endpoint: EndpointKey) -> bool {
        self.contains(Partition::of(endpoint))
    }

    /// Whether it does this for all nodes.
    pub fn does(&self, chore: Chore) -> bool {
        self.contains(chore.partition())
    }

    fn contains(&self, partition: Partition) -> bool {
        self.owned().contains(partition)
    }

    /// So many nodes answer the API, this one included if it does.
    pub fn set_asked(&self, nodes: usize) {
        self.asked.store(u32::try_from(nodes).unwrap_or(u32::MAX).max(1), Ordering::Relaxed);
    }

    /// What this node lets through of a rate that all of them have together, at least 1: who asks
    /// is spread over them by whatever stands before them.
    pub fn part_of(&self, per_s: u32) -> u32 {
        (per_s / self.asked.load(Ordering::Relaxed)).max(1)
    }

    /// What it may do now.
    pub fn standing(&self) -> Standing {
        match &self.lease {
            None => Standing::Holds,
            Some(lease) if lease.ended.load(Ordering::SeqCst) => Standing::NoFlight,
            Some(lease) => Standing::at(lease.age()),
        }
    }

    /// How long until that changes unless the lease is renewed.
    pub fn changes_in(&self) -> Option<Duration> {
        self.lease.as_ref().and_then(|lease| Standing::changes_in(lease.age()))
    }

    /// Waits until others have taken over what it had, or could have.
    pub async fn over(&self) {
        let Some(lease) = &self.lease else { return std::future::pending().await };
        let end = lease.end.notified();
        tokio::pin!(end);
        end.as_mut().enable();
        if !lease.ended.load(Ordering::SeqCst) {
            end.await;
        }
    }

    /// The time by which the lease is renewed; a renewal takes what this said before it began.
    pub fn renewal(&self) -> Timestamp {
        self.lease.as_ref().map_or(Timestamp::EPOCH, |lease| lease.clock.now())
    }

    /// A renewal succeeded that began then.
    pub fn renewed(&self, begun: Timestamp) {
        if let Some(lease) = &self.lease {
            lease.renewed.fetch_max(begun.as_micros(), Ordering::SeqCst);
        }
    }

    /// Others have taken over what it had: it is over, for good.
    pub fn end(&self) {
        if let Some(lease) = &self.lease {
            lease.ended.store(true, Ordering::SeqCst);
            lease.end.notify_waiters();
        }
    }

    /// From now on these are served here.
    pub fn add(&self, partitions: Partitions) {
        for (owned, word) in self.owned.iter().zip(words(partitions)) {
            owned.fetch_or(word, Ordering::SeqCst);
        }
    }

    /// From now on these are not.
    pub fn take_out(&self, partitions: Partitions) {
        for (owned, word) in self.owned.iter().zip(words(partitions)) {
            owned.fetch_and(!word, Ordering::SeqCst);
        }
    }
}

impl Lease {
    fn age(&self) -> Duration {
        let renewed = self.renewed.load(Ordering::SeqCst);
        if renewed == i64::MIN {
            return Duration::MAX;
        }
        self.clock.now().since(Timestamp::from_micros(renewed))
    }
}

const fn words(partitions: Partitions) -> [u64; 4] {
    partitions.words()
}

/// Where a node takes posts from others, and how they know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// `host:port`
    pub at: String,
    /// SHA-256 of the certificate that it shows.
    pub fingerprint: [u8; 32],
}

/// The other nodes, as they were last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    /// Who owns which partition, this node included.
    pub owners: Owners,
    /// Those that can be reached.
    pub nodes: Vec<(NodeId, PeerAddress)>,
}

impl Peers {
    /// Whether one of them shows the certificate with this fingerprint.
    pub fn knows(&self, fingerprint: &[u8; 32]) -> bool {
        self.nodes.iter().any(|(_, node)| node.fingerprint == *fingerprint)
    }
}

/// This node, and what it reads of the others from time to time.
#[derive(Clone, Debug)]
pub struct Among {
    /// Which node this is.
    pub me: NodeId,
    /// The others.
    pub peers: watch::Receiver<Arc<Peers>>,
}

/// What nodes on one store have of each other.
pub trait Nodes: Send + Sync {
    /// What this node owns.
    fn share(&self) -> Arc<Share>;

    /// Who else uses the store; `None` where nobody can.
    fn among(&self) -> Option<Among> {
        None
    }

    /// The stored states of these lanes, for those that another node serves.
    fn lane_states_of(&self, endpoints: Vec<EndpointKey>) -> Reply<'_, Vec<LaneState>>;

    /// Gives partitions away, after everything that was recorded before this call. They are
    /// nobody's then, and taken by whoever should have them.
    fn release(&self, partitions: Partitions) -> Reply<'static, ()>;

    /// Tells the node that serves this endpoint; answers once that is durable.
    fn order(&self, endpoint: EndpointKey, order: Order) -> Reply<'static, ()>;

    /// Keeps every other node from such an edit. One that lasts longer than 3 s may be overtaken,
    /// so that a node that stands still in one does not keep the others from theirs.
    fn edit(&self) -> Reply<'_, Edit>;
}

/// Held from reading a row of the directory to writing it changed; dropping it ends that.
pub type Edit = Box<dyn Send + Sync>;

/// The one node of a store that is used by one process.
pub struct Alone;

impl Nodes for Alone {
    fn share(&self) -> Arc<Share> {
        Share::whole()
    }

    fn lane_states_of(&self, _: Vec<EndpointKey>) -> Reply<'_, Vec<LaneState>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn release(&self, _: Partitions) -> Reply<'static, ()> {
        Box::pin(async { Ok(()) })
    }

    fn order(&self, _: EndpointKey, _: Order) -> Reply<'static, ()> {
        Box::pin(async { Ok(()) })
    }

    fn edit(&self) -> Reply<'_, Edit> {
        Box::pin(async { Ok(Box::new(()) as Edit) })
    }
}

#[cfg(test)]
mod tests {
    use resilience::ManualClock;

    use super::*;

    #[test]
    fn a_share_is_what_was_added_and_its_lease_ends_by_its_own_clock() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(100)));
        let share = Share::leased(Arc::clone(&clock) as _);
        assert_eq!(share.standing(), Standing::NoFlight, "nothing was said yet");
        let begun = share.renewal();
        clock.advance(Duration::from_secs(1));
        share.renewed(begun);
        assert_eq!(share.standing(), Standing::Holds);
        assert_eq!(share.changes_in(), Some(Duration::from_secs(3)), "counted from its beginning");
        clock.advance(Duration::from_secs(3));
        assert_eq!(share.standing(), Standing::NoStart);
        share.renewed(Timestamp::from_secs(99));
        assert_eq!(share.standing(), Standing::NoStart, "an older one changes nothing");
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(share.standing(), Standing::NoFlight);
        let endpoint = EndpointKey(7);
        let home = Partitions::from_iter([Partition::of(endpoint)]);
        assert!(!share.owns(endpoint));
        share.add(home);
        assert!(share.owns(endpoint) && share.owned() == home);
        share.take_out(home);
        assert!(!share.owns(endpoint) && Share::whole().owns(endpoint));
    }

    #[tokio::test]
    async fn the_end_is_told_to_those_who_wait_and_those_who_come_later() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_secs(100)));
        let share = Share::leased(clock as _);
        let waiting = tokio::spawn({
            let share = Arc::clone(&share);
            async move { share.over().await }
        });
        tokio::task::yield_now().await;
        share.end();
        waiting.await.unwrap();
        share.over().await;
        share.renewed(share.renewal());
        assert_eq!(share.standing(), Standing::NoFlight, "for good");
    }
}
