//! A shared breaker from outside: permits, probes, late results, hands, watchers, many threads.

mod together;
mod watchers;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::classify::Vote::{Failure, Ignore, Success};
use crate::clock::{Clock as _, ManualClock, Timestamp};

const START: Timestamp = Timestamp::from_secs(1_000);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(START))
}

fn builder(clock: &Arc<ManualClock>) -> BreakerBuilder {
    CircuitBreaker::builder("test").clock(Arc::clone(clock)).seed(1).trip(Trip::consecutive(3))
}

fn build(clock: &Arc<ManualClock>) -> CircuitBreaker {
    builder(clock).build().unwrap()
}

fn vote(breaker: &CircuitBreaker, votes: impl IntoIterator<Item = Vote>) {
    for vote in votes {
        breaker.try_acquire().unwrap().record(vote);
    }
}

fn opened(clock: &Arc<ManualClock>, builder: BreakerBuilder) -> CircuitBreaker {
    let breaker = builder.build().unwrap();
    vote(&breaker, [Failure; 3]);
    assert_eq!(breaker.state(), State::Open { until: clock.now().plus(secs(60)) });
    breaker
}

#[test]
fn failures_in_a_row_open_it_and_a_success_or_a_neutral_end_does_not_count() {
    let breaker = build(&clock());
    vote(&breaker, [Failure, Failure, Success, Failure, Ignore, Failure]);
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(breaker.snapshot().consecutive_failures, 2);
    vote(&breaker, [Failure]);
    let rejected = breaker.try_acquire().unwrap_err();
    assert_eq!((rejected.reason, rejected.retry_after), (RejectReason::Open, Some(secs(60))));
    assert_eq!(rejected.to_string(), "circuit breaker test is open; try again in 60s");
}

#[test]
fn t10_cb_13_refusals_open_nothing_and_hide_nothing() {
    let breaker = build(&clock());
    vote(&breaker, [Ignore; 50]);
    assert_eq!(breaker.state(), State::Closed, "five 404s say nothing about health");
    vote(&breaker, [Failure, Ignore, Failure, Ignore, Failure]);
    assert!(matches!(breaker.state(), State::Open { .. }), "nor do they hide an outage");
}

#[test]
fn cb_07_exactly_three_probes_and_three_successes() {
    let clock = clock();
    let half_open = HalfOpen::probes(3).close_after(3);
    let breaker = opened(&clock, builder(&clock).half_open(half_open));
    clock.advance(secs(60));
    let probes: Vec<_> = (0..3).map(|_| breaker.try_acquire().unwrap()).collect();
    assert!(probes.iter().all(Permit::is_probe));
    for _ in 0..100 {
        assert_eq!(breaker.try_acquire().unwrap_err().reason, RejectReason::ProbeInFlight);
    }
    for (n, probe) in probes.into_iter().enumerate() {
        assert_eq!(breaker.state(), State::HalfOpen, "after {n}");
        probe.success();
    }
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn cb_02_a_probe_that_is_dropped_cancelled_or_panics_frees_its_slot() {
    let clock = clock();
    let breaker = opened(&clock, builder(&clock));
    clock.advance(secs(60));
    drop(breaker.try_acquire().unwrap());
    {
        let call = breaker.call(std::future::pending::<Result<(), std::io::Error>>());
        let mut call = pin!(call);
        let waiting = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(waiting.is_pending());
        assert_eq!(breaker.try_acquire().unwrap_err().reason, RejectReason::ProbeInFlight);
    }
    let panicking = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = breaker.try_acquire().unwrap();
        panic!("in the call");
    }));
    assert!(panicking.is_err());
    assert_eq!(breaker.state(), State::HalfOpen, "unknown is not success");
    breaker.try_acquire().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn cb_02_a_probe_of_which_nothing_is_heard_is_given_up_in_time() {
    let clock = clock();
    let half_open = HalfOpen::probes(1).max_wait(secs(30));
    let breaker = opened(&clock, builder(&clock).half_open(half_open));
    clock.advance(secs(60));
    let lost = breaker.try_acquire().unwrap();
    clock.advance(secs(10));
    let rejected = breaker.try_acquire().unwrap_err();
    assert_eq!(rejected.reason, RejectReason::ProbeInFlight);
    assert_eq!(rejected.retry_after, Some(secs(20)), "the rest of the wait, not zero");
    clock.advance(secs(20));
    let second = breaker.try_acquire().unwrap();
    lost.success();
    assert_eq!(breaker.state(), State::HalfOpen, "it comes too late");
    second.success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn cb_01_tm_01_only_a_large_step_back_of_the_clock_frees_a_slot() {
    let clock = clock();
    let half_open = HalfOpen::probes(1).max_wait(secs(30));
    let breaker = opened(&clock, builder(&clock).half_open(half_open));
    clock.advance(secs(60));
    let sent = clock.now();
    let _lost = breaker.try_acquire().unwrap();
    for step in [Duration::from_micros(1), secs(1), secs(30)] {
        clock.set(sent.minus(step));
        let rejected = breaker.try_acquire().unwrap_err();
        assert_eq!(rejected.reason, RejectReason::ProbeInFlight, "{step:?}");
        assert_eq!(rejected.retry_after, Some(secs(30) + step));
    }
    clock.set(sent.minus(secs(31)));
    assert!(breaker.try_acquire().unwrap().is_probe(), "no wait exceeds twice its length");
}

#[test]
fn cb_06_t11_late_results_move_nothing_and_prolong_nothing() {
    let clock = clock();
    let breaker = builder(&clock).build().unwrap();
    let mut slow: Vec<_> = (0..20).map(|_| breaker.try_acquire_owned().unwrap()).collect();
    vote(&breaker, [Failure; 3]);
    let before = breaker.snapshot();
    clock.advance(secs(30));
    for late in slow.drain(..10) {
        late.record(Failure);
    }
    assert_eq!(breaker.snapshot(), before, "open_until stands");
    clock.advance(secs(30));
    let probe = breaker.try_acquire().unwrap();
    for late in slow {
        late.success();
    }
    assert_eq!(breaker.state(), State::HalfOpen, "a success from before closes nothing");
    assert!(breaker.try_acquire().is_err(), "nor frees the probe's slot");
    probe.success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn t13_looking_changes_nothing() {
    let clock = clock();
    let breaker = opened(&clock, builder(&clock));
    let generation = breaker.snapshot().generation;
    clock.advance(secs(3_600));
    for _ in 0..10 {
        assert_eq!(breaker.state(), State::HalfOpen);
    }
    assert_eq!(breaker.snapshot().generation, generation);
    assert_eq!(breaker.snapshot().probes_out, 0);
}

#[test]
fn a_failure_rate_over_calls_counts_the_last_calls() {
    let trip = Trip::failure_rate(0.5).window(Window::calls(10)).min_calls(10);
    let breaker = builder(&clock()).trip(trip).build().unwrap();
    vote(&breaker, [Failure; 4]);
    vote(&breaker, [Success; 6]);
    vote(&breaker, [Failure; 4]);
    assert_eq!(breaker.state(), State::Closed, "four of the last ten");
    assert_eq!(breaker.snapshot().window.failures, 4);
    vote(&breaker, [Failure]);
    assert!(matches!(breaker.state(), State::Open { .. }));
}

#[test]
fn a_failure_rate_over_time_forgets() {
    let clock = clock();
    let trip = Trip::failure_rate(0.5).window(Window::time(secs(60))).min_calls(10);
    let breaker = builder(&clock).trip(trip).build().unwrap();
    vote(&breaker, [Failure; 9]);
    clock.advance(secs(61));
    vote(&breaker, [Failure; 9]);
    assert_eq!(breaker.state(), State::Closed);
    vote(&breaker, [Failure]);
    assert!(matches!(breaker.state(), State::Open { .. }));
}

#[test]
fn slow_calls_open_it_and_a_slow_probe_reopens_it() {
    let clock = clock();
    let trip = Trip::failure_rate(1.0).min_calls(5).or_slow(secs(2), 0.8);
    let breaker = builder(&clock).trip(trip).build().unwrap();
    let call = |took| {
        let permit = breaker.try_acquire().unwrap();
        clock.advance(took);
        permit.success();
    };
    (0..20).for_each(|_| call(secs(2)));
    assert_eq!(breaker.state(), State::Closed, "just as long is not longer");
    clock.advance(secs(60));
    (0..5).for_each(|_| call(secs(3)));
    assert!(matches!(breaker.state(), State::Open { .. }));
    clock.advance(secs(60));
    call(secs(3));
    assert!(matches!(breaker.state(), State::Open { .. }), "it is still slow");
    clock.advance(secs(60));
    call(secs(1));
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn cb_10_open_times_grow_and_spread() {
    let clock = clock();
    let open_for = OpenFor::backoff(secs(10), secs(40)).jitter(0.5);
    let breaker = builder(&clock).open_for(open_for).build().unwrap();
    vote(&breaker, [Failure; 3]);
    for longest in [10, 20, 40, 40] {
        let wait = breaker.try_acquire().unwrap_err().retry_after.unwrap();
        assert!((secs(longest) / 2..=secs(longest)).contains(&wait), "{wait:?} of {longest}");
        clock.advance(wait);
        vote(&breaker, [Failure]);
    }
    let waits: std::collections::BTreeSet<_> = (0..20)
        .map(|seed| {
            let breaker = builder(&clock).open_for(open_for).seed(seed).build().unwrap();
            vote(&breaker, [Failure; 3]);
            breaker.try_acquire().unwrap_err().retry_after
        })
        .collect();
    assert_eq!(waits.len(), 20, "those that opened together do not probe in step");
}

#[test]
fn by_hand() {
    let clock = clock();
    let breaker = build(&clock);
    let handle = breaker.handle();
    handle.force_open();
    let rejected = breaker.try_acquire().unwrap_err();
    assert_eq!((rejected.reason, rejected.retry_after), (RejectReason::Forced, None));
    handle.auto();
    assert_eq!(handle.state(), State::Closed);
    handle.force_closed();
    vote(&breaker, [Failure; 50]);
    assert_eq!(handle.snapshot().forced, Some(Forced::Closed));
    handle.auto();
    vote(&breaker, [Failure; 1]);
    assert!(matches!(handle.state(), State::Open { .. }), "what was counted beneath counts");
    let late = breaker.snapshot().generation;
    handle.reset();
    assert_eq!(handle.state(), State::Closed);
    assert!(breaker.snapshot().generation > late && breaker.snapshot().consecutive_failures == 0);
}

#[test]
fn what_is_kept_is_taken_up_again() {
    let clock = clock();
    let kept = opened(&clock, builder(&clock)).kept();
    let breaker = builder(&clock).restore(kept).build().unwrap();
    assert_eq!(breaker.state(), State::Open { until: START.plus(secs(60)) });
}

#[test]
fn t9_a_breaker_inside_the_retry_sees_every_call() {
    let breaker = build(&clock());
    let failed = (0..10).filter(|_| {
        let call = breaker.call(async { Err::<(), _>(std::io::Error::other("down")) });
        let ended = pin!(call).poll(&mut Context::from_waker(Waker::noop()));
        matches!(ended, Poll::Ready(Err(CallError::Failed(_))))
    });
    assert_eq!(failed.count(), 3, "no call is made once the breaker has opened");
}

#[test]
fn the_broken_option_is_named() {
    let field = |builder: BreakerBuilder| builder.build().unwrap_err().option;
    let named = || CircuitBreaker::builder("x");
    assert_eq!(field(CircuitBreaker::builder("")), "name");
    assert_eq!(field(named().trip(Trip::consecutive(0))), "trip.consecutive");
    let keyed = Trip::consecutive(3).distinct_keys(2);
    assert_eq!(field(named().trip(keyed)), "trip.distinct_keys", "it would never open");
    assert_eq!(field(named().open_for(OpenFor::fixed(Duration::ZERO))), "open_for");
    assert_eq!(field(named().half_open(HalfOpen::probes(0))), "half_open.probes");
}
