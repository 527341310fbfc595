//! Tables for suspension: when it begins, what is let through, what ends it.
//!
//! Never: a wait that is not a multiple of what the settings say.

use super::*;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

impl Bench {
    /// Fails at `secs` if the gate lets anything through then.
    fn fail_at(&mut self, secs: u64) -> Option<Settled> {
        let pass = self.gate.begin(at(secs))?;
        Some(self.settle(&pass, (500, 0, secs), secs))
    }

    /// Fails whenever the gate lets it, from `from` up to, not at, `until`.
    fn fail_through(&mut self, from: u64, until: u64) {
        for secs in from..until {
            if let Some(settled) = self.fail_at(secs) {
                assert!(!settled.suspended, "suspended after {secs} s");
            }
        }
    }

    fn state(&self, secs: u64) -> &'static str {
        self.gate.state_name(at(secs))
    }

    fn kept(&self) -> LaneState {
        self.gate.kept(EndpointKey(1))
    }
}

/// The first send that is let through at or after `secs`.
fn next(bench: &Bench, secs: u64) -> u64 {
    (secs..).find(|&secs| !matches!(bench.decide(secs), Decision::Wait(_))).unwrap()
}

/// Suspended at the returned time, the first failure having been at 0.
fn suspended() -> (Bench, u64) {
    let mut bench = Bench::new(settings());
    bench.fail_through(0, HOUR);
    let when = next(&bench, HOUR);
    assert!(when < HOUR + 10 * MINUTE, "the breaker probes within its longest open time");
    assert!(bench.fail_at(when).unwrap().suspended);
    (bench, when)
}

#[test]
fn ep_04_it_is_suspended_by_the_first_failure_at_the_hour_and_by_none_before() {
    for (last, is_suspended) in [(HOUR - 1, false), (HOUR, true), (5 * HOUR, true)] {
        let mut bench = Bench::new(settings());
        // Few enough for the breaker to stay closed: it is the time that counts.
        bench.send(0, (500, 0, 1));
        let settled = bench.send(last, (500, 0, 2));
        assert_eq!(
            (settled.suspended, bench.state(last) == "suspended"),
            (is_suspended, is_suspended)
        );
    }
}

#[test]
fn ep_04_a_success_in_between_begins_the_hour_anew() {
    let mut bench = Bench::new(settings());
    bench.fail_through(0, HOUR - 1);
    let well = next(&bench, HOUR - 1);
    bench.send(well, (200, 0, 7));
    bench.fail_through(well + 1, well + 1 + HOUR);
    let when = next(&bench, well + 1 + HOUR);
    assert!(bench.fail_at(when).unwrap().suspended);
}

#[test]
fn ep_05_what_says_nothing_about_the_receiver_does_not_suspend() {
    for status in [429, 400, 404, 410] {
        let mut bench = Bench::new(settings());
        bench.send(0, (500, 0, 1));
        for secs in [HOUR, 2 * HOUR] {
            let settled = bench.send(next(&bench, secs), (status, 0, secs));
            assert!(!settled.suspended, "{status}");
        }
    }
    let mut bench = Bench::new(settings());
    bench.send(0, (500, 0, 1));
    let pass = bench.begin(HOUR);
    let outcome = Outcome {
        class: Class::Internal,
        status: 0,
        hint: RetryAfter::Absent,
        message: MessageKey(1),
    };
    assert_eq!(bench.gate.settle(&pass, outcome, at(HOUR), &mut bench.chance), Settled::default());
}

#[test]
fn it_is_off_where_the_settings_say_so() {
    let suspending = Suspending { after: None, ..Suspending::default() };
    let mut bench = Bench::new(GateSettings { suspending, ..settings() });
    bench.fail_through(0, 3 * HOUR);
    assert_eq!((bench.kept().warned, bench.kept().suspended), (false, None));
}

#[test]
fn ob_02_it_warns_once_at_half_the_time() {
    let mut bench = Bench::new(settings());
    bench.fail_through(0, HOUR / 2);
    assert!(!bench.kept().warned);
    bench.fail_through(HOUR / 2, HOUR);
    assert!(bench.kept().warned);
    let well = next(&bench, HOUR);
    bench.send(well, (200, 0, 1));
    assert!(!bench.kept().warned, "the next incident is another");
}

#[test]
fn one_probe_goes_each_ten_minutes_and_no_other() {
    let (mut bench, mut when) = suspended();
    for _ in 0..20 {
        assert_eq!(bench.decide(when), wait(when + 10 * MINUTE));
        assert_eq!(bench.decide(when + 10 * MINUTE - 1), wait(when + 10 * MINUTE));
        when += 10 * MINUTE;
        assert_eq!((bench.decide(when), bench.state(when)), (Decision::Probe, "suspended"));
        let probe = bench.begin(when);
        assert!(probe.is_probe());
        assert_eq!(bench.decide(when), Decision::Wait(None), "one at a time");
        assert!(bench.gate.begin(at(when)).is_none());
        when += 3;
        let settled = bench.settle(&probe, (500, 0, when), when);
        assert_eq!(settled, Settled::default(), "it says nothing new");
    }
    assert_eq!(bench.kept().breaker.failing_since, Some(at(0)));
}

#[test]
fn a_delivered_probe_resumes_gently() {
    let (mut bench, when) = suspended();
    let now = when + 10 * MINUTE;
    let settled = bench.send(now, (200, 0, 1));
    assert_eq!((settled.resumed, settled.change), (true, Some(Change::Closed)));
    assert_eq!((bench.state(now), bench.decide(now)), ("closed", Decision::Go));
    assert_eq!(bench.gate.decide(1, at(now)), Decision::Wait(None), "the window starts again at 1");
    let kept = bench.kept();
    assert_eq!((kept.suspended, kept.warned, kept.breaker.failing_since), (None, false, None));
    assert!(!bench.send(now + 1, (500, 0, 2)).suspended, "the hour begins anew");
}

#[test]
fn probes_that_are_refused_or_throttled_do_not_resume_it() {
    for status in [400, 404, 429] {
        let (mut bench, when) = suspended();
        let now = when + 10 * MINUTE;
        assert!(!bench.send(now, (status, 0, 1)).resumed);
        assert_eq!(bench.state(now), "suspended", "{status}");
        assert_eq!(next(&bench, now), now + 10 * MINUTE, "{status}");
    }
}

#[test]
fn a_probe_that_is_dropped_leaves_its_place_to_the_next() {
    let (mut bench, when) = suspended();
    let now = when + 10 * MINUTE;
    let probe = bench.begin(now);
    bench.gate.release(&probe, at(now));
    assert_eq!(bench.decide(now), Decision::Probe);
}

#[test]
fn results_from_before_neither_end_it_nor_begin_it_again() {
    let mut bench = Bench::new(settings());
    bench.send(0, (500, 0, 1));
    let [early, late, first] = [(); 3].map(|()| bench.begin(HOUR));
    assert!(bench.settle(&first, (500, 0, 2), HOUR).suspended);
    let since = bench.kept().suspended;
    assert!(!bench.settle(&early, (500, 0, 3), HOUR + 1).suspended);
    assert!(!bench.settle(&late, (200, 0, 4), HOUR + 2).resumed);
    assert_eq!((bench.kept().suspended, bench.state(HOUR + 2)), (since, "suspended"));
}

#[test]
fn it_outlives_a_restart_in_each_state() {
    let mut warned = Bench::new(settings());
    warned.fail_through(0, HOUR / 2 + 10 * MINUTE);
    let (suspended, when) = suspended();
    for (bench, now) in [(warned, HOUR / 2 + 10 * MINUTE), (suspended, when)] {
        let kept = bench.kept();
        let gate = Gate::restore(settings(), &kept, at(now));
        assert_eq!(gate.kept(EndpointKey(1)), kept);
        assert_eq!(
            (gate.decide(0, at(now)), gate.state_name(at(now))),
            (bench.decide(now), bench.state(now))
        );
    }
}

#[test]
fn somebody_suspends_and_resumes_it() {
    let mut bench = Bench::new(settings());
    bench.gate.suspend(at(5));
    assert_eq!((bench.state(5), bench.decide(5)), ("suspended", wait(5 + 10 * MINUTE)));
    let first = bench.kept();
    bench.gate.suspend(at(9));
    assert_eq!(bench.kept(), first, "it is already");
    bench.gate.force(None, at(10));
    assert_eq!((bench.state(10), bench.decide(10)), ("closed", Decision::Go));
    assert_eq!(bench.gate.decide(1, at(10)), Decision::Wait(None), "gently");
    bench.gate.suspend(at(11));
    bench.send(11 + 10 * MINUTE, (200, 0, 1));
    assert_eq!(bench.state(11 + 10 * MINUTE), "closed", "and it heals itself");
}

#[test]
fn forced_states_win() {
    let (mut bench, when) = suspended();
    bench.gate.force(Some(Forced::Open), at(when));
    let later = when + HOUR;
    assert_eq!((bench.state(later), bench.decide(later)), ("open", Decision::Wait(None)));
    assert!(bench.gate.suspended().is_none() && bench.kept().suspended.is_some());
    bench.gate.force(None, at(later));
    assert_eq!((bench.state(later), bench.decide(later)), ("closed", Decision::Go));

    let (mut bench, when) = suspended();
    bench.gate.force(Some(Forced::Closed), at(when));
    assert_eq!((bench.state(when), bench.kept().suspended), ("closed", None));
    for secs in [when, when + 2 * HOUR] {
        assert!(!bench.send(secs, (500, 0, secs)).suspended, "nor is it again");
    }
    bench.gate.suspend(at(when + 3 * HOUR));
    assert_eq!(bench.state(when + 3 * HOUR), "suspended", "whatever was forced before");
}

#[test]
fn what_could_not_be_stored_is_taken_back() {
    let (mut bench, when) = suspended();
    let before = bench.kept();
    bench.gate.force(None, at(when));
    bench.gate.undo(&before, at(when));
    assert_eq!((bench.state(when), bench.kept().suspended), ("suspended", before.suspended));
    let mut bench = Bench::new(settings());
    let before = bench.kept();
    bench.gate.suspend(at(1));
    bench.gate.undo(&before, at(1));
    assert_eq!((bench.state(1), bench.decide(1)), ("closed", Decision::Go));
}

#[test]
fn an_endpoint_that_was_changed_is_probed_at_once() {
    let (mut bench, when) = suspended();
    bench.gate.let_probe(at(when + 1));
    assert_eq!((bench.decide(when + 1), bench.state(when + 1)), (Decision::Probe, "suspended"));
    assert!(bench.send(when + 1, (200, 0, 1)).resumed);
}

#[test]
fn a_send_by_hand_that_arrives_resumes_it() {
    let (mut bench, when) = suspended();
    let resumed = bench.gate.succeed_by_hand(at(when - 1), at(when + 2));
    assert!(!resumed.resumed, "it was begun before");
    let resumed = bench.gate.succeed_by_hand(at(when + 1), at(when + 2));
    assert_eq!((resumed.resumed, resumed.change), (true, Some(Change::Closed)));
    assert_eq!(bench.decide(when + 2), Decision::Go);
}

#[test]
fn tm_01_a_clock_set_back_does_not_lengthen_the_wait() {
    let (bench, when) = suspended();
    let back = when - 21 * MINUTE;
    assert_eq!(bench.decide(back), Decision::Probe);
}
