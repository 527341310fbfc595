//! One breaker for each key, such as a host, with a bound on their number.
//!
//! In: a key. Out: its breaker, made at first use. Keys that were not asked for over a time are
//! forgotten, and where there are too many the longest unused first; an open breaker is forgotten
//! last.
//! Never: grow without a bound, hold its lock while a breaker is made or used.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use super::CircuitBreaker;
use super::builder::BreakerBuilder;
use crate::breaker::State;
use crate::breaker::rules::{SPAN_MIN, SPAN_RULE};
use crate::clock::{Clock, Timestamp};
use crate::error::ConfigError;

const KEYS_MAX: usize = 10_000;
const IDLE_TTL: Duration = Duration::from_secs(600);
/// Of a full registry so much is forgotten at once, so that not every new key sweeps.
const SWEPT_SHARE: usize = 16;

type Template = dyn Fn(&str) -> BreakerBuilder + Send + Sync;

struct Entry {
    breaker: CircuitBreaker,
    used: AtomicI64,
}

impl Entry {
    fn used(&self) -> Timestamp {
        Timestamp::from_micros(self.used.load(Ordering::Relaxed))
    }
}

/// Breakers by key. Clones are the same registry.
///
/// ```
/// use std::time::Duration;
/// use resilience::circuit::{BreakerRegistry, CircuitBreaker, Trip};
/// use resilience::SteadyClock;
///
/// let breakers = BreakerRegistry::new(SteadyClock::new(), |host| {
///     CircuitBreaker::builder(host).trip(Trip::consecutive(3))
/// })
/// .max_keys(1_000)
/// .idle_ttl(Duration::from_secs(300));
///
/// let breaker = breakers.get("api.example.com")?;
/// assert_eq!(breaker.name(), "api.example.com");
/// # Ok::<(), resilience::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct BreakerRegistry {
    template: Arc<Template>,
    clock: Arc<dyn Clock>,
    keys_max: usize,
    idle_ttl: Duration,
    kept: Arc<RwLock<Kept>>,
}

struct Kept {
    entries: HashMap<Arc<str>, Entry>,
    swept: Timestamp,
}

impl BreakerRegistry {
    /// No breakers yet; `template` gives the options for a key's. The clock tells when a key was
    /// used; breakers go by the one that their options name.
    pub fn new(
        clock: impl Clock + 'static,
        template: impl Fn(&str) -> BreakerBuilder + Send + Sync + 'static,
    ) -> Self {
        let kept = Kept { entries: HashMap::new(), swept: clock.now() };
        Self {
            template: Arc::new(template),
            clock: Arc::new(clock),
            keys_max: KEYS_MAX,
            idle_ttl: IDLE_TTL,
            kept: Arc::new(RwLock::new(kept)),
        }
    }

    /// How many keys are kept; 10,000 if not set, at least 1.
    #[must_use]
    pub const fn max_keys(mut self, keys: usize) -> Self {
        self.keys_max = keys;
        self
    }

    /// How long an unused key is kept; 10 min if not set, at least 1 ms.
    #[must_use]
    pub const fn idle_ttl(mut self, ttl: Duration) -> Self {
        self.idle_ttl = ttl;
        self
    }

    /// The breaker of `key`; a new one if the key is new or was idle for too long. An error names
    /// the option that is wrong, of the key's breaker or of the registry.
    pub fn get(&self, key: &str) -> Result<CircuitBreaker, ConfigError> {
        ConfigError::unless(self.keys_max >= 1, "max_keys", "must be at least 1")?;
        ConfigError::unless(self.idle_ttl >= SPAN_MIN, "idle_ttl", SPAN_RULE)?;
        let now = self.clock.now();
        if let Some(entry) = self.read().entries.get(key)
            && !self.is_idle(entry, now)
        {
            entry.used.store(now.as_micros(), Ordering::Relaxed);
            return Ok(entry.breaker.clone());
        }
        let fresh = (self.template)(key).build()?;
        Ok(self.insert(key, fresh, now))
    }

    /// How many keys are kept now.
    pub fn len(&self) -> usize {
        self.read().entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All breakers, to look at.
    pub fn breakers(&self) -> Vec<CircuitBreaker> {
        self.read().entries.values().map(|entry| entry.breaker.clone()).collect()
    }

    fn insert(&self, key: &str, fresh: CircuitBreaker, now: Timestamp) -> CircuitBreaker {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.entries.get(key)
            && !self.is_idle(entry, now)
        {
            return entry.breaker.clone();
        }
        if kept.entries.len() >= self.keys_max || now.since(kept.swept) >= self.idle_ttl {
            kept.swept = now;
            self.sweep(&mut kept.entries, now);
        }
        let entry = Entry { breaker: fresh.clone(), used: AtomicI64::new(now.as_micros()) };
        kept.entries.insert(Arc::from(key), entry);
        fresh
    }

    /// Makes room: what is idle goes, and if that is not enough, some of what was used longest ago.
    fn sweep(&self, entries: &mut HashMap<Arc<str>, Entry>, now: Timestamp) {
        entries.retain(|_, entry| !self.is_idle(entry, now));
        let too_many = (entries.len() + 1).saturating_sub(self.keys_max);
        if too_many == 0 {
            return;
        }
        let mut order: Vec<_> = entries
            .iter()
            .map(|(key, entry)| {
                (entry.breaker.state() != State::Closed, entry.used(), Arc::clone(key))
            })
            .collect();
        order.sort_unstable();
        let swept = too_many.max(self.keys_max / SWEPT_SHARE);
        for (_, _, key) in order.into_iter().take(swept) {
            entries.remove(&key);
        }
    }

    fn is_idle(&self, entry: &Entry, now: Timestamp) -> bool {
        now.since(entry.used()) >= self.idle_ttl
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BreakerRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerRegistry")
            .field("len", &self.len())
            .field("keys_max", &self.keys_max)
            .field("idle_ttl", &self.idle_ttl)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
