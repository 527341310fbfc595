//! The half-open time: which probes are out, and how many have succeeded.
//!
//! In: probes by number. Out: whether there is room for another. A slot may be bounded in time, so
//! that a probe of which nothing is heard again holds it no longer than that.
//! Never: hold more slots than asked for, decide what follows.

use super::rules::HalfOpen;
use crate::clock::Timestamp;

/// A probe that is out.
#[derive(Clone, Copy, Debug)]
struct Slot {
    probe: u64,
    sent: Timestamp,
    until: Option<Timestamp>,
}

impl Slot {
    /// A clock that was set back by more than the wait ends it too, so no wait exceeds twice its
    /// length. A smaller step does not: readings of two threads may be that far apart.
    fn is_over(&self, now: Timestamp) -> bool {
        let lapsed =
            |until: Timestamp| now >= until || now.plus(until.since(self.sent)) < self.sent;
        self.until.is_some_and(lapsed)
    }
}

/// The probes of one opening.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    slots: Vec<Slot>,
    successes: u32,
}

impl Trial {
    /// Whether any probe is out or has succeeded.
    pub(super) const fn has_begun(&self) -> bool {
        !self.slots.is_empty() || self.successes > 0
    }

    /// Whether there is room for a probe; if not, when a slot is freed at the latest.
    pub(super) fn room(&self, rules: &HalfOpen, now: Timestamp) -> Result<(), Option<Timestamp>> {
        let probes = usize::try_from(rules.probes).unwrap_or(usize::MAX);
        let out = self.slots.iter().filter(|slot| !slot.is_over(now));
        if out.clone().count() < probes { Ok(()) } else { Err(out.filter_map(|s| s.until).min()) }
    }

    /// A probe goes out; probes that were waited for too long are given up.
    pub(super) fn send(&mut self, probe: u64, rules: &HalfOpen, now: Timestamp) {
        self.slots.retain(|slot| !slot.is_over(now));
        self.slots.push(Slot {
            probe,
            sent: now,
            until: rules.max_wait.map(|wait| now.plus(wait)),
        });
    }

    /// Whether this probe is out.
    pub(super) fn is_out(&self, probe: u64) -> bool {
        self.slots.iter().any(|slot| slot.probe == probe)
    }

    /// The numbers of probes that are out.
    pub(super) const fn out(&self) -> usize {
        self.slots.len()
    }

    /// A probe came back with nothing proved.
    pub(super) fn free(&mut self, probe: u64) {
        self.slots.retain(|slot| slot.probe != probe);
    }

    /// A probe succeeded; how many have.
    pub(super) fn succeed(&mut self, probe: u64) -> u32 {
        self.free(probe);
        self.successes = self.successes.saturating_add(1);
        self.successes
    }

    /// Forgets everything.
    pub(super) fn end(&mut self) {
        self.slots.clear();
        self.successes = 0;
    }
}
