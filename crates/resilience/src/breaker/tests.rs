//! The rules one by one; `walk` then watches what must always hold.

mod walk;

use super::*;
use crate::chance::Seeded;

const fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn closed() -> Breaker {
    Breaker::new(Config::default(), at(0))
}

/// Takes a permit and fails with it.
fn fail(breaker: &mut Breaker, key: u64, now: Timestamp) -> Option<Change> {
    let permit = breaker.take(now).unwrap();
    breaker.failure(permit, key, now, &mut Seeded::new(key))
}

/// A breaker that opened at `now`.
fn opened(now: Timestamp) -> Breaker {
    let mut breaker = closed();
    let changes: Vec<_> = (0..5).filter_map(|key| fail(&mut breaker, key, now)).collect();
    assert_eq!(changes, [Change::Opened { until: now.plus(secs(30)) }]);
    breaker
}

#[test]
fn opens_after_consecutive_failures() {
    let mut breaker = closed();
    assert!((0..4).all(|key| fail(&mut breaker, key, at(1)).is_none()));
    assert_eq!(breaker.consecutive_failures(), 4);
    let permit = breaker.take(at(2)).unwrap();
    assert_eq!(breaker.success(permit, at(2)), None);
    assert_eq!((breaker.consecutive_failures(), breaker.failing_since()), (0, None));
    assert!((0..4).all(|key| fail(&mut breaker, key, at(3)).is_none()));
    assert_eq!(fail(&mut breaker, 4, at(4)), Some(Change::Opened { until: at(34) }));
    assert_eq!(breaker.failing_since(), Some(at(3)));
    assert_eq!(breaker.state(at(33)), State::Open { until: at(34) });
    assert_eq!(breaker.admission(at(33)), Admission::Wait { until: Some(at(34)) });
    assert_eq!(breaker.take(at(33)), None);
}

#[test]
fn one_bad_message_opens_nothing() {
    let mut breaker = closed();
    assert!((0..12).all(|_| fail(&mut breaker, 7, at(1)).is_none()));
    assert!(fail(&mut breaker, 8, at(1)).is_some(), "a second message does");
    let single = Config { keys_min: 1, ..Config::default() };
    let mut breaker = Breaker::new(single, at(0));
    let changes = (0..5).filter_map(|_| fail(&mut breaker, 7, at(1))).count();
    assert_eq!(changes, 1);
}

#[test]
fn remembers_no_more_keys_than_it_needs() {
    let config = Config { failures: 1_000, rate_calls_min: u32::MAX, ..Config::default() };
    let mut breaker = Breaker::new(config, at(0));
    for key in 0..500 {
        fail(&mut breaker, key, at(1));
    }
    assert_eq!(breaker.health.keys.len(), 2);
}

#[test]
fn opens_at_the_failure_rate_of_the_recent_calls_only() {
    let config = Config { failures: 100, ..Config::default() };
    let mut breaker = Breaker::new(config, at(0));
    let mut alternate = |calls: std::ops::Range<u64>, now| {
        let mut change = None;
        for call in calls {
            if call % 2 == 0 {
                let permit = breaker.take(now).unwrap();
                breaker.success(permit, now);
            } else {
                change = fail(&mut breaker, call, now).or(change);
            }
        }
        change
    };
    assert_eq!(alternate(0..19, at(10)), None, "too few calls");
    assert_eq!(alternate(0..19, at(100)), None, "the earlier ones have fallen out");
    assert_eq!(alternate(1..2, at(101)), Some(Change::Opened { until: at(131) }));
}

#[test]
fn cb_01_cb_07_exactly_one_probe() {
    let mut breaker = opened(at(0));
    assert_eq!(breaker.state(at(30)), State::HalfOpen);
    assert_eq!(breaker.admission(at(30)), Admission::Probe);
    let probe = breaker.take(at(30)).unwrap();
    assert!(probe.is_probe());
    assert!((0..500).all(|_| breaker.take(at(31)).is_none()));
    assert_eq!(breaker.admission(at(9_999)), Admission::Wait { until: None });
    assert_eq!(breaker.state(at(31)), State::HalfOpen);
    assert_eq!(breaker.success(probe, at(32)), Some(Change::Closed), "one success closes");
    assert_eq!(breaker.state(at(32)), State::Closed);
    assert!(!breaker.take(at(32)).unwrap().is_probe());
}

#[test]
fn cb_02_cb_03_a_probe_that_proves_nothing_frees_its_slot() {
    let mut breaker = opened(at(0));
    for _ in 0..3 {
        let probe = breaker.take(at(40)).unwrap();
        breaker.neutral(probe, at(40));
        assert_eq!(breaker.state(at(40)), State::HalfOpen, "unknown is not success");
        assert_eq!(breaker.admission(at(40)), Admission::Probe);
    }
}

#[test]
fn a_permit_given_back_twice_frees_no_other_slot() {
    let mut breaker = opened(at(0));
    let first = breaker.take(at(30)).unwrap();
    breaker.neutral(first, at(30));
    let second = breaker.take(at(30)).unwrap();
    breaker.neutral(first, at(30));
    assert_eq!(breaker.success(first, at(30)), None);
    assert_eq!(breaker.take(at(30)), None, "the second probe is still out");
    assert_eq!(breaker.success(second, at(31)), Some(Change::Closed));
}

#[test]
fn cb_05_failures_that_land_together_open_once() {
    let mut breaker = closed();
    let together: Vec<_> = (0..50).map(|_| breaker.take(at(0)).unwrap()).collect();
    let changes: Vec<_> = (0_i64..)
        .zip(together)
        .filter_map(|(n, permit)| {
            breaker.failure(permit, n.unsigned_abs(), at(n), &mut Seeded::new(1))
        })
        .collect();
    assert_eq!(changes, [Change::Opened { until: at(34) }], "the fifth, and no later one moves it");
    assert_eq!(breaker.admission(at(34)), Admission::Probe);
}

#[test]
fn cb_06_late_results_decide_nothing() {
    let mut breaker = closed();
    let slow: Vec<_> = (0..20).map(|_| breaker.take(at(0)).unwrap()).collect();
    for key in 0..5 {
        fail(&mut breaker, key, at(1));
    }
    let before = breaker.snapshot();
    let probe = breaker.take(at(31)).unwrap();
    for permit in &slow {
        assert_eq!(breaker.success(*permit, at(32)), None);
        assert_eq!(breaker.failure(*permit, 9, at(32), &mut Seeded::new(1)), None);
        breaker.neutral(*permit, at(32));
    }
    assert_eq!((breaker.snapshot(), breaker.take(at(32))), (before, None));
    let change = breaker.failure(probe, 9, at(33), &mut Seeded::new(1));
    assert!(matches!(change, Some(Change::Reopened { .. })));
    assert_eq!(breaker.success(probe, at(34)), None, "a probe counts once");
}

#[test]
fn cb_10_every_failed_probe_begins_a_longer_wait() {
    let mut breaker = opened(at(0));
    let (mut now, mut previous, mut probes) = (at(30), secs(30), 0);
    for expected in [60, 120, 240, 480, 600, 600, 600] {
        assert!(breaker.take(now.minus(Duration::from_micros(1))).is_none());
        let Some(Change::Reopened { until }) = fail(&mut breaker, 1, now) else {
            panic!("a failed probe reopens")
        };
        probes += 1;
        let wait = until.since(now);
        assert!((secs(expected) / 2..=secs(expected)).contains(&wait), "{wait:?} of {expected} s");
        assert!(wait >= previous || expected == 600, "it shrinks at most at the maximum");
        assert_eq!(breaker.snapshot().open_for, secs(expected));
        assert_eq!(breaker.snapshot().generation, 1 + probes);
        (now, previous) = (until, wait);
    }
    let probe = breaker.take(now).unwrap();
    assert_eq!(breaker.success(probe, now), Some(Change::Closed));
    assert_eq!((breaker.snapshot().open_for, breaker.snapshot().generation), (secs(30), 9));
    assert_eq!(breaker.failing_since(), None);
    assert!((0..4).all(|key| fail(&mut breaker, key, now).is_none()), "counts begin anew");
    assert_eq!(fail(&mut breaker, 5, now), Some(Change::Opened { until: now.plus(secs(30)) }));
}

#[test]
fn cb_10_two_breakers_at_the_maximum_do_not_probe_in_step() {
    let waits: Vec<_> = (0..20)
        .map(|seed| {
            let snapshot = Snapshot { open_for: secs(600), ..opened(at(0)).snapshot() };
            let mut breaker = Breaker::restore(Config::default(), snapshot);
            let probe = breaker.take(at(30)).unwrap();
            breaker.failure(probe, 1, at(30), &mut Seeded::new(seed))
        })
        .collect();
    assert!(waits.windows(2).all(|pair| pair.first() != pair.last()));
}

#[test]
fn cb_13_refusals_neither_reset_nor_count() {
    let mut breaker = closed();
    for key in 0..5 {
        let refused = breaker.take(at(1)).unwrap();
        breaker.neutral(refused, at(1));
        assert_eq!(fail(&mut breaker, key, at(1)).is_some(), key == 4, "at {key}");
    }
    let probe = breaker.take(at(31)).unwrap();
    breaker.neutral(probe, at(31));
    assert_eq!(breaker.state(at(31)), State::HalfOpen, "a refusal closes nothing");
    let all =
        Config { failures: 1_000, rate_percent: 100, rate_calls_min: 50, ..Config::default() };
    let mut breaker = Breaker::new(all, at(0));
    let changes = (0..50).filter_map(|key| fail(&mut breaker, key, at(1))).count();
    assert_eq!(changes, 1, "each call is recorded once: 50 of 50 is 100 %");
}

#[test]
fn looking_changes_nothing() {
    let mut breaker = opened(at(0));
    let before = format!("{breaker:?}");
    for now in [0, 29, 30, 99_999, -99_999] {
        let _ = (breaker.state(at(now)), breaker.admission(at(now)), breaker.snapshot());
    }
    assert_eq!(format!("{breaker:?}"), before);
    assert!(breaker.take(at(29)).is_none());
    assert_eq!(format!("{breaker:?}"), before, "nor does a refused take");
}

#[test]
fn a_restart_keeps_what_matters() {
    let mut breaker = opened(at(0));
    let first = fail(&mut breaker, 1, at(30));
    let Some(Change::Reopened { until }) = first else { panic!("a failed probe reopens") };
    let restored = Breaker::restore(Config::default(), breaker.snapshot());
    assert_eq!(restored.snapshot(), breaker.snapshot());
    assert_eq!(restored.state(at(31)), State::Open { until });
    breaker.take(until).unwrap();
    let mut restored = Breaker::restore(Config::default(), breaker.snapshot());
    assert!(
        restored.take(until).unwrap().is_probe(),
        "a probe that died with its process is repeated"
    );
}

#[test]
fn forced_states_hold_whatever_happens() {
    let mut breaker = closed();
    breaker.force(Some(Forced::Closed), at(1));
    assert!((0..50).all(|key| fail(&mut breaker, key, at(2)).is_none()));
    assert_eq!(breaker.admission(at(2)), Admission::Go);
    breaker.force(Some(Forced::Open), at(3));
    assert_eq!(breaker.state(at(3)), State::Open { until: Timestamp::MAX });
    assert_eq!(breaker.admission(Timestamp::MAX), Admission::Wait { until: None });
    assert_eq!(breaker.snapshot().since, at(3));
    let mut breaker = Breaker::restore(Config::default(), breaker.snapshot());
    assert_eq!(breaker.take(at(4)), None, "a restart keeps it forced");
    breaker.force(None, at(5));
    assert_eq!(breaker.admission(at(5)), Admission::Go);
}

#[test]
fn lifting_a_force_goes_on_where_the_rules_were() {
    let mut breaker = opened(at(0));
    breaker.force(Some(Forced::Closed), at(1));
    let permit = breaker.take(at(2)).unwrap();
    assert!(!permit.is_probe());
    assert_eq!(breaker.success(permit, at(2)), None);
    breaker.force(None, at(3));
    assert_eq!(breaker.admission(at(3)), Admission::Wait { until: Some(at(30)) });
    let probe = breaker.take(at(30)).unwrap();
    breaker.force(Some(Forced::Closed), at(31));
    breaker.force(None, at(32));
    assert_eq!(breaker.take(at(33)), None, "the probe is still out");
    assert_eq!(breaker.success(probe, at(34)), Some(Change::Closed));
}

#[test]
fn switched_off_it_lets_everything_through() {
    let off = Config { enabled: false, ..Config::default() };
    let mut breaker = Breaker::new(off.clone(), at(0));
    assert!((0..50).all(|key| fail(&mut breaker, key, at(1)).is_none()));
    assert_eq!(breaker.failing_since(), Some(at(1)), "still told to whoever asks");
    assert!(breaker.health.recent.is_none(), "and it gathers nothing");
    let mut breaker = opened(at(0));
    breaker.retune(off);
    assert_eq!((breaker.state(at(1)), breaker.admission(at(1))), (State::Closed, Admission::Go));
    breaker.retune(Config::default());
    assert_eq!(breaker.state(at(1)), State::Open { until: at(30) });
}

#[test]
fn retune_takes_effect() {
    let mut breaker = closed();
    breaker.retune(Config { failures: 2, open_for: secs(5), ..Config::default() });
    assert_eq!(fail(&mut breaker, 1, at(1)), None);
    assert_eq!(fail(&mut breaker, 2, at(1)), Some(Change::Opened { until: at(6) }));
}

#[test]
fn tm_01_a_clock_set_back_does_not_park_the_endpoint() {
    let mut breaker = opened(at(100_000));
    assert_eq!(breaker.admission(at(100_000 - 7_200)), Admission::Probe);
    let small = breaker.admission(at(100_000 - 20));
    assert_eq!(
        small,
        Admission::Wait { until: Some(at(100_030)) },
        "50 s: under twice the open time"
    );
    let probe = breaker.take(at(100_030)).unwrap();
    breaker.neutral(probe, at(100_010));
    assert_eq!(breaker.admission(at(100_010)), Admission::Probe);
}
