//! What one process knows of a shared breaker and has not yet told.
//!
//! Never: grow with the number of calls.

use std::time::Duration;

use super::runs::Runs;
use super::store::{InstanceId, Report};
use crate::clock::Timestamp;

/// Ends of probes, and calls that have not heard an answer, that wait to be told of; older ones
/// have lapsed anyway.
const PROBES_MAX: usize = 16;

/// What is to be told.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) reports: Vec<Report>,
    pub(super) unheard: Vec<Unheard>,
}

impl Batch {
    pub(super) const fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.unheard.is_empty()
    }
}

/// A call that asked and went before it heard the answer: it may have been let out as the probe.
#[derive(Clone, Debug)]
pub(super) struct Unheard {
    pub(super) me: InstanceId,
    /// When it went. What it asked may reach the store later than what is told of it.
    pub(super) since: Timestamp,
}

/// News in and out.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// The last generation heard of.
    generation: u64,
    /// What calls of that generation came to and has not been told.
    runs: Runs,
    probes: Vec<Report>,
    unheard: Vec<Unheard>,
    /// Failures that the store will never be told of as such: of calls that it knew nothing of, or
    /// lost on their way.
    untold: u32,
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
        keep_last(&mut self.probes, report);
    }

    /// A call went before it heard the answer.
    pub(super) fn went(&mut self, unheard: Unheard) {
        keep_last(&mut self.unheard, unheard);
    }

    /// A call failed that the store knows nothing of.
    pub(super) const fn failed_alone(&mut self) {
        self.untold = self.untold.saturating_add(1);
    }

    /// How many failures the store knows nothing of.
    pub(super) const fn untold(&self) -> u32 {
        self.untold
    }

    /// What so many of them had come to is known there, or has come to nothing.
    pub(super) const fn made_good(&mut self, untold: u32) {
        if self.untold == untold {
            self.untold = 0;
        }
    }

    /// Everything that is to be told.
    pub(super) fn take(&mut self) -> Batch {
        let mut reports = std::mem::take(&mut self.probes);
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_empty() {
            reports.push(Report::Calls { generation: self.generation, runs });
        }
        Batch { reports, unheard: std::mem::take(&mut self.unheard) }
    }

    /// Nobody knows whether it was told. A probe counts once however often it is told, so those are
    /// kept; other calls would count twice.
    pub(super) fn give_back(&mut self, batch: Batch) {
        for report in batch.reports {
            match report {
                Report::Probe { .. } => self.probed(report),
                Report::Calls { runs, .. } if runs.has_failed() => self.failed_alone(),
                Report::Calls { .. } | Report::Opened { .. } => {}
            }
        }
        for unheard in batch.unheard {
            self.went(unheard);
        }
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

fn keep_last<T>(kept: &mut Vec<T>, one: T) {
    if kept.len() >= PROBES_MAX {
        kept.remove(0);
    }
    kept.push(one);
}
