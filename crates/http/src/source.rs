//! Where the breaker of a call comes from: always the same one, or one for each receiver.
//!
//! Never: make a breaker that no one shares.

use resilience::circuit::BreakerBuilder;
use resilience::{BreakerRegistry, CircuitBreaker, ConfigError};

/// One breaker, or one for each key.
#[derive(Clone, Debug)]
pub struct Breakers(Source);

#[derive(Clone, Debug)]
enum Source {
    One(CircuitBreaker),
    Keyed(BreakerRegistry),
    Wrong(ConfigError),
}

impl Breakers {
    /// The breaker for a call whose key is `key`.
    pub(crate) fn get(&self, key: impl FnOnce() -> String) -> Result<CircuitBreaker, ConfigError> {
        match &self.0 {
            Source::One(breaker) => Ok(breaker.clone()),
            Source::Keyed(registry) => registry.get(&key()),
            Source::Wrong(error) => Err(*error),
        }
    }
}

impl From<CircuitBreaker> for Breakers {
    fn from(breaker: CircuitBreaker) -> Self {
        Self(Source::One(breaker))
    }
}

impl From<BreakerRegistry> for Breakers {
    fn from(registry: BreakerRegistry) -> Self {
        Self(Source::Keyed(registry))
    }
}

impl From<BreakerBuilder> for Breakers {
    /// Options that break a rule are told where the breaker is first asked for.
    fn from(builder: BreakerBuilder) -> Self {
        Self(builder.build().map_or_else(Source::Wrong, Source::One))
    }
}
