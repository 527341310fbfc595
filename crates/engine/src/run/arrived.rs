//! What must be known of lanes that come to this node, before they are served.
//!
//! Never: change anything.

use domain::ids::EndpointKey;
use resilience::Timestamp;
use store::StoreError;
use store::ledger::{LaneState, Suspect};

use crate::parts::Stores;

/// Endpoints read at once.
const PAGE: usize = 1_000;

/// What is read of partitions that come.
pub struct Arrived {
    pub(super) states: Vec<LaneState>,
    pub(super) due: Vec<(EndpointKey, Timestamp)>,
    pub(super) suspects: Vec<Suspect>,
}

/// Reads what must be known of lanes.
pub(super) async fn read(stores: &Stores) -> Result<Arrived, StoreError> {
    let states = stores.queue.lane_states().await?;
    let suspects = stores.ledger.suspects().await?;
    let (mut due, mut after) = (Vec::new(), None);
    loop {
        let some = stores.queue.endpoints(after, PAGE).await?;
        let count = some.len();
        due.extend(some);
        after = due.last().map(|(last, _)| *last);
        if count < PAGE {
            return Ok(Arrived { states, due, suspects });
        }
    }
}
