//! What observers hear, in which order, and what they cannot do.

use std::sync::{Mutex, PoisonError};

use super::*;

/// Writes everything down.
#[derive(Clone, Default)]
struct Spy(Arc<Mutex<Vec<String>>>);

impl Spy {
    fn add(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl BreakerObserver for Spy {
    fn on_state_change(&self, change: &StateChange) {
        let (from, to) = (change.from.as_str(), change.to.as_str());
        self.add(format!("{} {from}>{to} {:?}", change.seq, change.cause));
    }

    fn on_success(&self, call: &CallEvent<'_>) {
        self.add(format!("success {}", call.took.as_secs()));
    }

    fn on_failure(&self, _: &CallEvent<'_>, error: Option<&(dyn Error + 'static)>) {
        self.add(format!("failure {}", error.map_or_else(String::new, ToString::to_string)));
    }

    fn on_ignored(&self, _: &CallEvent<'_>) {
        self.add("ignored".into());
    }

    fn on_rejected(&self, rejected: &Rejected) {
        self.add(format!("rejected {:?}", rejected.reason));
    }

    fn on_probe_rejected(&self, _: &Rejected) {
        self.add("probe rejected".into());
    }

    fn on_late_result(&self, call: &CallEvent<'_>) {
        self.add(format!("late {}", call.generation));
    }
}

#[test]
fn a_whole_life_in_order() {
    let (clock, spy) = (clock(), Spy::default());
    let breaker = builder(&clock).trip(Trip::consecutive(2)).observe(spy.clone()).build().unwrap();
    let slow = breaker.try_acquire().unwrap();
    let permit = breaker.try_acquire().unwrap();
    clock.advance(secs(4));
    permit.success();
    vote(&breaker, [Ignore]);
    breaker.try_acquire().unwrap().failure(&std::io::Error::other("boom"));
    assert_eq!(spy.take(), ["success 4", "ignored", "failure boom"]);
    vote(&breaker, [Failure]);
    assert_eq!(spy.take(), ["1 closed>open Tripped", "failure "], "the change comes first");
    assert!(breaker.try_acquire().is_err());
    slow.success();
    assert_eq!(spy.take(), ["rejected Open", "late 0"]);
    clock.advance(secs(60));
    let probe = breaker.try_acquire().unwrap();
    assert!(breaker.try_acquire().is_err());
    probe.record(Failure);
    assert_eq!(
        spy.take(),
        [
            "2 open>half_open ProbeSent",
            "probe rejected",
            "3 half_open>open ProbeFailed",
            "failure "
        ]
    );
    clock.advance(secs(60));
    vote(&breaker, [Ignore, Success]);
    assert_eq!(
        spy.take(),
        ["4 open>half_open ProbeSent", "ignored", "5 half_open>closed ProbeSucceeded", "success 0"]
    );
    breaker.handle().force_open();
    breaker.handle().auto();
    assert_eq!(spy.take(), ["6 closed>open ByHand", "7 open>closed ByHand"]);
}

/// Panics whenever it can.
struct Clumsy;

impl BreakerObserver for Clumsy {
    fn on_state_change(&self, _: &StateChange) {
        panic!("clumsy");
    }

    fn on_success(&self, _: &CallEvent<'_>) {
        panic!("clumsy");
    }

    fn on_failure(&self, _: &CallEvent<'_>, _: Option<&(dyn Error + 'static)>) {
        panic!("clumsy");
    }
}

#[test]
fn t12_an_observer_that_panics_changes_nothing_and_silences_no_other() {
    let (clock, spy) = (clock(), Spy::default());
    let breaker = builder(&clock).observe(Clumsy).observe(spy.clone()).build().unwrap();
    vote(&breaker, [Success, Failure, Failure]);
    assert_eq!(breaker.snapshot().consecutive_failures, 2, "a success stays one");
    vote(&breaker, [Failure]);
    assert!(matches!(breaker.state(), State::Open { .. }));
    assert_eq!(spy.take().len(), 5, "four results and one change");
}

/// Uses the breaker it watches.
struct Meddler(Mutex<Option<CircuitBreaker>>);

impl BreakerObserver for Meddler {
    fn on_state_change(&self, change: &StateChange) {
        let breaker = self.0.lock().unwrap().clone();
        if let Some(breaker) = breaker.filter(|_| change.to == Phase::Open) {
            breaker.handle().reset();
            vote(&breaker, [Success]);
        }
    }
}

#[test]
fn an_observer_may_use_the_breaker() {
    let (clock, spy) = (clock(), Spy::default());
    let meddler = Arc::new(Meddler(Mutex::new(None)));
    let breaker =
        builder(&clock).observe(Arc::clone(&meddler)).observe(spy.clone()).build().unwrap();
    *meddler.0.lock().unwrap() = Some(breaker.clone());
    vote(&breaker, [Failure; 3]);
    assert_eq!(breaker.state(), State::Closed);
    let changes: Vec<_> = spy.take().into_iter().filter(|line| line.contains('>')).collect();
    assert_eq!(changes, ["1 closed>open Tripped", "2 open>closed ByHand"], "told in order");
    *meddler.0.lock().unwrap() = None;
}
