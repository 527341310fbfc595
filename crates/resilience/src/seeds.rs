//! A seed for each session, no two alike, without a lock.
//!
//! Never: give one seed twice, to two sessions of one policy or of two.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::chance::{Chance, Seeded};
use crate::error::ConfigError;

/// Odd, so that all 2^64 steps differ.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Where seeds come from.
#[derive(Debug)]
pub(crate) struct Seeds(AtomicU64);

impl Seeds {
    /// From the given seed, or from the system.
    pub(crate) fn new(seed: Option<u64>) -> Result<Self, ConfigError> {
        let seed = seed.or_else(from_system).ok_or(ConfigError::new(
            "seed",
            "must be given where the system has no source of chance",
        ))?;
        Ok(Self(AtomicU64::new(seed)))
    }

    /// A generator that no one else has.
    pub(crate) fn next(&self) -> Seeded {
        // The step is mixed before it seeds: neighbouring seeds of one generator are one sequence,
        // shifted by one draw.
        let place = self.0.fetch_add(STEP, Ordering::Relaxed);
        Seeded::new(Seeded::new(place).next_u64())
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn from_system() -> Option<u64> {
    crate::chance::FromOs::new().ok().map(|mut chance| chance.next_u64())
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
const fn from_system() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_sessions_draw_alike() {
        let seeds = Seeds::new(Some(1)).unwrap();
        let firsts: BTreeSet<_> = (0..10_000).map(|_| seeds.next().next_u64()).collect();
        assert_eq!(firsts.len(), 10_000);
        let (mut a, mut b) = (seeds.next(), seeds.next());
        b.next_u64();
        let shifted = (0..100).filter(|_| a.next_u64() == b.next_u64()).count();
        assert_eq!(shifted, 0, "nor one draw later");
    }
}
