//! A circuit breaker for applications: shared by many tasks, observed, given back by drop.
//!
//! It is the state machine of [`breaker`](crate::breaker) behind a lock, with a way past the lock
//! for the common case: while a breaker that counts failures in a row is closed and nothing fails,
//! a call reads one number at its beginning and one at its end, and writes none.
//! Never: run a task or a timer, call an observer under the lock, change state when looked at.

mod builder;
mod core;
mod handle;
mod observer;
mod permit;
mod registry;
mod rejected;
mod tell;
mod waiting;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub use crate::breaker::rules::{HalfOpen, OpenFor, Trip, Window};
use crate::breaker::{Forced, Snapshot, State};
use crate::classify::Vote;
use crate::clock::Timestamp;
pub use builder::BreakerBuilder;
pub use core::BreakerView;
pub(crate) use core::Core;
pub use handle::BreakerHandle;
pub use observer::{BreakerObserver, CallEvent, Cause, Phase, StateChange};
pub use permit::Permit;
pub use registry::BreakerRegistry;
pub use rejected::{RejectReason, Rejected};

/// A circuit breaker. Clones are the same breaker.
///
/// ```
/// use std::time::Duration;
/// use resilience::circuit::{CircuitBreaker, HalfOpen, OpenFor, Trip};
///
/// let breaker = CircuitBreaker::builder("payments")
///     .trip(Trip::consecutive(5))
///     .open_for(OpenFor::backoff(Duration::from_secs(5), Duration::from_secs(300)).jitter(0.2))
///     .half_open(HalfOpen::probes(1))
///     .build()?;
///
/// let permit = breaker.try_acquire().expect("it begins closed");
/// permit.success();
/// # Ok::<(), resilience::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct CircuitBreaker {
    core: Arc<Core>,
}

impl CircuitBreaker {
    pub(crate) const fn from_core(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// Leave for one call, or why not now. Give the permit its result; dropped without one it
    /// counts as nothing.
    pub fn try_acquire(&self) -> Result<Permit<'_>, Rejected> {
        self.core.admit().map(|pass| Permit::borrowed(&self.core, pass))
    }

    /// The same, for a permit that must outlive this borrow.
    pub fn try_acquire_owned(&self) -> Result<Permit<'static>, Rejected> {
        self.core.admit().map(|pass| Permit::owned(Arc::clone(&self.core), pass))
    }

    /// Makes a call if it may go; every error counts as a failure. Cancelled or panicking, it
    /// counts as nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use resilience::circuit::CircuitBreaker;
    ///
    /// let breaker = CircuitBreaker::builder("payments").build()?;
    /// let answer = breaker.call(async { Ok::<_, std::io::Error>("paid") }).await?;
    /// assert_eq!(answer, "paid");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call<T, E, F>(&self, call: F) -> Result<T, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let judge =
            |result: &Result<T, E>| if result.is_ok() { Vote::Success } else { Vote::Failure };
        self.call_judged(call, judge).await?.map_err(CallError::Failed)
    }

    /// Makes a call if it may go; `judge` says what its result means.
    pub async fn call_judged<R, F>(
        &self,
        call: F,
        judge: impl FnOnce(&R) -> Vote,
    ) -> Result<R, Rejected>
    where
        F: Future<Output = R>,
    {
        let permit = self.try_acquire()?;
        let result = call.await;
        permit.record(judge(&result));
        Ok(result)
    }

    /// Where it stands now. Looking changes nothing.
    pub fn state(&self) -> State {
        self.core.state()
    }

    /// Everything about it now. Looking changes nothing.
    pub fn snapshot(&self) -> BreakerView {
        self.core.view()
    }

    /// What must survive a restart; give it to [`BreakerBuilder::restore`].
    pub fn kept(&self) -> Snapshot {
        self.core.kept()
    }

    /// Another process that shares this breaker has moved it.
    pub(crate) fn adopt(&self, forced: Option<Forced>, open_until: Option<Timestamp>) {
        self.core.adopt(forced, open_until);
    }

    /// The store of a shared breaker let a call not through.
    pub(crate) fn tell_rejected(&self, rejected: &Rejected) {
        self.core.tell_rejected(rejected);
    }

    /// The store of a shared breaker failed.
    pub(crate) fn tell_store_error(&self, error: &(dyn Error + 'static)) {
        self.core.tell_store_error(error);
    }

    /// For an operator: forces and resets.
    pub fn handle(&self) -> BreakerHandle {
        BreakerHandle::new(Arc::clone(&self.core))
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("name", &self.name())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Why a guarded call gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// It was not made.
    Rejected(Rejected),
    /// It was made and failed.
    Failed(E),
}

impl<E> From<Rejected> for CallError<E> {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rejected(rejected) => Some(rejected),
            Self::Failed(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests;
