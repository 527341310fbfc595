//! The boxed twin of [`Queue`], for a queue that is chosen at run time.
//!
//! Never: behaviour of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use resilience::Timestamp;

use crate::error::QueueError;
use crate::message::{History, LeaseToken, Message};
use crate::queue::{Queue, Receive};

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, QueueError>> + Send + 'a>>;

/// [`Queue`] with boxed futures; every queue is one. `Arc<dyn DynQueue>` is a queue again.
pub trait DynQueue: Send + Sync + 'static {
    /// See [`Queue::receive`].
    fn dyn_receive(&self, ask: Receive) -> Boxed<'_, Vec<Message>>;
    /// See [`Queue::complete`].
    fn dyn_complete<'a>(&'a self, token: &'a LeaseToken) -> Boxed<'a, ()>;
    /// See [`Queue::schedule_at`].
    fn dyn_schedule_at<'a>(
        &'a self,
        token: &'a LeaseToken,
        due: Timestamp,
        attempt: u32,
        history: &'a History,
    ) -> Boxed<'a, ()>;
    /// See [`Queue::dead_letter`].
    fn dyn_dead_letter<'a>(
        &'a self,
        token: &'a LeaseToken,
        attempts: u32,
        reason: &'a str,
        description: &'a str,
    ) -> Boxed<'a, ()>;
    /// See [`Queue::extend`].
    fn dyn_extend<'a>(&'a self, token: &'a LeaseToken, lease: Duration) -> Boxed<'a, ()>;
}

impl<Q: Queue> DynQueue for Q {
    fn dyn_receive(&self, ask: Receive) -> Boxed<'_, Vec<Message>> {
        Box::pin(self.receive(ask))
    }

    fn dyn_complete<'a>(&'a self, token: &'a LeaseToken) -> Boxed<'a, ()> {
        Box::pin(self.complete(token))
    }

    fn dyn_schedule_at<'a>(
        &'a self,
        token: &'a LeaseToken,
        due: Timestamp,
        attempt: u32,
        history: &'a History,
    ) -> Boxed<'a, ()> {
        Box::pin(self.schedule_at(token, due, attempt, history))
    }

    fn dyn_dead_letter<'a>(
        &'a self,
        token: &'a LeaseToken,
        attempts: u32,
        reason: &'a str,
        description: &'a str,
    ) -> Boxed<'a, ()> {
        Box::pin(self.dead_letter(token, attempts, reason, description))
    }

    fn dyn_extend<'a>(&'a self, token: &'a LeaseToken, lease: Duration) -> Boxed<'a, ()> {
        Box::pin(self.extend(token, lease))
    }
}

impl Queue for Arc<dyn DynQueue> {
    async fn receive(&self, ask: Receive) -> Result<Vec<Message>, QueueError> {
        (**self).dyn_receive(ask).await
    }

    async fn complete(&self, token: &LeaseToken) -> Result<(), QueueError> {
        (**self).dyn_complete(token).await
    }

    async fn schedule_at(
        &self,
        token: &LeaseToken,
        due: Timestamp,
        attempt: u32,
        history: &History,
    ) -> Result<(), QueueError> {
        (**self).dyn_schedule_at(token, due, attempt, history).await
    }

    async fn dead_letter(
        &self,
        token: &LeaseToken,
        attempts: u32,
        reason: &str,
        description: &str,
    ) -> Result<(), QueueError> {
        (**self).dyn_dead_letter(token, attempts, reason, description).await
    }

    async fn extend(&self, token: &LeaseToken, lease: Duration) -> Result<(), QueueError> {
        (**self).dyn_extend(token, lease).await
    }
}
