//! Stage 2: whether a lane may start a send now.
//!
//! A gate is the memory of one endpoint: breaker, window, rate, the hold that `Retry-After` or 429
//! set, the hold after a run of refusals, and its suspension. It asks nothing of the network and
//! nothing of the store: its endpoint has one owner.
//! Never: choose the delivery, send, or store; what must survive a restart is `kept`.

use std::time::Duration;

use domain::classify::Class;
use domain::ids::{EndpointKey, MessageKey};
use resilience::{
    Admission, Breaker, BreakerConfig, Chance, Change, Permit, Rate, RetryAfter, Round, Timestamp,
    Window,
};
use store::ledger::{LaneState, Outage};

pub use decision::Decision;
pub use held::{Held, HeldBy};
use hold::Hold;
use refusals::Refusals;
use suspension::Suspension;

use crate::settings::Suspending;

mod decision;
mod forced;
mod held;
mod hold;
mod outage;
mod refusals;
mod suspended;
mod suspension;
#[cfg(test)]
mod tests;
mod well;

/// What of an endpoint's and the server's settings a gate needs.
#[derive(Clone, Debug)]
pub struct GateSettings {
    /// The breaker.
    pub breaker: BreakerConfig,
    /// Window at first and at most; 1 and 1 for an ordered endpoint.
    pub window: (u32, u32),
    /// Sends a second at most.
    pub rate: Option<u32>,
    /// A hint holds the lane no longer than this.
    pub hold_max: Duration,
    /// When it is suspended.
    pub suspending: Suspending,
}

/// Given with a send, and back with its result.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    permit: Permit,
    round: Round,
    epoch: u64,
    /// Which run of refusals it was begun under.
    trust: u64,
    /// The number of the probe, counted from 1; 0 for an ordinary send.
    probe: u64,
}

impl Pass {
    /// Whether this send finds out if the receiver is well again.
    pub const fn is_probe(&self) -> bool {
        self.probe != 0
    }
}

/// A result, as far as a gate cares.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// How it was classified.
    pub class: Class,
    /// Status code, 0 for none.
    pub status: u16,
    /// What `Retry-After` said.
    pub hint: RetryAfter,
    /// Which message.
    pub message: MessageKey,
}

/// What a result changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The breaker moved.
    pub change: Option<Change>,
    /// A run of refusals holds the lane until then.
    pub refused_until: Option<Timestamp>,
    /// The run of refusals that it is of.
    pub run: Option<Timestamp>,
    /// The endpoint is suspended by it.
    pub suspended: bool,
    /// The endpoint is suspended no more.
    pub resumed: bool,
}

/// The gate of one endpoint.
#[derive(Debug)]
pub struct Gate {
    settings: GateSettings,
    breaker: Breaker,
    window: Window,
    rate: Option<Rate>,
    hold: Hold,
    refusals: Refusals,
    suspension: Suspension,
    /// The last one.
    outage: Option<Outage>,
    failed_last: bool,
    /// Probes let through so far.
    probes: u64,
}

impl Gate {
    /// A gate that has seen nothing.
    pub fn new(settings: GateSettings, now: Timestamp) -> Self {
        Self {
            breaker: Breaker::new(settings.breaker.clone(), now),
            window: Window::new(settings.window.0, settings.window.1),
            rate: settings.rate.map(|rate| Rate::new(rate, now)),
            hold: Hold::default(),
            refusals: Refusals::default(),
            suspension: Suspension::default(),
            outage: None,
            failed_last: false,
            probes: 0,
            settings,
        }
    }

    /// A gate as it was before a restart. Its window starts at 1 when the receiver was sick.
    pub fn restore(settings: GateSettings, kept: &LaneState, now: Timestamp) -> Self {
        let mut gate = Self::new(settings, now);
        gate.breaker = Breaker::restore(gate.settings.breaker.clone(), kept.breaker.clone());
        gate.hold = Hold::restore(kept.hold_until, kept.throttled_rounds, now);
        gate.refusals = Refusals::restore(kept, now);
        gate.suspension = Suspension::restore(kept, now);
        gate.outage = kept.outage;
        gate.note_outage(now);
        if gate.is_held(now) || kept.breaker.failing_since.is_some() {
            gate.window.restart();
            gate.failed_last = true;
        }
        gate
    }

    /// Takes changed settings.
    pub fn retune(&mut self, settings: GateSettings, now: Timestamp) {
        self.breaker.retune(settings.breaker.clone());
        self.window.retune(settings.window.0, settings.window.1);
        match (&mut self.rate, settings.rate) {
            (Some(rate), Some(per_second)) => rate.retune(per_second, now),
            (rate, per_second) => *rate = per_second.map(|per_second| Rate::new(per_second, now)),
        }
        self.settings = settings;
    }

    /// Whether a send may start beside `in_flight` others of this lane. Looks only.
    pub fn decide(&self, in_flight: u32, now: Timestamp) -> Decision {
        let mut probe = false;
        for step in self.steps(now) {
            match step {
                Decision::Go => {}
                Decision::Probe => probe = true,
                wait @ Decision::Wait(_) => return wait,
            }
        }
        if in_flight >= self.window.limit() {
            return Decision::Wait(None);
        }
        if let Some(Err(until)) = self.rate.as_ref().map(|rate| rate.peek(now)) {
            return Decision::Wait(Some(until));
        }
        if probe { Decision::Probe } else { Decision::Go }
    }

    /// What keeps everything but a probe back, or does not.
    fn steps(&self, now: Timestamp) -> [Decision; 4] {
        let (hold, refusals) = (self.hold.decide(now), self.refusals.decide(now));
        [self.breaker_decision(now), hold, refusals, self.suspension.decide(now)]
    }

    fn breaker_decision(&self, now: Timestamp) -> Decision {
        match self.breaker.admission(now) {
            Admission::Go => Decision::Go,
            Admission::Probe => Decision::Probe,
            Admission::Wait { until } => Decision::Wait(until),
        }
    }

    /// Whether window and rate alone would let a manual send start: it ignores breaker and holds.
    pub fn decide_manual(&self, in_flight: u32, now: Timestamp) -> Decision {
        if in_flight >= self.window.limit() {
            return Decision::Wait(None);
        }
        match self.rate.as_ref().map(|rate| rate.peek(now)) {
            Some(Err(until)) => Decision::Wait(Some(until)),
            _ => Decision::Go,
        }
    }

    /// Starts a send that `decide` allowed; `None` when it did not.
    pub fn begin(&mut self, now: Timestamp) -> Option<Pass> {
        let steps = self.steps(now);
        if steps.iter().any(|step| matches!(step, Decision::Wait(_))) {
            return None;
        }
        // The breaker says so itself, with its permit.
        let probe = steps[1..].contains(&Decision::Probe);
        if let Some(rate) = &mut self.rate {
            rate.take(now).ok()?;
        }
        let permit = self.breaker.take(now)?;
        let mut number = 0;
        if probe || permit.is_probe() {
            self.probes += 1;
            number = self.probes;
        }
        if probe {
            self.hold.probe(number);
            self.refusals.probe(number);
            self.suspension.probe(number);
        }
        let (round, epoch, trust) = (self.window.begin(), self.hold.epoch(), self.refusals.epoch());
        Some(Pass { permit, round, epoch, trust, probe: number })
    }

    /// Starts a manual send: counted by the rate, unknown to breaker and holds.
    pub fn begin_manual(&mut self, now: Timestamp) -> bool {
        self.rate.as_mut().is_none_or(|rate| rate.take(now).is_ok())
    }

    /// A send was dropped without a result: its place as a probe is free again.
    pub fn release(&mut self, pass: &Pass, now: Timestamp) {
        self.breaker.neutral(pass.permit, now);
        self.hold.unprobe(pass.probe);
        self.refusals.unprobe(pass.probe);
        self.suspension.unprobe(pass.probe);
    }

    /// Takes a result in.
    pub fn settle(
        &mut self,
        pass: &Pass,
        outcome: Outcome,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Settled {
        let mut settled = Settled::default();
        self.hold.unprobe(pass.probe);
        self.hold.wait_for_head(None);
        let of_refusals = self.refusals.unprobe(pass.probe);
        let of_suspension = self.suspension.unprobe(pass.probe);
        match outcome.class {
            Class::Success => {
                self.failed_last = false;
                settled.change = self.delivered(pass, now);
                let trusted = self.refusals.succeed(of_refusals);
                let lifted = self.hold.lift(pass.epoch);
                let closed = settled.change == Some(Change::Closed);
                let is_well = self.breaker.failing_since().is_none();
                settled.resumed = self.suspension.succeed(of_suspension || closed, is_well);
                if trusted || lifted || closed || settled.resumed {
                    self.window.restart();
                } else {
                    self.window.grow();
                }
            }
            Class::Throttled => {
                self.failed_last = true;
                self.breaker.neutral(pass.permit, now);
                self.window.cut(pass.round);
                self.hold.throttle(outcome.hint, self.settings.hold_max, now, chance);
            }
            Class::Transient => {
                self.failed_last = true;
                // A 4xx that a policy retries says nothing about health; 408 and 425 do.
                let neutral =
                    matches!(outcome.status, 300..=499) && !matches!(outcome.status, 408 | 425);
                if neutral {
                    self.breaker.neutral(pass.permit, now);
                } else {
                    settled = self.fail(pass, outcome.message, now, chance);
                }
                if outcome.status == 503 {
                    self.hold.hint(outcome.hint, self.settings.hold_max, now);
                }
            }
            Class::Rejected => {
                self.breaker.neutral(pass.permit, now);
                settled.refused_until =
                    self.refusals.refuse(outcome.message, (of_refusals, pass.trust), now);
                settled.run = self.refusals.run_of(pass.trust);
            }
            Class::Gone | Class::Forbidden | Class::Internal => {
                self.breaker.neutral(pass.permit, now);
            }
        }
        if of_suspension && outcome.class != Class::Internal {
            self.suspension.wait(self.settings.suspending, now);
        }
        self.note_outage(now);
        settled
    }

    /// Holds the lane of an ordered endpoint until its head is tried again; `None`: it has another
    /// head.
    pub const fn hold_head(&mut self, until: Option<Timestamp>) {
        self.hold.wait_for_head(until);
    }

    /// When the head of an ordered endpoint is tried again, if it failed before.
    pub const fn head_until(&self) -> Option<Timestamp> {
        self.hold.head()
    }

    /// What was refused is not what is sent now: the run of refusals is forgotten. Says whether a
    /// hold ended, which begins gently.
    pub fn trust(&mut self) -> bool {
        let lifted = self.refusals.reset();
        if lifted {
            self.window.restart();
        }
        lifted
    }

    /// A send by hand, begun at `begun`, was answered 2xx: the receiver refuses no longer, and is
    /// well again.
    pub fn succeed_by_hand(&mut self, begun: Timestamp, now: Timestamp) -> Settled {
        if self.refusals.succeed_by_hand(begun) {
            self.window.restart();
        }
        match self.suspended() {
            Some(on) if begun >= on.since => self.resume(now),
            _ => Settled::default(),
        }
    }

    /// Somebody put a delivery back and waits for it: while refusals hold the lane one is let
    /// through now.
    pub fn let_one(&mut self, now: Timestamp) {
        self.refusals.let_one(now);
    }

    /// The endpoint was enabled: begin gently.
    pub fn restart_window(&mut self) {
        self.window.restart();
    }

    /// Whether breaker or a hold keeps everything but a probe back.
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.steps(now).iter().any(|step| *step != Decision::Go)
    }

    /// Whether the last result was a failure.
    pub const fn failed_last(&self) -> bool {
        self.failed_last
    }

    /// The breaker, to look at.
    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// What must survive a restart.
    pub fn kept(&self, endpoint: EndpointKey) -> LaneState {
        LaneState {
            endpoint,
            breaker: self.breaker.snapshot(),
            hold_until: self.hold.until(),
            throttled_rounds: self.hold.rounds(),
            rejected_until: self.refusals.until(),
            rejected_for: self.refusals.held_for(),
            rejected_since: self.refusals.holding(),
            warned: self.suspension.warned(),
            suspended: self.suspension.on,
            outage: self.outage,
        }
    }
}
