//! Due work: what is pending, by endpoint and due time.
//!
//! Never: change anything. Who owns which row is the engine's memory.

use std::sync::Arc;

use domain::delivery::Pending;
use domain::ids::{EndpointKey, MessageKey};
use domain::message::Envelope;
use domain::until::Until;
use resilience::Timestamp;

use crate::Reply;
use crate::ledger::LaneState;

/// Rows of one endpoint in order of due time, then message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueRows {
    /// Rows that are due, earliest first and up to the first that is not, at most the asked number.
    pub rows: Vec<Pending>,
    /// The due time of the first row not returned, due or not; `None` when there is none.
    pub next_due: Option<Timestamp>,
}

/// Reads of pending work.
pub trait Queue: Send + Sync {
    /// Each endpoint with pending rows and its earliest due time, in order of endpoint, at most
    /// `limit`, after `after`.
    fn endpoints(
        &self,
        after: Option<EndpointKey>,
        limit: usize,
    ) -> Reply<'_, Vec<(EndpointKey, Timestamp)>>;

    /// Pending rows of one endpoint that are due.
    fn due(&self, endpoint: EndpointKey, until: Until, limit: usize) -> Reply<'_, DueRows>;

    /// What a send needs of a message; `None` when the payload is gone.
    fn envelope(&self, message: MessageKey) -> Reply<'_, Option<Arc<Envelope>>>;

    /// Every lane state that was ever written, for the start.
    fn lane_states(&self) -> Reply<'_, Vec<LaneState>>;

    /// Number of pending rows and the earliest due time, for metrics; may be a second old.
    fn depth(&self) -> Reply<'_, (u64, Option<Timestamp>)>;
}
