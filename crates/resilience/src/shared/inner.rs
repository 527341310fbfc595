//! The inside of a shared breaker: a local breaker, a mirror of the store's, and who decides.
//!
//! Never: hold a lock over an await, keep a probe that nobody knows of.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::bell::Bell;
use super::mirror::{Mirror, Unheard};
use super::store::{Admit, BreakerStore, InstanceId, Report, SharedRules, StoreError};
use crate::breaker::{Forced, State};
use crate::circuit::{CircuitBreaker, Permit, RejectReason, Rejected};
use crate::classify::Vote;
use crate::sleep::Sleeper;

/// How closely processes go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Calls of a closed breaker do not wait for the store; news are exchanged beside them.
    Eventual {
        /// How often.
        flush: Duration,
        /// With news older than this a call asks for newer ones first; a store that failed is left
        /// alone for as long.
        max_stale: Duration,
    },
    /// Every call asks the store, and tells it how it ended.
    Strict,
}

/// What a call does when the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreFailure {
    /// The process's own breaker decides.
    #[default]
    UseLocal,
    /// It goes, unguarded.
    LetThrough,
}

/// What the end of a call is told as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// An ordinary call.
    Calls {
        /// The generation in which it was begun.
        generation: u64,
    },
    /// The probe.
    Probe {
        /// The generation in which it was begun.
        generation: u64,
        /// Its number.
        lease: u64,
    },
    /// A call that the store knows nothing of.
    Alone,
}

/// Leave for a call: from the local breaker, unless that is passed over, and what to tell.
pub(super) type Leave = (Option<Permit<'static>>, Kind);

/// What a shared breaker is made of.
pub(super) struct Parts<S, T> {
    pub(super) key: Arc<str>,
    pub(super) rules: SharedRules,
    pub(super) store: S,
    pub(super) sleeper: T,
    pub(super) me: InstanceId,
    /// The number of the next call that asks, begun where no other process begins.
    pub(super) calls: AtomicU64,
    pub(super) local: CircuitBreaker,
    pub(super) sharing: Sharing,
    pub(super) on_store_error: StoreFailure,
    pub(super) store_timeout: Duration,
}

/// A shared breaker as its clones and permits hold it.
pub(super) struct Inner<S, T> {
    pub(super) parts: Parts<S, T>,
    mirror: Mutex<Mirror>,
    /// Rung when there is something that others should know at once.
    pub(super) hurry: Arc<Bell>,
}

impl<S, T> Inner<S, T> {
    pub(super) fn new(parts: Parts<S, T>) -> Self {
        Self { parts, mirror: Mutex::default(), hurry: Arc::default() }
    }
}

impl<S: BreakerStore, T: Sleeper + 'static> Inner<S, T> {
    /// The store decides.
    pub(super) async fn ask(&self) -> Result<Leave, Rejected> {
        // Most of all the end of a dropped probe, or the store would answer that one is out.
        if !self.tell().await {
            return self.alone();
        }
        let Ok(mut admit) = self.admitted().await else { return self.alone() };
        if self.may_know_more(admit) {
            if !self.refresh().await {
                return self.alone();
            }
            let Ok(again) = self.admitted().await else { return self.alone() };
            admit = again;
        }
        self.answered(admit)
    }

    /// The store's answer, in time. Whoever is dropped or goes without one gives a probe back that
    /// the answer may have been.
    async fn admitted(&self) -> Result<Admit, StoreError> {
        let Parts { store, key, rules, me, calls, .. } = &self.parts;
        let me = me.call(calls.fetch_add(1, Ordering::Relaxed));
        let mut asking = Asking { inner: self, me: &me, heard: false };
        let admit = self.in_time(store.admit(key, rules, &me)).await;
        asking.heard = admit.is_ok();
        admit
    }

    /// Whether it is open here though the store lets the call go, and that may be for want of
    /// knowing.
    fn may_know_more(&self, admit: Admit) -> bool {
        let Admit::Closed { generation } = admit else { return false };
        let unsure = {
            let mirror = self.mirror();
            mirror.untold() > 0 || mirror.generation() != generation
        };
        unsure && self.parts.local.kept().open_until.is_some()
    }

    fn answered(&self, admit: Admit) -> Result<Leave, Rejected> {
        let Parts { key, sleeper, local, .. } = &self.parts;
        let now = sleeper.now();
        let rejected = |reason, retry_after| {
            let rejected = Rejected { breaker: Arc::clone(key), retry_after, reason };
            local.tell_rejected(&rejected);
            Err(rejected)
        };
        match admit {
            Admit::Closed { generation } => {
                self.hear(generation, None, None, now);
                Ok((Some(local.try_acquire_owned()?), Kind::Calls { generation }))
            }
            Admit::Probe { generation, lease } => {
                self.mirror().heard(generation, now);
                Ok((local.try_acquire_owned().ok(), Kind::Probe { generation, lease }))
            }
            Admit::Open { generation, retry_in } => {
                self.hear(generation, None, Some(now.plus(retry_in)), now);
                rejected(RejectReason::Open, Some(retry_in))
            }
            Admit::ProbeOut { generation, retry_in } => {
                self.mirror().heard(generation, now);
                rejected(RejectReason::ProbeInFlight, Some(retry_in))
            }
            Admit::ForcedOpen { generation } => {
                self.hear(generation, Some(Forced::Open), None, now);
                rejected(RejectReason::Forced, None)
            }
        }
    }

    /// The local breaker decides, unless the call would be a probe: its open time may have ended
    /// just now.
    pub(super) async fn leave(&self) -> Result<Leave, Rejected> {
        let generation = self.mirror().generation();
        let permit = self.parts.local.try_acquire_owned()?;
        if permit.is_probe() {
            drop(permit);
            return self.ask().await;
        }
        Ok((Some(permit), Kind::Calls { generation }))
    }

    /// The store is down.
    pub(super) fn alone(&self) -> Result<Leave, Rejected> {
        match self.parts.on_store_error {
            StoreFailure::UseLocal => {
                Ok((Some(self.parts.local.try_acquire_owned()?), Kind::Alone))
            }
            StoreFailure::LetThrough => Ok((None, Kind::Alone)),
        }
    }

    pub(super) fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An end is to be told; whether at once.
    pub(super) fn ended(&self, kind: Kind, vote: Vote) -> bool {
        match (kind, vote) {
            (Kind::Probe { generation, lease }, _) => {
                self.mirror().probed(Report::Probe { generation, lease, vote });
                true
            }
            (Kind::Calls { generation }, Vote::Success | Vote::Failure) => {
                self.mirror().count(generation, vote == Vote::Failure);
                if vote == Vote::Failure && self.parts.local.state() != State::Closed {
                    self.hurry.ring();
                }
                self.parts.sharing == Sharing::Strict
            }
            (Kind::Alone, Vote::Failure) => {
                self.mirror().failed_alone();
                false
            }
            (Kind::Calls { .. }, Vote::Ignore) | (Kind::Alone, Vote::Success | Vote::Ignore) => {
                false
            }
        }
    }
}

/// A call that asks, until it hears the answer.
struct Asking<'a, S: BreakerStore, T: Sleeper + 'static> {
    inner: &'a Inner<S, T>,
    me: &'a InstanceId,
    heard: bool,
}

impl<S: BreakerStore, T: Sleeper + 'static> Drop for Asking<'_, S, T> {
    fn drop(&mut self) {
        if !self.heard {
            let since = self.inner.parts.sleeper.now();
            self.inner.mirror().went(Unheard { me: self.me.clone(), since });
            self.inner.hurry.ring();
        }
    }
}
