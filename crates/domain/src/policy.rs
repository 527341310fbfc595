//! Policies of delivery: the server's defaults and what an endpoint changes of them.
//!
//! Never: compute a delay; `resilience` does.

use std::time::Duration;

use resilience::{Backoff, BreakerConfig, RetryAfterMode, RetryPolicy};

/// Which answers are retried. Network faults always are, 2xx never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RetryOn {
    /// 408, 425, 429 and 500–599.
    #[default]
    Transient,
    /// Every non-2xx, 3xx and 410 included.
    All,
    /// These ranges of statuses, both ends included.
    Listed(Vec<(u16, u16)>),
}

impl RetryOn {
    /// Whether an answer with this status is retried.
    pub fn includes(&self, status: u16) -> bool {
        match self {
            _ if (200..300).contains(&status) => false,
            Self::Transient => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::All => true,
            Self::Listed(ranges) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&status))
            }
        }
    }
}

/// The names of the six strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// base·2^n
    Exponential,
    /// base
    Fixed,
    /// base·(n+1)
    Linear,
    /// U(0, base·2^n)
    FullJitter,
    /// U(base, 3·last)
    DecorrelatedJitter,
    /// a list
    Schedule,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Exponential,
        Self::Fixed,
        Self::Linear,
        Self::FullJitter,
        Self::DecorrelatedJitter,
        Self::Schedule,
    ];

    /// The name in settings and API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Fixed => "fixed",
            Self::Linear => "linear",
            Self::FullJitter => "full_jitter",
            Self::DecorrelatedJitter => "decorrelated_jitter",
            Self::Schedule => "schedule",
        }
    }

    /// The strategy with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// Server-wide retry settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// How delays grow.
    pub strategy: Strategy,
    /// The first step.
    pub base: Duration,
    /// No delay is longer.
    pub cap: Duration,
    /// For [`Strategy::Schedule`].
    pub schedule: Vec<Duration>,
    /// Sends in all, first and probes included.
    pub attempts_max: u32,
    /// From acceptance or the last replay.
    pub age_max: Duration,
    /// Which answers are retried.
    pub retry_on: RetryOn,
    /// How `Retry-After` is used.
    pub retry_after: RetryAfterMode,
    /// Hints are cut to this.
    pub retry_after_max: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::FullJitter,
            base: Duration::from_secs(2),
            cap: Duration::from_secs(3_600),
            schedule: Vec::new(),
            attempts_max: 20,
            age_max: Duration::from_secs(24 * 3_600),
            retry_on: RetryOn::Transient,
            retry_after: RetryAfterMode::Exact,
            retry_after_max: Duration::from_secs(24 * 3_600),
        }
    }
}

/// What an endpoint changes of [`RetrySettings`]; absent means the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of RetrySettings")]
pub struct RetryOverrides {
    pub strategy: Option<Strategy>,
    pub base: Option<Duration>,
    pub cap: Option<Duration>,
    pub schedule: Option<Vec<Duration>>,
    pub attempts_max: Option<u32>,
    pub age_max: Option<Duration>,
    pub retry_on: Option<RetryOn>,
    pub retry_after: Option<RetryAfterMode>,
}

/// What an endpoint changes of the server's breaker; absent means the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of BreakerConfig")]
pub struct BreakerOverrides {
    pub failures: Option<u32>,
    pub open_for: Option<Duration>,
    pub open_for_max: Option<Duration>,
}

impl RetryOverrides {
    /// The settings in force.
    pub fn over(&self, server: &RetrySettings) -> RetrySettings {
        let server = server.clone();
        RetrySettings {
            strategy: self.strategy.unwrap_or(server.strategy),
            base: self.base.unwrap_or(server.base),
            cap: self.cap.unwrap_or(server.cap),
            schedule: self.schedule.clone().unwrap_or(server.schedule),
            attempts_max: self.attempts_max.unwrap_or(server.attempts_max),
            age_max: self.age_max.unwrap_or(server.age_max),
            retry_on: self.retry_on.clone().unwrap_or(server.retry_on),
            retry_after: self.retry_after.unwrap_or(server.retry_after),
            retry_after_max: server.retry_after_max,
        }
    }
}

impl RetrySettings {
    /// Sends in all: an empty schedule has none after the first.
    pub const fn sends_max(&self) -> u32 {
        match self.strategy {
            Strategy::Schedule if self.schedule.is_empty() => 1,
            _ => self.attempts_max,
        }
    }

    /// The policy that computes delays.
    pub fn policy(&self) -> RetryPolicy {
        let (base, cap) = (self.base, self.cap);
        RetryPolicy {
            backoff: match self.strategy {
                Strategy::Exponential => Backoff::Exponential { base, cap },
                Strategy::Fixed => Backoff::Fixed { base },
                Strategy::Linear => Backoff::Linear { base, cap },
                Strategy::FullJitter => Backoff::FullJitter { base, cap },
                Strategy::DecorrelatedJitter => Backoff::DecorrelatedJitter { base, cap },
                // There is no second send, and so no delay.
                Strategy::Schedule if self.schedule.is_empty() => {
                    Backoff::Fixed { base: Duration::from_secs(1) }
                }
                Strategy::Schedule => Backoff::Schedule { delays: self.schedule.clone() },
            },
            calls_max: self.sends_max(),
            age_max: self.age_max,
            retry_after: self.retry_after,
            retry_after_max: self.retry_after_max,
        }
    }
}

impl BreakerOverrides {
    /// The configuration in force. Fewer failures than the messages that must be among them is a
    /// wish for fewer messages.
    pub fn over(&self, server: &BreakerConfig) -> BreakerConfig {
        let mut config = server.clone();
        config.failures = self.failures.unwrap_or(config.failures);
        config.keys_min = config.keys_min.min(config.failures);
        config.open_for = self.open_for.unwrap_or(config.open_for);
        config.open_for_max = self.open_for_max.unwrap_or(config.open_for_max).max(config.open_for);
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_schedule_is_one_send() {
        let server = RetrySettings::default();
        let own = |delays: &[u64]| RetryOverrides {
            strategy: Some(Strategy::Schedule),
            schedule: Some(delays.iter().copied().map(Duration::from_secs).collect()),
            ..RetryOverrides::default()
        };
        let alone = own(&[]).over(&server);
        assert_eq!((alone.sends_max(), alone.policy().calls_max), (1, 1));
        assert_eq!(alone.policy().validate(), Ok(()));
        assert_eq!(own(&[5]).over(&server).policy().calls_max, server.attempts_max);
        // A schedule of its own is not cut short by the server's empty one.
        let server = RetrySettings { strategy: Strategy::Schedule, ..server };
        assert_eq!(own(&[5]).over(&server).sends_max(), server.attempts_max);
    }

    #[test]
    fn a_single_failure_may_open_a_breaker() {
        let server = BreakerConfig::default();
        let own = |failures| BreakerOverrides { failures, ..BreakerOverrides::default() };
        for failures in [1, 2, 1_000] {
            let config = own(Some(failures)).over(&server);
            assert_eq!(config.validate(), Ok(()), "{failures}");
            assert_eq!(
                (config.failures, config.keys_min),
                (failures, failures.min(server.keys_min))
            );
        }
        assert_eq!(own(None).over(&server), server);
    }
}
