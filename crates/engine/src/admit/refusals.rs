//! A run of refusals to different messages holds the lane like an open breaker.
//!
//! A broken deploy or an expired credential must not dead-letter everything. A success ends the
//! run; answers that say nothing about it (429, 5xx, network faults) leave it as it is. Once it
//! holds, the success of a probe or of a send by hand ends it, or somebody who changed what was
//! refused.
//! Never: count the same message twice in a row, or a send from before the run began anew.

use std::time::Duration;

use domain::ids::MessageKey;
use domain::limits::REJECTED_RUN_MAX;
use resilience::Timestamp;
use store::ledger::LaneState;

use super::decision::Decision;
use super::hold::is_over;

const HOLD: Duration = Duration::from_secs(30);
const HOLD_MAX: Duration = Duration::from_secs(600);

/// The run, and the hold it led to.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    run: u32,
    /// When the first of the run came.
    began: Option<Timestamp>,
    last: Option<MessageKey>,
    until: Option<Timestamp>,
    /// When `until` was set.
    since: Timestamp,
    held_for: Duration,
    /// The number of the probe that is out.
    probe: Option<u64>,
    /// How often it was begun anew: a send from before says nothing about what is now.
    epoch: u64,
}

impl Refusals {
    pub(super) fn restore(kept: &LaneState, now: Timestamp) -> Self {
        let (until, held_for) = (kept.rejected_until, kept.rejected_for);
        let began = kept.rejected_since.filter(|_| until.is_some());
        Self { began, until, since: now, held_for, ..Self::default() }
    }

    pub(super) fn decide(&self, now: Timestamp) -> Decision {
        match self.until {
            None => Decision::Go,
            Some(until) if !is_over(until, self.since, now) => Decision::Wait(Some(until)),
            Some(_) if self.probe.is_some() => Decision::Wait(None),
            Some(_) => Decision::Probe,
        }
    }

    /// Probe `number` is out.
    pub(super) const fn probe(&mut self, number: u64) {
        if self.until.is_some() {
            self.probe = Some(number);
        }
    }

    /// Probe `number` is back; says whether it was this hold's.
    pub(super) fn unprobe(&mut self, number: u64) -> bool {
        let was = self.probe == Some(number);
        if was {
            self.probe = None;
        }
        was
    }

    /// Which run a send was begun under.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// One refusal of a send begun under `epoch`, `of_probe` or not; says until when the lane is
    /// held because of it.
    pub(super) fn refuse(
        &mut self,
        message: MessageKey,
        (of_probe, epoch): (bool, u64),
        now: Timestamp,
    ) -> Option<Timestamp> {
        if epoch != self.epoch {
            return None;
        }
        if self.run == 0 && self.until.is_none() {
            self.began = Some(now);
        }
        if self.last != Some(message) {
            self.run = self.run.saturating_add(1);
            self.last = Some(message);
        }
        let again = of_probe && self.until.is_some();
        let first = self.until.is_none() && self.run >= REJECTED_RUN_MAX;
        if !(again || first) {
            return None;
        }
        self.held_for = if again { (self.held_for * 2).clamp(HOLD, HOLD_MAX) } else { HOLD };
        let until = now.plus(self.held_for);
        (self.until, self.since) = (Some(until), now);
        Some(until)
    }

    /// A success: the run is over, and so is the hold if its probe brought it. Says whether a hold
    /// was lifted.
    pub(super) fn succeed(&mut self, of_probe: bool) -> bool {
        (self.run, self.last) = (0, None);
        let lifted = of_probe && self.until.is_some();
        if lifted {
            self.reset();
        }
        lifted
    }

    /// A success of a send by hand that began at `begun`: it ends the hold unless it is older.
    /// Says whether a hold was lifted.
    pub(super) fn succeed_by_hand(&mut self, begun: Timestamp) -> bool {
        let lifted = self.until.is_some() && begun >= self.since;
        if lifted {
            self.reset();
        }
        lifted
    }

    /// Somebody waits for a probe: it may go now, unless one is out.
    pub(super) fn let_one(&mut self, now: Timestamp) {
        if self.until.is_some() && self.probe.is_none() {
            (self.until, self.since) = (Some(now), now);
        }
    }

    /// As if nothing had been refused. Says whether a hold was lifted.
    pub(super) fn reset(&mut self) -> bool {
        let lifted = self.until.is_some();
        *self = Self { epoch: self.epoch + 1, ..Self::default() };
        lifted
    }

    /// The run that a refusal of a send begun under `epoch` belongs to.
    pub(super) fn run_of(&self, epoch: u64) -> Option<Timestamp> {
        self.began.filter(|_| epoch == self.epoch)
    }

    /// The run that holds the lane.
    pub(super) fn holding(&self) -> Option<Timestamp> {
        self.began.filter(|_| self.until.is_some())
    }

    pub(super) const fn until(&self) -> Option<Timestamp> {
        self.until
    }

    pub(super) const fn held_for(&self) -> Duration {
        self.held_for
    }
}
