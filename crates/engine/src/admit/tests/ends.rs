//! What ends a hold early, and how holds show.
//!
//! Never: a clock or a chance but the ones passed in.

use super::*;

/// Held after refusals, until second 30.
fn refused() -> Bench {
    let mut bench = Bench::new(settings());
    (0..20).for_each(|message| {
        bench.send(0, (401, 0, message));
    });
    assert_eq!(bench.decide(1), wait(30));
    bench
}

#[test]
fn what_was_refused_before_a_change_says_nothing_after_it() {
    let mut bench = Bench::new(settings());
    let before: Vec<Pass> = (0..30).map(|_| bench.begin(0)).collect();
    (0..20).for_each(|message| {
        bench.send(0, (401, 0, message));
    });
    assert!(bench.gate.trust(), "a hold ended");
    assert!(!bench.gate.trust(), "there is none any more");
    for (message, pass) in (100..).zip(&before) {
        assert_eq!(bench.settle(pass, (401, 0, message), 1).refused_until, None);
    }
    assert_eq!(bench.decide(2), Decision::Go);
    (0..19).for_each(|message| {
        bench.send(2, (401, 0, message));
    });
    assert_eq!(bench.decide(2), Decision::Go);
    assert_eq!(bench.send(2, (401, 0, 99)).refused_until, Some(at(32)), "a run of its own");
}

#[test]
fn a_success_by_hand_ends_the_hold_unless_it_was_begun_before() {
    let mut bench = refused();
    bench.gate.succeed_by_hand(START.minus(Duration::from_secs(1)), at(1));
    assert_eq!(bench.decide(1), wait(30));
    bench.gate.succeed_by_hand(at(1), at(1));
    assert_eq!(bench.gate.decide(0, at(1)), Decision::Go);
    assert_eq!(bench.gate.decide(1, at(1)), Decision::Wait(None), "gently");
}

#[test]
fn one_is_let_through_at_once_and_is_the_probe() {
    let mut bench = refused();
    bench.gate.let_one(at(2));
    assert_eq!(bench.decide(2), Decision::Probe);
    let probe = bench.begin(2);
    bench.gate.let_one(at(3));
    assert_eq!(bench.decide(3), Decision::Wait(None), "one at a time");
    bench.settle(&probe, (401, 0, 50), 3);
    assert_eq!(bench.decide(3), wait(63), "it was refused: the hold doubles");
    let mut open = Bench::new(settings());
    open.gate.let_one(at(2));
    assert_eq!(open.decide(2), Decision::Go, "where nothing is held nothing changes");
}

#[test]
fn any_order_about_the_breaker_ends_a_hold_after_refusals_and_no_other() {
    for forced in [Some(Forced::Open), Some(Forced::Closed), None] {
        let mut bench = refused();
        bench.gate.force(forced, at(1));
        bench.gate.force(None, at(2));
        assert_eq!(bench.decide(2), Decision::Go, "{forced:?}");
    }
    let mut bench = Bench::new(settings());
    bench.send(0, (429, 60, 1));
    bench.gate.force(None, at(1));
    assert_eq!(bench.decide(1), wait(60), "the receiver asked for that");
}

#[test]
fn what_lasts_longest_is_shown_and_waited_for() {
    let mut bench = Bench::new(settings());
    assert_eq!((bench.gate.held(at(0)), bench.gate.waits(at(0))), (None, Decision::Go));
    let shown = |bench: &Bench, secs| (bench.gate.held(at(secs)), bench.gate.waits(at(secs)));
    let held = |by, secs| Some(Held { by, until: Some(at(secs)) });
    bench.send(0, (503, 60, 1));
    assert_eq!(shown(&bench, 1), (held(HeldBy::RetryAfter, 60), wait(60)));
    bench.gate.hold_head(Some(at(90)));
    assert_eq!(shown(&bench, 1), (held(HeldBy::Head, 90), wait(90)));
    assert_eq!(shown(&bench, 95), (held(HeldBy::RetryAfter, 60), Decision::Go), "a probe is next");
    let _probe = bench.begin(95);
    assert_eq!(bench.gate.waits(at(95)), Decision::Wait(None), "it is out");
    let mut bench = refused();
    assert_eq!(shown(&bench, 1), (held(HeldBy::Refusals, 30), wait(30)));
    bench.gate.force(Some(Forced::Open), at(2));
    assert_eq!(shown(&bench, 2), (None, Decision::Wait(None)), "until somebody says otherwise");
}
