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
fn rp_03_a_run_of_refusals_keeps_its_beginning_until_it_is_over() {
    let mut bench = Bench::new(settings());
    let runs = |bench: &mut Bench, secs: std::ops::Range<u64>| -> Vec<_> {
        secs.map(|secs| bench.send(secs, (404, 0, secs)).run).collect()
    };
    assert_eq!(runs(&mut bench, 5..8), [Some(at(5)); 3]);
    assert_eq!(bench.send(8, (200, 0, 8)).run, None);
    assert_eq!(runs(&mut bench, 10..30), [Some(at(10)); 20], "a success ended the one before");
    assert_eq!(bench.gate.held(at(30)).unwrap().run, Some(at(10)));
    let kept = bench.gate.kept(EndpointKey(1));
    assert_eq!(kept.rejected_since, Some(at(10)));
    let gate = Gate::restore(settings(), &kept, at(31));
    let mut bench = Bench { gate, chance: Seeded::new(8) };
    assert_eq!(runs(&mut bench, 60..61), [Some(at(10))], "its probe, after a restart");
    bench.gate.trust();
    assert_eq!(bench.gate.kept(EndpointKey(1)).rejected_since, None);
    assert_eq!(runs(&mut bench, 200..201), [Some(at(200))]);
}

#[test]
fn what_lasts_longest_is_shown_and_waited_for() {
    let mut bench = Bench::new(settings());
    assert_eq!((bench.gate.held(at(0)), bench.gate.waits(at(0))), (None, Decision::Go));
    let shown = |bench: &Bench, secs| {
        let held = bench.gate.held(at(secs)).map(|held| (held.by, held.until));
        (held, bench.gate.waits(at(secs)))
    };
    let held = |by, secs| Some((by, Some(at(secs))));
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

#[test]
fn a_change_of_the_endpoint_ends_the_wait_of_an_open_breaker_unless_it_is_forced() {
    let mut bench = Bench::new(settings());
    bench.open(0);
    assert!(matches!(bench.decide(1), Decision::Wait(Some(_))));
    assert!(bench.gate.let_probe(at(1)) && !bench.gate.let_probe(at(1)), "once");
    let open_until = bench.gate.breaker().snapshot().open_until;
    assert_eq!((bench.decide(1), open_until), (Decision::Probe, Some(at(1))));
    let probe = bench.begin(1);
    assert_eq!(bench.decide(1), Decision::Wait(None), "one only");
    bench.settle(&probe, (200, 0, 9), 2);
    assert_eq!(bench.decide(2), Decision::Go);
    bench.gate.force(Some(Forced::Open), at(3));
    bench.gate.let_probe(at(4));
    assert_eq!(bench.decide(4), Decision::Wait(None));
}
