//! What is wrong with an option: which one, and the rule that it breaks.
//!
//! The one shape for all builders, of this crate and of those that stand on it. Both are fixed
//! texts, fit to be shown to whoever set the option.
//! Never: carry the refused value, which may be anything.

use std::error::Error;
use std::fmt;

/// An option that breaks a rule.
///
/// ```
/// use std::time::Duration;
/// use resilience::{ConfigError, RetryPolicy};
///
/// let refused = RetryPolicy::fixed(Duration::from_secs(1)).max_calls(0).build().unwrap_err();
/// assert_eq!(refused, ConfigError::new("max_calls", "must be at least 1"));
/// assert_eq!(refused.to_string(), "max_calls must be at least 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The option, named as its method or field; dotted where it is part of another:
    /// `trip.min_calls`.
    pub option: &'static str,
    /// The rule, worded to follow the option: `must be at least 1`.
    pub rule: &'static str,
}

impl ConfigError {
    /// This option breaks this rule.
    pub const fn new(option: &'static str, rule: &'static str) -> Self {
        Self { option, rule }
    }

    /// Gives this error unless `holds`.
    pub const fn unless(holds: bool, option: &'static str, rule: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { option, rule }) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.option, self.rule)
    }
}

impl Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_sentence() {
        let error = ConfigError::unless(false, "max_calls", "must be at least 1").unwrap_err();
        assert_eq!(error.to_string(), "max_calls must be at least 1");
        assert_eq!(ConfigError::unless(true, "max_calls", "must be at least 1"), Ok(()));
    }
}
