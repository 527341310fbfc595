//! One attempt at one message: the handler under a heartbeat, a limit and the shutdown, then the
//! verdict and the settlement.
//!
//! The handler runs in a task of its own, so that its panic is a result and one that blocks does
//! not stop the heartbeat (on a runtime of several threads).
//! Never: two settlements; a handler that goes on without its lease.

use std::any::Any;
use std::sync::Arc;

use resilience::circuit::Permit;
use resilience::{Seeded, Timestamp, Vote};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use super::lease::Lease;
use super::settle::settle;
use super::shared::Shared;
use crate::handled::Handled;
use crate::message::Message;
use crate::observer::{Settled, Settlement};
use crate::verdict::{Case, Ended};

/// Leave for one message: a permit, if there is a breaker.
pub(super) type Leave = Option<Permit<'static>>;

/// What an attempt has for itself.
pub(super) struct Attempt {
    pub(super) shared: Arc<Shared>,
    pub(super) chance: Seeded,
    /// Turns true when handlers may go on no longer.
    pub(super) cut: watch::Receiver<bool>,
    begun: Instant,
    lease: Lease,
}

impl Attempt {
    /// Of a message that was received just now.
    pub(super) fn new(shared: Arc<Shared>, chance: Seeded, cut: watch::Receiver<bool>) -> Self {
        let lease = Lease::begun(shared.limits.lease);
        Self { shared, chance, cut, begun: Instant::now(), lease }
    }

    /// Handles the message and settles it.
    pub(super) async fn make(mut self, message: Message, permit: Leave) -> Settlement {
        let exhausted = self.case(&message).is_exhausted();
        let ended =
            if exhausted { Some(Ended::Exhausted) } else { self.handle(&message, permit).await };
        match ended {
            Some(ended) => self.conclude(&message, ended).await,
            None => self.told(&message, Settlement::LeaseLost),
        }
    }

    /// Gives back a message that was received and not begun.
    pub(super) async fn give_back(mut self, message: Message) -> Settlement {
        self.conclude(&message, Ended::Cut).await
    }

    /// How the handler ended; none if the lease ended first.
    async fn handle(&mut self, message: &Message, permit: Leave) -> Option<Ended> {
        self.shared.observers.tell(|observer| observer.on_started(message));
        let shared = Arc::clone(&self.shared);
        // A set, since it ends its task when it is dropped.
        let mut task = JoinSet::new();
        let (run, given) = (Arc::clone(&shared), message.clone());
        task.spawn(async move { (run.handler)(given).await });
        let limit = shared.limits.handler_timeout;
        let (ended, vote) = tokio::select! {
            biased;
            joined = task.join_next() => returned(joined),
            () = self.lease.keep(&shared, &message.token) => return None,
            _ = self.cut.wait_for(|cut| *cut) => (Ended::Cut, Vote::Ignore),
            () = sleep(limit) => (Ended::TimedOut(limit), Vote::Failure),
        };
        if let Some(permit) = permit {
            permit.record(vote);
        }
        // Waits until the handler is gone: the next attempt must not overlap with it.
        task.shutdown().await;
        Some(ended)
    }

    async fn conclude(&mut self, message: &Message, ended: Ended) -> Settlement {
        let shared = Arc::clone(&self.shared);
        let case = Case { message, retry: &shared.retry, now: self.now(message) };
        let verdict = case.verdict(ended, &mut self.chance);
        let settlement = settle(&shared, &case, verdict, self.lease.until).await;
        self.told(message, settlement)
    }

    fn case<'a>(&'a self, message: &'a Message) -> Case<'a> {
        Case { message, retry: &self.shared.retry, now: self.now(message) }
    }

    /// The time by the queue's clock.
    fn now(&self, message: &Message) -> Timestamp {
        message.received_at.plus(self.begun.elapsed())
    }

    /// Tells whoever watches, and the log.
    fn told(&self, message: &Message, settlement: Settlement) -> Settlement {
        let settled = Settled { message, settlement: &settlement, took: self.begun.elapsed() };
        self.shared.observers.tell(|observer| observer.on_settled(&settled));
        let (id, attempt) = (&*message.id, message.attempt);
        let correlation = message.correlation.as_deref();
        match &settlement {
            Settlement::Completed | Settlement::Returned => {
                tracing::debug!(id, attempt, correlation, ?settlement, "attempt over");
            }
            Settlement::Scheduled { delay, error } => {
                tracing::info!(id, attempt, correlation, ?delay, error, "tried again later");
            }
            Settlement::DeadLettered { reason, description } => {
                tracing::warn!(id, attempt, correlation, reason, description, "set aside");
            }
            Settlement::LeaseLost => {
                tracing::warn!(id, attempt, correlation, "lease lost: the outcome is not recorded");
            }
        }
        settlement
    }
}

/// What a handler's task came to. A panic is our own fault, and says nothing to the breaker.
fn returned(joined: Option<Result<Handled, JoinError>>) -> (Ended, Vote) {
    match joined {
        Some(Ok(handled)) => (Ended::Handled(handled.end), handled.vote),
        Some(Err(error)) => {
            let text = error.try_into_panic().map_or_else(|e| e.to_string(), |panic| text(&*panic));
            (Ended::Panicked(text), Vote::Ignore)
        }
        None => (Ended::Cut, Vote::Ignore),
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
