//! The delivery engine's settings of a breaker: when it opens, and for how long.
//!
//! Plain settings with defaults and the rules between them.
//! Never: state.

use std::time::Duration;

use super::rules::{CALLS_MIN_MAX, FAILURES_MAX, HalfOpen, OpenFor, Rate, Rules, Trip, Window};
use crate::error::ConfigError;
use crate::share::Share;

/// The settings of a breaker. It opens on `failures` or on `rate_percent`, whichever comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Off: every call is let through and nothing opens.
    pub enabled: bool,
    /// Consecutive failures that open it.
    pub failures: u32,
    /// How many different keys those failures must involve, so that one bad message opens nothing.
    pub keys_min: u32,
    /// The share of failures, in per cent, that opens it.
    pub rate_percent: u32,
    /// The share counts only from this many calls on.
    pub rate_calls_min: u32,
    /// The time over which the share is taken.
    pub rate_span: Duration,
    /// How long it stays open at first.
    pub open_for: Duration,
    /// The most that it stays open, after many failed probes.
    pub open_for_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            failures: 5,
            keys_min: 2,
            rate_percent: 50,
            rate_calls_min: 20,
            rate_span: Duration::from_secs(60),
            open_for: Duration::from_secs(30),
            open_for_max: Duration::from_secs(600),
        }
    }
}

impl Config {
    /// Checks every field and names the first that breaks a rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let rules = [
            ((1..=FAILURES_MAX).contains(&self.failures), "failures", "must be from 1 to 1000"),
            (self.keys_min >= 1, "keys_min", "must be at least 1"),
            (self.keys_min <= self.failures, "keys_min", "must not be above failures"),
            ((1..=100).contains(&self.rate_percent), "rate_percent", "must be from 1 to 100"),
            (
                (1..=CALLS_MIN_MAX).contains(&self.rate_calls_min),
                "rate_calls_min",
                "must be from 1 to 1000000",
            ),
            (!self.rate_span.is_zero(), "rate_span", "must be above zero"),
            (!self.open_for.is_zero(), "open_for", "must be above zero"),
            (self.open_for_max >= self.open_for, "open_for_max", "must not be below open_for"),
        ];
        rules
            .into_iter()
            .try_for_each(|(holds, field, rule)| ConfigError::unless(holds, field, rule))
    }
}

impl From<Config> for Rules {
    /// The delivery engine's breaker: both ways of opening, one probe, and an open time that is
    /// drawn from its upper half once a probe has failed.
    fn from(config: Config) -> Self {
        let rate = Rate {
            share: Share::per_cent(config.rate_percent),
            calls_min: config.rate_calls_min,
            window: Window::Time(config.rate_span),
            slow: None,
        };
        Self {
            enabled: config.enabled,
            trip: Trip {
                failures: Some(config.failures),
                keys_min: config.keys_min,
                rate: Some(rate),
                misplaced: None,
            },
            open_for: OpenFor {
                first: config.open_for,
                max: config.open_for_max,
                jitter: Share::per_cent(50),
                jitter_first: false,
            },
            half_open: HalfOpen::probes(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn the_broken_field_is_named() {
        type Spoil = fn(&mut Config);
        let broken: [(Spoil, &str); 10] = [
            (|c| c.failures = 0, "failures"),
            (|c| c.failures = 1_001, "failures"),
            (|c| c.keys_min = 0, "keys_min"),
            (|c| c.keys_min = 6, "keys_min"),
            (|c| c.rate_percent = 101, "rate_percent"),
            (|c| c.rate_calls_min = 0, "rate_calls_min"),
            (|c| c.rate_calls_min = 1_000_001, "rate_calls_min"),
            (|c| c.rate_span = Duration::ZERO, "rate_span"),
            (|c| c.open_for = Duration::ZERO, "open_for"),
            (|c| c.open_for_max = Duration::from_secs(29), "open_for_max"),
        ];
        for (spoil, field) in broken {
            let mut config = Config::default();
            spoil(&mut config);
            assert_eq!(config.validate().unwrap_err().option, field);
        }
    }
}
