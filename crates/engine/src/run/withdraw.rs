//! Rows that the store has closed because their payload is gone: lanes let them go.
//!
//! One that waits here goes at once, with its payload. One that is out stays owned until its result
//! is answered, which comes too late to change more than a success does.
//! Never: send what was withdrawn, or hold a lane for it.

use std::sync::Arc;

use domain::dead_letter::DeadReason;
use domain::delivery::Pending;

use super::Dispatcher;
use super::lane::Home;
use crate::events::Event;
use crate::lanes::{Item, id_of};

impl Dispatcher {
    /// Rows are gone, and their deliveries are dead.
    pub(super) fn withdrawn(&mut self, rows: Vec<Pending>) {
        for row in rows {
            if let Some(item) = self.withdraw(&row) {
                self.uncache(&item);
            }
            self.clear_suspect(&row);
            if !row.trigger.is_extra() {
                self.tell_of_withdrawal(&row);
            }
            self.enqueue(row.endpoint);
        }
    }

    /// Takes a row out of its lane; answers with it if it waited there.
    fn withdraw(&mut self, row: &Pending) -> Option<Item> {
        let lane = self.lanes.get_mut(&row.endpoint)?;
        let before = lane.book.owned();
        let waited = lane.book.withdraw(row);
        self.ids = (self.ids + lane.book.owned()).saturating_sub(before);
        if row.trigger.is_extra() {
            return waited;
        }
        let out = waited.is_none() && lane.book.knows(id_of(row));
        if out {
            lane.withdrawn_out.push(row.message);
        }
        if let Home::Known(known) = &mut lane.home {
            if out || row.budget_used > 0 {
                // It may be the head that an ordered lane waits for.
                known.gate.hold_head(None);
            }
            if known.is_strict() {
                lane.gap.open(row.message);
            }
        }
        waited
    }

    fn tell_of_withdrawal(&mut self, row: &Pending) {
        let reason = DeadReason::PayloadGone;
        self.telemetry.buried(reason);
        let endpoint = self.known(row.endpoint).map(|known| Arc::clone(&known.endpoint));
        if let Some(endpoint) = endpoint {
            let message = row.message;
            self.observer.observe(&Event::Buried { endpoint, message, reason });
        }
    }
}
