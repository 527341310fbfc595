//! A circuit breaker: after enough failures calls wait, then one probe decides.
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
mod recent;
mod state;

use std::time::Duration;

use crate::chance::Chance;
use crate::clock::Timestamp;

pub use config::Config;
use recent::Recent;
pub use state::{Admission, Change, Forced, Permit, Snapshot, State};

/// A circuit breaker.
#[derive(Clone, Debug)]
pub struct Breaker {
    config: Config,
    /// Set while open and while a probe is due or out; none when closed.
    open_until: Option<Timestamp>,
    /// The number of the probe that is out.
    probe_out: Option<u64>,
    /// Probes handed out so far.
    probes: u64,
    generation: u64,
    open_for: Duration,
    failing_since: Option<Timestamp>,
    forced: Option<Forced>,
    since: Timestamp,
    consecutive: u32,
    /// The first `keys_min` different keys among the consecutive failures.
    keys: Vec<u64>,
    /// Absent until the first result, and while open.
    recent: Option<Box<Recent>>,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(config: Config, now: Timestamp) -> Self {
        let snapshot = Snapshot {
            open_until: None,
            generation: 0,
            open_for: config.open_for,
            failing_since: None,
            forced: None,
            since: now,
        };
        Self::restore(config, snapshot)
    }

    /// A breaker as it was when the snapshot was taken, with nothing counted and no probe out.
    pub fn restore(config: Config, snapshot: Snapshot) -> Self {
        Self {
            config,
            open_until: snapshot.open_until,
            probe_out: None,
            probes: 0,
            generation: snapshot.generation,
            open_for: snapshot.open_for,
            failing_since: snapshot.failing_since,
            forced: snapshot.forced,
            since: snapshot.since,
            consecutive: 0,
            keys: Vec::new(),
            recent: None,
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

    /// Changes the settings. A running open time stays as it is; the next one follows the new
    /// settings.
    pub fn retune(&mut self, config: Config) {
        if config.rate_span != self.config.rate_span || !config.enabled {
            self.recent = None;
        }
        if self.open_until.is_none() {
            self.open_for = config.open_for;
        }
        self.config = config;
    }

    /// Where it stands; looking changes nothing.
    pub fn state(&self, now: Timestamp) -> State {
        match (self.by_hand(), self.open_until) {
            (Some(Forced::Open), _) => State::Open { until: Timestamp::MAX },
            (Some(Forced::Closed), _) | (None, None) => State::Closed,
            (None, Some(until)) if self.probe_out.is_none() && !self.is_due(until, now) => {
                State::Open { until }
            }
            (None, Some(_)) => State::HalfOpen,
        }
    }

    /// What a call would be told now; asking changes nothing.
    pub fn admission(&self, now: Timestamp) -> Admission {
        match (self.by_hand(), self.open_until) {
            (Some(Forced::Open), _) => Admission::Wait { until: None },
            (Some(Forced::Closed), _) | (None, None) => Admission::Go,
            (None, Some(_)) if self.probe_out.is_some() => Admission::Wait { until: None },
            (None, Some(until)) if self.is_due(until, now) => Admission::Probe,
            (None, Some(until)) => Admission::Wait { until: Some(until) },
        }
    }

    /// Leave for a call, or none when it must wait. A probe takes the only half-open slot.
    pub fn take(&mut self, now: Timestamp) -> Option<Permit> {
        let probe = match self.admission(now) {
            Admission::Go => 0,
            Admission::Probe => {
                self.probes = self.probes.saturating_add(1);
                self.probe_out = Some(self.probes);
                self.probes
            }
            Admission::Wait { .. } => return None,
        };
        Some(Permit { generation: self.generation, probe })
    }

    /// The call succeeded. A probe closes the breaker.
    pub fn success(&mut self, permit: Permit, now: Timestamp) -> Option<Change> {
        if self.is_stale(permit) {
            return None;
        }
        self.failing_since = None;
        self.forget_counts();
        if permit.is_probe() {
            self.turn(None, now);
            self.open_for = self.config.open_for;
            self.recent = None;
            return Some(Change::Closed);
        }
        self.count(false, now);
        None
    }

    /// The call failed; `key` tells what it carried. It may open the breaker; a probe reopens it.
    ///
    /// A failed probe doubles the open time, up to its maximum, and the wait is drawn from the
    /// upper half of that: never below the open time before, until the maximum is reached, where it
    /// still varies.
    pub fn failure(
        &mut self,
        permit: Permit,
        key: u64,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) -> Option<Change> {
        if self.is_stale(permit) {
            return None;
        }
        self.failing_since.get_or_insert(now);
        self.consecutive = self.consecutive.saturating_add(1);
        if permit.is_probe() {
            self.open_for = self.open_for.saturating_mul(2).min(self.config.open_for_max);
            let until = now.plus(chance.between(self.open_for / 2, self.open_for));
            self.turn(Some(until), now);
            return Some(Change::Reopened { until });
        }
        let keys_min = usize::try_from(self.config.keys_min).unwrap_or(usize::MAX);
        if self.keys.len() < keys_min && !self.keys.contains(&key) {
            self.keys.push(key);
        }
        self.count(true, now);
        if !self.trips(keys_min) {
            return None;
        }
        self.open_for = self.config.open_for;
        let until = now.plus(self.open_for);
        self.turn(Some(until), now);
        self.keys = Vec::new();
        self.recent = None;
        Some(Change::Opened { until })
    }

    /// The call says nothing about the receiver's health: it was refused, throttled, dropped, or
    /// its end is not known. Nothing is counted or reset; after a probe the next call probes at
    /// once.
    pub fn neutral(&mut self, permit: Permit, now: Timestamp) {
        if self.is_stale(permit) || !permit.is_probe() {
            return;
        }
        self.probe_out = None;
        self.open_until = self.open_until.map(|until| until.min(now));
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

    /// The time of the first failure since the last success.
    pub const fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// Failures since the last success, as far as this process has seen.
    pub const fn consecutive_failures(&self) -> u32 {
        self.consecutive
    }

    /// A breaker that is switched off acts as if forced closed.
    const fn by_hand(&self) -> Option<Forced> {
        match self.forced {
            None if !self.config.enabled => Some(Forced::Closed),
            forced => forced,
        }
    }

    /// Whether a probe may go. A clock that was set back by more than the open time would make the
    /// wait as long as the step; the probe may then go at once, so no wait exceeds twice the open
    /// time.
    fn is_due(&self, until: Timestamp, now: Timestamp) -> bool {
        now >= until || now.plus(self.open_for) < self.since
    }

    /// From an older generation, or a probe whose slot has been freed since.
    fn is_stale(&self, permit: Permit) -> bool {
        permit.generation != self.generation
            || (permit.is_probe() && self.probe_out != Some(permit.probe))
    }

    /// Begins a generation.
    fn turn(&mut self, open_until: Option<Timestamp>, now: Timestamp) {
        self.open_until = open_until;
        self.probe_out = None;
        self.generation = self.generation.saturating_add(1);
        self.since = now;
    }

    fn forget_counts(&mut self) {
        self.consecutive = 0;
        self.keys.clear();
    }

    fn count(&mut self, failed: bool, now: Timestamp) {
        if self.config.enabled && self.open_until.is_none() {
            let span = self.config.rate_span;
            self.recent.get_or_insert_with(|| Box::new(Recent::new(span, now))).record(failed, now);
        }
    }

    fn trips(&self, keys_min: usize) -> bool {
        if self.open_until.is_some() || self.by_hand().is_some() {
            return false;
        }
        if self.consecutive >= self.config.failures && self.keys.len() >= keys_min {
            return true;
        }
        let (calls, failures) = self.recent.as_ref().map_or((0, 0), |recent| recent.sums());
        calls >= u64::from(self.config.rate_calls_min)
            && failures.saturating_mul(100)
                >= calls.saturating_mul(u64::from(self.config.rate_percent))
    }
}

#[cfg(test)]
mod tests;
