//! What is wrong with a setting: which field, and the rule it breaks.
//!
//! Both are fixed texts, fit to be shown to whoever wrote the setting.
//! Never: carry the rejected value, which may be anything.

use std::error::Error;
use std::fmt;

/// A setting that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The field, dotted where it is nested: `backoff.cap`.
    pub field: &'static str,
    /// The rule, worded to follow the field: `must not be below base`.
    pub rule: &'static str,
}

impl PolicyError {
    /// Gives this error unless `holds`.
    pub(crate) const fn unless(
        holds: bool,
        field: &'static str,
        rule: &'static str,
    ) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { field, rule }) }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.rule)
    }
}

impl Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_sentence() {
        let error = PolicyError::unless(false, "calls_max", "must be at least 1").unwrap_err();
        assert_eq!(error.to_string(), "calls_max must be at least 1");
        assert_eq!(PolicyError::unless(true, "calls_max", "must be at least 1"), Ok(()));
    }
}
