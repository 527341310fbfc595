//! Tables for the gate: holds, breaker, window, rate, refusals, and what survives a restart.
//!
//! Never: a clock or a chance but the ones passed in.

use resilience::{Forced, Seeded};

use super::*;

mod ends;
mod forced;
mod outages;
mod probes;
mod suspension;

const START: Timestamp = Timestamp::from_secs(1_800_000_000);

fn at(secs: u64) -> Timestamp {
    START.plus(Duration::from_secs(secs))
}

fn settings() -> GateSettings {
    GateSettings {
        breaker: BreakerConfig::default(),
        window: (4, 64),
        rate: None,
        hold_max: Duration::from_secs(900),
        suspending: Suspending::default(),
    }
}

/// A gate with its chance, and short words for what comes in.
struct Bench {
    gate: Gate,
    chance: Seeded,
}

impl Bench {
    fn new(settings: GateSettings) -> Self {
        Self { gate: Gate::new(settings, START), chance: Seeded::new(7) }
    }

    fn begin(&mut self, secs: u64) -> Pass {
        self.gate.begin(at(secs)).expect("let through")
    }

    fn settle(
        &mut self,
        pass: &Pass,
        (status, hint, message): (u16, u64, u64),
        secs: u64,
    ) -> Settled {
        let class = match status {
            200 => Class::Success,
            429 => Class::Throttled,
            0 | 408 | 425 | 500..=599 => Class::Transient,
            410 => Class::Gone,
            _ => Class::Rejected,
        };
        let hint =
            if hint > 0 { RetryAfter::Wait(Duration::from_secs(hint)) } else { RetryAfter::Absent };
        let outcome = Outcome { class, status, hint, message: MessageKey(message) };
        self.gate.settle(pass, outcome, at(secs), &mut self.chance)
    }

    fn send(&mut self, secs: u64, answer: (u16, u64, u64)) -> Settled {
        let pass = self.begin(secs);
        self.settle(&pass, answer, secs)
    }

    fn open(&mut self, secs: u64) {
        (0..5).for_each(|message| {
            self.send(secs, (500, 0, message));
        });
    }

    fn decide(&self, secs: u64) -> Decision {
        self.gate.decide(0, at(secs))
    }
}

fn wait(secs: u64) -> Decision {
    Decision::Wait(Some(at(secs)))
}

#[test]
fn ra_09_only_429_and_503_with_a_hint_hold_the_lane() {
    // status, hint, held until
    let rows = [
        (429, 60, Some(60)),
        (503, 60, Some(60)),
        (503, 0, None),
        (500, 60, None),
        (502, 60, None),
        (408, 60, None),
        (404, 60, None),
        (200, 60, None),
        (429, 5_000, Some(900)),
        (503, 1 << 40, Some(900)),
    ];
    for (status, hint, held) in rows {
        let mut bench = Bench::new(settings());
        bench.send(0, (status, hint, 1));
        assert_eq!(bench.decide(0), held.map_or(Decision::Go, wait), "{status} {hint}");
    }
}

#[test]
fn ra_09_the_latest_hint_counts_and_one_is_let_through_after_it() {
    let mut bench = Bench::new(settings());
    let passes = [(); 4].map(|()| bench.begin(0));
    bench.settle(&passes[0], (429, 60, 1), 1);
    bench.settle(&passes[1], (429, 10, 2), 2);
    bench.settle(&passes[2], (503, 90, 3), 3);
    assert_eq!(bench.decide(4), wait(93));
    bench.settle(&passes[3], (200, 0, 4), 5);
    assert_eq!(bench.decide(6), wait(93), "a success of a send begun before lifts nothing");
    assert_eq!(bench.decide(93), Decision::Probe);
    let probe = bench.begin(93);
    assert!(probe.is_probe());
    assert_eq!(bench.decide(94), Decision::Wait(None), "one only");
    bench.settle(&probe, (200, 0, 5), 95);
    assert_eq!(bench.gate.decide(0, at(95)), Decision::Go);
    assert_eq!(bench.gate.decide(1, at(95)), Decision::Wait(None), "the window starts again at 1");
}

#[test]
fn ra_02_a_429_without_a_usable_hint_doubles_its_hold_by_rounds() {
    let mut bench = Bench::new(settings());
    let mut now = 0;
    for round in 0..10_u32 {
        let together = [bench.begin(now)];
        bench.settle(&together[0], (429, 0, 1), now);
        let most = Duration::from_secs(60.min(1 << round.min(20)));
        let Decision::Wait(Some(until)) = bench.decide(now) else { panic!("held") };
        let held = until.since(at(now));
        assert!(held >= most / 2 && held <= most, "round {round}: {held:?}");
        now += 61;
    }
    bench.send(now, (200, 0, 1));
    bench.send(now, (429, 0, 2));
    let Decision::Wait(Some(until)) = bench.decide(now) else { panic!("held") };
    assert!(until.since(at(now)) <= Duration::from_secs(1), "a success begins anew");
}

#[test]
fn ra_02_answers_that_come_in_while_it_is_held_are_one_round() {
    let mut bench = Bench::new(settings());
    let passes = [(); 4].map(|()| bench.begin(0));
    passes.iter().for_each(|pass| {
        bench.settle(pass, (429, 0, 1), 0);
    });
    assert_eq!(bench.gate.kept(EndpointKey(1)).throttled_rounds, 1);
}

#[test]
fn tm_01_no_hold_outlasts_a_clock_that_steps_back() {
    let mut bench = Bench::new(settings());
    bench.send(7_200, (429, 60, 1));
    assert_eq!(bench.decide(7_201), wait(7_260));
    assert_eq!(bench.decide(7_199), wait(7_260), "a small step changes nothing");
    assert_eq!(bench.decide(0), Decision::Probe, "two hours back");
    let mut bench = Bench::new(settings());
    (0..20).for_each(|message| {
        bench.send(7_200, (401, 0, message));
    });
    assert_eq!((bench.decide(7_201), bench.decide(0)), (wait(7_230), Decision::Probe));
}

#[test]
fn cb_01_five_failures_of_two_messages_open_and_one_probe_decides() {
    let mut bench = Bench::new(settings());
    (0..9).for_each(|_| {
        bench.send(0, (500, 0, 1));
    });
    assert_eq!(bench.decide(0), Decision::Go, "one message opens nothing");
    let settled = bench.send(0, (500, 0, 2));
    assert_eq!(settled.change, Some(Change::Opened { until: at(30) }));
    assert_eq!(bench.decide(29), wait(30));
    let probe = bench.begin(30);
    assert!(probe.is_probe() && bench.gate.begin(at(31)).is_none());
    assert_eq!(
        (bench.decide(31), bench.gate.state_name(at(31))),
        (Decision::Wait(None), "halfOpen")
    );
    let settled = bench.settle(&probe, (200, 0, 3), 32);
    assert_eq!(settled.change, Some(Change::Closed));
    assert_eq!(bench.gate.decide(1, at(32)), Decision::Wait(None), "the window starts again at 1");
    assert_eq!(bench.gate.decide(0, at(32)), Decision::Go);
}

#[test]
fn cb_01_the_head_of_an_ordered_endpoint_is_enough() {
    let breaker = BreakerConfig { keys_min: 1, ..BreakerConfig::default() };
    let mut bench = Bench::new(GateSettings { breaker, window: (1, 1), ..settings() });
    (0..5).for_each(|_| {
        bench.send(0, (500, 0, 1));
    });
    assert_eq!(bench.decide(0), wait(30));
}

#[test]
fn cb_02_a_dropped_probe_frees_its_place() {
    let mut bench = Bench::new(settings());
    bench.open(0);
    let probe = bench.begin(30);
    bench.gate.release(&probe, at(31));
    assert_eq!(bench.decide(31), Decision::Probe);
    let mut bench = Bench::new(settings());
    bench.send(0, (429, 10, 1));
    let probe = bench.begin(10);
    bench.gate.release(&probe, at(11));
    assert_eq!(bench.decide(11), Decision::Probe, "and so does one after a hold");
}

#[test]
fn cb_02_a_probe_of_an_older_hold_frees_no_place() {
    let mut bench = Bench::new(settings());
    bench.send(0, (429, 10, 1));
    let old = bench.begin(10);
    bench.gate.force(Some(Forced::Closed), at(11));
    bench.send(11, (429, 10, 2));
    let new = bench.begin(21);
    bench.settle(&old, (429, 0, 1), 22);
    assert!(new.is_probe());
    assert_ne!(bench.decide(23), Decision::Go);
    assert_ne!(bench.decide(90), Decision::Probe, "the newer probe is still out");
}

#[test]
fn cb_03_cb_13_4xx_is_neutral_in_every_state() {
    let mut bench = Bench::new(settings());
    for message in 0..4 {
        bench.send(0, (500, 0, message));
        bench.send(0, (400, 0, message));
    }
    bench.send(0, (503, 0, 9));
    assert_eq!(bench.decide(0), wait(30), "400s between them do not reset the count");
    let probe = bench.begin(30);
    bench.settle(&probe, (404, 0, 10), 31);
    assert_eq!(bench.decide(31), Decision::Probe, "it neither closes nor stays half-open");
}

#[test]
fn cb_06_a_result_of_an_older_generation_moves_nothing() {
    let mut bench = Bench::new(settings());
    let late = [bench.begin(0), bench.begin(0)];
    bench.open(0);
    assert_eq!(bench.settle(&late[0], (200, 0, 8), 5), Settled::default());
    assert_eq!(bench.decide(5), wait(30));
    let probe = bench.begin(30);
    assert_eq!(bench.settle(&late[1], (500, 0, 9), 31), Settled::default());
    assert_eq!(bench.settle(&probe, (200, 0, 3), 32).change, Some(Change::Closed));
}

#[test]
fn cb_10_each_failed_probe_opens_it_for_longer() {
    let mut bench = Bench::new(settings());
    bench.open(0);
    let (mut now, mut last) = (30, Duration::from_secs(30));
    for _ in 0..8 {
        let probe = bench.begin(now);
        bench.settle(&probe, (0, 0, 1), now);
        let Decision::Wait(Some(until)) = bench.decide(now) else { panic!("open") };
        let open_for = until.since(at(now));
        assert!(
            open_for >= last.min(Duration::from_secs(300)) && open_for <= Duration::from_secs(600)
        );
        last = open_for;
        now += 600;
    }
}

#[test]
fn the_window_grows_by_one_and_is_halved_once_per_round() {
    let mut bench = Bench::new(GateSettings { window: (4, 8), ..settings() });
    let limit = |bench: &Bench| (0..100).find(|out| bench.gate.decide(*out, at(0)) != Decision::Go);
    assert_eq!(limit(&bench), Some(4));
    (0..9).for_each(|message| {
        bench.send(0, (200, 0, message));
    });
    assert_eq!(limit(&bench), Some(8));
    let together = [(); 4].map(|()| bench.begin(0));
    together.iter().for_each(|pass| {
        bench.settle(pass, (500, 0, 1), 0);
    });
    assert_eq!(limit(&bench), Some(4));
    bench.send(0, (400, 0, 1));
    assert_eq!(limit(&bench), Some(4), "a refusal cuts nothing");
    bench.gate.restart_window();
    assert_eq!(limit(&bench), Some(1));
}

#[test]
fn the_rate_holds_manual_sends_too() {
    let mut bench = Bench::new(GateSettings { rate: Some(2), ..settings() });
    assert!(bench.gate.begin_manual(START));
    bench.begin(0);
    let half = START.plus(Duration::from_millis(500));
    assert_eq!(bench.decide(0), Decision::Wait(Some(half)));
    assert_eq!(bench.gate.decide_manual(0, START), Decision::Wait(Some(half)));
    assert!(!bench.gate.begin_manual(START) && bench.gate.begin(START).is_none());
    assert!(bench.gate.begin_manual(half));
}

#[test]
fn manual_sends_ignore_breaker_and_holds_but_not_the_window() {
    let mut bench = Bench::new(settings());
    bench.send(0, (429, 60, 1));
    bench.gate.force(Some(Forced::Open), at(0));
    assert_eq!(bench.gate.decide_manual(1, at(1)), Decision::Go);
    assert_eq!(bench.gate.decide_manual(2, at(1)), Decision::Wait(None), "halved by the 429");
}

#[test]
fn a_run_of_refusals_of_different_messages_holds_the_lane() {
    let mut bench = Bench::new(settings());
    (0..50).for_each(|_| {
        bench.send(0, (401, 0, 1));
    });
    assert_eq!(bench.decide(0), Decision::Go, "the same message again and again is one");
    (2..20).for_each(|message| {
        bench.send(0, (401, 0, message));
    });
    bench.send(0, (500, 0, 77));
    bench.send(0, (429, 1, 78));
    assert_eq!(bench.decide(1), Decision::Probe, "of the hold");
    let settled = bench.send(1, (401, 0, 20));
    assert_eq!(settled.refused_until, Some(at(31)), "5xx and 429 leave the run as it is");
    let (mut now, mut held_for) = (31, 30);
    for _ in 0..7 {
        assert_eq!(bench.decide(now - 1), wait(now));
        held_for = (held_for * 2).min(600);
        let settled = bench.send(now, (403, 0, now));
        assert_eq!(settled.refused_until, Some(at(now + held_for)));
        now += held_for;
    }
    bench.send(now, (200, 0, 5));
    assert_eq!(bench.gate.decide(0, at(now)), Decision::Go);
    assert_eq!(bench.gate.decide(1, at(now)), Decision::Wait(None), "gently");
}

#[test]
fn a_success_begun_before_the_refusals_hold_lifts_nothing() {
    let mut bench = Bench::new(settings());
    let old = bench.begin(0);
    (0..20).for_each(|message| {
        bench.send(0, (401, 0, message));
    });
    bench.settle(&old, (200, 0, 99), 1);
    assert_eq!(bench.decide(2), wait(30));
}

#[test]
fn forced_states_hold_until_auto() {
    let mut bench = Bench::new(settings());
    bench.gate.force(Some(Forced::Open), at(0));
    assert_eq!((bench.decide(9_999), bench.gate.state_name(at(1))), (Decision::Wait(None), "open"));
    bench.gate.force(Some(Forced::Closed), at(1));
    (0..30).for_each(|message| {
        bench.send(1, (500, 0, message));
    });
    assert_eq!((bench.decide(1), bench.gate.state_name(at(1))), (Decision::Go, "closed"));
    bench.gate.force(None, at(2));
    bench.send(2, (500, 0, 1));
    assert_eq!(bench.decide(2), wait(32));
    bench.gate.force(Some(Forced::Closed), at(3));
    assert_eq!(bench.decide(3), Decision::Go);
}

#[test]
fn the_head_of_an_ordered_lane_waits_and_then_simply_goes() {
    let mut bench = Bench::new(GateSettings { window: (1, 1), ..settings() });
    bench.send(0, (500, 0, 1));
    bench.gate.hold_head(Some(at(40)));
    assert_eq!((bench.decide(1), bench.decide(40)), (wait(40), Decision::Go));
    assert_eq!(bench.gate.kept(EndpointKey(1)).hold_until, Some(at(40)));
    bench.send(40, (200, 0, 1));
    assert_eq!(bench.gate.kept(EndpointKey(1)).hold_until, None);
}

#[test]
fn what_is_kept_comes_back_as_it_was() {
    let mut bench = Bench::new(settings());
    (0..20).for_each(|message| {
        bench.send(0, (401, 0, message));
    });
    let probe = bench.begin(30);
    bench.settle(&probe, (429, 0, 1), 30);
    bench.gate.force(Some(Forced::Closed), at(31));
    bench.gate.force(None, at(31));
    bench.open(31);
    bench.gate.force(Some(Forced::Open), at(32));
    let kept = bench.gate.kept(EndpointKey(3));
    let back = Gate::restore(settings(), &kept, at(33));
    assert_eq!(back.kept(EndpointKey(3)), kept);
    assert_eq!(back.decide(0, at(33)), bench.gate.decide(0, at(33)));
    let mut bench = Bench::new(settings());
    bench.send(0, (503, 60, 1));
    let mut back = Gate::restore(settings(), &bench.gate.kept(EndpointKey(3)), at(1));
    assert_eq!(back.decide(0, at(59)), wait(60));
    assert!(back.failed_last() && back.begin(at(60)).is_some_and(|pass| pass.is_probe()));
}
