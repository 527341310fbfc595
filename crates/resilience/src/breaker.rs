//! A circuit breaker's rules as a state machine: after enough failures calls wait, then probes
//! decide.
//!
//! In: the results of calls, each with the permit it was begun with. Out: whether a call may go
//! now, and every change exactly once. One owner, no lock; deadlines are compared when used, there
//! are no timers. Each opening and closing begins a generation; a result from an older one changes
//! nothing.
//! Never: know what a failure is, make calls, change anything when only looked at.
//!
//! The owner gives every permit back, as [`Breaker::neutral`] if nothing else: a probe that is
//! never given back holds the half-open slot.

mod config;
mod health;
mod others;
mod recent;
pub mod rules;
mod state;
mod trial;

use std::time::Duration;

use crate::chance::Chance;
use crate::clock::Timestamp;

pub use config::Config;
use health::Health;
pub use recent::Counts;
pub use rules::Rules;
pub use state::{Admission, Change, Forced, Permit, Snapshot, State};
use trial::Trial;

/// A failure, as far as a breaker cares.
struct Failed {
    key: u64,
    slow: bool,
}

/// A circuit breaker.
#[derive(Clone, Debug)]
pub struct Breaker {
    rules: Rules,
    /// Set while open and while probes are due or out; none when closed.
    open_until: Option<Timestamp>,
    /// The probes that are out, and what they have proved so far.
    trial: Trial,
    /// Probes handed out so far.
    probes: u64,
    generation: u64,
    open_for: Duration,
    failing_since: Option<Timestamp>,
    forced: Option<Forced>,
    since: Timestamp,
    health: Health,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(rules: impl Into<Rules>, now: Timestamp) -> Self {
        let rules = rules.into();
        let snapshot = Snapshot {
            open_until: None,
            generation: 0,
            open_for: rules.open_for.first,
            failing_since: None,
            forced: None,
            since: now,
        };
        Self::restore(rules, snapshot)
    }

    /// A breaker as it was when the snapshot was taken, with nothing counted and no probe out.
    pub fn restore(rules: impl Into<Rules>, snapshot: Snapshot) -> Self {
        Self {
            rules: rules.into(),
            open_until: snapshot.open_until,
            trial: Trial::default(),
            probes: 0,
            generation: snapshot.generation,
            open_for: snapshot.open_for,
            failing_since: snapshot.failing_since,
            forced: snapshot.forced,
            since: snapshot.since,
            health: Health::default(),
        }
    }

    /// What must survive a restart.
    pub const fn snapshot(&self) -> Snapshot {
        Snapshot {
            open_until: self.open_until,
            generation: self.generation,
            open_for: self.open_for,
            failing_since: self.failing_since,
            forced: self.forced,
            since: self.since,
        }
    }

    /// Changes the rules. A running open time stays as it is; the next one follows the new rules.
    pub fn retune(&mut self, rules: impl Into<Rules>) {
        let rules = rules.into();
        let window = |rules: &Rules| rules.trip.rate.map(|rate| rate.window);
        if window(&rules) != window(&self.rules) || !rules.enabled {
            self.health.forget_recent();
        }
        if self.open_until.is_none() {
            self.open_for = rules.open_for.first;
        }
        self.rules = rules;
    }

    /// Where it stands; looking changes nothing.
    pub fn state(&self, now: Timestamp) -> State {
        match (self.by_hand(), self.open_until) {
            (Some(Forced::Open), _) => State::Open { until: Timestamp::MAX },
            (Some(Forced::Closed), _) | (None, None) => State::Closed,
            (None, Some(until)) if !self.trial.has_begun() && !self.is_due(until, now) => {
                State::Open { until }
            }
            (None, Some(_)) => State::HalfOpen,
        }
    }

    /// What a call would be told now; asking changes nothing.
    pub fn admission(&self, now: Timestamp) -> Admission {
        let until = match (self.by_hand(), self.open_until) {
            (Some(Forced::Open), _) => return Admission::Wait { until: None },
            (Some(Forced::Closed), _) | (None, None) => return Admission::Go,
            (None, Some(until)) => until,
        };
        match self.trial.room(&self.rules.half_open, now) {
            Err(until) => Admission::Wait { until },
            Ok(()) if self.trial.has_begun() || self.is_due(until, now) => Admission::Probe,
            Ok(()) => Admission::Wait { until: Some(until) },
        }
    }

    /// Leave for a call, or none when it must wait. A probe takes a half-open slot.
    pub fn take(&mut self, now: Timestamp) -> Option<Permit> {
        let probe = match self.admission(now) {
            Admission::Go => 0,
            Admission::Probe => {
                self.probes = self.probes.saturating_add(1);
                self.trial.send(self.probes, &self.rules.half_open, now);
                self.probes
            }
            Admission::Wait { .. } => return None,
        };
        Some(Permit { generation: self.generation, probe })
    }

    /// The call succeeded. Enough probes that do close the breaker.
    pub fn success(&mut self, permit: Permit, now: Timestamp) -> Option<Change> {
        if self.is_late(permit) {
            return None;
        }
        self.failing_since = None;
        self.health.end_run();
        if !permit.is_probe() {
            self.count(false, false, now);
            return None;
        }
        if self.trial.succeed(permit.probe) < self.rules.half_open.close_after {
            self.end_wait(now);
            return None;
        }
        self.close(now);
        Some(Change::Closed)
    }

    /// The call succeeded, but took long. It ends a run of failures as any success does, but many
    /// such calls open the breaker, and a probe that is slow reopens it.
    pub fn slow_success(
        &mut self,
        permit: Permit,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Option<Change> {
        if self.is_late(permit) {
            return None;
        }
        if permit.is_probe() {
            return Some(self.reopen(now, chance));
        }
        self.failing_since = None;
        self.health.end_run();
        self.count(false, true, now);
        self.opens(now, chance)
    }

    /// The call failed; `key` tells what it carried. It may open the breaker; a probe reopens it.
    ///
    /// A failed probe doubles the open time, up to its maximum; with jitter the wait is drawn from
    /// the upper part of that.
    pub fn failure(
        &mut self,
        permit: Permit,
        key: u64,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Option<Change> {
        self.failed(permit, Failed { key, slow: false }, now, chance)
    }

    /// The call failed, and took long: it counts as both.
    pub fn slow_failure(
        &mut self,
        permit: Permit,
        key: u64,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Option<Change> {
        self.failed(permit, Failed { key, slow: true }, now, chance)
    }

    /// The call says nothing about the receiver's health: it was refused, throttled, dropped, or
    /// its end is not known. Nothing is counted or reset; after a probe the next call probes at
    /// once.
    pub fn neutral(&mut self, permit: Permit, now: Timestamp) {
        if self.is_late(permit) || !permit.is_probe() {
            return;
        }
        self.trial.free(permit.probe);
        self.end_wait(now);
    }

    /// Sets the state by hand, or gives it back to the rules with `None`.
    ///
    /// What the rules had made of it is kept beneath: an open time may meanwhile have run out, a
    /// probe that is out still decides, and results still count, but nothing opens while it is
    /// forced.
    pub const fn force(&mut self, forced: Option<Forced>, now: Timestamp) {
        self.forced = forced;
        self.since = now;
    }

    /// Ends the open time: whoever asks next may probe. The owner found another reason to wait, and
    /// keeps the time of it.
    pub fn end_wait(&mut self, now: Timestamp) {
        self.open_until = self.open_until.map(|until| until.min(now));
    }

    /// Closed, unforced, and with nothing counted, as at the beginning; what is out is late.
    pub fn reset(&mut self, now: Timestamp) {
        self.forced = None;
        self.failing_since = None;
        self.health.end_run();
        self.close(now);
    }

    /// Whether a result with this permit would change nothing: it is from an older generation, or
    /// of a probe whose slot has been freed since.
    pub fn is_late(&self, permit: Permit) -> bool {
        permit.generation != self.generation
            || (permit.is_probe() && !self.trial.is_out(permit.probe))
    }

    /// The time of the first failure since the last success.
    pub const fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// Failures since the last success, as far as this process has seen.
    pub const fn consecutive_failures(&self) -> u32 {
        self.health.consecutive()
    }

    /// Probes that are out.
    pub fn probes_out(&self) -> usize {
        self.trial.out()
    }

    /// What the window holds.
    pub fn counts(&self) -> Counts {
        self.health.counts()
    }

    /// Whether it is closed by its own rules and a success would change nothing.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.open_until.is_none()
            && self.forced.is_none()
            && self.failing_since.is_none()
            && self.rules.forgets_successes()
    }

    /// Whether every call may go, and none as a probe.
    pub(crate) const fn is_free(&self) -> bool {
        matches!((self.by_hand(), self.open_until), (Some(Forced::Closed), _) | (None, None))
    }

    /// A breaker that is switched off acts as if forced closed.
    const fn by_hand(&self) -> Option<Forced> {
        match self.forced {
            None if !self.rules.enabled => Some(Forced::Closed),
            forced => forced,
        }
    }

    /// Whether a probe may go. A clock that was set back by more than the open time would make the
    /// wait as long as the step; the probe may then go at once, so no wait exceeds twice the open
    /// time.
    fn is_due(&self, until: Timestamp, now: Timestamp) -> bool {
        now >= until || now.plus(self.open_for) < self.since
    }

    fn failed(
        &mut self,
        permit: Permit,
        failed: Failed,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Option<Change> {
        if self.is_late(permit) {
            return None;
        }
        self.failing_since.get_or_insert(now);
        self.health.lengthen();
        if permit.is_probe() {
            return Some(self.reopen(now, chance));
        }
        self.health.remember(failed.key, &self.rules.trip);
        self.count(true, failed.slow, now);
        self.opens(now, chance)
    }

    fn reopen(&mut self, now: Timestamp, chance: &mut dyn Chance) -> Change {
        self.open_for = self.open_for.saturating_mul(2).min(self.rules.open_for.max);
        let until = now.plus(self.drawn(chance));
        self.turn(Some(until), now);
        Change::Reopened { until }
    }

    fn opens(&mut self, now: Timestamp, chance: &mut dyn Chance) -> Option<Change> {
        if !self.trips() {
            return None;
        }
        self.open_for = self.rules.open_for.first;
        let draws = self.rules.open_for.jitter_first;
        let until = now.plus(if draws { self.drawn(chance) } else { self.open_for });
        self.turn(Some(until), now);
        self.health.forget();
        Some(Change::Opened { until })
    }

    fn drawn(&self, chance: &mut dyn Chance) -> Duration {
        let room = self.rules.open_for.jitter.of_span(self.open_for);
        chance.between(self.open_for.saturating_sub(room), self.open_for)
    }

    fn close(&mut self, now: Timestamp) {
        self.turn(None, now);
        self.open_for = self.rules.open_for.first;
        self.health.forget_recent();
    }

    /// Begins a generation.
    fn turn(&mut self, open_until: Option<Timestamp>, now: Timestamp) {
        self.open_until = open_until;
        self.trial.end();
        self.generation = self.generation.saturating_add(1);
        self.since = now;
    }

    fn count(&mut self, failed: bool, slow: bool, now: Timestamp) {
        if self.rules.enabled && self.open_until.is_none() {
            self.health.count(&self.rules.trip, failed, slow, now);
        }
    }

    fn trips(&self) -> bool {
        self.may_open() && self.health.trips(&self.rules.trip)
    }

    /// Whether it is closed, and by its own rules.
    fn may_open(&self) -> bool {
        self.open_until.is_none() && self.by_hand().is_none()
    }
}

#[cfg(test)]
mod tests;
