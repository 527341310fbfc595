//! What cannot be recorded is not sent: writes that find out whether it could be, and what is told
//! of it.
//!
//! One write goes before the first send and follows each batch of results that failed. While it is
//! not known to succeed nothing is sent, and another one is made each second. Before the first of
//! them the suspects are stored, whom the in-flight file forgets with the first send.
//! Never: send what is due again and again because nobody can write down that it was sent.

use resilience::Timestamp;
use store::StoreError;
use store::ledger::Follow;

use super::home::Home;
use super::{Command, Dispatcher};

impl Dispatcher {
    /// Begins a write if one is due.
    pub(super) fn try_storage(&mut self, now: Timestamp) {
        if self.draining || !self.storage.is_due(now) {
            return;
        }
        self.storage.begin();
        if self.suspects.is_unkept() {
            let kept = self.stores.ledger.keep_suspects(self.suspects.list());
            self.report(async move { Command::SuspectsStored(kept.await) });
        } else {
            let write = self.stores.inbox.probe();
            self.report(async move { Command::StorageTried(write.await) });
        }
    }

    /// The suspects of the start were stored, or not.
    pub(super) fn suspects_stored(&mut self, answer: Result<(), StoreError>, now: Timestamp) {
        if answer.is_err() {
            return self.storage_tried(answer, now);
        }
        self.suspects.kept();
        let homes = &self.homes;
        self.suspects.keep_only(|endpoint| homes.of(endpoint) != Home::Elsewhere);
        self.flights.forget_found();
        self.storage.go_on(now);
    }

    /// The write came back.
    pub(super) fn storage_tried(&mut self, answer: Result<(), StoreError>, now: Timestamp) {
        let changed = self.storage.decide(answer.is_ok(), now);
        match answer {
            Ok(()) => {
                self.suspects.wait_anew(now);
                if changed {
                    tracing::info!("sending goes on: results can be stored again");
                }
            }
            Err(error) if changed => {
                tracing::error!(%error, "sending paused: results could not be stored");
            }
            Err(_) => {}
        }
        self.telemetry.paused(self.is_paused());
    }

    /// Whether nothing is sent because of a fault on this side.
    pub(super) fn is_paused(&self) -> bool {
        self.own_fault.is_on_trial() || self.storage.is_at_fault()
    }

    /// At the end: what was sent and could not be written down is sent again.
    pub(super) fn tell_unrecorded(&self) {
        let results = self.results.unrecorded;
        if results == 0 {
            return;
        }
        let is_delivered = |follow: &Follow| *follow == Follow::Delivered;
        let waiting = self.results.waiting.iter();
        let delivered = waiting.filter(|entry| is_delivered(&entry.record.follow)).count();
        tracing::error!(
            results,
            delivered,
            "stopped with results that could not be stored: their deliveries are pending still, \
             and will be sent again"
        );
    }
}
