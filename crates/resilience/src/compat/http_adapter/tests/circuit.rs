//! CB and CO: its breaker, on ours with its defaults.

use std::error::Error;
use std::sync::{Arc, Mutex};

use super::super::*;
use crate::breaker::State;
use crate::circuit::{
    BreakerBuilder, BreakerObserver, CallEvent, CircuitBreaker, RejectReason, Rejected, StateChange,
};
use crate::clock::{ManualClock, Timestamp};

const START: Timestamp = Timestamp::from_secs(1_000);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<String>>>);

impl Ear {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl BreakerObserver for Ear {
    fn on_state_change(&self, change: &StateChange) {
        self.add(format!("{}>{}", change.from.as_str(), change.to.as_str()));
    }

    fn on_success(&self, _: &CallEvent<'_>) {
        self.add("success".into());
    }

    fn on_failure(&self, _: &CallEvent<'_>, error: Option<&(dyn Error + 'static)>) {
        self.add(error.unwrap().to_string());
    }

    fn on_probe_rejected(&self, _: &Rejected) {
        self.add("probe rejected".into());
    }
}

struct Bench {
    clock: Arc<ManualClock>,
    breaker: CircuitBreaker,
    ear: Ear,
}

impl Bench {
    /// Two failures open it for 5 s, as in the tests of that library.
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(more: impl FnOnce(BreakerBuilder) -> BreakerBuilder) -> Self {
        let (clock, ear) = (Arc::new(ManualClock::new(START)), Ear::default());
        let builder = CircuitBreaker::builder("seed")
            .rules(breaker())
            .trip(Trip::consecutive(2))
            .open_for(OpenFor::fixed(secs(5)))
            .clock(Arc::clone(&clock))
            .observe(ear.clone())
            .seed(1);
        Self { clock, breaker: more(builder).build().unwrap(), ear }
    }

    fn succeed(&self) {
        self.breaker.try_acquire().unwrap().success();
    }

    fn fail(&self) {
        self.breaker.try_acquire().unwrap().failure(&std::io::Error::other("boom"));
    }

    fn open(self) -> Self {
        (0..2).for_each(|_| self.fail());
        self
    }

    fn half_open(self) -> Self {
        let bench = self.open();
        bench.clock.advance(secs(6));
        bench
    }

    fn is_closed(&self) -> bool {
        self.breaker.state() == State::Closed
    }

    fn is_open(&self) -> bool {
        matches!(self.breaker.state(), State::Open { .. })
    }

    fn changes(&self) -> Vec<String> {
        let heard = self.ear.0.lock().unwrap();
        heard.iter().filter(|line| line.contains('>')).cloned().collect()
    }

    fn heard(&self, line: &str) -> usize {
        self.ear.0.lock().unwrap().iter().filter(|heard| *heard == line).count()
    }
}

#[test]
fn its_defaults() {
    let rules = breaker();
    assert_eq!(rules.trip, Trip::consecutive(5));
    assert_eq!(rules.open_for, OpenFor::fixed(secs(60)));
    assert_eq!(rules.half_open, HalfOpen::probes(1).close_after(1));
    assert_eq!(rules.validate(), Ok(()));
}

#[test]
fn cb1_to_cb5() {
    let bench = Bench::new();
    assert!(bench.is_closed(), "CB1");
    bench.succeed();
    assert!(bench.is_closed(), "CB2");
    bench.fail();
    assert!(bench.is_closed());
    bench.fail();
    assert!(bench.is_open(), "CB3");
    let rejected = bench.breaker.try_acquire().unwrap_err();
    assert_eq!(rejected.reason, RejectReason::Open, "CB4");
    assert!(rejected.retry_after > Some(Duration::ZERO), "CB4");
    bench.clock.advance(secs(3));
    assert!(bench.is_open(), "CB5");
    bench.clock.advance(secs(3));
    assert_eq!(bench.breaker.state(), State::HalfOpen, "CB5");
}

#[test]
fn cb6_to_cb8() {
    let bench = Bench::new().half_open();
    bench.succeed();
    assert!(bench.is_closed(), "CB6");
    bench.fail();
    bench.succeed();
    bench.fail();
    assert!(bench.is_closed(), "CB7");
    let bench = Bench::new().half_open();
    bench.fail();
    assert!(bench.is_open(), "CB8");
}

#[test]
fn cb9_what_is_no_failure_is_ignored() {
    let bench = Bench::new();
    (0..9).for_each(|_| bench.breaker.try_acquire().unwrap().record(Vote::Ignore));
    assert!(bench.is_closed());
    assert!(bench.open().is_open());
}

#[test]
fn cb10_two_successes_to_close() {
    let half_open = HalfOpen::probes(1).close_after(2);
    let bench = Bench::with(|builder| builder.half_open(half_open)).half_open();
    bench.succeed();
    assert_eq!(bench.breaker.state(), State::HalfOpen);
    bench.succeed();
    assert!(bench.is_closed());
}

#[test]
fn cb11_cb12_one_probe_at_a_time() {
    let bench = Bench::new().half_open();
    let probe = bench.breaker.try_acquire().unwrap();
    let rejected = bench.breaker.try_acquire().unwrap_err();
    assert_eq!(rejected.reason, RejectReason::ProbeInFlight);
    probe.success();
    assert!(bench.is_closed(), "CB11");
    let bench = Bench::new().half_open();
    bench.fail();
    bench.clock.advance(secs(6));
    assert!(bench.breaker.try_acquire().unwrap().is_probe(), "CB12: the slot is free again");
}

#[test]
fn co1_to_co4_changes() {
    let bench = Bench::new().open();
    assert_eq!(bench.changes(), ["closed>open"], "CO1");
    bench.clock.advance(secs(6));
    assert_eq!(bench.breaker.state(), State::HalfOpen);
    assert_eq!(bench.changes().len(), 1, "CO2, T13: looking tells nothing");
    bench.succeed();
    assert_eq!(bench.changes()[1..], ["open>half_open", "half_open>closed"], "CO2, CO3");
    let bench = Bench::new().half_open();
    bench.fail();
    assert_eq!(bench.changes()[1..], ["open>half_open", "half_open>open"], "CO4");
}

#[test]
fn co5_to_co10_results() {
    let bench = Bench::new();
    (0..2).for_each(|_| bench.succeed());
    assert_eq!(bench.heard("success"), 2, "CO5, CO10");
    bench.fail();
    assert_eq!((bench.heard("success"), bench.heard("boom")), (2, 1), "CO6, CO7");
    bench.breaker.try_acquire().unwrap().record(Vote::Ignore);
    assert_eq!(bench.heard("boom"), 1, "CO8");
    let bench = Bench::new().half_open();
    let probe = bench.breaker.try_acquire().unwrap();
    assert!(bench.breaker.try_acquire().is_err());
    assert_eq!(bench.heard("probe rejected"), 1, "CO9");
    probe.success();
}
