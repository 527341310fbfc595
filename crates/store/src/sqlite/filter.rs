//! A Bloom filter over scopes, which are hashes already.
//!
//! Ten bits a key: one question in a hundred about a key that is not there is answered "perhaps".
//! Never: "no" about a key that is there.

/// Bits per key.
const BITS: u64 = 10;
/// Bits set per key.
const PROBES: u64 = 7;

/// The filter.
pub(super) struct Filter(Vec<u8>);

impl Filter {
    /// An empty filter for so many keys.
    pub(super) fn for_keys(keys: usize) -> Self {
        let bits = u64::try_from(keys).unwrap_or(u64::MAX).saturating_mul(BITS).max(64);
        Self(vec![0; usize::try_from(bits.div_ceil(8)).unwrap_or(8)])
    }

    /// From what was stored; anything that is not a filter says "perhaps" to all.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self(vec![0xFF]) } else { Self(bytes) }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn add(&mut self, scope: &[u8; 16]) {
        for (byte, bit) in places(scope, self.0.len()) {
            self.0[byte] |= bit;
        }
    }

    pub(super) fn may_hold(&self, scope: &[u8; 16]) -> bool {
        places(scope, self.0.len()).all(|(byte, bit)| self.0[byte] & bit != 0)
    }
}

/// The bytes and bits of a key.
fn places(scope: &[u8; 16], bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    let wide = u128::from_le_bytes(*scope);
    let low = u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(wide >> 64).unwrap_or(0) | 1;
    let bits = u128::try_from(bytes).unwrap_or(1) * 8;
    (0..PROBES).map(move |probe| {
        // The high half of a product spreads a hash evenly over the bits, without a division.
        let hash = low.wrapping_add(high.wrapping_mul(probe)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = usize::try_from((u128::from(hash) * bits) >> 64).unwrap_or(0);
        (place / 8, 1 << (place % 8))
    })
}

#[cfg(test)]
mod tests {
    use resilience::{Chance as _, Seeded};

    use super::*;

    #[test]
    fn what_is_there_is_found_and_little_else() {
        let mut chance = Seeded::new(3);
        let mut draw = || {
            let (low, high) = (u128::from(chance.next_u64()), u128::from(chance.next_u64()));
            (low | high << 64).to_le_bytes()
        };
        let there: Vec<[u8; 16]> = (0..20_000).map(|_| draw()).collect();
        let mut filter = Filter::for_keys(there.len());
        there.iter().for_each(|scope| filter.add(scope));
        let filter = Filter::from_bytes(filter.as_bytes().to_vec());
        assert!(there.iter().all(|scope| filter.may_hold(scope)));
        let wrong = (0..20_000).filter(|_| filter.may_hold(&draw())).count();
        assert!(wrong < 400, "{wrong} of 20,000 taken for what is there");
        assert!(Filter::from_bytes(Vec::new()).may_hold(&[1; 16]));
    }
}
