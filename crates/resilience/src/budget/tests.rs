//! The share of retries over long runs, the floor, expiry, refunds.

use proptest::prelude::*;

use super::*;

const START: Timestamp = Timestamp::from_secs(1_000_000);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Retries granted for `calls` calls, one every `every`, each asking for as many as it can get.
fn granted(budget: &RetryBudget, calls: u32, every: Duration) -> u32 {
    let (mut now, mut granted) = (START, 0);
    for _ in 0..calls {
        budget.deposit(now);
        while let Some(paid) = budget.withdraw(now) {
            paid.spend();
            granted += 1;
        }
        now = now.plus(every);
    }
    granted
}

#[test]
fn the_ratios_that_others_round_are_exact() {
    for (ratio, expected) in [(0.15, 15_000), (0.3, 30_000), (0.6, 60_000), (0.9, 90_000)] {
        let budget = RetryBudget::ratio(ratio);
        assert_eq!(granted(&budget, 100_000, Duration::ZERO), expected, "{ratio}");
    }
}

#[test]
fn the_floor_is_a_floor_per_second() {
    let budget = RetryBudget::ratio(0.0).floor_per_sec(2);
    assert_eq!(budget.validate(), Ok(()));
    let in_a_minute = granted(&budget, 600, ms(100));
    assert!((120..=140).contains(&in_a_minute), "two a second, ten seconds at once: {in_a_minute}");
}

#[test]
fn what_was_earned_is_lost_after_the_ttl() {
    let budget = RetryBudget::ratio(1.0).ttl(Duration::from_secs(10));
    budget.deposit(START);
    assert_eq!(budget.left(START.plus(Duration::from_secs(8))), 1);
    assert_eq!(budget.left(START.plus(Duration::from_secs(10))), 0);
}

#[test]
fn what_is_not_spent_comes_back_unless_it_has_expired() {
    let budget = RetryBudget::ratio(1.0).ttl(Duration::from_secs(10));
    budget.deposit(START);
    let paid = budget.withdraw(START).unwrap();
    assert!(budget.withdraw(START).is_none());
    drop(paid);
    let paid = budget.clone().withdraw(START).unwrap();
    assert_eq!(budget.left(START), 0, "clones share one account");
    let late = START.plus(Duration::from_secs(60));
    assert_eq!(budget.left(late), 0);
    drop(paid);
    assert_eq!(budget.left(late), 0, "it was no longer charged");
}

#[test]
fn tm_01_a_clock_that_steps_back_mints_nothing() {
    let budget = RetryBudget::ratio(1.0);
    budget.deposit(START);
    let back = START.minus(Duration::from_secs(7_200));
    assert_eq!(budget.left(back), 0, "a long step forgets");
    budget.deposit(back);
    assert_eq!(budget.left(back), 1);
    assert_eq!(budget.left(back.minus(ms(500))), 1, "a short one does not");
}

#[test]
fn the_broken_option_is_named() {
    let ratio = RetryBudget::ratio;
    let broken = [
        (ratio(-0.1), "budget.ratio"),
        (ratio(f64::NAN), "budget.ratio"),
        (ratio(101.0), "budget.ratio"),
        (ratio(0.0), "budget.ratio"),
        (ratio(0.1).floor_per_sec(1_000_001), "budget.floor_per_sec"),
        (ratio(0.1).ttl(ms(999)), "budget.ttl"),
        (ratio(0.1).ttl(Duration::from_secs(3_601)), "budget.ttl"),
    ];
    for (budget, field) in broken {
        assert_eq!(budget.validate().unwrap_err().option, field, "{budget:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_share_is_within_one_per_cent_of_what_was_asked(
        ratio in 0.05_f64..2.0, every_us in 0_u64..20_000,
    ) {
        let budget = RetryBudget::ratio(ratio);
        let calls = 20_000;
        let got = f64::from(granted(&budget, calls, Duration::from_micros(every_us)));
        let asked = ratio * f64::from(calls);
        prop_assert!((got - asked).abs() <= asked * 0.01, "{got} of {asked}");
    }
}
