//! What is delivered while everything may go by hand ends the break beneath.
//!
//! Never: a store or a network.

use super::*;

fn open_then_closed_by_hand() -> Bench {
    let mut bench = Bench::new(settings());
    bench.open(0);
    bench.gate.force(Some(Forced::Closed), at(1));
    bench
}

#[test]
fn what_is_delivered_while_forced_closed_ends_the_break_beneath() {
    let mut bench = open_then_closed_by_hand();
    let settled = bench.send(2, (200, 0, 9));
    assert_eq!(settled.change, Some(Change::Closed));
    let kept = bench.gate.breaker().snapshot();
    assert_eq!((kept.open_until, kept.forced), (None, Some(Forced::Closed)));
    assert_eq!(kept.since, at(1), "it is forced since then");
    assert_eq!(bench.gate.kept(EndpointKey(1)).outage.and_then(|outage| outage.until), Some(at(2)));
    assert_eq!(bench.send(3, (200, 0, 9)).change, None, "told once");
    bench.gate.force(None, at(4));
    assert_eq!((bench.decide(4), bench.gate.state_name(at(4))), (Decision::Go, "closed"));
}

#[test]
fn what_fails_or_says_nothing_or_is_late_ends_no_break_beneath() {
    for answer in [(500, 0, 9), (404, 0, 9), (429, 0, 9), (0, 0, 9)] {
        let mut bench = open_then_closed_by_hand();
        bench.send(2, answer);
        bench.gate.force(None, at(3));
        assert_eq!(bench.gate.state_name(at(3)), "open", "{answer:?}");
    }
    let mut bench = Bench::new(settings());
    let before = bench.begin(0);
    bench.open(0);
    bench.gate.force(Some(Forced::Closed), at(1));
    assert_eq!(bench.settle(&before, (200, 0, 9), 2).change, None);
    bench.gate.force(None, at(3));
    assert_eq!(bench.gate.state_name(at(3)), "open", "it was begun before the break");
}
