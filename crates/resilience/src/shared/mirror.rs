//! What one process knows of a shared breaker and has not yet told.
//!
//! Never: grow with the number of calls.

use std::time::Duration;

use super::runs::Runs;
use super::store::Report;
use crate::clock::Timestamp;

/// Ends of probes that wait to be told; older ones have lapsed anyway.
const PROBES_MAX: usize = 16;

/// News in and out.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// The last generation heard of.
    generation: u64,
    /// What calls of that generation came to and has not been told.
    runs: Runs,
    probes: Vec<Report>,
    /// When the store was last heard.
    seen: Option<Timestamp>,
    /// A store that failed is left alone until then.
    rest_until: Option<Timestamp>,
    /// Someone has asked for news and may be waiting until then. Whoever asks may be dropped, so
    /// this ends by itself.
    asking_until: Option<Timestamp>,
}

impl Mirror {
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// An ordinary call of that generation has ended.
    pub(super) fn count(&mut self, generation: u64, failed: bool) {
        if generation == self.generation {
            self.runs.add(failed);
        }
    }

    /// A probe has ended.
    pub(super) fn probed(&mut self, report: Report) {
        if self.probes.len() >= PROBES_MAX {
            self.probes.remove(0);
        }
        self.probes.push(report);
    }

    /// Everything that is to be told.
    pub(super) fn take(&mut self) -> Vec<Report> {
        let mut batch = std::mem::take(&mut self.probes);
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_empty() {
            batch.push(Report::Calls { generation: self.generation, runs });
        }
        batch
    }

    /// Whether it is time to ask, and nobody does; whoever is told so asks.
    pub(super) fn should_ask(
        &mut self,
        stale: Duration,
        timeout: Duration,
        now: Timestamp,
    ) -> bool {
        let fresh = self.seen.is_some_and(|seen| now.since(seen) <= stale && now >= seen);
        let asked = self.asking_until.is_some_and(|until| now < until);
        let asks = !fresh && !asked && !self.rests(now);
        if asks {
            self.asking_until = Some(now.plus(timeout));
        }
        asks
    }

    /// The store answered; whether its news may be taken over. They may not while results of the
    /// same generation wait to be told, since it does not know those.
    pub(super) fn heard(&mut self, generation: u64, now: Timestamp) -> bool {
        self.seen = Some(now);
        self.rest_until = None;
        let changed = generation != self.generation;
        if changed {
            self.generation = generation;
            self.runs = Runs::default();
        }
        changed || self.runs.is_empty()
    }

    /// The store failed.
    pub(super) fn failed(&mut self, rest: Duration, now: Timestamp) {
        self.rest_until = Some(now.plus(rest));
    }

    /// The asking is over.
    pub(super) const fn asked(&mut self) {
        self.asking_until = None;
    }

    /// Whether the store is left alone.
    pub(super) fn rests(&self, now: Timestamp) -> bool {
        self.rest_until.is_some_and(|until| now < until)
    }
}
