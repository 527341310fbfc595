//! Results on their way: they go to the ledger in batches, and — once committed — their rows are
//! let go.
//!
//! A result stays in memory until it is committed; a failed commit is tried again.
//! Never: release an id before its record is committed.

use std::time::Duration;

use domain::delivery::{Pending, Trigger};
use domain::limits::OPERATION_ROWS_MAX;
use resilience::Timestamp;
use store::StoreError;
use store::ledger::{Follow, Recorded};

use super::entry::Entry;
use super::lane::Home;
use super::{Command, Dispatcher, Results};
use crate::lanes::{Item, id_of};

const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// Batches of results on their way to the ledger before results are gathered.
const COMMITTING_MAX: usize = 2;
/// Results that are gathered at most.
const GATHERED_MAX: usize = 128;

impl Dispatcher {
    /// Whether results should go to the ledger now: what comes in while two batches of them are
    /// on their way waits for an answer, so that batches grow with the load.
    fn may_flush(&self) -> bool {
        let Results { waiting, recording, committing, .. } = &self.results;
        !recording
            && !waiting.is_empty()
            && (*committing < COMMITTING_MAX || waiting.len() >= GATHERED_MAX)
    }

    /// Hands what is waiting to the ledger.
    pub(super) fn flush_results(&mut self) {
        while self.may_flush() {
            let count = self.results.waiting.len().min(OPERATION_ROWS_MAX);
            let entries: Vec<Entry> = self.results.waiting.drain(..count).collect();
            // After a failure one batch at a time, so that an older state is never written over a
            // newer one.
            self.results.recording = self.results.failures > 0;
            self.results.committing += 1;
            let records = entries.iter().map(|entry| entry.record.clone()).collect();
            let answer = self.stores.ledger.record(records);
            self.report(async move { Command::Recorded(entries, answer.await) });
        }
    }

    /// The ledger answered.
    pub(super) fn recorded(
        &mut self,
        entries: Vec<Entry>,
        answer: Result<Vec<Recorded>, StoreError>,
        now: Timestamp,
    ) {
        self.results.committing = self.results.committing.saturating_sub(1);
        match answer {
            Ok(done) => {
                self.results.failures = 0;
                self.results.recording = false;
                for (entry, done) in entries.into_iter().zip(done) {
                    self.let_go(entry, done);
                }
            }
            Err(error) => {
                self.storage.doubt(now);
                self.record_again(entries, &error);
            }
        }
    }

    fn record_again(&mut self, mut entries: Vec<Entry>, error: &StoreError) {
        self.refuse_asked(error);
        let step = AGAIN.saturating_mul(1 << self.results.failures.min(10));
        if self.results.failures == 0 {
            tracing::error!(%error, results = entries.len(), "results not committed; trying again");
        }
        self.results.failures = self.results.failures.saturating_add(1);
        self.results.recording = true;
        for entry in &mut entries {
            if let Some(old) = entry.record.lane.take() {
                // The state as it is by now, so that an older one is never written over it.
                let known = self.known(entry.record.pending.endpoint);
                let kept = known.and_then(|known| known.kept.clone());
                entry.record.lane = Some(kept.unwrap_or(old));
            }
        }
        entries.append(&mut self.results.waiting);
        self.results.waiting = entries;
        self.report(async move {
            tokio::time::sleep(step.min(AGAIN_MAX)).await;
            Command::RecordAgain
        });
    }

    /// A record is committed: its row is free, and whoever watches is told.
    fn let_go(&mut self, entry: Entry, done: Recorded) {
        let pending = entry.record.pending;
        self.results.unrecorded = self.results.unrecorded.saturating_sub(1);
        self.clear_suspect(&pending);
        let Some(lane) = self.lanes.get_mut(&pending.endpoint) else { return };
        lane.unrecorded = lane.unrecorded.saturating_sub(1);
        let before = lane.book.owned();
        let id = id_of(&pending);
        let withdrawn = lane.withdrawn_out.contains(&pending.message);
        match (&entry.record.follow, done) {
            (Follow::Retry { budget_used, delay, .. }, Recorded::Applied)
                if entry.keeps_place && !withdrawn =>
            {
                // An ordered endpoint's head keeps its place, and its row stays owned.
                let pending = Pending {
                    sends: pending.sends.saturating_add(1),
                    budget_used: *budget_used,
                    last_delay: *delay,
                    trigger: Trigger::Scheduled,
                    ..pending
                };
                lane.book.put_back(Item { pending, envelope: None });
            }
            (Follow::Retry { due_at, .. }, Recorded::Applied) => {
                lane.book.release(id);
                lane.book.note_due(*due_at);
            }
            (Follow::Retry { .. }, Recorded::Late) => {
                // It may be an answer that was lost: then its row has moved, and only the disk
                // knows where to.
                lane.book.release(id);
                lane.book.doubt();
            }
            _ => lane.book.release(id),
        }
        let by_hand = pending.trigger.is_extra() && entry.record.follow == Follow::Delivered;
        let dropped = if by_hand { lane.book.settle(pending.message) } else { None };
        let sent = pending.sends.saturating_add(u32::from(entry.record.attempt.is_some()));
        lane.book.raise_sends(pending.message, pending.trigger, sent);
        lane.forget_manual(&pending);
        lane.withdrawn_out.retain(|message| *message != pending.message);
        self.ids = (self.ids + lane.book.owned()).saturating_sub(before);
        if let Some(item) = dropped {
            self.uncache(&item);
        }
        self.look_back(&entry, done);
        self.ask_again(pending.endpoint);
        self.enqueue(pending.endpoint);
        self.tell(entry, done);
    }

    /// A delivery is under no suspicion any more.
    pub(super) fn clear_suspect(&mut self, row: &Pending) {
        if !self.suspects.is_empty() && self.suspects.clear((row.endpoint, row.message)) {
            let kept = self.stores.ledger.keep_suspects(self.suspects.list());
            self.report(async move { Command::SuspectsKept(kept.await) });
        }
    }

    /// What a committed record means for its lane: what was not written, and whether strict order
    /// has a gap.
    fn look_back(&mut self, entry: &Entry, done: Recorded) {
        let endpoint = entry.record.pending.endpoint;
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        let Home::Known(known) = &mut lane.home else { return };
        if done == Recorded::Late {
            // Neither was written.
            known.gone = known.gone && entry.record.disable.is_none();
            known.kept = known.kept.take().filter(|_| entry.record.lane.is_none());
            known.not_told(entry.record.news.breaker);
        }
        if !known.is_strict() {
            return;
        }
        match (&entry.record.follow, entry.record.pending.trigger.is_extra()) {
            (Follow::Dead { .. }, false) if done == Recorded::Applied => {
                lane.gap.open(entry.record.pending.message);
            }
            // It may be dead all the same: an answer that was lost.
            (Follow::Dead { .. }, false) => lane.gap.forget(),
            // A resend of what is dead may have brought it to its receiver.
            (Follow::Delivered, true) => self.ask_again_of_gap(endpoint),
            _ => {}
        }
    }
}
