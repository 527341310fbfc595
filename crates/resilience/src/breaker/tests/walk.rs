//! A long random walk over a breaker, with the facts that must hold after every step.
//!
//! Permits are given back late, twice or in another order; the clock steps back; it is forced and
//! retuned.

use proptest::prelude::*;

use super::super::*;
use super::{at, closed, secs};
use crate::chance::Seeded;

/// Everything a random walk looks at.
struct Walk {
    breaker: Breaker,
    now: Timestamp,
    chance: Seeded,
    out: Vec<Permit>,
    open: bool,
}

impl Walk {
    fn step(&mut self, op: u8, value: u64) -> Result<(), TestCaseError> {
        let before = self.breaker.snapshot();
        let now = self.now;
        let permit = (op < 6).then(|| self.pick(value)).flatten();
        let change = match (op, permit) {
            (0 | 1, Some(permit)) => self.breaker.success(permit, now),
            (2..=4, Some(permit)) => self.breaker.failure(permit, value % 3, now, &mut self.chance),
            (5, Some(permit)) => {
                self.breaker.neutral(permit, now);
                None
            }
            (0..=11, _) => {
                let told = self.breaker.admission(now);
                let permit = self.breaker.take(now);
                prop_assert_eq!(told == Admission::Probe, permit.is_some_and(|p| p.is_probe()));
                prop_assert_eq!(matches!(told, Admission::Wait { .. }), permit.is_none());
                self.out.extend(permit);
                // The oldest ordinary ones are lost, so that not all results come too late.
                if self.out.len() > 12 {
                    let oldest = self.out.iter().position(|permit| !permit.is_probe());
                    oldest.map(|place| self.out.remove(place));
                }
                None
            }
            (12, _) => {
                let forced = match value % 16 {
                    0 => Some(Forced::Open),
                    1 => Some(Forced::Closed),
                    _ => None,
                };
                self.breaker.force(forced, now);
                None
            }
            (13, _) => {
                let failures = u32::try_from(value % 4).unwrap() + 2;
                let enabled = !value.is_multiple_of(10);
                self.breaker.retune(Config { enabled, failures, ..Config::default() });
                None
            }
            _ => {
                let step = i64::try_from(value % 60_000_000).unwrap();
                let back = if value.is_multiple_of(7) { -1 } else { 1 };
                self.now = Timestamp::from_micros(now.as_micros() + back * step);
                None
            }
        };
        self.check(&before, change)
    }

    /// A permit to give back, which half the time stays behind to be given back again.
    fn pick(&mut self, value: u64) -> Option<Permit> {
        let place = usize::try_from(value).unwrap_or(0).checked_rem(self.out.len())?;
        let permit = self.out.get(place).copied()?;
        if value & 64 == 0 || permit.is_probe() {
            self.out.swap_remove(place);
        }
        Some(permit)
    }

    fn check(&mut self, before: &Snapshot, change: Option<Change>) -> Result<(), TestCaseError> {
        let after = self.breaker.snapshot();
        prop_assert!(self.out.iter().filter(|permit| permit.is_probe()).count() <= 1);
        prop_assert_eq!(after.generation, before.generation + u64::from(change.is_some()));
        match change {
            Some(Change::Opened { until } | Change::Reopened { until }) => {
                prop_assert_eq!(matches!(change, Some(Change::Reopened { .. })), self.open);
                prop_assert_eq!(after.open_until, Some(until));
                let wait = until.since(self.now);
                prop_assert!((secs(30)..=secs(600)).contains(&wait), "{:?}", wait);
                self.open = true;
            }
            Some(Change::Closed) => {
                prop_assert!(self.open && after.open_until.is_none());
                self.open = false;
            }
            None => prop_assert_eq!(after.open_until.is_some(), self.open),
        }
        prop_assert!(self.breaker.health.keys.len() <= 2);
        prop_assert_eq!(&Breaker::restore(Config::default(), after.clone()).snapshot(), &after);
        let stuck = self.breaker.probes_out() > 0
            && !self.out.iter().any(|p| p.is_probe() && !self.breaker.is_late(*p));
        prop_assert!(!stuck, "a slot is held by a probe that nobody has");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn cb_01_never_two_probes_over_ten_thousand_steps(seed in any::<u64>()) {
        let mut walk = Walk {
            breaker: closed(),
            now: at(1_000_000),
            chance: Seeded::new(seed),
            out: Vec::new(),
            open: false,
        };
        let mut dice = Seeded::new(!seed);
        let mut openings = 0;
        for _ in 0..10_000 {
            let op = u8::try_from(dice.below(18)).unwrap();
            let was_open = walk.open;
            walk.step(op, dice.next_u64())?;
            openings += u32::from(walk.open && !was_open);
        }
        prop_assert!(openings > 5, "the walk opened only {} times", openings);
    }
}
