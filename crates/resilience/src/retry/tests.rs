//! Limits, hints and the life of the default policy.

use proptest::prelude::*;

use super::*;
use crate::chance::Seeded;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn fixed(base: u64, mode: RetryAfterMode) -> RetryPolicy {
    let backoff = Backoff::Fixed { base: secs(base) };
    RetryPolicy { backoff, retry_after: mode, ..RetryPolicy::default() }
}

fn first() -> Tried {
    Tried { calls: 1, last_delay: Duration::ZERO, begun: NOW }
}

fn next(policy: &RetryPolicy, hint: RetryAfter) -> (Duration, Term) {
    match policy.next(first(), hint, NOW, &mut Seeded::new(1)) {
        Next::Again { at, delay, term } => {
            assert_eq!(at, NOW.plus(delay));
            (delay, term)
        }
        Next::Stop(stop) => panic!("stopped: {stop:?}"),
    }
}

/// How many calls an always failing receiver sees.
fn calls(policy: &RetryPolicy) -> u32 {
    let (mut now, mut tried) = (NOW, first());
    let chance = &mut Seeded::new(2);
    while let Next::Again { at, delay, .. } = policy.next(tried, RetryAfter::Absent, now, chance) {
        now = at;
        tried = Tried { calls: tried.calls + 1, last_delay: delay, ..tried };
    }
    tried.calls
}

#[test]
fn the_life_of_the_default_policy() {
    let policy = RetryPolicy::default();
    let (mean, longest) = (policy.mean_life(), policy.longest_life());
    let hours = |life: Duration| life.as_secs_f64() / 3_600.0;
    println!("default policy: mean life {:.2} h, at most {:.2} h", hours(mean), hours(longest));
    assert_eq!(longest, secs(32_894), "2 + 4 + … + 2048 s, then eight times 1 h: 9.14 h");
    assert_eq!(mean, longest / 2);
    assert!(longest < policy.age_max);
}

#[test]
fn bo_05_the_receiver_sees_exactly_calls_max() {
    for calls_max in [1, 2, 3, 20] {
        let policy = RetryPolicy { calls_max, ..RetryPolicy::default() };
        assert_eq!(calls(&policy), calls_max);
        assert_eq!(policy.validate(), Ok(()));
    }
    let none = RetryPolicy { calls_max: 0, ..RetryPolicy::default() };
    assert_eq!(none.validate().unwrap_err().option, "calls_max");
    assert_eq!(calls(&none), 1, "never unlimited, even when not validated");
}

#[test]
fn ra_01_a_hint_replaces_the_delay_in_both_directions() {
    for (own, hint) in [(2, 120), (600, 120)] {
        let policy = fixed(own, RetryAfterMode::Exact);
        let (delay, term) = next(&policy, RetryAfter::Wait(secs(hint)));
        assert_eq!(term, Term::RetryAfter);
        assert!((secs(hint)..=secs(hint + 1)).contains(&delay), "{delay:?}");
    }
}

#[test]
fn ra_02_ra_03_an_unusable_hint_leaves_the_own_delay() {
    for mode in [RetryAfterMode::Exact, RetryAfterMode::AtLeast, RetryAfterMode::Ignore] {
        for hint in [RetryAfter::Absent, RetryAfter::Unusable] {
            assert_eq!(next(&fixed(30, mode), hint), (secs(30), Term::Backoff));
        }
    }
}

#[test]
fn ra_05_a_huge_hint_is_capped_and_ends_at_the_age_limit() {
    let huge = RetryAfter::Wait(Duration::MAX);
    let mut policy = fixed(2, RetryAfterMode::Exact);
    assert_eq!(next(&policy, huge).1, Term::AgeLimit);
    policy.age_max = HOUR * 100;
    let (delay, term) = next(&policy, huge);
    assert_eq!(term, Term::RetryAfter);
    assert!((HOUR * 24..=HOUR * 24 + secs(1)).contains(&delay));
    policy.retry_after_max = Duration::MAX;
    policy.age_max = Duration::MAX;
    let Next::Again { at, .. } = policy.next(first(), huge, NOW, &mut Seeded::new(1)) else {
        panic!("stopped")
    };
    assert_eq!(at, Timestamp::MAX);
}

#[test]
fn a_tiny_hint_still_waits_a_second() {
    let hint = RetryAfter::Wait(Duration::from_micros(1));
    let (delay, term) = next(&fixed(30, RetryAfterMode::Exact), hint);
    assert_eq!(term, Term::RetryAfter);
    assert!((secs(1)..=Duration::from_millis(1_100)).contains(&delay));
}

#[test]
fn the_other_modes() {
    let hint = RetryAfter::Wait(secs(120));
    assert_eq!(next(&fixed(600, RetryAfterMode::AtLeast), hint), (secs(600), Term::Backoff));
    let (delay, term) = next(&fixed(2, RetryAfterMode::AtLeast), hint);
    assert!(delay >= secs(120) && term == Term::RetryAfter);
    assert_eq!(next(&fixed(2, RetryAfterMode::Ignore), hint), (secs(2), Term::Backoff));
}

#[test]
fn those_told_the_same_come_back_apart() {
    let policy = fixed(2, RetryAfterMode::Exact);
    let chance = &mut Seeded::new(3);
    let mut ats: Vec<_> = (0..100)
        .filter_map(|_| match policy.next(first(), RetryAfter::Wait(secs(60)), NOW, chance) {
            Next::Again { at, .. } => Some(at),
            Next::Stop(_) => None,
        })
        .collect();
    ats.sort_unstable();
    ats.dedup();
    assert!(ats.len() > 95, "{} different times of 100", ats.len());
}

#[test]
fn tm_03_age_is_wall_time_and_the_last_call_is_made_at_the_limit() {
    let policy = RetryPolicy { age_max: secs(60), ..fixed(30, RetryAfterMode::Exact) };
    let chance = &mut Seeded::new(4);
    let mut ask = |now| policy.next(first(), RetryAfter::Absent, now, chance);
    let at = NOW.plus(secs(30));
    let exactly = Next::Again { at: NOW.plus(secs(60)), delay: secs(30), term: Term::Backoff };
    assert_eq!(ask(at), exactly);
    let late = NOW.plus(secs(45));
    let last = Next::Again { at: NOW.plus(secs(60)), delay: secs(15), term: Term::AgeLimit };
    assert_eq!(ask(late), last);
    assert_eq!(ask(NOW.plus(secs(60))), Next::Stop(Stop::Age));
    assert_eq!(ask(NOW.plus(HOUR)), Next::Stop(Stop::Age), "also after one long first call");
}

#[test]
fn used_up_calls_are_named_before_a_passed_age() {
    let policy = RetryPolicy { calls_max: 1, ..RetryPolicy::default() };
    let stop = policy.next(first(), RetryAfter::Absent, NOW.plus(HOUR * 30), &mut Seeded::new(1));
    assert_eq!(stop, Next::Stop(Stop::Calls));
}

#[test]
fn the_broken_field_is_named() {
    type Spoil = fn(&mut RetryPolicy);
    let broken: [(Spoil, &str); 4] = [
        (|p| p.backoff = Backoff::Fixed { base: Duration::ZERO }, "backoff.base"),
        (|p| p.calls_max = 0, "calls_max"),
        (|p| p.age_max = Duration::ZERO, "age_max"),
        (|p| p.retry_after_max = Duration::from_millis(999), "retry_after_max"),
    ];
    for (spoil, field) in broken {
        let mut policy = RetryPolicy::default();
        spoil(&mut policy);
        assert_eq!(policy.validate().unwrap_err().option, field);
    }
    assert_eq!(RetryPolicy::default().validate(), Ok(()));
}

fn any_span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0_u64..200_000_000_000).prop_map(Duration::from_micros),
        Just(Duration::MAX),
        Just(Duration::from_nanos(1)),
    ]
}

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    let mode = prop_oneof![
        Just(RetryAfterMode::Exact),
        Just(RetryAfterMode::AtLeast),
        Just(RetryAfterMode::Ignore),
    ];
    let parts = (any_span(), any_span(), 0_u32..50, any_span(), mode, any_span(), any::<bool>());
    parts.prop_map(|(base, cap, calls_max, age_max, retry_after, retry_after_max, full)| {
        let backoff = if full {
            Backoff::FullJitter { base, cap }
        } else {
            Backoff::DecorrelatedJitter { base, cap }
        };
        RetryPolicy { backoff, calls_max, age_max, retry_after, retry_after_max }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn never_past_the_age_limit_nor_after_the_last_call(
        policy in any_policy(),
        calls in 0_u32..60,
        hint in prop::option::of(any_span()),
        passed in -1_000_000_i64..200_000_000_000,
        seed in any::<u64>(),
    ) {
        let tried = Tried { calls, last_delay: HOUR, begun: NOW };
        let now = Timestamp::from_micros(NOW.as_micros() + passed);
        let hint = hint.map_or(RetryAfter::Absent, RetryAfter::Wait);
        let limit = NOW.plus(policy.age_max);
        match policy.next(tried, hint, now, &mut Seeded::new(seed)) {
            Next::Again { at, delay, .. } => {
                prop_assert!(calls < policy.calls_max);
                prop_assert!(now < limit && at >= now && at <= limit);
                prop_assert_eq!(now.plus(delay), at);
            }
            Next::Stop(Stop::Calls) => prop_assert!(calls >= policy.calls_max),
            Next::Stop(Stop::Age) => prop_assert!(now >= limit),
        }
    }
}
