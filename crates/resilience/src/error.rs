//! What is wrong with an option: which one, and the rule that it breaks; and other errors in a
//! line.
//!
//! [`ConfigError`] is the one shape for all builders, of this crate and of those that stand on it.
//! Both of its texts are fixed, fit to be shown to whoever set the option.
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

/// An error with its causes, as stores tell what their clients report: those of PostgreSQL say no
/// more than `db error` themselves.
///
/// Of each the first line, since a database quotes values in those below; none that the text tells
/// already.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = first_line(error);
    let mut next = error.source();
    while let Some(cause) = next {
        let told = first_line(cause);
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        next = cause.source();
    }
    text
}

fn first_line(error: &dyn Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Self>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn causes_are_told_once_and_without_what_they_quote() {
        let innermost = Layer("no such table\nDETAIL: (a secret)", None);
        let cause = Layer("db error", Some(Box::new(innermost)));
        let error = Layer("not recorded: db error", Some(Box::new(cause)));
        assert_eq!(with_causes(&error), "not recorded: db error: no such table");
        assert_eq!(with_causes(&Layer("", None)), "");
    }

    #[test]
    fn reads_as_a_sentence() {
        let error = ConfigError::unless(false, "max_calls", "must be at least 1").unwrap_err();
        assert_eq!(error.to_string(), "max_calls must be at least 1");
        assert_eq!(ConfigError::unless(true, "max_calls", "must be at least 1"), Ok(()));
    }
}
