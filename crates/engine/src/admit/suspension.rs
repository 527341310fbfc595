//! Suspension: an endpoint that has failed for long is sent nothing but a probe now and then.
//!
//! In: failures and successes that count for the breaker. Out: when its owner is warned, when it is
//! suspended, and when it is resumed; the store tells them ([`LaneState::news_after`]). While it is
//! suspended the breaker neither counts nor makes anybody wait: the next probe is the suspension's,
//! and the first that is delivered ends both.
//! Never: more than one probe at a time.

use std::time::Duration;

use resilience::Timestamp;
use store::ledger::{LaneState, Suspended};

use super::decision::Decision;
use super::hold::is_over;
use crate::settings::Suspending;

/// How far it has come.
#[derive(Debug, Default)]
pub(super) struct Suspension {
    /// The owner was told that it fails, since the last success.
    warned: bool,
    pub(super) on: Option<Suspended>,
    /// When `probe_at` was set.
    set_at: Timestamp,
    /// The number of the probe that is out.
    probe: Option<u64>,
}

impl Suspension {
    pub(super) fn restore(kept: &LaneState, now: Timestamp) -> Self {
        Self { warned: kept.warned, on: kept.suspended, set_at: now, probe: None }
    }

    pub(super) const fn warned(&self) -> bool {
        self.warned
    }

    pub(super) fn decide(&self, now: Timestamp) -> Decision {
        match self.on {
            None => Decision::Go,
            Some(on) if !is_over(on.probe_at, self.set_at, now) => {
                Decision::Wait(Some(on.probe_at))
            }
            Some(_) if self.probe.is_some() => Decision::Wait(None),
            Some(_) => Decision::Probe,
        }
    }

    /// Probe `number` is out.
    pub(super) const fn probe(&mut self, number: u64) {
        if self.on.is_some() {
            self.probe = Some(number);
        }
    }

    /// Probe `number` is back; says whether it was this one's.
    pub(super) fn unprobe(&mut self, number: u64) -> bool {
        let was = self.probe == Some(number);
        if was {
            self.probe = None;
        }
        was
    }

    pub(super) fn begin(&mut self, rules: Suspending, now: Timestamp) {
        let probe_at = now.plus(rules.probe_every);
        self.on = Some(Suspended { since: now, probe_at });
        self.set_at = now;
    }

    /// A probe did not bring it back: the next one is made later.
    pub(super) fn wait(&mut self, rules: Suspending, now: Timestamp) {
        if let Some(on) = &mut self.on {
            on.probe_at = now.plus(rules.probe_every);
            self.set_at = now;
        }
    }

    /// The next probe may go now.
    pub(super) fn wait_no_longer(&mut self, now: Timestamp) {
        if let Some(on) = &mut self.on {
            on.probe_at = now;
            self.set_at = now;
        }
    }

    /// It fails since `failing_since`, and failed again. Says whether that suspends it.
    pub(super) fn fail(
        &mut self,
        failing_since: Timestamp,
        rules: Suspending,
        now: Timestamp,
    ) -> bool {
        let for_long = |after: Duration| now >= failing_since.plus(after);
        let suspends = rules.after.is_some_and(for_long);
        if suspends {
            self.begin(rules, now);
        } else if rules.after.is_some() && rules.warn_after.is_some_and(for_long) {
            self.warned = true;
        }
        suspends
    }

    /// A success, of a probe or not. Says whether it ends the suspension.
    pub(super) fn succeed(&mut self, of_probe: bool, is_well: bool) -> bool {
        if self.on.is_none() {
            self.warned &= !is_well;
            return false;
        }
        of_probe && self.end()
    }

    /// As if nothing had failed. Says whether it was suspended.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(self).on.is_some()
    }
}
