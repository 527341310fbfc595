//! The state of one breaker as many tasks see it.
//!
//! The gate is one number: the generation, whether every call may go, and whether the breaker is
//! quiet, that is closed with nothing counted that a success could change. It is written under the
//! lock, after every change, and read without it.
//! Never: hold the lock while an observer runs, read the clock where the result cannot matter.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use super::observer::{BreakerObserver, CallEvent, Cause, Phase, StateChange};
use super::rejected::{RejectReason, Rejected};
use super::tell::{Observers, Outbox, each};
use super::waiting::Waiting;
use crate::breaker::{self, Admission, Breaker, Change, Counts, Forced, Rules, Snapshot, State};
use crate::chance::Seeded;
use crate::classify::Vote;
use crate::clock::{Clock, Timestamp};

const QUIET: u64 = 1;
const FREE: u64 = 2;
/// Where the generation begins.
const GENERATION: u32 = 2;

/// Keeps what is written often off the lines that every call reads.
#[repr(align(128))]
struct Apart<T>(T);

/// Everything about a breaker now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerView {
    /// Where it stands.
    pub state: State,
    /// Whether by hand.
    pub forced: Option<Forced>,
    /// How often it has opened and closed.
    pub generation: u64,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// What the window holds.
    pub window: Counts,
    /// Probes that are out.
    pub probes_out: usize,
    /// The current open time, before jitter.
    pub open_for: Duration,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    /// When the state was entered.
    pub since: Timestamp,
}

/// Leave for one call, with what its end needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) permit: breaker::Permit,
    /// Known where someone asks how long the call took.
    begun: Option<Timestamp>,
}

struct Inner {
    breaker: Breaker,
    chance: Seeded,
    shown: Phase,
    seq: u64,
    outbox: Outbox,
}

/// What a breaker is made of.
pub(super) struct Parts {
    pub(super) name: Arc<str>,
    pub(super) rules: Rules,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observers: Observers,
    pub(super) chance: Seeded,
    pub(super) kept: Option<Snapshot>,
}

/// One breaker.
pub(crate) struct Core {
    name: Arc<str>,
    rules: Rules,
    clock: Arc<dyn Clock>,
    observers: Observers,
    gate: AtomicU64,
    inner: Apart<Mutex<Inner>>,
    waiting: Apart<Waiting>,
}

impl Core {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { name, rules, clock, observers, chance, kept } = parts;
        let breaker = match kept {
            Some(kept) => Breaker::restore(rules, kept),
            None => Breaker::new(rules, clock.now()),
        };
        let (shown, gate) = (phase(&breaker), AtomicU64::new(gate(&breaker)));
        let inner = Inner { breaker, chance, shown, seq: 0, outbox: Outbox::default() };
        let (inner, waiting) = (Apart(Mutex::new(inner)), Apart(Waiting::default()));
        Self { name, rules, clock, observers, gate, inner, waiting }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Leave for a call, or why not.
    pub(crate) fn admit(&self) -> Result<Pass, Rejected> {
        let gate = self.gate.load(Ordering::Acquire);
        if gate & FREE != 0 {
            let begun = self.is_timed().then(|| self.clock.now());
            return Ok(Pass { permit: breaker::Permit::ordinary(gate >> GENERATION), begun });
        }
        let mut inner = self.inner();
        // Under the lock: what is compared with it was noted by others who held the lock before.
        let now = self.clock.now();
        match inner.breaker.take(now) {
            Some(permit) => {
                if permit.is_probe() {
                    self.show(&mut inner, Cause::ProbeSent, now);
                }
                self.settle(inner);
                Ok(Pass { permit, begun: Some(now) })
            }
            None => {
                let rejected = self.rejection(&inner.breaker, now);
                self.settle(inner);
                self.tell_rejected(&rejected);
                Err(rejected)
            }
        }
    }

    /// The end of a call.
    pub(crate) fn record(&self, pass: Pass, vote: Vote, error: Option<&(dyn Error + 'static)>) {
        let gate = self.gate.load(Ordering::Acquire);
        let ordinary = !pass.permit.is_probe() && gate >> GENERATION == pass.permit.generation();
        let unchanged = match vote {
            Vote::Success => ordinary && gate & QUIET != 0,
            Vote::Ignore => ordinary,
            Vote::Failure => false,
        };
        if unchanged && self.observers.is_empty() {
            return;
        }
        // A success that is only counted needs no time, unless somebody asks for it.
        let ordinary_success = ordinary && vote == Vote::Success;
        let dated = !ordinary_success || pass.begun.is_some() || self.rules.dates_successes();
        let now = if dated { self.clock.now() } else { Timestamp::EPOCH };
        let took = pass.begun.map_or(Duration::ZERO, |begun| now.since(begun));
        let late = !unchanged && {
            let inner = if dated { Some(self.inner()) } else { self.inner_if_free() };
            let Some(inner) = inner else { return self.waiting.0.add(pass.permit.generation()) };
            self.apply(inner, pass, (vote, took), now)
        };
        let event = CallEvent {
            breaker: &self.name,
            generation: pass.permit.generation(),
            is_probe: pass.permit.is_probe(),
            took,
        };
        each(&self.observers, |observer| match vote {
            _ if late => observer.on_late_result(&event),
            Vote::Success => observer.on_success(&event),
            Vote::Failure => observer.on_failure(&event, error),
            Vote::Ignore => observer.on_ignored(&event),
        });
    }

    pub(crate) fn state(&self) -> State {
        if self.gate.load(Ordering::Acquire) & QUIET != 0 {
            return State::Closed;
        }
        let inner = self.inner();
        inner.breaker.state(self.clock.now())
    }

    pub(crate) fn kept(&self) -> Snapshot {
        self.inner().breaker.snapshot()
    }

    pub(crate) fn view(&self) -> BreakerView {
        let inner = self.inner();
        let now = self.clock.now();
        let Snapshot { generation, open_for, failing_since, forced, since, .. } =
            inner.breaker.snapshot();
        BreakerView {
            state: inner.breaker.state(now),
            forced,
            generation,
            consecutive_failures: inner.breaker.consecutive_failures(),
            window: inner.breaker.counts(),
            probes_out: inner.breaker.probes_out(),
            open_for,
            failing_since,
            since,
        }
    }

    pub(crate) fn force(&self, forced: Option<Forced>) {
        self.by_hand(Cause::ByHand, |breaker, now| breaker.force(forced, now));
    }

    pub(crate) fn reset(&self, cause: Cause) {
        self.by_hand(cause, Breaker::reset);
    }

    pub(crate) fn adopt(&self, forced: Option<Forced>, open_until: Option<Timestamp>) {
        self.by_hand(Cause::Elsewhere, |breaker, now| breaker.adopt(forced, open_until, now));
    }

    pub(crate) fn tell_rejected(&self, rejected: &Rejected) {
        each(&self.observers, |observer| match rejected.reason {
            RejectReason::ProbeInFlight => observer.on_probe_rejected(rejected),
            RejectReason::Open | RejectReason::Forced => observer.on_rejected(rejected),
        });
    }

    pub(crate) fn tell_store_error(&self, error: &(dyn Error + 'static)) {
        each(&self.observers, |observer| observer.on_store_error(&self.name, error));
    }

    fn by_hand(&self, cause: Cause, change: impl FnOnce(&mut Breaker, Timestamp)) {
        let mut inner = self.inner();
        let now = self.clock.now();
        change(&mut inner.breaker, now);
        self.show(&mut inner, cause, now);
        self.settle(inner);
    }

    /// Takes a result in; whether it came too late.
    fn apply(
        &self,
        mut guard: MutexGuard<'_, Inner>,
        Pass { permit, .. }: Pass,
        (vote, took): (Vote, Duration),
        now: Timestamp,
    ) -> bool {
        let slow = self.rules.trip.is_slow(took);
        let inner = &mut *guard;
        if inner.breaker.is_late(permit) {
            return true;
        }
        let (breaker, chance) = (&mut inner.breaker, &mut inner.chance);
        let change = match vote {
            Vote::Success if slow => breaker.slow_success(permit, now, chance),
            Vote::Success => breaker.success(permit, now),
            Vote::Failure if slow => breaker.slow_failure(permit, 0, now, chance),
            Vote::Failure => breaker.failure(permit, 0, now, chance),
            Vote::Ignore => {
                breaker.neutral(permit, now);
                None
            }
        };
        let cause = match change {
            Some(Change::Opened { .. }) => Some(Cause::Tripped),
            Some(Change::Closed) => Some(Cause::ProbeSucceeded),
            Some(Change::Reopened { .. }) => Some(Cause::ProbeFailed),
            None => None,
        };
        if let Some(cause) = cause {
            self.show(inner, cause, now);
        }
        self.settle(guard);
        false
    }

    /// Whether someone asks how long a call took.
    fn is_timed(&self) -> bool {
        !self.observers.is_empty() || self.rules.trip.rate.is_some_and(|rate| rate.slow.is_some())
    }

    fn rejection(&self, breaker: &Breaker, now: Timestamp) -> Rejected {
        let until = match breaker.admission(now) {
            Admission::Wait { until } => until,
            Admission::Go | Admission::Probe => None,
        };
        let reason = match breaker.snapshot().forced {
            Some(Forced::Open) => RejectReason::Forced,
            _ if breaker.probes_out() > 0 => RejectReason::ProbeInFlight,
            _ => RejectReason::Open,
        };
        let retry_after = until.map(|until| until.since(now));
        Rejected { breaker: Arc::clone(&self.name), retry_after, reason }
    }

    /// Notes a change of what is shown, to be told.
    fn show(&self, inner: &mut Inner, cause: Cause, at: Timestamp) {
        let (from, to) = (inner.shown, phase(&inner.breaker));
        if from == to {
            return;
        }
        inner.shown = to;
        inner.seq += 1;
        if self.observers.is_empty() {
            return;
        }
        let kept = inner.breaker.snapshot();
        let open_until = kept.open_until.filter(|_| to == Phase::Open && kept.forced.is_none());
        let breaker = Arc::clone(&self.name);
        let seq = inner.seq;
        inner.outbox.add(StateChange { breaker, from, to, cause, seq, at, open_until });
    }

    /// Opens the gate anew, lets the lock go, and tells what happened.
    fn settle(&self, mut inner: MutexGuard<'_, Inner>) {
        // Written only when it has changed: every call on every core reads it.
        let now = gate(&inner.breaker);
        if self.gate.load(Ordering::Relaxed) != now {
            self.gate.store(now, Ordering::Release);
        }
        let mut next = inner.outbox.begin();
        drop(inner);
        while let Some(change) = next {
            each(&self.observers, |observer: &dyn BreakerObserver| {
                observer.on_state_change(&change);
            });
            next = self.inner().outbox.next();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.caught_up(self.inner.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, unless somebody holds it just now.
    fn inner_if_free(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.0.try_lock() {
            Ok(inner) => Some(self.caught_up(inner)),
            Err(TryLockError::Poisoned(inner)) => Some(self.caught_up(inner.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Once the successes that found the lock taken have been counted.
    fn caught_up<'l>(&self, mut inner: MutexGuard<'l, Inner>) -> MutexGuard<'l, Inner> {
        let generation = inner.breaker.snapshot().generation;
        for _ in 0..self.waiting.0.take(generation) {
            inner.breaker.success(breaker::Permit::ordinary(generation), Timestamp::EPOCH);
        }
        inner
    }
}

fn gate(breaker: &Breaker) -> u64 {
    let quiet = if breaker.is_quiet() { QUIET } else { 0 };
    let free = if breaker.is_free() { FREE } else { 0 };
    breaker.snapshot().generation << GENERATION | free | quiet
}

fn phase(breaker: &Breaker) -> Phase {
    let kept = breaker.snapshot();
    match (kept.forced, kept.open_until) {
        (Some(Forced::Open), _) => Phase::Open,
        (Some(Forced::Closed), _) | (None, None) => Phase::Closed,
        (None, Some(_)) if breaker.probes_out() > 0 => Phase::HalfOpen,
        (None, Some(_)) => Phase::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::rules::{Trip, Window};
    use crate::seeds::Seeds;

    /// A clock that is read only while it may be.
    struct Once(AtomicU64);

    impl Clock for Once {
        fn now(&self) -> Timestamp {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "read once, at the making");
            Timestamp::EPOCH
        }
    }

    #[test]
    fn no_call_takes_the_lock_to_ask_while_every_call_may_go() {
        let core = Core::new(Parts {
            name: Arc::from("share"),
            rules: Rules { trip: Trip::failure_rate(0.5), ..Rules::default() },
            clock: Arc::new(Once(AtomicU64::new(0))),
            observers: Vec::new(),
            chance: Seeds::new(Some(1)).unwrap().next(),
            kept: None,
        });
        let held = core.inner();
        assert_eq!(core.admit().unwrap().permit.generation(), 0);
        drop(held);
    }

    #[test]
    fn a_success_in_a_window_of_calls_reads_no_clock() {
        let trip = Trip::failure_rate(0.5).window(Window::calls(10));
        let core = Core::new(Parts {
            name: Arc::from("calls"),
            rules: Rules { trip, ..Rules::default() },
            clock: Arc::new(Once(AtomicU64::new(0))),
            observers: Vec::new(),
            chance: Seeds::new(Some(1)).unwrap().next(),
            kept: None,
        });
        core.record(core.admit().unwrap(), Vote::Success, None);
        // One that finds the lock taken does not wait for it, and is counted all the same.
        let held = core.inner();
        core.record(core.admit().unwrap(), Vote::Success, None);
        assert_eq!(held.breaker.counts().calls, 1);
        drop(held);
        assert_eq!(core.inner().breaker.counts().calls, 2);
    }

    #[test]
    fn while_all_is_well_no_call_takes_the_lock_or_reads_the_clock() {
        let core = Core::new(Parts {
            name: Arc::from("quiet"),
            rules: Rules::default(),
            clock: Arc::new(Once(AtomicU64::new(0))),
            observers: Vec::new(),
            chance: Seeds::new(Some(1)).unwrap().next(),
            kept: None,
        });
        // A call that took it would wait for ever.
        let held = core.inner();
        for vote in [Vote::Success, Vote::Ignore, Vote::Success] {
            core.record(core.admit().unwrap(), vote, None);
        }
        assert_eq!(core.state(), State::Closed);
        drop(held);
    }
}
