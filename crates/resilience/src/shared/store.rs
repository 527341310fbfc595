//! What a store of shared breakers does, and the words it speaks.
//!
//! Every method is one step, atomic, by the store's own clock. A breaker that is not there is
//! closed; it comes into being when it is first asked about.
//! Never: hold anything between two steps.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::runs::Runs;
use super::watch::Watch;
use crate::breaker::{Forced, Rules};
use crate::circuit::{Cause, Phase};
use crate::classify::Vote;
use crate::error::{ConfigError, with_causes};
use crate::share::Share;

/// The rules that a store can carry out: failures in a row, one probe at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRules {
    /// Failures in a row, of all processes together, that open it.
    pub failures: u32,
    /// The first open time; stores count in microseconds.
    pub open_for: Duration,
    /// Each failed probe doubles it, up to this.
    pub open_for_max: Duration,
    /// Successes of probes that close it.
    pub close_after: u32,
    /// How long a probe holds its place; then its process counts as gone.
    pub lease: Duration,
}

impl SharedRules {
    /// From a breaker's rules, if a store can carry them out. Without a longest wait for a probe
    /// its lease is 30 s.
    pub fn new(rules: &Rules) -> Result<Self, ConfigError> {
        rules.validate()?;
        let trip = rules.trip;
        let failures = trip.failures.filter(|_| trip.rate.is_none() && trip.keys_min == 1);
        let failures = failures.ok_or(ConfigError::new(
            "trip",
            "must be failures in a row alone where the state is shared",
        ))?;
        let half_open = rules.half_open;
        let one = half_open.probes == 1;
        ConfigError::unless(one, "half_open.probes", "must be 1 where the state is shared")?;
        // All processes wait for the same moment, and one of them probes: there is nothing to
        // spread.
        let plain = rules.open_for.jitter == Share::NONE;
        ConfigError::unless(plain, "open_for.jitter", "must be 0 where the state is shared")?;
        Ok(Self {
            failures,
            open_for: rules.open_for.first,
            open_for_max: rules.open_for.max,
            close_after: half_open.close_after,
            lease: half_open.max_wait.unwrap_or(Duration::from_secs(30)),
        })
    }
}

/// Who asks a store: a process, and in its breaker's calls also which of them, since only the one
/// that was given a probe may give it back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// Any name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The call of this number.
    pub(super) fn call(&self, number: u64) -> Self {
        Self(format!("{}/{number:016x}", self.0).into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a call is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Go; report the end with this generation.
    Closed {
        /// The generation.
        generation: u64,
    },
    /// Go, as the one probe.
    Probe {
        /// The generation.
        generation: u64,
        /// The number of the probe; report its end with it.
        lease: u64,
    },
    /// The open time is not over.
    Open {
        /// The generation.
        generation: u64,
        /// What is left of it.
        retry_in: Duration,
    },
    /// A probe is out.
    ProbeOut {
        /// The generation.
        generation: u64,
        /// What is left of its lease.
        retry_in: Duration,
    },
    /// It is forced open.
    ForcedOpen {
        /// The generation.
        generation: u64,
    },
}

/// How calls ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Ordinary calls.
    Calls {
        /// The generation in which they were begun.
        generation: u64,
        /// What they amount to.
        runs: Runs,
    },
    /// A probe.
    Probe {
        /// The generation in which it was begun.
        generation: u64,
        /// Its number.
        lease: u64,
        /// What it proved.
        vote: Vote,
    },
    /// A process opened it while the store was away, or the store has lost that it was open.
    Opened {
        /// The generation that is closed.
        generation: u64,
        /// The open time that it had come to; taken as within the rules.
        open_for: Duration,
        /// What is left of it; nothing: the next call probes.
        left: Duration,
    },
}

/// A change of state in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The generation that it began.
    pub generation: u64,
    /// The state now.
    pub to: Phase,
    /// Why.
    pub cause: Cause,
}

/// A breaker in a store, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The state; open also when the open time is over and nobody has probed yet.
    pub phase: Phase,
    /// The generation.
    pub generation: u64,
    /// Whether by hand.
    pub forced: Option<Forced>,
    /// What is left of the open time.
    pub retry_in: Duration,
    /// Failures in a row.
    pub failures: u32,
    /// Whether it has never opened since its record came into being: one that was lost begins like
    /// this, and knows nothing of what was before.
    pub fresh: bool,
}

/// A store that did not do its step.
#[derive(Debug)]
pub struct StoreError(Box<dyn Error + Send + Sync>);

impl StoreError {
    /// From what went wrong.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "breaker store: {}", with_causes(self.0.as_ref()))
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// A store of shared breakers.
pub trait BreakerStore: Send + Sync + 'static {
    /// A call asks whether it may go. A probe is `me`'s until its end is reported, it is given back
    /// or its lease is over.
    fn admit(
        &self,
        key: &str,
        rules: &SharedRules,
        me: &InstanceId,
    ) -> impl Future<Output = Result<Admit, StoreError>> + Send;

    /// Gives the probe back that `me` was let out as, if it is still out, and says whether it was.
    /// It proves nothing, and the next call probes.
    fn release(
        &self,
        key: &str,
        me: &InstanceId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Calls have ended. Counts for nothing if they were begun in another generation.
    fn report(
        &self,
        key: &str,
        rules: &SharedRules,
        report: &Report,
    ) -> impl Future<Output = Result<Option<Transition>, StoreError>> + Send;

    /// Several reports, each a step of its own, in their order.
    fn report_all(
        &self,
        key: &str,
        rules: &SharedRules,
        batch: &[Report],
    ) -> impl Future<Output = Result<Vec<Transition>, StoreError>> + Send {
        async move {
            let mut told = Vec::new();
            for report in batch {
                told.extend(self.report(key, rules, report).await?);
            }
            Ok(told)
        }
    }

    /// Looks.
    fn snapshot(&self, key: &str) -> impl Future<Output = Result<View, StoreError>> + Send;

    /// Sets the state by hand, or gives it back to the rules.
    fn force(
        &self,
        key: &str,
        forced: Option<Forced>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Hears of changes to the breaker of `key`, of this process's and of others'. Without it they
    /// are heard of with the next news.
    fn watch(&self, _key: &str) -> Watch {
        Watch::deaf()
    }
}

impl<S: BreakerStore> BreakerStore for Arc<S> {
    fn admit(
        &self,
        key: &str,
        rules: &SharedRules,
        me: &InstanceId,
    ) -> impl Future<Output = Result<Admit, StoreError>> + Send {
        (**self).admit(key, rules, me)
    }

    fn release(
        &self,
        key: &str,
        me: &InstanceId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        (**self).release(key, me)
    }

    fn report(
        &self,
        key: &str,
        rules: &SharedRules,
        report: &Report,
    ) -> impl Future<Output = Result<Option<Transition>, StoreError>> + Send {
        (**self).report(key, rules, report)
    }

    fn report_all(
        &self,
        key: &str,
        rules: &SharedRules,
        batch: &[Report],
    ) -> impl Future<Output = Result<Vec<Transition>, StoreError>> + Send {
        (**self).report_all(key, rules, batch)
    }

    fn snapshot(&self, key: &str) -> impl Future<Output = Result<View, StoreError>> + Send {
        (**self).snapshot(key)
    }

    fn force(
        &self,
        key: &str,
        forced: Option<Forced>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).force(key, forced)
    }

    fn watch(&self, key: &str) -> Watch {
        (**self).watch(key)
    }
}
