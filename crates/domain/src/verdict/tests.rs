//! Tests of the decision. Never: a clock or chance that cannot be repeated.

use bytes::Bytes;
use proptest::prelude::*;
use resilience::{RetryAfter, RetryAfterMode, Seeded};

use super::*;
use crate::attempt::{Answer, Failure, FailureKind, Outcome};
use crate::classify::classify;
use crate::ids::{EndpointKey, MessageKey};
use crate::policy::{RetryOn, RetrySettings, Strategy as Growth};

const BEGUN: Timestamp = Timestamp::from_secs(1_800_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn attempt(outcome: Outcome) -> Attempt {
    Attempt {
        number: 1,
        started_at: BEGUN,
        took: Duration::ZERO,
        trigger: Trigger::Scheduled,
        outcome,
        resent: false,
    }
}

fn answered(status: u16, retry_after: RetryAfter) -> Attempt {
    let body = Bytes::new();
    attempt(Outcome::Answered(Answer {
        status,
        retry_after,
        body,
        cut: None,
        redirect_origin: None,
    }))
}

fn failed(kind: FailureKind) -> Attempt {
    attempt(Outcome::Failed(Failure { kind, text: String::new() }))
}

fn pending(budget_used: u32) -> Pending {
    Pending {
        endpoint: EndpointKey(1),
        due_at: BEGUN,
        message: MessageKey(1),
        age_from: BEGUN,
        sends: budget_used,
        budget_used,
        last_delay: Duration::ZERO,
        trigger: Trigger::Scheduled,
    }
}

fn judged(attempt: &Attempt, pending: &Pending, settings: &RetrySettings) -> Verdict {
    let class = classify(attempt, &settings.retry_on);
    let policy = settings.policy();
    let case = Case { attempt, class, policy: &policy, pending, now: BEGUN };
    judge(&case, &mut Seeded::new(1))
}

#[test]
fn ra_09_the_hint_counts_on_retried_answers_only() {
    for status in [200, 202, 204, 301, 404, 408, 410, 425, 429, 500, 502, 503, 504] {
        let attempt = answered(status, RetryAfter::Wait(MINUTE));
        let verdict = judged(&attempt, &pending(0), &RetrySettings::default());
        match status {
            200 | 202 | 204 => assert_eq!(verdict, Verdict::Delivered, "{status}"),
            301 | 404 => assert_eq!(verdict, Verdict::Dead(DeadReason::Rejected), "{status}"),
            410 => assert_eq!(verdict, Verdict::Dead(DeadReason::Gone), "{status}"),
            _ => {
                let Verdict::Retry { due_at, delay, term, budget_used } = verdict else {
                    panic!("{status}: {verdict:?}");
                };
                assert_eq!((term, budget_used), (Term::RetryAfter, 1), "{status}");
                assert!((MINUTE..=MINUTE * 2).contains(&delay), "{status}: {delay:?}");
                assert_eq!(due_at, BEGUN.plus(delay), "{status}");
            }
        }
    }
}

#[test]
fn ra_02_an_unusable_hint_leaves_the_backoff() {
    for hint in [RetryAfter::Absent, RetryAfter::Unusable] {
        let settings = RetrySettings { strategy: Growth::Fixed, ..RetrySettings::default() };
        let verdict = judged(&answered(503, hint), &pending(0), &settings);
        let delay = settings.base;
        let due_at = BEGUN.plus(delay);
        let term = Term::Backoff;
        assert_eq!(verdict, Verdict::Retry { due_at, delay, term, budget_used: 1 });
    }
}

#[test]
fn ra_05_a_huge_hint_ends_at_the_age_limit() {
    for seconds in [86_400, 31_536_000, 1 << 32, i64::MAX as u64, u64::MAX] {
        let hint = RetryAfter::Wait(Duration::from_secs(seconds));
        let settings = RetrySettings { age_max: MINUTE, ..RetrySettings::default() };
        let verdict = judged(&answered(503, hint), &pending(0), &settings);
        let (due_at, delay, term) = (BEGUN.plus(MINUTE), MINUTE, Term::AgeLimit);
        assert_eq!(verdict, Verdict::Retry { due_at, delay, term, budget_used: 1 }, "{seconds}");
    }
}

#[test]
fn every_send_counts_and_the_last_one_buries() {
    let settings = RetrySettings { attempts_max: 3, ..RetrySettings::default() };
    for (used, retried) in [(0, true), (1, true), (2, false), (u32::MAX, false)] {
        let verdict = judged(&failed(FailureKind::Timeout), &pending(used), &settings);
        assert_eq!(matches!(verdict, Verdict::Retry { .. }), retried, "{used}");
        assert_eq!(verdict == Verdict::Dead(DeadReason::Exhausted), !retried, "{used}");
    }
    // The budget restarts with a replay, the number of sends does not.
    let replayed = Pending { sends: 40, ..pending(0) };
    let verdict = judged(&failed(FailureKind::Reset), &replayed, &settings);
    assert!(matches!(verdict, Verdict::Retry { budget_used: 1, .. }));
}

#[test]
fn the_try_at_the_age_limit_is_the_last() {
    let settings = RetrySettings { age_max: MINUTE, ..RetrySettings::default() };
    let old = Pending { age_from: BEGUN.minus(MINUTE), ..pending(1) };
    let verdict = judged(&answered(500, RetryAfter::Absent), &old, &settings);
    assert_eq!(verdict, Verdict::Dead(DeadReason::Expired));
    let verdict = judged(&answered(200, RetryAfter::Absent), &old, &settings);
    assert_eq!(verdict, Verdict::Delivered);
}

#[test]
fn failures_follow_the_table() {
    for kind in FailureKind::ALL {
        let verdict = judged(&failed(kind), &pending(0), &RetrySettings::default());
        match kind {
            FailureKind::Forbidden => {
                assert_eq!(verdict, Verdict::Dead(DeadReason::ForbiddenTarget));
            }
            FailureKind::Internal => assert_eq!(verdict, Verdict::Stay),
            _ => assert!(matches!(verdict, Verdict::Retry { .. }), "{}", kind.name()),
        }
    }
}

#[test]
fn hr_08_all_retries_even_gone_and_moved() {
    let settings = RetrySettings { retry_on: RetryOn::All, ..RetrySettings::default() };
    for status in [301, 404, 410, 429, 500] {
        let verdict = judged(&answered(status, RetryAfter::Absent), &pending(0), &settings);
        assert!(matches!(verdict, Verdict::Retry { .. }), "{status}");
    }
}

#[test]
fn an_extra_send_succeeds_or_changes_nothing() {
    let by_hand = |mut attempt: Attempt| {
        attempt.trigger = Trigger::Manual;
        judged(&attempt, &pending(0), &RetrySettings::default())
    };
    assert_eq!(by_hand(answered(204, RetryAfter::Absent)), Verdict::Delivered);
    assert_eq!(by_hand(failed(FailureKind::Internal)), Verdict::Stay);
    for status in [301, 404, 410, 429, 500] {
        assert_eq!(by_hand(answered(status, RetryAfter::Wait(MINUTE))), Verdict::Unchanged);
    }
    assert_eq!(by_hand(failed(FailureKind::Forbidden)), Verdict::Unchanged);
    assert_eq!(by_hand(failed(FailureKind::Timeout)), Verdict::Unchanged);
}

#[test]
fn a_replay_is_judged_by_the_policy() {
    let mut attempt = answered(503, RetryAfter::Absent);
    attempt.trigger = Trigger::Replay;
    let verdict = judged(&attempt, &pending(0), &RetrySettings::default());
    assert!(matches!(verdict, Verdict::Retry { .. }), "{verdict:?}");
    attempt = answered(404, RetryAfter::Absent);
    attempt.trigger = Trigger::Replay;
    let verdict = judged(&attempt, &pending(0), &RetrySettings::default());
    assert_eq!(verdict, Verdict::Dead(DeadReason::Rejected));
}

#[test]
fn rows_past_their_age_are_closed_when_read() {
    let limit = BEGUN.plus(MINUTE);
    let tick = Duration::from_micros(1);
    let row = |due_at: Timestamp| Pending { due_at, ..pending(1) };
    let read = |due_at, now| expired(&row(due_at), MINUTE, now);
    assert!(!read(BEGUN, limit), "at the limit");
    assert!(read(BEGUN, limit.plus(tick)), "held beyond the limit");
    assert!(read(limit.minus(tick), limit.plus(tick)), "due just before it");
    assert!(!read(limit, limit.plus(AGE_GRACE)), "the last try, late");
    assert!(read(limit, limit.plus(AGE_GRACE).plus(tick)), "the last try, held for too long");
    assert!(!expired(&row(BEGUN), Duration::MAX, Timestamp::MAX), "no limit");
}

fn growth() -> impl Strategy<Value = Growth> {
    prop::sample::select(&Growth::ALL[..])
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0_u64..200_000).prop_map(Duration::from_secs),
        any::<u64>().prop_map(Duration::from_micros),
        Just(Duration::MAX),
    ]
}

prop_compose! {
    fn settings()(
        strategy in growth(), base in span(), cap in span(), attempts_max in 0_u32..30,
        age_max in span(), schedule in prop::collection::vec(span(), 0..4),
        mode in prop::sample::select(vec![
            RetryAfterMode::Exact, RetryAfterMode::AtLeast, RetryAfterMode::Ignore,
        ]),
    ) -> RetrySettings {
        let cap = cap.max(base);
        let rest = RetrySettings::default();
        RetrySettings {
            strategy, base, cap, attempts_max, age_max, schedule, retry_after: mode, ..rest
        }
    }
}

fn hint() -> impl Strategy<Value = RetryAfter> {
    prop_oneof![
        Just(RetryAfter::Absent),
        Just(RetryAfter::Unusable),
        span().prop_map(RetryAfter::Wait),
    ]
}

proptest! {
    #[test]
    fn no_retry_beyond_attempts_or_age(
        settings in settings(),
        hint in hint(),
        status in prop::sample::select(vec![408_u16, 425, 429, 500, 503, 599]),
        used in prop_oneof![0_u32..40, Just(u32::MAX)],
        (last_delay, age, seed) in (span(), span(), any::<u64>()),
    ) {
        let attempt = answered(status, hint);
        let class = classify(&attempt, &settings.retry_on);
        let (policy, now) = (settings.policy(), BEGUN.plus(age));
        let row = Pending { last_delay, ..pending(used) };
        let case = Case { attempt: &attempt, class, policy: &policy, pending: &row, now };
        let limit = BEGUN.plus(settings.age_max);
        match judge(&case, &mut Seeded::new(seed)) {
            Verdict::Retry { due_at, delay, term, budget_used } => {
                prop_assert_eq!(budget_used, used + 1);
                prop_assert!(budget_used < settings.sends_max());
                prop_assert!(due_at <= limit && now < limit);
                prop_assert_eq!(due_at, now.plus(delay));
                prop_assert!(term != Term::AgeLimit || due_at == limit);
                let next = Pending { due_at, ..row };
                prop_assert!(!expired(&next, settings.age_max, due_at), "it can be made");
            }
            Verdict::Dead(DeadReason::Exhausted) => {
                prop_assert!(used >= settings.sends_max().saturating_sub(1));
            }
            Verdict::Dead(DeadReason::Expired) => prop_assert!(now >= limit),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn a_life_ends_within_its_attempts(
        settings in settings(), hint in hint(), seed in any::<u64>(),
    ) {
        let attempt = answered(503, hint);
        let policy = settings.policy();
        let mut chance = Seeded::new(seed);
        let (mut row, mut now, mut sends) = (pending(0), BEGUN, 0);
        loop {
            sends += 1;
            let class = Class::Transient;
            let case = Case { attempt: &attempt, class, policy: &policy, pending: &row, now };
            let Verdict::Retry { due_at, delay, budget_used, .. } = judge(&case, &mut chance) else {
                break;
            };
            row = Pending { due_at, last_delay: delay, budget_used, ..row };
            now = due_at;
        }
        prop_assert!(sends <= settings.attempts_max.max(1));
        prop_assert!(now <= BEGUN.plus(settings.age_max));
    }
}
