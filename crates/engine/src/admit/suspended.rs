//! What suspension does to a gate: the failure that begins it, what somebody decides, how it shows.
//!
//! Never: decide when it begins; `suspension` does.

use domain::ids::MessageKey;
use resilience::{Chance, Change, Forced, Timestamp};
use store::ledger::{LaneState, Suspended};

use super::suspension::Suspension;
use super::{Gate, Pass, Settled};

impl Gate {
    /// A failure that counts: it may open the breaker, or be the one after which the endpoint is
    /// suspended.
    pub(super) fn fail(
        &mut self,
        pass: &Pass,
        message: MessageKey,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Settled {
        self.window.cut(pass.round);
        if self.suspension.on.is_some() {
            self.breaker.neutral(pass.permit, now);
            return Settled::default();
        }
        let is_forced = self.breaker.snapshot().forced.is_some();
        let failing_since = self.breaker.failing_since().filter(|_| !is_forced);
        let rules = self.settings.suspending;
        if failing_since.is_some_and(|since| self.suspension.fail(since, rules, now)) {
            self.breaker.neutral(pass.permit, now);
            self.breaker.end_wait(now);
            return Settled { suspended: true, ..Settled::default() };
        }
        let change = self.breaker.failure(pass.permit, message.0, now, chance);
        Settled { change, ..Settled::default() }
    }

    /// Suspends the endpoint by hand, whatever was forced before.
    pub fn suspend(&mut self, now: Timestamp) {
        if self.breaker.snapshot().forced.is_some() {
            self.breaker.force(None, now);
        }
        if self.suspension.on.is_none() {
            self.breaker.end_wait(now);
            self.suspension.begin(self.settings.suspending, now);
            self.note_outage(now);
        }
    }

    /// Resumes the endpoint, if it is suspended: gently, its breaker closed.
    pub(super) fn resume(&mut self, now: Timestamp) -> Settled {
        if !self.suspension.end() {
            return Settled::default();
        }
        let was_open = self.breaker.snapshot().open_until.is_some();
        self.breaker.reset(now);
        self.window.restart();
        self.note_outage(now);
        let change = was_open.then_some(Change::Closed);
        Settled { change, resumed: true, ..Settled::default() }
    }

    /// Since when it is suspended, unless somebody forced its breaker since.
    pub fn suspended(&self) -> Option<Suspended> {
        self.suspension.on.filter(|_| self.breaker.snapshot().forced.is_none())
    }

    /// The endpoint is another than the one that failed: if its breaker is open, or it is
    /// suspended, a probe may go now. Says whether anything waited for longer.
    pub fn let_probe(&mut self, now: Timestamp) -> bool {
        let later = |until: Option<Timestamp>| until.is_some_and(|until| until > now);
        let waited = later(self.breaker.snapshot().open_until)
            || later(self.suspension.on.map(|on| on.probe_at));
        if waited {
            self.breaker.end_wait(now);
            self.suspension.wait_no_longer(now);
        }
        waited
    }

    /// What was done by hand could not be stored: as it was before.
    pub fn undo(&mut self, before: &LaneState, now: Timestamp) {
        self.breaker.force(before.breaker.forced, now);
        self.suspension = Suspension::restore(before, now);
        self.outage = before.outage;
    }

    /// `suspended`, `closed`, `open` or `halfOpen`; a forced state counts as what it is.
    pub fn state_name(&self, now: Timestamp) -> &'static str {
        use resilience::State::{Closed, HalfOpen, Open};
        match (self.breaker.snapshot().forced, self.breaker.state(now)) {
            (None, _) if self.suspension.on.is_some() => "suspended",
            (Some(Forced::Open), _) | (None, Open { .. }) => "open",
            (Some(Forced::Closed), _) | (None, Closed) => "closed",
            (None, HalfOpen) => "halfOpen",
        }
    }
}
