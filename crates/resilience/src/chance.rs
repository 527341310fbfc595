//! Randomness that is passed in, so that a run can be repeated from its seed.
//!
//! Never: a hidden global generator. Not for secrets: keys and tokens come from the system's own
//! source.

use std::time::Duration;

/// A source of random numbers.
pub trait Chance: Send {
    /// The next 64 random bits.
    fn next_u64(&mut self) -> u64;

    /// A number in `0..bound`, or 0 when `bound` is 0.
    fn below(&mut self, bound: u64) -> u64 {
        // The high half of a 128-bit product: no division, and a bias below 2^-64 × bound.
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A span in `low..=high`, to the microsecond; `low` when `high` is not above it.
    fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let room = u64::try_from(high.saturating_sub(low).as_micros()).unwrap_or(u64::MAX);
        low.saturating_add(Duration::from_micros(self.below(room.saturating_add(1))))
    }
}

/// SplitMix64: small, fast, and the same everywhere for the same seed.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// A generator that always gives the same numbers for the same seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Chance for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Seeded once from the operating system; absent on a bare WebAssembly host, which has none.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[derive(Clone, Debug)]
pub struct FromOs(Seeded);

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl FromOs {
    /// A generator whose seed the operating system gave.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system for chance")]
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut seed = [0_u8; 8];
        getrandom::fill(&mut seed)?;
        Ok(Self(Seeded::new(u64::from_le_bytes(seed))))
    }

    /// Fills `bytes` straight from the operating system: for keys, secrets and ids.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system for chance")]
    pub fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
        getrandom::fill(bytes)
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
impl Chance for FromOs {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself() {
        let (mut a, mut b) = (Seeded::new(7), Seeded::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
    }

    #[test]
    fn bounds_hold_at_the_edges() {
        let mut chance = Seeded::new(1);
        assert_eq!(chance.below(0), 0);
        assert!((0..1_000).all(|_| chance.below(3) < 3));
        let second = Duration::from_secs(1);
        assert_eq!(chance.between(second, Duration::ZERO), second);
        assert!((0..1_000).all(|_| chance.between(Duration::ZERO, second) <= second));
        assert!(chance.between(Duration::ZERO, Duration::MAX) <= Duration::MAX);
    }
}
