//! RE, RP, EX, FD, LB, FJ, DJ, PF, and the traps of its policies.

use super::super::*;
use crate::chance::Seeded;
use crate::classify::{Method, Outcome};
use crate::clock::Timestamp;
use crate::retry::{Next, RetryPredicate, RetrySession, StopReason};
use crate::retry_after::parse;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const POST: Call = Call::new(Method::Post);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn outcome(answer: Answer) -> Outcome<'static> {
    let class = HttpAdapterClassify.classify(&POST, answer, RetryAfter::Absent);
    Outcome::new(POST, answer, class)
}

fn status(status: u16) -> Outcome<'static> {
    outcome(Answer::Status(status))
}

fn session(builder: RetryBuilder) -> RetrySession {
    builder.seed(1).build().unwrap().session(NOW)
}

fn fail(session: &mut RetrySession, outcome: &Outcome<'_>) -> Next<StopReason> {
    session.failed(outcome, NOW, &mut Seeded::new(5))
}

/// The waits of an operation that always fails, and why it ended.
fn waits(builder: RetryBuilder) -> (Vec<Duration>, StopReason) {
    let (mut session, mut waits) = (session(builder), Vec::new());
    loop {
        match fail(&mut session, &status(503)) {
            Next::Again { delay, .. } => waits.push(delay),
            Next::Stop(stop) => return (waits, stop),
        }
    }
}

/// Many draws of one formula after `n` failed tries.
fn draws(formula: Formula, n: u32) -> Vec<Duration> {
    let chance = &mut Seeded::new(u64::from(n));
    (0..2_000).map(|_| formula.backoff(n, chance)).collect()
}

#[test]
fn re_1_to_4_t1_the_executor() {
    let mut fresh = session(fixed_delay(3, ms(1)));
    assert_eq!(fresh.succeeded(NOW).calls, 1, "RE1");
    assert!(matches!(fail(&mut fresh, &status(503)), Next::Again { .. }), "RE2");
    assert_eq!(fresh.succeeded(NOW).calls, 2, "RE2");
    let mut refused = session(fixed_delay(3, ms(1)).retry_if(|_: &Outcome<'_>| false));
    let stop = fail(&mut refused, &status(503));
    assert_eq!((stop, refused.failures()), (Next::Stop(StopReason::NotRetryable), 1), "RE3");
    let (waits, stop) = waits(fixed_delay(3, ms(1)));
    assert_eq!((waits.len(), stop), (2, StopReason::CallsExhausted), "RE4, T1: 3 calls, 2 waits");
}

struct Only418;

impl RetryPredicate for Only418 {
    fn should_retry(&self, outcome: &Outcome<'_>) -> bool {
        outcome.status_is(418)
    }
}

#[test]
fn rp_1_to_11_what_is_worth_a_retry() {
    let next = |builder: RetryBuilder, outcome: &Outcome<'_>| {
        matches!(fail(&mut session(builder), outcome), Next::Again { .. })
    };
    let policy = || fixed_delay(3, ms(1));
    assert!(next(policy(), &status(429)), "RP1");
    assert!(!next(policy(), &status(404)), "RP2");
    assert!(!next(policy(), &outcome(Answer::Failed(ErrorKind::Other))), "RP3, RP4, RP8");
    assert!(next(policy().retry_if(|_: &Outcome<'_>| true), &status(404)), "RP5");
    let error = std::io::Error::other("this one");
    let seen = |outcome: &Outcome<'_>| {
        outcome.error_as::<std::io::Error>().is_some_and(|seen| seen.to_string() == "this one")
    };
    assert!(next(policy().retry_if(seen), &status(404).with_error(&error)), "RP6, RP11");
    assert!(!next(policy().retry_if(|_: &Outcome<'_>| false), &status(429)), "RP7");
    assert!(next(policy().retry_if(Only418).max_calls(9), &status(418)), "RP9, RP10");
}

#[test]
fn retryable_by_status_and_error() {
    let retryable = |answer| outcome(answer).is_retryable();
    for code in [429, 502, 503, 504] {
        assert!(retryable(Answer::Status(code)), "{code}");
    }
    for code in [400, 401, 403, 404, 405, 408, 409, 422, 423, 425, 500, 501] {
        assert!(!retryable(Answer::Status(code)), "{code}");
    }
    for kind in [ErrorKind::Timeout, ErrorKind::ConnectionReset, ErrorKind::ConnectionRefused] {
        assert!(retryable(Answer::Failed(kind)), "{kind}");
    }
    for kind in [ErrorKind::Dns, ErrorKind::HostUnreachable, ErrorKind::Other] {
        assert!(!retryable(Answer::Failed(kind)), "{kind}");
    }
}

#[test]
fn ex_1_to_5() {
    for (n, low) in [(1, 200), (2, 400), (3, 800)] {
        let draws = draws(Formula::Exponential, n);
        assert!(draws.iter().all(|wait| (ms(low)..ms(low + 50)).contains(wait)), "EX{n}");
        assert!(draws.iter().max() > Some(&ms(low + 45)), "the jitter is used");
    }
    assert_eq!(waits(exponential(ATTEMPTS)).0.len(), 2, "EX4");
    assert_eq!(waits(exponential(5)).0.len(), 4, "EX5");
}

#[test]
fn fd_1_to_4() {
    assert_eq!(waits(fixed_delay(4, ms(2_000))).0, [ms(2_000); 3], "FD1");
    assert_eq!(waits(fixed_delay(ATTEMPTS, FIXED_DELAY)).0, [ms(1_000); 2], "FD2, FD3");
    assert_eq!(waits(fixed_delay(7, ms(5))).0.len(), 6, "FD4");
}

#[test]
fn lb_1_to_4() {
    assert_eq!(waits(linear_backoff(4, LINEAR_STEP)).0, [500, 1_000, 1_500].map(ms), "LB1, LB2");
    assert_eq!(waits(linear_backoff(ATTEMPTS, LINEAR_STEP)).0.len(), 2, "LB3");
    assert_eq!(waits(linear_backoff(6, ms(10))).0.len(), 5, "LB4");
}

#[test]
fn fj_1_to_5() {
    for n in 1..=3 {
        let top = JITTER_BASE * 2_u32.pow(n);
        let draws = draws(Formula::FullJitter { base: JITTER_BASE }, n);
        assert!(draws.iter().all(|wait| *wait < top), "FJ1, FJ2 at {n}");
        assert!(draws.iter().max() > Some(&(top / 20 * 19)), "it is filled to the top");
        assert!(draws.iter().min() < Some(&(top / 20)), "and from zero");
    }
    assert_eq!(waits(full_jitter(ATTEMPTS, JITTER_BASE)).0.len(), 2, "FJ3");
    assert_eq!(waits(full_jitter(5, JITTER_BASE)).0.len(), 4, "FJ4");
    let ten = &draws(Formula::FullJitter { base: JITTER_BASE }, 1)[..10];
    assert!(ten.iter().any(|wait| *wait != ten[0]), "FJ5");
}

#[test]
fn dj_1_to_6_t4() {
    let formula = |max| Formula::Decorrelated { base: JITTER_BASE, max };
    for n in 1..=10 {
        let draws = draws(formula(ms(500)), n);
        assert!(draws.iter().all(|wait| (JITTER_BASE..ms(500)).contains(wait)), "DJ1, DJ2 at {n}");
    }
    for (n, mean) in [(1, 200), (2, 500), (3, 1_400), (4, 4_100), (5, 12_200)] {
        let sum: Duration = draws(formula(DECORRELATED_MAX), n).iter().sum();
        let got = sum / 2_000;
        assert!((ms(mean) * 95 / 100..ms(mean) * 105 / 100).contains(&got), "DJ3 at {n}: {got:?}");
    }
    let default = || decorrelated_jitter(ATTEMPTS, JITTER_BASE, DECORRELATED_MAX);
    assert_eq!(waits(default()).0.len(), 2, "DJ4");
    assert_eq!(waits(default().max_calls(5)).0.len(), 4, "DJ5");
    let some = draws(formula(DECORRELATED_MAX), 1);
    assert!(some.iter().any(|wait| *wait != some[0]), "DJ6");
}

#[test]
fn pf_1_to_10_every_factory_builds_with_defaults_and_without() {
    let all = [
        exponential(ATTEMPTS),
        exponential(7),
        fixed_delay(ATTEMPTS, FIXED_DELAY),
        fixed_delay(7, ms(1)),
        linear_backoff(ATTEMPTS, LINEAR_STEP),
        linear_backoff(7, ms(1)),
        full_jitter(ATTEMPTS, JITTER_BASE),
        full_jitter(7, ms(1)),
        decorrelated_jitter(ATTEMPTS, JITTER_BASE, DECORRELATED_MAX),
        decorrelated_jitter(7, ms(1), ms(2)),
    ];
    assert!(all.into_iter().all(|builder| builder.build().is_ok()));
}

#[test]
fn t2_a_huge_wait_stays_huge() {
    let of = |n| Formula::Exponential.backoff(n, &mut Seeded::new(1));
    let waits = [25, 30, 31, 32, 63, 64, 1_024, u32::MAX].map(of);
    assert!(waits.is_sorted(), "{waits:?}");
    assert!(waits[0] >= ms(3_355_443_200));
    let linear = Formula::Linear { step: Duration::MAX };
    assert_eq!(linear.backoff(u32::MAX, &mut Seeded::new(1)), Duration::MAX);
}

#[test]
fn t3_ours_spreads_in_proportion() {
    let backoff = crate::Backoff::FullJitter { base: ms(100), cap: ms(30_000) };
    let of = |seed| backoff.delay(5, Duration::ZERO, &mut Seeded::new(seed));
    let draws: Vec<_> = (0..500).map(of).collect();
    let spread = *draws.iter().max().unwrap() - *draws.iter().min().unwrap();
    assert!(spread > ms(3_000), "at 3200 ms theirs spreads over 50 ms, ours over {spread:?}");
}

#[test]
fn t4_ours_is_the_stateful_one() {
    let backoff = crate::Backoff::DecorrelatedJitter { base: ms(100), cap: ms(30_000) };
    for (retry, mean) in [(0, 200), (1, 350), (2, 575), (3, 912), (4, 1_418)] {
        let got = backoff.mean(retry);
        assert!((ms(mean) * 95 / 100..ms(mean) * 105 / 100).contains(&got), "{retry}: {got:?}");
    }
}

#[test]
fn t5_a_base_above_the_maximum_does_not_exceed_it() {
    let formula = Formula::Decorrelated { base: ms(900), max: ms(500) };
    assert!(draws(formula, 3).iter().all(|wait| *wait <= ms(500)));
}

#[test]
fn t8_what_is_no_number_of_seconds_is_no_wait() {
    for value in ["1.5", "10abc", "-5", "2026-12-01T00:00:00Z"] {
        assert_eq!(parse([value.as_bytes()], NOW), RetryAfter::Unusable, "{value}");
    }
}
