//! A part of a whole in fixed point: exact, comparable, the same everywhere.
//!
//! Never: round a share up to more than was asked for by more than a millionth.

use std::time::Duration;

/// Parts of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// The whole, in millionths.
    pub const WHOLE: u32 = 1_000_000;
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// From a number: 0.5 is one half. What is not a number, or negative, gives a share that is not
    /// valid.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "this cast saturates"
    )]
    pub fn of(share: f64) -> Self {
        if share.is_nan() || share < 0.0 {
            return Self(u32::MAX);
        }
        Self((share * f64::from(Self::WHOLE)).round() as u32)
    }

    /// From per cent.
    pub const fn per_cent(per_cent: u32) -> Self {
        Self(per_cent.saturating_mul(Self::WHOLE / 100))
    }

    /// Parts of a million.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Above nothing, at most the whole.
    pub const fn is_valid(self) -> bool {
        self.0 >= 1 && self.0 <= Self::WHOLE
    }

    /// Whether `part` is at least this share of `whole`.
    pub const fn is_reached(self, part: u64, whole: u64) -> bool {
        part as u128 * Self::WHOLE as u128 >= whole as u128 * self.0 as u128
    }

    /// This share of `span`; of more than the whole, the whole.
    pub fn of_span(self, span: Duration) -> Duration {
        let micros =
            span.as_micros() * u128::from(self.0.min(Self::WHOLE)) / u128::from(Self::WHOLE);
        u64::try_from(micros).map_or(span, Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_share_is_not_valid() {
        for share in [0.0, -1.0, f64::NAN, 1.1, f64::INFINITY, 1e-9] {
            assert!(!Share::of(share).is_valid(), "{share}");
        }
        assert!(Share::of(0.5).is_valid() && Share::of(1.0).is_valid());
        assert_eq!(Share::of(0.3), Share::per_cent(30));
    }

    #[test]
    fn it_is_reached_exactly() {
        let third = Share::of(0.5);
        assert!(
            third.is_reached(1, 2)
                && !third.is_reached(1, 3)
                && third.is_reached(u64::MAX, u64::MAX)
        );
    }

    #[test]
    fn a_share_of_a_span() {
        assert_eq!(Share::of(0.25).of_span(Duration::from_secs(8)), Duration::from_secs(2));
        assert_eq!(Share::of(9.0).of_span(Duration::MAX), Duration::MAX);
    }
}
