//! What a shared breaker tells its store, and what it hears from there.
//!
//! Never: wait for the store longer than its time, lose the end of a probe, take a record that was
//! lost for news.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::mem::take;
use std::pin::pin;
use std::task::Poll;

use super::inner::{Inner, Parts, Sharing};
use super::mirror::Batch;
use super::store::{BreakerStore, Report, StoreError, Transition, View};
use crate::breaker::{Forced, Snapshot};
use crate::circuit::Phase;
use crate::clock::Timestamp;
use crate::sleep::Sleeper;

impl<S: BreakerStore, T: Sleeper + 'static> Inner<S, T> {
    /// Tells how calls ended, and whether the store answered. What that has changed is heard at
    /// once, the rest when the next call asks: with every call asking there is no need to look.
    pub(super) async fn tell(&self) -> bool {
        let mut taken = Taken::new(self);
        if taken.batch.is_empty() {
            return true;
        }
        let told = self.in_time(self.deliver(&mut taken.batch)).await;
        taken.give_back();
        match told {
            Ok(transitions) => transitions.is_empty() || self.refresh().await,
            Err(_) => false,
        }
    }

    /// Tells and hears, and whether the store answered.
    pub(super) async fn refresh(&self) -> bool {
        let mut taken = Taken::new(self);
        let news = self.in_time(self.exchange(&mut taken.batch)).await;
        taken.give_back();
        self.mirror().asked();
        let Ok(View { phase, generation, forced, retry_in, .. }) = news else { return false };
        let now = self.parts.sleeper.now();
        let open = phase != Phase::Closed && forced.is_none();
        self.hear(generation, forced, open.then(|| now.plus(retry_in)), now);
        true
    }

    /// Takes news over. That it is closed is none while it is open here by failures that the store
    /// does not know.
    pub(super) fn hear(
        &self,
        generation: u64,
        forced: Option<Forced>,
        open_until: Option<Timestamp>,
        now: Timestamp,
    ) {
        let news = {
            let mut mirror = self.mirror();
            let closed = forced.is_none() && open_until.is_none();
            mirror.heard(generation, now) && !(closed && mirror.untold() > 0)
        };
        if news {
            self.parts.local.adopt(forced, open_until);
        }
    }

    async fn exchange(&self, batch: &mut Batch) -> Result<View, StoreError> {
        let Parts { store, key, rules, .. } = &self.parts;
        self.deliver(batch).await?;
        let untold = self.mirror().untold();
        let mut view = store.snapshot(key).await?;
        if let Some(opened) = self.owed(&view, untold) {
            store.report(key, rules, &opened).await?;
            view = store.snapshot(key).await?;
        }
        self.mirror().made_good(untold);
        Ok(view)
    }

    /// It is open here, and the store says closed for want of knowing: it was away when it opened,
    /// or its record was lost.
    fn owed(&self, view: &View, untold: u32) -> Option<Report> {
        let known = self.mirror().generation();
        let lost = view.fresh && known != 0 && known != view.generation;
        let closed = view.phase == Phase::Closed && view.forced.is_none();
        if !closed || !(lost || untold > 0) {
            return None;
        }
        let Snapshot { open_until, open_for, .. } = self.parts.local.kept();
        let left = open_until?.since(self.parts.sleeper.now());
        let generation = view.generation;
        Some(Report::Opened { generation, open_for: open_for.max(left), left })
    }

    /// Tells everything; what is left in the batch has not been told.
    async fn deliver(&self, batch: &mut Batch) -> Result<Vec<Transition>, StoreError> {
        let Parts { store, key, rules, sleeper, store_timeout, .. } = &self.parts;
        while let Some(unheard) = batch.unheard.last() {
            let was_out = store.release(key, &unheard.me).await?;
            let recent = sleeper.now().since(unheard.since) < *store_timeout;
            if let Some(unheard) = batch.unheard.pop().filter(|_| recent && !was_out) {
                // What it asked may still be on its way: once more, with the next news.
                self.mirror().went(unheard);
            }
        }
        let told = store.report_all(key, rules, &batch.reports).await?;
        batch.reports.clear();
        Ok(told)
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
}

/// What is being told. Dropped with its task it is told by whoever comes next.
struct Taken<'a, S: BreakerStore, T: Sleeper + 'static> {
    inner: &'a Inner<S, T>,
    batch: Batch,
}

impl<'a, S: BreakerStore, T: Sleeper + 'static> Taken<'a, S, T> {
    fn new(inner: &'a Inner<S, T>) -> Self {
        let batch = inner.mirror().take();
        Self { inner, batch }
    }

    /// What has not been told waits for another time.
    fn give_back(&mut self) {
        self.inner.mirror().give_back(take(&mut self.batch));
    }
}

impl<S: BreakerStore, T: Sleeper + 'static> Drop for Taken<'_, S, T> {
    fn drop(&mut self) {
        if !self.batch.is_empty() {
            self.give_back();
            self.inner.hurry.ring();
        }
    }
}
