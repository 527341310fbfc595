//! Bounds for any retry, shapes of the jitter, and a known contention model as a cross-check.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use proptest::prelude::*;

mod spread;

use super::*;
use crate::chance::Seeded;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const BASE: Duration = ms(2_000);
const CAP: Duration = ms(300_000);

fn capped(base: Duration, cap: Duration) -> [Backoff; 4] {
    [
        Backoff::Linear { base, cap },
        Backoff::Exponential { base, cap },
        Backoff::FullJitter { base, cap },
        Backoff::DecorrelatedJitter { base, cap },
    ]
}

/// The first waits of one delivery, each given the one before it.
fn waits(backoff: &Backoff, count: u32, chance: &mut dyn Chance) -> Vec<Duration> {
    let mut last = Duration::ZERO;
    (0..count)
        .map(|retry| {
            last = backoff.delay(retry, last, chance);
            last
        })
        .collect()
}

#[test]
fn the_plain_formulas() {
    let chance = &mut Seeded::new(1);
    let fixed = Backoff::Fixed { base: ms(7) };
    assert_eq!(waits(&fixed, 3, chance), [7, 7, 7].map(ms));
    let linear = Backoff::Linear { base: ms(10), cap: ms(35) };
    assert_eq!(waits(&linear, 5, chance), [10, 20, 30, 35, 35].map(ms));
    let exponential = Backoff::Exponential { base: ms(10), cap: ms(70) };
    assert_eq!(waits(&exponential, 5, chance), [10, 20, 40, 70, 70].map(ms));
    let schedule = Backoff::Schedule { delays: vec![ms(5), ms(0), ms(60)] };
    assert_eq!(waits(&schedule, 5, chance), [5, 0, 60, 60, 60].map(ms));
    let empty = Backoff::Schedule { delays: Vec::new() };
    assert_eq!(waits(&empty, 2, chance), [0, 0].map(ms));
}

#[test]
fn bo_01_every_delay_past_the_crossing_is_at_the_ceiling() {
    let exponential = Backoff::Exponential { base: BASE, cap: CAP };
    assert!((8..2_000).all(|retry| exponential.longest(retry) == CAP));
    let day = Duration::from_secs(86_400);
    for (base, cap) in [(Duration::from_nanos(1), CAP), (day, day * 2), (Duration::MAX, CAP)] {
        for backoff in capped(base, cap) {
            for retry in [63, 64, 127, 128, 129, 1_023, 1_024, u32::MAX - 1, u32::MAX] {
                let delay = backoff.delay(retry, cap, &mut Seeded::new(u64::from(retry)));
                assert!(delay <= cap, "{backoff:?} at {retry}");
            }
            assert_eq!(backoff.longest(u32::MAX), cap.min(backoff.longest(u32::MAX)));
        }
        let jitter = Backoff::FullJitter { base, cap };
        assert_eq!(jitter.longest(1_024), cap);
    }
}

#[test]
fn bo_04_bo_07_the_delay_depends_on_the_retry_and_is_never_fed_back() {
    let exponential = Backoff::Exponential { base: ms(100), cap: CAP };
    // A process that knows nothing but the retry number computes the same steps; the ratio is two.
    let steps: Vec<_> =
        (0..6).map(|retry| exponential.delay(retry, CAP, &mut Seeded::new(9))).collect();
    assert!(
        steps.windows(2).all(|pair| pair.first().map(|step| *step * 2) == pair.get(1).copied())
    );
}

#[test]
fn full_jitter_fills_its_range_evenly_also_at_the_cap() {
    let backoff = Backoff::FullJitter { base: BASE, cap: CAP };
    let chance = &mut Seeded::new(3);
    for retry in [0, 4, 30, u32::MAX] {
        let top = backoff.longest(retry);
        let draws: Vec<_> =
            (0..4_000).map(|_| backoff.delay(retry, Duration::ZERO, chance)).collect();
        for quarter in 0..4 {
            let range = top * quarter / 4..top * (quarter + 1) / 4;
            let share = draws.iter().filter(|draw| range.contains(draw)).count();
            assert!((880..1_120).contains(&share), "quarter {quarter} at {retry}: {share}");
        }
        let sum: Duration = draws.iter().sum();
        let mean = backoff.mean(retry);
        assert!(sum > mean * 3_850 && sum < mean * 4_150);
    }
}

#[test]
fn decorrelated_jitter_has_no_pile_at_the_cap() {
    let backoff = Backoff::DecorrelatedJitter { base: ms(100), cap: ms(1_000) };
    let chance = &mut Seeded::new(4);
    let all: Vec<_> = (0..1_000).flat_map(|_| waits(&backoff, 15, chance)).collect();
    let at_cap = all.iter().filter(|wait| **wait == ms(1_000)).count();
    assert!(at_cap * 100 < all.len(), "{at_cap} of {}", all.len());
    assert!(all.iter().all(|wait| (ms(100)..=ms(1_000)).contains(wait)));
    assert_eq!(backoff.longest(0), ms(300));
}

#[test]
fn two_deliveries_draw_different_waits() {
    for backoff in [
        Backoff::FullJitter { base: BASE, cap: CAP },
        Backoff::DecorrelatedJitter { base: BASE, cap: CAP },
    ] {
        let chance = &mut Seeded::new(6);
        let seen: BTreeSet<_> = (0..100).map(|_| waits(&backoff, 4, chance)).collect();
        assert_eq!(seen.len(), 100);
    }
}

#[test]
fn bo_03_totals_take_exactly_as_many_waits_as_asked() {
    let cases = [
        Backoff::Fixed { base: ms(3) },
        Backoff::Linear { base: ms(3), cap: ms(20) },
        Backoff::Linear { base: ms(30), cap: ms(20) },
        Backoff::Linear { base: Duration::ZERO, cap: ms(20) },
        Backoff::Exponential { base: ms(3), cap: CAP },
        Backoff::FullJitter { base: Duration::from_nanos(1), cap: CAP },
        Backoff::Schedule { delays: vec![ms(1), ms(2), ms(30)] },
        Backoff::Schedule { delays: Vec::new() },
    ];
    for backoff in cases {
        for retries in [0, 1, 2, 5, 600] {
            let longest: Duration = (0..retries).map(|retry| backoff.longest(retry)).sum();
            assert_eq!(backoff.longest_total(retries), longest, "{backoff:?}");
            let mean: Duration = (0..retries).map(|retry| backoff.mean(retry)).sum();
            let off = backoff.mean_total(retries).abs_diff(mean);
            assert!(off <= Duration::from_micros(1), "{backoff:?}: halves are rounded");
        }
        assert!(backoff.mean_total(u32::MAX) <= backoff.longest_total(u32::MAX));
    }
    let decorrelated = Backoff::DecorrelatedJitter { base: ms(3), cap: CAP };
    for retries in [0, 1, 2, 20] {
        let mean: Duration = (0..retries).map(|retry| decorrelated.mean(retry)).sum();
        assert_eq!(decorrelated.mean_total(retries), mean);
        assert!(decorrelated.longest_total(retries) >= mean);
    }
    assert!(decorrelated.mean_total(u32::MAX) > decorrelated.mean_total(u32::MAX - 1));
    let endless = Backoff::Linear { base: Duration::MAX, cap: Duration::MAX };
    assert_eq!(endless.longest_total(u32::MAX), Duration::MAX);
}

#[test]
fn the_broken_field_is_named() {
    for backoff in capped(ms(10), ms(9)) {
        assert_eq!(backoff.validate().unwrap_err().option, "backoff.cap");
    }
    for backoff in capped(Duration::ZERO, CAP) {
        assert_eq!(backoff.validate().unwrap_err().option, "backoff.base");
    }
    let empty = Backoff::Schedule { delays: Vec::new() };
    assert_eq!(empty.validate().unwrap_err().option, "backoff.delays");
    assert_eq!(Backoff::Fixed { base: ms(1) }.validate(), Ok(()));
    assert!(capped(ms(10), ms(10)).iter().all(|backoff| backoff.validate().is_ok()));
}

/// Clients that read and then write one row under optimistic locking, each hop taking about 10 ms:
/// the model on which jitter is usually compared. Gives the number of writes sent.
fn writes_under_contention(backoff: &Backoff, clients: usize, chance: &mut dyn Chance) -> u32 {
    struct Client {
        conflicts: u32,
        last: Duration,
        read: Option<u32>,
    }
    let (mut version, mut writes) = (0, 0);
    let mut state: Vec<_> =
        (0..clients).map(|_| Client { conflicts: 0, last: Duration::ZERO, read: None }).collect();
    let mut queue: BinaryHeap<_> = (0..clients).map(|id| Reverse((hop(chance), id))).collect();
    while let Some(Reverse((now, id))) = queue.pop() {
        let client = state.get_mut(id).unwrap();
        let there_and_back = hop(chance) + hop(chance);
        let Some(read) = client.read.take() else {
            client.read = Some(version);
            queue.push(Reverse((now + there_and_back, id)));
            continue;
        };
        writes += 1;
        if read == version {
            version += 1;
            continue;
        }
        client.conflicts += 1;
        client.last = backoff.delay(client.conflicts, client.last, chance);
        queue.push(Reverse((now + there_and_back + client.last, id)));
    }
    writes
}

/// About 10 ms, spread by 2 ms: a sum of twelve even draws is close to a bell curve.
fn hop(chance: &mut dyn Chance) -> Duration {
    let sum: u64 = (0..12).map(|_| chance.below(2_000)).sum();
    Duration::from_micros(sum.saturating_sub(2_000))
}

#[test]
fn full_jitter_halves_the_work_under_contention() {
    let (base, cap) = (ms(5), ms(2_000));
    let chance = &mut Seeded::new(20_240_101);
    let mut mean = |backoff: Backoff| {
        (0..30).map(|_| writes_under_contention(&backoff, 100, chance)).sum::<u32>() / 30
    };
    let exponential = mean(Backoff::Exponential { base, cap });
    let full = mean(Backoff::FullJitter { base, cap });
    println!("100 clients: {exponential} writes without jitter, {full} with full jitter");
    assert!((1_760..1_950).contains(&exponential), "about 1,852: {exponential}");
    assert!((755..835).contains(&full), "about 795: {full}");
    assert!(full * 2 < exponential);
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_secs(86_400)),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_nanos),
        (0_u64..100_000).prop_map(Duration::from_millis),
    ]
}

fn retry() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..200, Just(u32::MAX), any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bo_01_bo_02_delays_stay_within_their_bounds(
        base in span(), cap in span(), last in span(), retry in retry(), seed in any::<u64>(),
    ) {
        for backoff in capped(base, cap) {
            let delay = backoff.delay(retry, last, &mut Seeded::new(seed));
            prop_assert!(delay <= cap);
            prop_assert!(backoff.longest(retry) <= cap);
            if let Backoff::DecorrelatedJitter { .. } = backoff {
                prop_assert!(delay >= base.min(cap));
                prop_assert!(backoff.mean(retry % 4) <= backoff.longest(retry % 4));
            } else {
                prop_assert!(delay <= backoff.longest(retry));
                prop_assert!(backoff.mean(retry) <= backoff.longest(retry));
            }
        }
        let fixed = Backoff::Fixed { base };
        prop_assert_eq!(fixed.delay(retry, last, &mut Seeded::new(seed)), base);
    }

    #[test]
    fn the_longest_bounds_a_sequence_of_its_own(
        base in span(), cap in span(), seed in any::<u64>(),
    ) {
        for backoff in capped(base, cap) {
            for (retry, wait) in (0_u32..).zip(waits(&backoff, 40, &mut Seeded::new(seed))) {
                prop_assert!(wait <= backoff.longest(retry));
            }
        }
    }
}
