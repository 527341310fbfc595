//! A circuit breaker, option by option.
//!
//! Never: panic on an option, correct one silently.

use std::fmt;
use std::sync::Arc;

use super::CircuitBreaker;
use super::core::{Core, Parts};
use super::observer::BreakerObserver;
use crate::breaker::rules::{HalfOpen, OpenFor, Trip};
use crate::breaker::{Rules, Snapshot};
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::seeds::Seeds;

impl CircuitBreaker {
    /// A breaker with this name: five failures in a row open it for 60 s, then one probe decides.
    pub fn builder(name: impl Into<Arc<str>>) -> BreakerBuilder {
        BreakerBuilder {
            name: name.into(),
            rules: Rules::default(),
            clock: None,
            observers: Vec::new(),
            seed: None,
            kept: None,
        }
    }
}

/// What a [`CircuitBreaker`] is built from.
#[must_use = "nothing is built before build()"]
pub struct BreakerBuilder {
    name: Arc<str>,
    rules: Rules,
    clock: Option<Arc<dyn Clock>>,
    observers: Vec<Box<dyn BreakerObserver>>,
    seed: Option<u64>,
    kept: Option<Snapshot>,
}

impl BreakerBuilder {
    /// What opens it; five failures in a row if not set.
    pub const fn trip(mut self, trip: Trip) -> Self {
        self.rules.trip = trip;
        self
    }

    /// How long it stays open; 60 s each time if not set.
    pub const fn open_for(mut self, open_for: OpenFor) -> Self {
        self.rules.open_for = open_for;
        self
    }

    /// What then closes it; one success of one probe if not set.
    pub const fn half_open(mut self, half_open: HalfOpen) -> Self {
        self.rules.half_open = half_open;
        self
    }

    /// All rules at once.
    pub fn rules(mut self, rules: impl Into<Rules>) -> Self {
        self.rules = rules.into();
        self
    }

    /// Whose time it goes by; the machine's steady clock if not set.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Someone who watches; several hear in the order in which they were added.
    pub fn observe(mut self, observer: impl BreakerObserver + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Seeds its jitter, so that a run can be repeated; from the system if not set.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Begins where another one was, as [`CircuitBreaker::kept`] told.
    pub fn restore(mut self, kept: Snapshot) -> Self {
        self.kept = Some(kept);
        self
    }

    /// Checks all options and gives the breaker, closed.
    pub fn build(self) -> Result<CircuitBreaker, ConfigError> {
        self.rules.validate()?;
        ConfigError::unless(!self.name.is_empty(), "name", "must not be empty")?;
        // No call has a key here, so that failures in a row would never involve two.
        let keyless = self.rules.trip.keys_min == 1;
        ConfigError::unless(keyless, "trip.distinct_keys", "must be 1 where calls have no keys")?;
        let clock = self
            .clock
            .or_else(default_clock)
            .ok_or(ConfigError::new("clock", "must be given where the system has none"))?;
        let chance = Seeds::new(self.seed)?.next();
        Ok(CircuitBreaker::from_core(Arc::new(Core::new(Parts {
            name: self.name,
            rules: self.rules,
            clock,
            observers: self.observers,
            chance,
            kept: self.kept,
        }))))
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn default_clock() -> Option<Arc<dyn Clock>> {
    Some(Arc::new(crate::clock::SteadyClock::new()))
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn default_clock() -> Option<Arc<dyn Clock>> {
    None
}

impl fmt::Debug for BreakerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerBuilder")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
