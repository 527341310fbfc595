//! A shared breaker, option by option.
//!
//! Never: panic on an option, correct one silently.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::breaker::SharedBreaker;
use super::inner::{Parts, Sharing, StoreFailure};
use super::store::{BreakerStore, InstanceId, SharedRules};
use crate::breaker::Rules;
use crate::breaker::rules::{HalfOpen, OpenFor, SPAN_MIN, SPAN_RULE, Trip};
use crate::chance::Chance as _;
use crate::circuit::{BreakerBuilder, BreakerObserver, CircuitBreaker};
use crate::error::ConfigError;
use crate::seeds::Seeds;
use crate::sleep::Sleeper;

/// The longest key: an entry of an index in PostgreSQL has less than 2,704 bytes.
const KEY_BYTES_MAX: usize = 1_024;

impl<S: BreakerStore, T: Sleeper + Clone + 'static> SharedBreaker<S, T> {
    /// A breaker under this key of the store: five failures in a row open it for 60 s, then one
    /// process probes. The key is 1 to 1,024 bytes without a NUL character, as every store can
    /// hold it.
    pub fn builder(key: impl Into<Arc<str>>, store: S, sleeper: T) -> SharedBuilder<S, T> {
        let key = key.into();
        SharedBuilder {
            local: CircuitBreaker::builder(Arc::clone(&key)).clock(sleeper.clone()),
            rules: Rules::default(),
            key,
            store,
            sleeper,
            me: this_process(),
            sharing: Sharing::Eventual {
                flush: Duration::from_millis(200),
                max_stale: Duration::from_secs(1),
            },
            on_store_error: StoreFailure::UseLocal,
            store_timeout: Duration::from_millis(100),
            seed: None,
        }
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn this_process() -> InstanceId {
    InstanceId::new(std::process::id().to_string())
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn this_process() -> InstanceId {
    InstanceId::new("wasm")
}

/// What a [`SharedBreaker`] is built from.
#[must_use = "nothing is built before build()"]
#[derive(Debug)]
pub struct SharedBuilder<S, T> {
    key: Arc<str>,
    rules: Rules,
    local: BreakerBuilder,
    store: S,
    sleeper: T,
    me: InstanceId,
    sharing: Sharing,
    on_store_error: StoreFailure,
    store_timeout: Duration,
    seed: Option<u64>,
}

impl<S: BreakerStore, T: Sleeper + 'static> SharedBuilder<S, T> {
    /// What opens it: failures in a row; five if not set.
    pub const fn trip(mut self, trip: Trip) -> Self {
        self.rules.trip = trip;
        self
    }

    /// How long it stays open; 60 s each time if not set.
    pub const fn open_for(mut self, open_for: OpenFor) -> Self {
        self.rules.open_for = open_for;
        self
    }

    /// What then closes it: one probe at a time, whose longest wait is its lease, 30 s if not set.
    pub const fn half_open(mut self, half_open: HalfOpen) -> Self {
        self.rules.half_open = half_open;
        self
    }

    /// How closely processes go together; eventually, with news every 200 ms, if not set.
    pub const fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing = sharing;
        self
    }

    /// What a call does when the store fails; the process's own breaker decides if not set.
    pub const fn on_store_error(mut self, failure: StoreFailure) -> Self {
        self.on_store_error = failure;
        self
    }

    /// How long a call waits for the store; 100 ms if not set. Shorter than the longest wait for a
    /// probe: its lease would be over before the answer.
    pub const fn store_timeout(mut self, timeout: Duration) -> Self {
        self.store_timeout = timeout;
        self
    }

    /// The name of this process in the store, without a NUL character; its number if not set.
    pub fn instance(mut self, me: InstanceId) -> Self {
        self.me = me;
        self
    }

    /// Seeds the numbers by which its calls are known in the store, so that a run can be repeated;
    /// no two processes may have the same. From the system if not set.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Someone who watches.
    pub fn observe(mut self, observer: impl BreakerObserver + 'static) -> Self {
        self.local = self.local.observe(observer);
        self
    }

    /// Checks all options and gives the breaker.
    pub fn build(self) -> Result<SharedBreaker<S, T>, ConfigError> {
        let shared = SharedRules::new(&self.rules)?;
        let key = (1..=KEY_BYTES_MAX).contains(&self.key.len()) && !self.key.contains('\0');
        ConfigError::unless(key, "key", "must be 1 to 1024 bytes without a NUL character")?;
        let named = !self.me.as_str().contains('\0');
        ConfigError::unless(named, "instance", "must not hold a NUL character")?;
        ConfigError::unless(self.store_timeout >= SPAN_MIN, "store_timeout", SPAN_RULE)?;
        if let Sharing::Eventual { flush, max_stale } = self.sharing {
            ConfigError::unless(flush >= SPAN_MIN, "sharing.flush", SPAN_RULE)?;
            let longer = max_stale >= flush;
            ConfigError::unless(longer, "sharing.max_stale", "must not be below sharing.flush")?;
        }
        let in_time = self.store_timeout < shared.lease;
        ConfigError::unless(in_time, "store_timeout", "must be below half_open.max_wait")?;
        // A local probe holds its place no longer than its lease in the store.
        let mut rules = self.rules;
        rules.half_open.max_wait = Some(shared.lease);
        let mut chance = Seeds::new(self.seed)?.next();
        let (calls, seed) = (AtomicU64::new(chance.next_u64()), chance.next_u64());
        Ok(SharedBreaker::new(Parts {
            key: self.key,
            rules: shared,
            local: self.local.rules(rules).seed(seed).build()?,
            calls,
            store: self.store,
            sleeper: self.sleeper,
            me: self.me,
            sharing: self.sharing,
            on_store_error: self.on_store_error,
            store_timeout: self.store_timeout,
        }))
    }
}
