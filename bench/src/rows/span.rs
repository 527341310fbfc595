//! Messages of the past, evenly over a span of time, and the keys that they have.
//!
//! Never: know a database.

/// Bytes of a payload, as the load has them.
pub(super) const PAYLOAD_BYTES: u32 = 256;
/// When the time in keys begins, in seconds since 1970.
pub(super) const KEY_EPOCH_S: i64 = 1_400_000_000;
/// From the acceptance of a message to its attempt.
pub(super) const SENT_AFTER_US: i64 = 8_000;

/// Messages of one kind, evenly over a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// When the first one was accepted.
    pub(super) first_us: i64,
    /// From one to the next.
    pub(super) step_us: i64,
    /// How many.
    pub(super) count: u32,
    /// They were refused once and wait.
    pub(super) pending: bool,
}

/// The key of the nth thing, drawn at a time: 40 bits of time in steps of 4 ms, 16 of a number.
pub(super) const fn key(at_us: i64, nth: u32) -> i64 {
    let (secs, rest) = (at_us.div_euclid(1_000_000), at_us.rem_euclid(1_000_000));
    let ticks = ((secs - KEY_EPOCH_S) << 8) | (rest / 4_000);
    (ticks << 24) | (((nth & 0xFFFF) as i64) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of 2026-01-01 00:00:00.5 is what peyk would draw.
    #[test]
    fn keys_grow_with_time() {
        let at = 1_767_225_600_500_000;
        assert_eq!(key(at, 0) >> 24, (367_225_600 << 8) | 125);
        assert_eq!(key(at, 3) & 0xFF_FFFF, 3 << 8);
        assert!(key(at, 0xFFFF) < key(at + 4_000, 0));
    }
}
