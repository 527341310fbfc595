//! A token bucket: so many calls a second, and at most one second's worth at once.
//!
//! In: a rate and the time. Out: a token, or the time of the next one. Whole-number arithmetic, so
//! that three a second is three a second for ever.
//! Never: sleep, queue, mint tokens from a clock that steps back, make anyone wait longer than 1 s.

use std::time::Duration;

use crate::clock::Timestamp;

/// One token in the unit of account. A microsecond mints `per_second` units, so nothing is rounded.
const TOKEN: u64 = 1_000_000;
/// A whole second, in microseconds, fills the bucket; more time adds nothing.
const FILL_MICROS: u64 = 1_000_000;

/// A token bucket with a burst of one second's worth, and at least one token.
#[derive(Clone, Debug)]
pub struct Rate {
    per_second: u32,
    units: u64,
    seen: Timestamp,
}

impl Rate {
    /// A full bucket; a rate of 0 is taken as 1.
    pub fn new(per_second: u32, now: Timestamp) -> Self {
        let per_second = per_second.max(1);
        Self { per_second, units: full(per_second), seen: now }
    }

    /// Takes a token, or says when the next one is there.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.units = self.units_at(now);
        self.seen = now;
        self.enough(self.units, now)?;
        self.units = self.units.saturating_sub(TOKEN);
        Ok(())
    }

    /// What [`Rate::take`] would answer.
    pub fn peek(&self, now: Timestamp) -> Result<(), Timestamp> {
        self.enough(self.units_at(now), now)
    }

    /// Changes the rate; tokens in hand stay, up to the new burst.
    pub fn retune(&mut self, per_second: u32, now: Timestamp) {
        self.units = self.units_at(now);
        self.seen = now;
        self.per_second = per_second.max(1);
        self.units = self.units.min(full(self.per_second));
    }

    /// The units in hand at `now`. A clock that stepped back has minted nothing; it counts on from
    /// there.
    fn units_at(&self, now: Timestamp) -> u64 {
        let passed = now.since(self.seen).as_micros();
        let passed = u64::try_from(passed).unwrap_or(FILL_MICROS).min(FILL_MICROS);
        let minted = passed.saturating_mul(u64::from(self.per_second));
        self.units.saturating_add(minted).min(full(self.per_second))
    }

    fn enough(&self, units: u64, now: Timestamp) -> Result<(), Timestamp> {
        match TOKEN.saturating_sub(units) {
            0 => Ok(()),
            missing => {
                let micros = missing.div_ceil(u64::from(self.per_second));
                Err(now.plus(Duration::from_micros(micros)))
            }
        }
    }
}

fn full(per_second: u32) -> u64 {
    u64::from(per_second).saturating_mul(TOKEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_secs(1_000);

    fn after(micros: u64) -> Timestamp {
        START.plus(Duration::from_micros(micros))
    }

    #[test]
    fn a_burst_is_one_seconds_worth_and_the_rest_comes_evenly() {
        let mut rate = Rate::new(3, START);
        assert!((0..3).all(|_| rate.take(START).is_ok()));
        assert_eq!(rate.take(START), Err(after(333_334)));
        assert_eq!(rate.peek(after(333_333)), Err(after(333_334)));
        assert_eq!(rate.take(after(333_334)), Ok(()));
        assert_eq!(rate.take(after(333_334)), Err(after(666_667)), "the rest of a unit is kept");
    }

    #[test]
    fn a_rate_of_zero_is_one() {
        let mut rate = Rate::new(0, START);
        assert_eq!(rate.take(START), Ok(()));
        assert_eq!(rate.take(START), Err(after(1_000_000)));
    }

    #[test]
    fn peek_takes_nothing() {
        let mut rate = Rate::new(1, START);
        assert_eq!((rate.peek(START), rate.peek(START)), (Ok(()), Ok(())));
        assert_eq!(rate.take(START), Ok(()));
        assert!(rate.peek(START).is_err());
    }

    #[test]
    fn tm_01_a_clock_that_steps_back_neither_mints_nor_blocks() {
        let mut rate = Rate::new(1, START);
        assert_eq!(rate.take(START), Ok(()));
        let back = START.minus(Duration::from_secs(7_200));
        assert_eq!(rate.take(back), Err(back.plus(Duration::from_secs(1))));
        assert_eq!(rate.take(back.plus(Duration::from_secs(1))), Ok(()));
    }

    #[test]
    fn tm_02_a_clock_that_jumps_ahead_gives_one_burst_only() {
        let mut rate = Rate::new(5, START);
        let day_later = START.plus(Duration::from_secs(86_400));
        assert!((0..5).all(|_| rate.take(day_later).is_ok()));
        assert!(rate.take(day_later).is_err());
        let mut rate = Rate::new(u32::MAX, Timestamp::from_micros(i64::MIN));
        assert_eq!(rate.take(Timestamp::MAX), Ok(()));
    }

    #[test]
    fn retune_keeps_what_is_in_hand_up_to_the_new_burst() {
        let mut rate = Rate::new(10, START);
        rate.retune(2, START);
        assert!((0..2).all(|_| rate.take(START).is_ok()));
        assert_eq!(rate.take(START), Err(after(500_000)));
        rate.retune(1_000, START);
        assert_eq!(rate.take(START), Err(after(1_000)), "a higher rate is no gift of tokens");
    }

    proptest! {
        #[test]
        fn never_more_than_burst_plus_the_time_that_passed(
            per_second in 1_u32..2_000,
            steps in prop::collection::vec(-3_000_000_i64..3_000_000, 1..200),
        ) {
            let (mut rate, mut now) = (Rate::new(per_second, START), START);
            let (mut passed, mut taken) = (0_u128, 0_u128);
            for step in steps {
                now = Timestamp::from_micros(now.as_micros() + step);
                passed += u128::try_from(step).unwrap_or(0);
                prop_assert_eq!(rate.peek(now), rate.clone().take(now));
                match rate.take(now) {
                    Ok(()) => taken += 1,
                    Err(at) => {
                        prop_assert!(at > now && at <= now.plus(Duration::from_secs(1)));
                        prop_assert_eq!(rate.clone().take(at), Ok(()));
                    }
                }
            }
            prop_assert!(taken <= u128::from(per_second) * (passed + 1_000_000) / 1_000_000);
        }
    }
}
