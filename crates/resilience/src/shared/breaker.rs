//! A breaker that this process shares with others.
//!
//! A local breaker decides, and goes on deciding when the store is down; news from the store move
//! it. A call that would probe asks the store first, so that one process probes and not each.
//! Never: wait for the store longer than its time, fail a call because of it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::inner::{Inner, Parts, Sharing};
use super::permit::SharedPermit;
use super::store::{BreakerStore, StoreError};
use crate::breaker::{Forced, State};
use crate::circuit::{CallError, Rejected};
use crate::classify::Vote;
use crate::sleep::Sleeper;

/// A circuit breaker shared by processes. Clones are the same breaker.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use resilience::shared::{MemoryBreakerStore, SharedBreaker};
/// use resilience::{SteadyClock, TokioSleeper, Trip};
///
/// let store = MemoryBreakerStore::new(SteadyClock::new());
/// let breaker = SharedBreaker::builder("payments", store, TokioSleeper::new())
///     .trip(Trip::consecutive(5))
///     .build()?;
/// tokio::spawn(breaker.driver());
///
/// let answer = breaker.call(async { Ok::<_, std::io::Error>("paid") }).await?;
/// assert_eq!(answer, "paid");
/// # Ok(())
/// # }
/// ```
pub struct SharedBreaker<S, T> {
    inner: Arc<Inner<S, T>>,
}

impl<S, T> Clone for SharedBreaker<S, T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: BreakerStore, T: Sleeper + 'static> SharedBreaker<S, T> {
    pub(super) fn new(parts: Parts<S, T>) -> Self {
        Self { inner: Arc::new(Inner::new(parts)) }
    }

    /// Leave for one call, or why not now.
    pub async fn acquire(&self) -> Result<SharedPermit<S, T>, Rejected> {
        let inner = &self.inner;
        let now = inner.parts.sleeper.now();
        let asks = match inner.parts.sharing {
            Sharing::Strict => true,
            Sharing::Eventual { max_stale, .. } => {
                let timeout = inner.parts.store_timeout;
                let stale = inner.mirror().should_ask(max_stale, timeout, now);
                if stale {
                    inner.refresh().await;
                }
                inner.parts.local.state() == State::HalfOpen
            }
        };
        let leave = if inner.mirror().rests(now) {
            inner.alone()?
        } else if asks {
            inner.ask().await?
        } else {
            inner.leave().await?
        };
        Ok(SharedPermit::new(Arc::clone(&self.inner), leave))
    }

    /// Makes a call if it may go; every error counts as a failure. Cancelled or panicking, it
    /// counts as nothing.
    pub async fn call<R, E, F>(&self, call: F) -> Result<R, CallError<E>>
    where
        F: Future<Output = Result<R, E>>,
    {
        let permit = self.acquire().await?;
        let result = call.await;
        permit.record(if result.is_ok() { Vote::Success } else { Vote::Failure }).await;
        result.map_err(CallError::Failed)
    }

    /// Where it stands here. Looking changes nothing and asks nobody.
    pub fn state(&self) -> State {
        self.inner.parts.local.state()
    }

    /// Tells the store what is to be told and hears what is new, now. [`SharedBreaker::driver`]
    /// does so regularly.
    pub async fn refresh(&self) {
        self.inner.refresh().await;
    }

    /// Sets the state by hand for all processes, or gives it back to the rules.
    pub async fn force(&self, forced: Option<Forced>) -> Result<(), StoreError> {
        let Parts { store, key, .. } = &self.inner.parts;
        self.inner.in_time(store.force(key, forced)).await?;
        self.inner.refresh().await;
        Ok(())
    }

    /// Exchanges news with the store for as long as the breaker is in use: regularly, when it opens
    /// here, and when the store tells of a change ([`BreakerStore::watch`]). Spawn it. Without it a
    /// call does so, when the last news are older than they may be.
    pub fn driver(&self) -> impl Future<Output = ()> + use<S, T> {
        drive(Arc::downgrade(&self.inner))
    }
}

async fn drive<S: BreakerStore, T: Sleeper + 'static>(weak: Weak<Inner<S, T>>) {
    let Some((watch, hurry)) = weak
        .upgrade()
        .map(|inner| (inner.parts.store.watch(&inner.parts.key), Arc::clone(&inner.hurry)))
    else {
        return;
    };
    // At first, too: what changed before the watch began is heard of now.
    while let Some(inner) = weak.upgrade() {
        inner.refresh().await;
        let every = match inner.parts.sharing {
            Sharing::Eventual { flush, .. } => flush,
            Sharing::Strict => inner.parts.rules.lease,
        };
        let mut sleep = pin!(inner.parts.sleeper.sleep(every));
        drop(inner);
        poll_fn(|context| {
            let heard = [hurry.poll_heard(context), watch.poll_changed(context)];
            let due = sleep.as_mut().poll(context).is_ready();
            if due || heard.iter().any(Poll::is_ready) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl<S, T> fmt::Debug for SharedBreaker<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBreaker")
            .field("key", &self.inner.parts.key)
            .field("local", &self.inner.parts.local)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
