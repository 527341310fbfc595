//! What results have shown so far: the run of failures, and the calls of late.
//!
//! In: results. Out: whether they are bad enough.
//! Never: know states, permits or probes.

use super::recent::{Counts, Recent};
use super::rules::Trip;
use crate::clock::Timestamp;

/// What is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    consecutive: u32,
    /// The first `keys_min` different keys among the consecutive failures; not kept for one.
    pub(super) keys: Vec<u64>,
    /// Absent until the first result, and while open.
    pub(super) recent: Option<Box<Recent>>,
}

impl Health {
    /// Failures since the last success.
    pub(super) const fn consecutive(&self) -> u32 {
        self.consecutive
    }

    /// What the window holds.
    pub(super) fn counts(&self) -> Counts {
        self.recent.as_ref().map_or_else(Counts::default, |recent| recent.sums())
    }

    /// The run of failures is one longer.
    pub(super) const fn lengthen(&mut self) {
        self.consecutive = self.consecutive.saturating_add(1);
    }

    /// The run of failures is over.
    pub(super) fn end_run(&mut self) {
        self.consecutive = 0;
        self.keys.clear();
    }

    /// A failure carried this key.
    pub(super) fn remember(&mut self, key: u64, trip: &Trip) {
        let keys_min = keys_min(trip);
        if keys_min > 1 && self.keys.len() < keys_min && !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    /// Counts one call in the window, if there is one.
    pub(super) fn count(&mut self, trip: &Trip, failed: bool, slow: bool, now: Timestamp) {
        if let Some(rate) = trip.rate {
            let recent = self.recent.get_or_insert_with(|| Box::new(Recent::new(rate.window, now)));
            recent.record(failed, slow, now);
        }
    }

    /// Forgets the calls of late.
    pub(super) fn forget_recent(&mut self) {
        self.recent = None;
    }

    /// Lets go of all memory; the length of the run stays.
    pub(super) fn forget(&mut self) {
        self.keys = Vec::new();
        self.recent = None;
    }

    /// Whether it is bad enough to open.
    pub(super) fn trips(&self, trip: &Trip) -> bool {
        let keys_min = keys_min(trip);
        let in_a_row = trip.failures.is_some_and(|failures| self.consecutive >= failures);
        if in_a_row && (keys_min <= 1 || self.keys.len() >= keys_min) {
            return true;
        }
        let Some(rate) = trip.rate else { return false };
        let Counts { calls, failures, slow } = self.counts();
        calls >= u64::from(rate.calls_min)
            && (rate.share.is_reached(failures, calls)
                || rate.slow.is_some_and(|rule| rule.share.is_reached(slow, calls)))
    }
}

fn keys_min(trip: &Trip) -> usize {
    usize::try_from(trip.keys_min).unwrap_or(usize::MAX)
}
