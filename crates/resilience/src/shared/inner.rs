//! The inside of a shared breaker: a local breaker, a mirror of the store's, and the exchange of
//! news.
//!
//! Never: hold a lock over an await, wait for the store longer than its time.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::bell::Bell;
use super::mirror::Mirror;
use super::store::{Admit, BreakerStore, InstanceId, Report, SharedRules, StoreError, View};
use crate::breaker::{Forced, State};
use crate::circuit::{CircuitBreaker, Permit, Phase, RejectReason, Rejected};
use crate::classify::Vote;
use crate::clock::Timestamp;
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
        let Parts { store, key, rules, me, sleeper, local, .. } = &self.parts;
        let Ok(admit) = self.in_time(store.admit(key, rules, me)).await else {
            return self.alone();
        };
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

    /// Tells how a call ended. What it has changed is heard at once, the rest when the next call
    /// asks: with every call asking there is no need to look.
    pub(super) async fn tell(&self) {
        let Parts { store, key, rules, .. } = &self.parts;
        let batch = self.mirror().take();
        if batch.is_empty() {
            return;
        }
        let told = self.in_time(store.report(key, rules, &batch)).await;
        if told.is_ok_and(|transitions| !transitions.is_empty()) {
            self.refresh().await;
        }
    }

    /// Tells and hears.
    pub(super) async fn refresh(&self) {
        let Parts { store, key, rules, sleeper, .. } = &self.parts;
        let batch = self.mirror().take();
        let exchange = async {
            if !batch.is_empty() {
                store.report(key, rules, &batch).await?;
            }
            store.snapshot(key).await
        };
        let news = self.in_time(exchange).await;
        self.mirror().asked();
        let Ok(View { phase, generation, forced, retry_in, .. }) = news else { return };
        let now = sleeper.now();
        let open = phase != Phase::Closed && forced.is_none();
        self.hear(generation, forced, open.then(|| now.plus(retry_in)), now);
    }

    fn hear(
        &self,
        generation: u64,
        forced: Option<Forced>,
        open_until: Option<Timestamp>,
        now: Timestamp,
    ) {
        if self.mirror().heard(generation, now) {
            self.parts.local.adopt(forced, open_until);
        }
    }

    /// Waits for the store no longer than its time; one that failed is left alone for a while.
    pub(super) async fn in_time<R>(
        &self,
        step: impl Future<Output = Result<R, StoreError>>,
    ) -> Result<R, StoreError> {
        let Parts { sleeper, store_timeout, sharing, local, .. } = &self.parts;
        let (mut step, mut limit) = (pin!(step), pin!(sleeper.sleep(*store_timeout)));
        let result = poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => {
                limit.as_mut().poll(context).map(|()| Err(StoreError::new("no answer in time")))
            }
        })
        .await;
        if let Err(error) = &result {
            let rest = match sharing {
                Sharing::Eventual { max_stale, .. } => *max_stale,
                Sharing::Strict => *store_timeout,
            };
            self.mirror().failed(rest, sleeper.now());
            local.tell_store_error(error as &(dyn Error + 'static));
        }
        result
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
            (Kind::Calls { .. }, Vote::Ignore) | (Kind::Alone, _) => false,
        }
    }
}
