//! A factor of growth in fixed point.
//!
//! Never: overflow, stand still through rounding.

use crate::error::ConfigError;

/// Fractional bits kept while a wait grows, so that a nanosecond grows too.
const FRACTION: u32 = 32;

/// By what each wait is longer than the one before, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(u32);

impl Factor {
    /// From a number; what is not one gives zero, which is not valid.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "this cast saturates, and gives zero for what is not a number"
    )]
    pub fn of(factor: f64) -> Self {
        Self((factor * 1_000.0).round() as u32)
    }

    /// `start × factor^steps`, at most `most`.
    pub(super) fn grow(self, start: u128, steps: u32, most: u128) -> u128 {
        if let (0, Some(whole)) = (self.0 % 1_000, self.0.checked_div(1_000)) {
            return start.saturating_mul(u128::from(whole).saturating_pow(steps)).min(most);
        }
        let limit = most.saturating_mul(1 << FRACTION);
        let mut grown = start.saturating_mul(1 << FRACTION);
        for _ in 0..steps {
            let Some(wide) = grown.checked_mul(u128::from(self.0)) else { return most };
            let next = wide / 1_000;
            // Zero and factors below 1, which are not valid, would go on for ever.
            if next <= grown {
                break;
            }
            grown = next;
            if grown >= limit {
                return most;
            }
        }
        (grown >> FRACTION).min(most)
    }

    /// Checks the bounds.
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        let holds = (1_000..=100_000).contains(&self.0);
        ConfigError::unless(holds, "factor", "must be from 1 to 100")
    }
}
