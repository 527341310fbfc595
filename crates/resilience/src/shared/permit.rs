//! Leave for one call under a shared breaker.
//!
//! Never: be lost with a task that is dropped; the end of a probe is told until the store has heard
//! it, and its lease runs out in any case.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::inner::{Inner, Kind, Leave};
use super::store::BreakerStore;
use crate::circuit::Permit;
use crate::classify::Vote;
use crate::sleep::Sleeper;

/// Leave for one call. Tell it how the call ended; dropped untold it says nothing about the
/// receiver and frees its place.
#[must_use = "a permit that is dropped at once guards no call"]
pub struct SharedPermit<S: BreakerStore, T: Sleeper + 'static> {
    inner: Arc<Inner<S, T>>,
    local: Option<Permit<'static>>,
    kind: Kind,
    told: bool,
}

impl<S: BreakerStore, T: Sleeper + 'static> SharedPermit<S, T> {
    pub(super) fn new(inner: Arc<Inner<S, T>>, (local, kind): Leave) -> Self {
        Self { inner, local, kind, told: false }
    }

    /// The call succeeded.
    pub async fn success(self) {
        self.record(Vote::Success).await;
    }

    /// The call failed, with this error for whoever watches.
    pub async fn failure(mut self, error: &(dyn Error + Send + Sync + 'static)) {
        if let Some(local) = self.local.take() {
            local.failure(error);
        }
        self.end(Vote::Failure).await;
    }

    /// The call ended with this vote. Returns when the store knows, where it must know at once.
    pub async fn record(mut self, vote: Vote) {
        if let Some(local) = self.local.take() {
            local.record(vote);
        }
        self.end(vote).await;
    }

    /// Whether this call decides for all processes if the breaker closes.
    pub const fn is_probe(&self) -> bool {
        matches!(self.kind, Kind::Probe { .. })
    }

    async fn end(&mut self, vote: Vote) {
        self.told = true;
        if !self.inner.ended(self.kind, vote) {
            return;
        }
        if self.is_probe() {
            self.inner.refresh().await;
        } else {
            self.inner.tell().await;
        }
    }
}

impl<S: BreakerStore, T: Sleeper + 'static> Drop for SharedPermit<S, T> {
    fn drop(&mut self) {
        // A probe that decides nothing keeps everybody waiting: others are to know at once.
        if !self.told && self.inner.ended(self.kind, Vote::Ignore) {
            self.inner.hurry.ring();
        }
    }
}

impl<S: BreakerStore, T: Sleeper + 'static> fmt::Debug for SharedPermit<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPermit").field("kind", &self.kind).finish_non_exhaustive()
    }
}
