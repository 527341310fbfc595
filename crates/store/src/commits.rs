//! What a store tells the engine about commits on this node.
//!
//! Called by the writer after a commit and before any answer, so that no answer is ahead of the
//! lanes.
//! Never: block, or call back into the store.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, EndpointKey};
use domain::message::Envelope;
use domain::nodes::Partitions;

use crate::nodes::Order;

/// A pending row that was just committed.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// The row.
    pub pending: Pending,
    /// The endpoint as the message was matched with it; `None` when the writer did not have it at
    /// hand.
    pub endpoint: Option<Arc<Endpoint>>,
    /// What to send, when the writer had it at hand.
    pub envelope: Option<Arc<Envelope>>,
}

/// What another node wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// Pending rows of these endpoints, which this node serves.
    Pending(Vec<EndpointKey>),
    /// What somebody decided about a lane that this node serves.
    Ordered(EndpointKey, Order),
    /// Something for whoever does a chore.
    Chore,
    /// Something of which every node may keep a copy: event types, revoked tokens.
    Copies,
}

/// One commit, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Operations in it: posts, results, directory changes.
    pub operations: usize,
    /// Rows written or removed.
    pub rows: usize,
    /// From its first statement to the end of the commit.
    pub took: Duration,
    /// Whether it was committed.
    pub committed: bool,
}

/// Told after each commit.
pub trait Commits: Send + Sync {
    /// Pending rows that were committed: new messages, replays, resends. In commit order.
    fn fresh(&self, rows: Vec<Fresh>);
    /// Pending rows that are gone because their payload is: their deliveries are dead. After the
    /// fresh rows of the same commit.
    fn withdrawn(&self, rows: Vec<Pending>);
    /// An application or an endpoint of it changed or was deleted; `endpoint` names which, `None`
    /// for all of them.
    fn directory_changed(&self, app: AppKey, endpoint: Option<EndpointKey>);
    /// There are new notices, e-mails or notifications of alerts.
    fn noted(&self) {}
    /// An endpoint works again after an outage.
    fn recovered(&self) {}
    /// Another node wrote something that this one serves or keeps copies of.
    fn elsewhere(&self, _: Elsewhere) {}
    /// These partitions are served here from now on.
    fn acquired(&self, _: Partitions) {}
    /// These partitions go: nothing more is begun for their endpoints, and once nothing of them is
    /// under way each is released.
    fn shed(&self, _: Partitions) {}
    /// A batch ended, well or not.
    fn batch(&self, stats: BatchStats);
}
