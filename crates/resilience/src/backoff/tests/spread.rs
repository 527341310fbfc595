//! Factors and jitters: bounds for anything, shape at the cap.

use proptest::prelude::*;

use super::super::*;
use super::{ms, retry, span};
use crate::chance::Seeded;

fn jitters() -> [Jitter; 6] {
    let proportional = Jitter::proportional;
    [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        proportional(0.1),
        proportional(0.5),
        proportional(1.0),
    ]
}

fn spread(of: Backoff, jitter: Jitter) -> Backoff {
    Backoff::Spread { of: Box::new(of), jitter }
}

fn draws(backoff: &Backoff, retry: u32) -> Vec<Duration> {
    let chance = &mut Seeded::new(11);
    (0..4_000).map(|_| backoff.delay(retry, Duration::ZERO, chance)).collect()
}

#[test]
fn factors_by_hand() {
    let grows = |factor, base| {
        let factor = Factor::of(factor);
        let backoff = Backoff::Geometric { base, factor, cap: ms(1_000) };
        [0, 1, 2, 3, 9, u32::MAX].map(|retry| backoff.longest(retry))
    };
    assert_eq!(grows(3.0, ms(10)), [10, 30, 90, 270, 1_000, 1_000].map(ms));
    assert_eq!(grows(1.0, ms(10)), [10; 6].map(ms));
    let micros = [100_000, 150_000, 225_000, 337_500, 1_000_000, 1_000_000];
    let close = grows(1.5, ms(100)).map(|wait| (wait + Duration::from_nanos(500)).as_micros());
    assert_eq!(close, micros);
    let nano = grows(1.5, Duration::from_nanos(1));
    assert_eq!(nano[5], ms(1_000), "a nanosecond grows too: {nano:?}");
}

#[test]
fn a_factor_of_two_is_the_exponential() {
    let (base, cap) = (ms(7), ms(60_000));
    let factor = Backoff::Geometric { base, factor: Factor::of(2.0), cap };
    let plain = Backoff::Exponential { base, cap };
    assert!((0..200).all(|retry| factor.longest(retry) == plain.longest(retry)));
    assert_eq!(factor.mean_total(9), plain.mean_total(9));
}

#[test]
fn ranges_below_the_cap() {
    let fixed = || Backoff::Fixed { base: ms(100) };
    let rows = [
        (Jitter::None, 100, 100),
        (Jitter::Full, 0, 100),
        (Jitter::Equal, 50, 100),
        (Jitter::proportional(0.25), 75, 125),
    ];
    for (jitter, low, high) in rows {
        let backoff = spread(fixed(), jitter);
        let draws = draws(&backoff, 3);
        let (least, most) = (*draws.iter().min().unwrap(), *draws.iter().max().unwrap());
        let edge = ms((high - low) / 20);
        assert!(least >= ms(low) && least <= ms(low) + edge, "{jitter:?} from {least:?}");
        assert!(most <= ms(high) && most + edge >= ms(high), "{jitter:?} to {most:?}");
        assert_eq!(backoff.longest(3), ms(high));
        assert_eq!(backoff.mean(3), (ms(low) + ms(high)) / 2);
        assert_eq!(backoff.mean_total(4), (ms(low) + ms(high)) * 2);
    }
}

#[test]
fn no_jitter_gathers_at_the_cap_nor_is_lost_there() {
    let (base, cap) = (ms(100), ms(1_000));
    let exponential = || Backoff::Exponential { base, cap };
    let mut all: Vec<_> =
        jitters().into_iter().skip(1).map(|jitter| spread(exponential(), jitter)).collect();
    all.extend([Backoff::FullJitter { base, cap }, Backoff::DecorrelatedJitter { base, cap }]);
    for backoff in all {
        for retry in [5, 40, u32::MAX] {
            let draws = draws(&backoff, retry);
            let at_cap = draws.iter().filter(|wait| **wait == cap).count();
            assert!(at_cap * 100 <= draws.len(), "{at_cap} of {backoff:?} at {retry}");
            let range = *draws.iter().max().unwrap() - *draws.iter().min().unwrap();
            assert!(range > cap / 10, "{backoff:?} at {retry} spreads over {range:?} only");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn bo_01_bo_02_any_shape_stays_within_its_bounds(
        (base, cap) in (span(), span()),
        factor in -1.0_f64..200.0,
        retry in retry(),
        seed in any::<u64>(),
    ) {
        let factor = Factor::of(factor);
        let shapes = [
            Backoff::Linear { base, cap },
            Backoff::Exponential { base, cap },
            Backoff::Geometric { base, factor, cap },
        ];
        for of in shapes {
            prop_assert!(of.longest(retry) <= cap);
            for jitter in jitters() {
                let backoff = spread(of.clone(), jitter);
                let delay = backoff.delay(retry, cap, &mut Seeded::new(seed));
                prop_assert!(delay <= cap && delay <= backoff.longest(retry), "{backoff:?}");
                prop_assert!(backoff.mean(retry) <= backoff.longest(retry));
            }
        }
        for jitter in jitters() {
            let fixed = spread(Backoff::Fixed { base }, jitter);
            prop_assert!(fixed.delay(retry, base, &mut Seeded::new(seed)) <= fixed.longest(retry));
        }
    }
}
