//! Rows that are closed without a send: past their age, or of a deleted endpoint.
//!
//! The head of a lane is looked at in each turn; lanes that do not send are swept once a minute, in
//! pieces of 500 rows, so that nothing waits for a receiver for ever.
//! Never: send, or close a row that somebody else owns.

use std::sync::Arc;
use std::time::Duration;

use domain::dead_letter::DeadReason;
use domain::delivery::CancelReason;
use domain::ids::EndpointKey;
use domain::limits::OPERATION_ROWS_MAX;
use resilience::Timestamp;
use store::StoreError;
use store::queue::DueRows;

use super::entry::Entry;
use super::lane::Home;
use super::step::Step;
use super::{Command, Dispatcher};
use crate::lanes::{Item, id_of};
use crate::record;

/// How often the rows on disk of a lane that does not send are looked through.
const EVERY: Duration = Duration::from_secs(60);

impl Dispatcher {
    /// A head past its age is given up; `None` when it is not.
    pub(super) fn expire_head(&mut self, endpoint: EndpointKey, now: Timestamp) -> Option<Step> {
        let lane = self.lanes.get_mut(&endpoint)?;
        let Home::Known(known) = &lane.home else { return None };
        let Some(head) = lane.book.head() else { return Some(Step::Rest) };
        if !known.is_expired(&head.pending, now) {
            return None;
        }
        let item = lane.book.take(false)?;
        self.give_up(item, DeadReason::Expired);
        Some(Step::Again)
    }

    /// Records a row as dead without a send.
    pub(super) fn give_up(&mut self, item: Item, reason: DeadReason) {
        self.uncache(&item);
        let pending = item.pending;
        if pending.budget_used > 0
            && let Some(known) = self.known(pending.endpoint)
        {
            // It may have been the head that an ordered lane waits for.
            known.gate.hold_head(None);
        }
        let endpoint = self.known(pending.endpoint).map(|known| Arc::clone(&known.endpoint));
        let record = record::of_dead(pending, reason, &mut *self.chance);
        self.results_push(Entry::unsent(record, endpoint));
    }

    /// Cancels the next row of a deleted endpoint.
    pub(super) fn cancel_one(&mut self, endpoint: EndpointKey) -> Step {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return Step::Rest };
        let Some(item) = lane.book.take_manual().or_else(|| lane.book.take(false)) else {
            return Step::Rest;
        };
        self.uncache(&item);
        let reason = CancelReason::EndpointDeleted;
        let record = record::of_cancelled(item.pending, reason, &mut *self.chance);
        self.results_push(Entry::unsent(record, None));
        Step::Again
    }

    /// Each second, for a lane that does not send: gives up rows in memory that are past their age,
    /// and once a minute looks at those on disk.
    pub(super) fn sweep(&mut self, endpoint: EndpointKey, now: Timestamp) {
        while let Some(item) = self.take_expired(endpoint, now) {
            self.give_up(item, DeadReason::Expired);
        }
        self.refill_if_wanted(endpoint, now);
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        let rested = lane.swept_at.is_none_or(|at| now >= at.plus(EVERY) || now < at);
        if !rested || !lane.book.is_parked() {
            return;
        }
        lane.swept_at = Some(now);
        let limit = lane.book.owned() + OPERATION_ROWS_MAX;
        let queue = Arc::clone(&self.stores.queue);
        self.report(async move {
            Command::Swept(endpoint, queue.due(endpoint, now.into(), limit).await)
        });
    }

    fn take_expired(&mut self, endpoint: EndpointKey, now: Timestamp) -> Option<Item> {
        let full = self.results.unrecorded >= self.settings.unrecorded_max;
        let lane = self.lanes.get_mut(&endpoint)?;
        let Home::Known(known) = &lane.home else { return None };
        if full || lane.unrecorded >= self.settings.lane_unrecorded_max {
            return None;
        }
        lane.book.take_if(false, |item| known.is_expired(&item.pending, now))
    }

    /// Rows of a lane that does not send were read: those past their age that nobody owns are given
    /// up.
    pub(super) fn swept(
        &mut self,
        endpoint: EndpointKey,
        read: Result<DueRows, StoreError>,
        now: Timestamp,
    ) {
        let Ok(read) = read.inspect_err(|error| tracing::warn!(%error, "old rows not read")) else {
            return;
        };
        let mut more = false;
        for pending in read.rows {
            let full = self.results.unrecorded >= self.settings.unrecorded_max;
            let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
            let Home::Known(known) = &lane.home else { return };
            if pending.trigger.is_extra()
                || !known.is_expired(&pending, now)
                || lane.book.knows(id_of(&pending))
            {
                continue;
            }
            if full || lane.unrecorded >= self.settings.lane_unrecorded_max {
                more = true;
                break;
            }
            lane.book.seize(id_of(&pending));
            self.ids += 1;
            self.give_up(Item { pending, envelope: None }, DeadReason::Expired);
        }
        if let Some(lane) = self.lanes.get_mut(&endpoint).filter(|_| more) {
            // The rest of the piece with the next look, once these are committed.
            lane.swept_at = None;
        }
    }
}
