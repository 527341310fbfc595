//! Due work, in the reference model.
//!
//! Never: change anything.

use std::sync::Arc;

use domain::ids::{EndpointKey, MessageKey};
use domain::message::Envelope;
use domain::until::Until;
use resilience::Timestamp;

use super::MemoryStore;
use super::inbox::envelope;
use crate::Reply;
use crate::ledger::LaneState;
use crate::queue::{DueRows, Queue};

impl Queue for MemoryStore {
    fn endpoints(
        &self,
        after: Option<EndpointKey>,
        limit: usize,
    ) -> Reply<'_, Vec<(EndpointKey, Timestamp)>> {
        self.read(move |state| {
            let mut found: Vec<(EndpointKey, Timestamp)> = Vec::new();
            // The first row of each endpoint is its earliest.
            for &(endpoint, due_at, ..) in state.pending.keys() {
                let skipped = after.is_some_and(|after| endpoint <= after);
                let seen = found.last().is_some_and(|(last, _)| *last == endpoint);
                if found.len() == limit && !seen {
                    break;
                }
                if !skipped && !seen {
                    found.push((endpoint, due_at));
                }
            }
            found
        })
    }

    fn due(&self, endpoint: EndpointKey, until: Until, limit: usize) -> Reply<'_, DueRows> {
        self.read(move |state| {
            let mut rest = state.pending_to(endpoint).copied().peekable();
            let mut rows = Vec::new();
            while rows.len() < limit {
                let Some(row) = rest.next_if(|row| until.has(row)) else { break };
                rows.push(row);
            }
            DueRows { rows, next_due: rest.peek().map(|row| row.due_at) }
        })
    }

    fn envelope(&self, message: MessageKey) -> Reply<'_, Option<Arc<Envelope>>> {
        self.read(move |state| {
            let message = state.messages.get(&message)?;
            (!message.payload_gone).then(|| Arc::new(envelope(message)))
        })
    }

    fn lane_states(&self) -> Reply<'_, Vec<LaneState>> {
        self.read(|state| state.lanes.values().cloned().collect())
    }

    fn depth(&self) -> Reply<'_, (u64, Option<Timestamp>)> {
        self.read(|state| {
            let count = u64::try_from(state.pending.len()).unwrap_or(u64::MAX);
            (count, state.pending.values().map(|row| row.due_at).min())
        })
    }
}
