//! The worker's loop: leave from the breaker, receive, begin, and at the end finish.
//!
//! No more messages are received than can begin at once, so that none waits under a lease. Whatever
//! goes wrong with the queue is waited out, longer each time.
//! Never: receive while the breaker is open; leave a message in hand when it ends.

mod attempt;
mod lease;
mod settle;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use resilience::{Backoff, Chance, Jitter, Seeded, State};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::builder::{Parts, Worker};
use crate::error::QueueError;
use crate::message::Message;
use crate::observer::Settlement;
use crate::queue::Receive;
use attempt::{Attempt, Leave};
use lease::in_time;
use shared::Shared;

/// The first and the longest wait after the queue has failed.
const TROUBLE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long a breaker that keeps messages back is left alone: it may be forced meanwhile.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// A wait that is rounded to nothing would be a busy loop.
const ASK_MIN: Duration = Duration::from_millis(1);

/// What a worker did while it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Messages done with.
    pub completed: u64,
    /// Attempts that led to another.
    pub scheduled: u64,
    /// Messages set aside.
    pub dead_lettered: u64,
    /// Messages given back without an attempt counted.
    pub returned: u64,
    /// Attempts whose lease was lost.
    pub leases_lost: u64,
}

impl Summary {
    const fn count(&mut self, settlement: &Settlement) {
        match settlement {
            Settlement::Completed => self.completed += 1,
            Settlement::Scheduled { .. } => self.scheduled += 1,
            Settlement::DeadLettered { .. } => self.dead_lettered += 1,
            Settlement::Returned => self.returned += 1,
            Settlement::LeaseLost => self.leases_lost += 1,
        }
    }
}

impl Worker {
    /// Consumes until the shutdown, then finishes what is in hand and says what was done. Dropped
    /// instead, it leaves what is in hand to the leases.
    pub async fn run(self) -> Summary {
        let Self { parts, shutdown } = self;
        let mut stop = Stop(Some(shutdown));
        let mut run = Run::new(parts);
        while !stop.is_told() {
            run.step(&mut stop).await;
        }
        run.finish().await
    }
}

/// The signal to shut down, which may be asked for again after it came.
struct Stop(Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Stop {
    const fn is_told(&self) -> bool {
        self.0.is_none()
    }

    async fn told(&mut self) {
        if let Some(signal) = &mut self.0 {
            signal.await;
            self.0 = None;
        }
    }
}

struct Run {
    shared: Arc<Shared>,
    chance: Seeded,
    attempts: JoinSet<Settlement>,
    /// Told when handlers may go on no longer.
    cut: watch::Sender<bool>,
    summary: Summary,
    /// Failures of the queue in a row.
    failures: u32,
}

impl Run {
    fn new(parts: Parts) -> Self {
        let (shared, chance) = Shared::new(parts);
        Self {
            shared: Arc::new(shared),
            chance,
            attempts: JoinSet::new(),
            cut: watch::Sender::new(false),
            summary: Summary::default(),
            failures: 0,
        }
    }

    /// Receives once, or waits for whatever keeps it from that.
    async fn step(&mut self, stop: &mut Stop) {
        while let Some(ended) = self.attempts.try_join_next() {
            self.count(ended);
        }
        let free = self.shared.limits.concurrency - self.attempts.len();
        match self.leaves(free) {
            Ok(leaves) if leaves.is_empty() => self.pause(None, stop).await,
            Ok(leaves) => self.receive(leaves, stop).await,
            Err(wait) => self.pause(Some(wait), stop).await,
        }
    }

    /// Leave for at most so many messages, or how long there is none.
    fn leaves(&self, free: usize) -> Result<Vec<Leave>, Duration> {
        let Some(breaker) = &self.shared.breaker else {
            return Ok((0..free).map(|_| None).collect());
        };
        let mut leaves = Vec::new();
        while leaves.len() < free {
            match breaker.try_acquire_owned() {
                Ok(permit) => leaves.push(Some(permit)),
                Err(rejected) if leaves.is_empty() => {
                    let wait = rejected.retry_after.unwrap_or(ASK_AGAIN);
                    return Err(wait.clamp(ASK_MIN, ASK_AGAIN));
                }
                Err(_) => break,
            }
        }
        Ok(leaves)
    }

    /// Waits for the end of an attempt, of the span, or for the shutdown.
    async fn pause(&mut self, span: Option<Duration>, stop: &mut Stop) {
        let over = async {
            match span {
                Some(span) => sleep(span).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.told() => {}
            Some(ended) = self.attempts.join_next() => self.count(ended),
            () = over => {}
        }
    }

    async fn receive(&mut self, leaves: Vec<Leave>, stop: &mut Stop) {
        let limits = self.shared.limits;
        let ask = Receive { max: leaves.len(), wait: limits.wait, lease: limits.lease };
        let shared = Arc::clone(&self.shared);
        // Not dropped at a shutdown: what it takes would be hidden until its lease lapses.
        let mut received = std::pin::pin!(in_time(
            limits.wait.saturating_add(limits.queue_timeout),
            shared.queue.dyn_receive(ask)
        ));
        let batch = tokio::select! {
            batch = &mut received => batch,
            () = stop.told() => received.await,
        };
        match batch {
            Ok(batch) => {
                self.recovered();
                self.begin(batch, leaves, stop.is_told());
            }
            Err(error) => self.trouble(&error, stop).await,
        }
    }

    /// Begins an attempt for each message, or gives it back if there is no leave for it any more.
    fn begin(&mut self, batch: Vec<Message>, leaves: Vec<Leave>, stopping: bool) {
        let mut leaves = leaves.into_iter();
        for message in batch {
            let leave = leaves.next().and_then(|leave| self.renewed(leave));
            let chance = Seeded::new(self.chance.next_u64());
            let attempt = Attempt::new(Arc::clone(&self.shared), chance, self.cut.subscribe());
            match leave {
                Some(leave) if !stopping => self.attempts.spawn(attempt.make(message, leave)),
                _ => self.attempts.spawn(attempt.give_back(message)),
            };
        }
    }

    /// The breaker may have opened while the queue waited for a message.
    fn renewed(&self, leave: Leave) -> Option<Leave> {
        let (Some(permit), Some(breaker)) = (&leave, &self.shared.breaker) else {
            return Some(leave);
        };
        let is_current = permit.generation() == breaker.snapshot().generation;
        if is_current && (permit.is_probe() || matches!(breaker.state(), State::Closed)) {
            return Some(leave);
        }
        drop(leave);
        breaker.try_acquire_owned().ok().map(Some)
    }

    fn recovered(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "the queue answers again");
            self.failures = 0;
        }
    }

    async fn trouble(&mut self, error: &QueueError, stop: &mut Stop) {
        self.failures = self.failures.saturating_add(1);
        // The first, the second, the fourth …: an outage does not fill the log.
        if self.failures.is_power_of_two() {
            tracing::warn!(failures = self.failures, %error, "cannot receive from the queue");
        }
        self.shared.observers.tell(|observer| observer.on_queue_error("receive", error));
        let wait = trouble_wait(self.failures, &mut self.chance);
        tokio::select! {
            () = stop.told() => {}
            () = sleep(wait) => {}
        }
    }

    fn count(&mut self, ended: Result<Settlement, tokio::task::JoinError>) {
        match ended {
            Ok(settlement) => self.summary.count(&settlement),
            // Handlers and observers are caught elsewhere; its message comes back by its lease.
            Err(error) => tracing::error!(%error, "an attempt broke off"),
        }
    }

    /// Lets handlers go on for the grace, then gives their messages back.
    async fn finish(mut self) -> Summary {
        let limits = self.shared.limits;
        if timeout(limits.grace, self.drain()).await.is_err() {
            self.cut.send_replace(true);
            let _given_back = timeout(limits.queue_timeout * 2, self.drain()).await;
        }
        self.attempts.shutdown().await;
        self.summary
    }

    async fn drain(&mut self) {
        while let Some(ended) = self.attempts.join_next().await {
            self.count(ended);
        }
    }
}

/// The wait after so many failures of the queue in a row.
fn trouble_wait(failures: u32, chance: &mut dyn Chance) -> Duration {
    let (base, cap) = TROUBLE;
    let doubling = Backoff::Exponential { base, cap };
    let backoff = Backoff::Spread { of: Box::new(doubling), jitter: Jitter::Equal };
    backoff.delay(failures.saturating_sub(1), Duration::ZERO, chance)
}
