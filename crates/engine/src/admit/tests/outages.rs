//! Tables for outages: from which failure on, until which success, and over a restart.
//!
//! Never: which letters died of one.

use super::*;

fn outage(bench: &Bench) -> Option<(u64, Option<u64>)> {
    let secs = |at: Timestamp| at.since(START).as_secs();
    let outage = bench.gate.kept(EndpointKey(1)).outage?;
    Some((secs(outage.since), outage.until.map(secs)))
}

/// The gate after a restart.
fn restarted(bench: &Bench, secs: u64) -> Bench {
    let kept = bench.gate.kept(EndpointKey(1));
    Bench { gate: Gate::restore(settings(), &kept, at(secs)), chance: Seeded::new(8) }
}

#[test]
fn an_outage_lasts_from_the_first_failure_to_the_probe_that_is_delivered() {
    let mut bench = Bench::new(settings());
    for secs in 1..5 {
        bench.send(secs, (500, 0, secs));
    }
    assert_eq!(outage(&bench), None, "the breaker is closed");
    bench.send(5, (500, 0, 5));
    assert_eq!(outage(&bench), Some((1, None)));
    bench.send(36, (500, 0, 6));
    let mut bench = restarted(&bench, 40);
    assert_eq!(outage(&bench), Some((1, None)), "a probe that fails ends nothing");
    bench.send(100, (200, 0, 7));
    assert_eq!(outage(&bench), Some((1, Some(100))));
    for secs in 110..115 {
        bench.send(secs, (500, 0, secs));
    }
    assert_eq!(outage(&bench), Some((110, None)), "a relapse is another one");
}

#[test]
fn refusals_and_throttling_are_no_outage() {
    let mut bench = Bench::new(settings());
    for secs in 0..30 {
        bench.send(secs, (200, 0, secs));
    }
    for secs in 30..50 {
        bench.send(secs, (404, 0, secs));
    }
    bench.send(100, (200, 0, 100));
    bench.send(101, (429, 5, 101));
    assert_eq!(outage(&bench), None);
}

#[test]
fn a_suspension_is_one_too_by_whomever_it_was_begun_and_ended() {
    let mut bench = Bench::new(settings());
    bench.gate.suspend(at(7));
    assert_eq!(outage(&bench), Some((7, None)));
    bench.gate.force(None, at(9));
    assert_eq!(outage(&bench), Some((7, Some(9))));
    bench.open(20);
    bench.gate.suspend(at(25));
    assert_eq!(outage(&bench), Some((20, None)), "the one that was there");
    assert!(bench.gate.succeed_by_hand(at(26), at(27)).resumed);
    assert_eq!(outage(&bench), Some((20, Some(27))));
}

#[test]
fn a_breaker_that_was_open_before_outages_were_kept_is_in_one() {
    let mut bench = Bench::new(settings());
    bench.open(3);
    bench.gate.outage = None;
    assert_eq!(outage(&restarted(&bench, 10)), Some((3, None)));
}
