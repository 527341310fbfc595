//! Single settings, each read as what it is, with errors that name it.
//!
//! Never: show a value in an error; the name and the rule are enough.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ConfigError;
use super::hidden::Hidden;
use super::raw::{Raw, Value, Written};
use crate::spelling;

/// Characters of a secret that is given, at least.
const SECRET_CHARS_MIN: usize = 16;

/// Reads single settings, with errors that name them.
pub(super) struct Reader<'a>(pub(super) &'a Raw);

impl Reader<'_> {
    pub(super) fn fault(&self, key: &str, rule: &str) -> ConfigError {
        let name = self.0.get(key).map_or_else(|| format!("`{key}`"), |it| it.name.clone());
        ConfigError(format!("{name} {rule}"))
    }

    /// An empty text is no text, so that a variable can take a setting back.
    pub(super) fn optional(&self, key: &str) -> Option<&str> {
        match self.0.get(key) {
            Some(Written { value: Value::Text(text), .. }) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<&str, ConfigError> {
        self.optional(key).ok_or_else(|| self.fault(key, "must not be empty"))
    }

    pub(super) fn list(&self, key: &str) -> &[String] {
        match self.0.get(key) {
            Some(Written { value: Value::List(list), .. }) => list,
            _ => &[],
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        match self.0.get(key) {
            Some(Written { value: Value::Flag(flag), .. }) => Ok(*flag),
            _ => Err(self.fault(key, "must be true or false")),
        }
    }

    pub(super) fn in_range(
        &self,
        key: &str,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, ConfigError> {
        match self.0.get(key) {
            Some(Written { value: Value::Whole(number), .. }) if range.contains(number) => {
                Ok(*number)
            }
            _ => {
                let rule = format!("must be from {} to {}", range.start(), range.end());
                Err(self.fault(key, &rule))
            }
        }
    }

    /// A number of things, 1 or more.
    pub(super) fn count(&self, key: &str, most: usize) -> Result<usize, ConfigError> {
        let number = self.in_range(key, &(1..=most as u64))?;
        Ok(usize::try_from(number).unwrap_or(most))
    }

    pub(super) fn span(&self, key: &str) -> Result<Duration, ConfigError> {
        spelling::duration(self.text(key)?).map_err(|rule| self.fault(key, &rule))
    }

    pub(super) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let text = self.text(key)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            self.fault(key, &spelling::one_of(&names))
        })
    }

    pub(super) fn hidden(&self, key: &str) -> Result<Option<Hidden>, ConfigError> {
        let Some(text) = self.optional(key) else { return Ok(None) };
        if text.chars().count() < SECRET_CHARS_MIN {
            let rule = format!("must have at least {SECRET_CHARS_MIN} characters");
            return Err(self.fault(key, &rule));
        }
        Ok(Some(Hidden(text.to_owned())))
    }
}

/// A number that its range keeps small.
pub(super) fn to_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
