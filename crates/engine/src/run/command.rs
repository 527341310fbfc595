//! Everything that can happen to the dispatcher, in one type, so that it stands in one queue.
//!
//! Never: do anything.

use std::sync::Arc;
use std::time::Duration;

use domain::attempt::Attempt;
use domain::delivery::Pending;
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, EndpointKey, MessageKey};
use domain::nodes::Partitions;
use resilience::Timestamp;
use store::StoreError;
use store::commits::Fresh;
use store::ledger::{LaneState, Recorded};
use store::prune::Pruned;
use store::queue::DueRows;
use tokio::sync::oneshot;

use super::arrived::Arrived;
use super::entry::Entry;
use crate::parts::{BreakerView, ByHand, NextSend, Situation};

/// Everything that can happen to the dispatcher.
#[expect(missing_docs, reason = "each variant is said in its line comment")]
pub enum Command {
    // Rows that were just committed and are due.
    Fresh(Vec<Fresh>),
    // Rows that are gone because their payload is.
    Withdrawn(Vec<Pending>),
    // A piece of pruning was done, or not.
    Pruned(Result<Pruned, StoreError>),
    // An application, or one endpoint of it, changed.
    Changed(AppKey, Option<EndpointKey>),
    // A changed endpoint was read again; `None`: deleted.
    Loaded(EndpointKey, Result<Option<Arc<Endpoint>>, StoreError>),
    // A refill was read.
    Refilled(EndpointKey, Result<DueRows, StoreError>),
    // Rows of a lane that does not send were read, for its old ones.
    Swept(EndpointKey, Result<DueRows, StoreError>),
    // A dead letter of a lane in strict order, if it has one.
    Gap(EndpointKey, Result<Option<MessageKey>, StoreError>),
    // Endpoints with pending rows, for the repair poll.
    Polled(Result<Vec<(EndpointKey, Timestamp)>, StoreError>, Timestamp),
    // The payload of a send was read: its slot, and how large it is.
    Weighed(usize, usize),
    // A send ended: its slot, and the facts or why there are none.
    Finished(usize, Ended),
    // The ledger answered.
    Recorded(Vec<Entry>, Result<Vec<Recorded>, StoreError>),
    // A failed batch of results is due again.
    RecordAgain,
    // Something was written to see whether it can be, or could not.
    StorageTried(Result<(), StoreError>),
    // The suspects of the start were stored, or not.
    SuspectsStored(Result<(), StoreError>),
    // The list of suspects was kept, or not.
    SuspectsKept(Result<(), StoreError>),
    // What somebody decided was kept, or not; how things stood before.
    OrderKept(Box<LaneState>, Result<(), StoreError>, oneshot::Sender<Result<(), StoreError>>),
    // An endpoint was asked whether it is well.
    Asked(EndpointKey, bool),
    // A lane's state was kept, or not.
    LaneKept(EndpointKey, Result<(), StoreError>),
    // Questions and orders from the engine's door.
    Settled(oneshot::Sender<()>),
    Breaker(EndpointKey, oneshot::Sender<BreakerView>),
    Order(EndpointKey, ByHand, oneshot::Sender<Result<(), StoreError>>),
    NextSends(Vec<EndpointKey>, oneshot::Sender<Vec<NextSend>>),
    Situation((EndpointKey, MessageKey), oneshot::Sender<Situation>),
    Paused(oneshot::Sender<bool>),
    // Somebody put this delivery back by hand.
    LetOne(EndpointKey, MessageKey),
    InFlight(EndpointKey, MessageKey, Asked),
    HasRoom(EndpointKey, oneshot::Sender<bool>),
    // What nodes that share a store do to each other's lanes.
    // These partitions are served here; what must be known of them is read.
    Acquired(Partitions),
    // It was read, or not; the number of the acquisition.
    Arrived(u64, Result<Box<Arrived>, StoreError>),
    // These partitions go.
    Shed(Partitions),
    // Whether some of what goes is free by now.
    LookAtShed,
    // What is in flight of these has had its time.
    ShedOver(Partitions),
    // Another node wrote pending rows of these endpoints.
    Woken(Vec<EndpointKey>),
    // The stored states of lanes that other nodes serve.
    Learned(Vec<EndpointKey>, Vec<LaneState>),
    Drain(Duration),
    // The time that draining may take is over.
    DrainOver,
}

/// Whoever asks whether a send is under way.
pub type Asked = oneshot::Sender<Result<bool, StoreError>>;

/// How a send ended.
#[derive(Debug)]
pub enum Ended {
    /// With facts.
    Attempted(Box<Attempt>),
    /// The payload is gone.
    PayloadGone,
    /// The payload could not be read, or the task was dropped: as if it had not begun.
    NotBegun,
    /// The task broke off: a fault in this program, which would come again and again if it did not
    /// count.
    Broken,
}
