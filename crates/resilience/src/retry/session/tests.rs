//! Each reason to stop, the order of the checks, the budget, and what sessions do not share.

use std::time::Duration;

use super::*;
use crate::backoff::Jitter;
use crate::budget::RetryBudget;
use crate::classify::{Answer, Call, Class, Classify, DefaultClassify, ErrorKind, Method};
use crate::retry::{Replay, RetryAfterRule, RetryBuilder, RetryPolicy, Term, TooLong, Waits};
use crate::retry_after::RetryAfter;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const GET: Call = Call::new(Method::Get);
const POST: Call = Call::new(Method::Post);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn fixed() -> RetryBuilder {
    RetryPolicy::fixed(secs(1)).max_calls(10).seed(1)
}

fn status(call: Call, status: u16) -> Outcome<'static> {
    let answer = Answer::Status(status);
    Outcome::new(call, answer, DefaultClassify.classify(&call, answer, RetryAfter::Absent))
}

fn error(call: Call, kind: ErrorKind) -> Outcome<'static> {
    let answer = Answer::Failed(kind);
    Outcome::new(call, answer, DefaultClassify.classify(&call, answer, RetryAfter::Absent))
}

/// What follows the first failure.
fn first(builder: RetryBuilder, outcome: &Outcome<'_>) -> Next<StopReason> {
    let retry = builder.build().unwrap();
    retry.session(NOW).failed(outcome, NOW, &mut retry.chance())
}

fn again(next: Next<StopReason>) -> Duration {
    match next {
        Next::Again { at, delay, .. } => {
            assert_eq!(at, NOW.plus(delay));
            delay
        }
        Next::Stop(stop) => panic!("stopped: {stop}"),
    }
}

#[test]
fn t6_a_call_that_may_have_been_acted_on_is_not_repeated_blindly() {
    let unsafe_method = Next::Stop(StopReason::UnsafeMethod);
    for code in [408, 500, 502, 503, 504] {
        assert_eq!(first(fixed(), &status(POST, code)), unsafe_method, "{code}");
        again(first(fixed(), &status(GET, code)));
        again(first(fixed(), &status(POST.keyed(true), code)));
        again(first(fixed().replay(Replay::Always), &status(POST, code)));
    }
    assert_eq!(first(fixed(), &error(POST, ErrorKind::Timeout)), unsafe_method);
    for kind in [ErrorKind::ConnectionRefused, ErrorKind::Dns, ErrorKind::StreamRefused] {
        again(first(fixed(), &error(POST, kind)));
    }
    again(first(fixed(), &status(POST, 429)));
}

#[test]
fn what_was_not_sent_may_be_repeated_where_a_predicate_wants_it() {
    let wanted = || fixed().retry_if(|_: &Outcome<'_>| true);
    for kind in [ErrorKind::Overloaded, ErrorKind::CircuitOpen, ErrorKind::Tls] {
        assert!(matches!(first(fixed(), &error(POST, kind)), Next::Stop(_)), "{kind}");
        again(first(wanted(), &error(POST, kind)));
    }
    let sent = first(wanted(), &error(POST, ErrorKind::Protocol));
    assert_eq!(sent, Next::Stop(StopReason::UnsafeMethod));
}

#[test]
fn each_reason_to_stop() {
    let of = |outcome: &Outcome<'_>| first(fixed(), outcome);
    assert_eq!(of(&status(GET, 404)), Next::Stop(StopReason::NotRetryable));
    assert_eq!(of(&error(GET, ErrorKind::CircuitOpen)), Next::Stop(StopReason::CircuitOpen));
    assert_eq!(of(&error(GET, ErrorKind::Cancelled)), Next::Stop(StopReason::Cancelled));
    let once = status(GET.replayable(false), 503);
    assert_eq!(of(&once), Next::Stop(StopReason::BodyNotReplayable));
    let spent = first(fixed().max_calls(1), &status(GET, 503));
    assert_eq!(spent, Next::Stop(StopReason::CallsExhausted));
    let late = first(fixed().max_elapsed(Duration::from_millis(999)), &status(GET, 503));
    assert_eq!(late, Next::Stop(StopReason::Elapsed));
    let poor = RetryBudget::ratio(0.5);
    let poor = first(fixed().budget(poor), &status(GET, 503));
    assert_eq!(poor, Next::Stop(StopReason::BudgetEmpty));
}

#[test]
fn tm_03_elapsed_is_wall_time_and_a_wait_that_does_not_fit_is_not_begun() {
    let retry = fixed().max_elapsed(secs(10)).build().unwrap();
    let at = |passed| {
        let mut session = retry.session(NOW);
        session.failed(&Outcome::transient(), NOW.plus(secs(passed)), &mut retry.chance())
    };
    assert!(matches!(at(8), Next::Again { .. }));
    assert_eq!(at(9), Next::Stop(StopReason::Elapsed), "it would end just at the limit");
    assert_eq!(at(100), Next::Stop(StopReason::Elapsed), "also after one long first call");
}

#[test]
fn bo_05_calls_and_retries_are_two_names_of_one_count() {
    for (builder, calls) in [
        (fixed().max_calls(1), 1),
        (fixed().max_calls(3), 3),
        (fixed().max_retries(0), 1),
        (fixed().max_retries(3), 4),
        (RetryPolicy::schedule([secs(1), secs(2)]).seed(1), 3),
    ] {
        let retry = builder.build().unwrap();
        let (mut session, mut chance) = (retry.session(NOW), retry.chance());
        let mut made = 1;
        while let Next::Again { .. } = session.failed(&Outcome::transient(), NOW, &mut chance) {
            made += 1;
        }
        assert_eq!((made, session.failures(), retry.max_calls()), (calls, calls, calls));
    }
    assert_eq!(fixed().max_calls(0).build().unwrap_err().option, "max_calls");
}

#[test]
fn t7_ra_01_the_receivers_wish_is_followed_by_rule() {
    let asked = |secs| Outcome::transient().with_hint(RetryAfter::Wait(Duration::from_secs(secs)));
    let with = |rule| fixed().retry_after(rule);
    let about = |next, wished: u64| {
        let delay = again(next);
        assert!((secs(wished)..=secs(wished + 1)).contains(&delay), "{delay:?}");
    };
    about(first(with(RetryAfterRule::exact()), &asked(20)), 20);
    about(first(with(RetryAfterRule::exact()), &asked(9_999)), 60);
    about(first(with(RetryAfterRule::exact().cap(secs(5))), &asked(20)), 5);
    about(first(with(RetryAfterRule::at_least()), &asked(20)), 20);
    assert_eq!(again(first(with(RetryAfterRule::ignore()), &asked(20))), secs(1));
    let strict = RetryAfterRule::exact().when_longer(TooLong::GiveUp);
    about(first(with(strict), &asked(60)), 60);
    let too_long = Next::Stop(StopReason::RetryAfterTooLong);
    assert_eq!(first(with(strict), &asked(61)), too_long);
    let ignored = RetryAfterRule::ignore().when_longer(TooLong::GiveUp);
    assert_eq!(again(first(with(ignored), &asked(61))), secs(1));
    let long_own = RetryPolicy::fixed(secs(40)).seed(1);
    about(first(long_own.retry_after(RetryAfterRule::exact()), &asked(20)), 20);
    let long_own = RetryPolicy::fixed(secs(40)).seed(1);
    let own = first(long_own.retry_after(RetryAfterRule::at_least()), &asked(20));
    assert!(matches!(own, Next::Again { term: Term::Backoff, .. }));
}

#[test]
fn a_retry_that_is_paid_for_and_not_made_costs_nothing() {
    let budget = RetryBudget::ratio(1.0);
    let retry = fixed().budget(budget.clone()).build().unwrap();
    let mut session = retry.session(NOW);
    again(session.failed(&Outcome::transient(), NOW, &mut retry.chance()));
    assert_eq!(budget.left(NOW), 0);
    drop(session);
    assert_eq!(budget.left(NOW), 1, "given up during the wait");
    let mut session = retry.session(NOW);
    again(session.failed(&Outcome::transient(), NOW, &mut retry.chance()));
    session.calling();
    drop(session);
    assert_eq!(budget.left(NOW), 1, "two earned, one spent");
}

#[test]
fn refused_failures_and_open_circuits_cost_no_budget() {
    let budget = RetryBudget::ratio(1.0);
    let builder = fixed().budget(budget.clone());
    first(builder, &error(GET, ErrorKind::CircuitOpen));
    assert_eq!(budget.left(NOW), 1);
}

#[test]
fn two_sessions_never_share_jitter() {
    let retry = RetryPolicy::full_jitter(secs(10)).max_calls(9).seed(7).build().unwrap();
    let twin = retry.clone();
    let waits = |retry: &Retry| -> Vec<Duration> {
        let (mut session, mut chance) = (retry.session(NOW), retry.chance());
        (0..4).map(|_| again(session.failed(&Outcome::transient(), NOW, &mut chance))).collect()
    };
    let mut all: Vec<_> = (0..50).flat_map(|_| [waits(&retry), waits(&twin)]).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 100);
}

#[test]
fn bo_04_decorrelated_state_is_the_sessions_own() {
    let retry = RetryPolicy::decorrelated_jitter(secs(1)).max_calls(99).seed(3).build().unwrap();
    for _ in 0..100 {
        let (mut session, mut chance) = (retry.session(NOW), retry.chance());
        let next = again(session.failed(&Outcome::transient(), NOW, &mut chance));
        assert!(next <= secs(3), "the first wait of a session knows no other: {next:?}");
        for _ in 0..20 {
            again(session.failed(&Outcome::transient(), NOW, &mut chance));
        }
    }
}

#[test]
fn a_predicate_replaces_the_class_and_sees_the_outcome() {
    let io = std::io::Error::other("x");
    let by_error = fixed().retry_if(|outcome: &Outcome<'_>| {
        outcome.error_as::<std::io::Error>().is_some() && !outcome.status_is(501)
    });
    again(first(by_error, &Outcome::refused().with_error(&io)));
    let never = fixed().retry_if(|_: &Outcome<'_>| false);
    assert_eq!(first(never, &status(GET, 503)), Next::Stop(StopReason::NotRetryable));
}

#[test]
fn the_broken_option_is_named() {
    struct Zero;
    impl Waits for Zero {
        fn wait(&self, _: u32, _: Duration, _: &mut dyn Chance) -> Duration {
            Duration::ZERO
        }
    }
    let exponential = || RetryPolicy::exponential(secs(1));
    let broken: [(RetryBuilder, &str); 24] = [
        (RetryPolicy::fixed(Duration::ZERO), "fixed"),
        (RetryPolicy::linear(Duration::ZERO), "linear"),
        (RetryPolicy::schedule([]), "schedule"),
        (RetryPolicy::schedule([Duration::ZERO]).max_calls(3), "schedule"),
        (RetryPolicy::schedule([Duration::ZERO]).jitter(Jitter::Full).max_calls(3), "schedule"),
        (exponential().cap(Duration::from_millis(1)), "cap"),
        (RetryPolicy::full_jitter(secs(31)), "full_jitter"),
        (exponential().factor(0.9), "factor"),
        (exponential().factor(f64::NAN), "factor"),
        (exponential().factor(101.0), "factor"),
        (RetryPolicy::linear(secs(1)).factor(2.0), "factor"),
        (RetryPolicy::fixed(secs(1)).cap(secs(2)), "cap"),
        (exponential().jitter(Jitter::proportional(0.0)), "jitter"),
        (exponential().jitter(Jitter::proportional(1.5)), "jitter"),
        (RetryPolicy::full_jitter(secs(1)).jitter(Jitter::Equal), "jitter"),
        (exponential().max_elapsed(Duration::ZERO), "max_elapsed"),
        (exponential().retry_after(RetryAfterRule::exact().cap(Duration::ZERO)), "retry_after.cap"),
        (exponential().retry_after(RetryAfterRule::exact().only(&[])), "retry_after.only"),
        (exponential().retry_after(RetryAfterRule::exact().only(&[0, 429])), "retry_after.only"),
        (exponential().retry_after(RetryAfterRule::exact().only(&[1_000])), "retry_after.only"),
        (exponential().budget(RetryBudget::ratio(-1.0)), "budget.ratio"),
        (RetryPolicy::custom(Zero).cap(secs(1)), "cap"),
        (RetryPolicy::custom(Zero).jitter(Jitter::Full), "jitter"),
        (exponential().max_calls(0), "max_calls"),
    ];
    for (builder, option) in broken {
        assert_eq!(builder.seed(1).build().unwrap_err().option, option);
    }
    assert!(RetryPolicy::custom(Zero).build().is_ok());
    let at_once = [secs(1), Duration::ZERO];
    assert!(RetryPolicy::schedule(at_once).build().is_ok(), "once, before the last call");
}

#[test]
fn t7_hints_of_other_statuses_than_those_named_are_left_alone() {
    let rule = RetryAfterRule::exact().only(&[429, 503]);
    let hinted = |status| {
        let answer = Answer::Status(status);
        let class = Class::TRANSIENT.hinted(RetryAfter::Wait(secs(20)));
        again(first(fixed().retry_after(rule), &Outcome::new(GET, answer, class)))
    };
    assert_eq!(hinted(502), secs(1));
    assert!(hinted(503) >= secs(20));
}

#[test]
fn an_outcome_without_class_is_judged_by_hand() {
    let judged = Outcome::new(GET, Answer::Status(503), Class::REFUSED);
    assert_eq!(first(fixed(), &judged), Next::Stop(StopReason::NotRetryable));
}

#[test]
fn a_session_goes_on_where_another_process_left_it() {
    let retry = RetryPolicy::linear(secs(1)).max_calls(3).max_elapsed(secs(60)).build().unwrap();
    let resumed = |calls, begun| {
        let tried = Tried { calls, last_delay: secs(1), begun };
        retry.resume(tried).failed(&Outcome::transient(), NOW, &mut retry.chance())
    };
    assert_eq!(again(resumed(1, NOW)), secs(2), "the second failure");
    assert_eq!(resumed(2, NOW), Next::Stop(StopReason::CallsExhausted));
    assert_eq!(resumed(0, NOW.minus(secs(60))), Next::Stop(StopReason::Elapsed));
}

/// Calls for each request where so many of 100 fail, as the receiver has to bear them.
fn load(retry: &Retry, failing: u64) -> f64 {
    const REQUESTS: u32 = 20_000;
    let dice = &mut Seeded::new(7);
    let (mut now, mut calls) = (NOW, 0_u32);
    for _ in 0..REQUESTS {
        now = now.plus(Duration::from_millis(1));
        let mut session = retry.session(now);
        calls += 1;
        while dice.below(100) < failing {
            match session.failed(&Outcome::transient(), now, dice) {
                Next::Again { .. } => session.calling(),
                Next::Stop(_) => break,
            }
            calls += 1;
        }
    }
    f64::from(calls) / f64::from(REQUESTS)
}

/// With N retries the load is `(1 − p^(N+1)) / (1 − p)`, up to N + 1 when all is lost; a budget
/// keeps it at what was asked for just then.
#[test]
fn what_retries_add_to_the_load_is_known_and_a_budget_bounds_it() {
    let three = || RetryPolicy::fixed(secs(1)).max_retries(3).seed(1);
    let (free, bound) = (three().build().unwrap(), three().budget(RetryBudget::ratio(0.1)));
    for (failing, known) in [(10, 1.111), (50, 1.875), (100, 4.0)] {
        let borne = load(&free, failing);
        assert!((borne - known).abs() < 0.02, "{failing}: {borne}");
    }
    let bound = bound.build().unwrap();
    for failing in [50, 100] {
        let borne = load(&bound, failing);
        assert!((borne - 1.1).abs() < 0.002, "{failing}: {borne}");
    }
}
