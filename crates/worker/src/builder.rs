//! A worker, option by option.
//!
//! Every option but the handler has a default; [`WorkerBuilder::build`] checks them together and
//! names the first that breaks a rule.
//! Never: panic on an option, correct one silently.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use resilience::{
    Chance, CircuitBreaker, ConfigError, FromOs, Retry, RetryAfterRule, RetryPolicy, Seeded,
};

use crate::dynamic::DynQueue;
use crate::handled::Handled;
use crate::message::Message;
use crate::observer::{Observers, WorkerObserver};
use crate::queue::Queue;

const LEASE: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_secs(1);
const HANDLER_TIMEOUT: Duration = Duration::from_secs(300);
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(25);
const CONCURRENCY_MAX: usize = 10_000;
const LEASE_MIN: Duration = Duration::from_millis(10);
const HEARTBEAT_MIN: Duration = Duration::from_millis(1);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(crate) type Handler<R> = Arc<dyn Fn(Message) -> Boxed<R> + Send + Sync>;
type Classify<R> = Arc<dyn Fn(R) -> Handled + Send + Sync>;

/// A consumer of a queue; [`Worker::run`] runs it.
pub struct Worker {
    pub(crate) parts: Parts,
    pub(crate) shutdown: Boxed<()>,
}

/// What every attempt needs.
pub(crate) struct Parts {
    pub(crate) queue: Arc<dyn DynQueue>,
    pub(crate) handler: Handler<Handled>,
    pub(crate) retry: Retry,
    pub(crate) breaker: Option<CircuitBreaker>,
    pub(crate) observers: Observers,
    pub(crate) limits: Limits,
    pub(crate) chance: Seeded,
}

/// All bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) wait: Duration,
    pub(crate) handler_timeout: Duration,
    pub(crate) queue_timeout: Duration,
    pub(crate) grace: Duration,
}

impl Worker {
    /// A worker on this queue. It needs a handler, and nothing else.
    pub fn builder(queue: impl Queue) -> WorkerBuilder<Handled> {
        WorkerBuilder {
            handler: None,
            classify: Arc::new(|handled| handled),
            options: Options {
                queue: Arc::new(queue),
                retry: None,
                breaker: None,
                observers: Observers::default(),
                shutdown: Box::pin(std::future::pending()),
                heartbeat: None,
                seed: None,
                limits: Limits {
                    concurrency: 1,
                    lease: LEASE,
                    heartbeat: LEASE / 3,
                    wait: WAIT,
                    handler_timeout: HANDLER_TIMEOUT,
                    queue_timeout: QUEUE_TIMEOUT,
                    grace: GRACE,
                },
            },
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("limits", &self.parts.limits).finish_non_exhaustive()
    }
}

/// What a [`Worker`] is built from; `R` is what its handler returns.
#[must_use = "nothing is built before build()"]
pub struct WorkerBuilder<R> {
    handler: Option<Handler<R>>,
    classify: Classify<R>,
    options: Options,
}

struct Options {
    queue: Arc<dyn DynQueue>,
    retry: Option<Retry>,
    breaker: Option<CircuitBreaker>,
    observers: Observers,
    shutdown: Boxed<()>,
    heartbeat: Option<Duration>,
    seed: Option<u64>,
    limits: Limits,
}

impl<R: Send + 'static> WorkerBuilder<R> {
    /// What is done with a message: an async function that returns a [`Handled`], or a `Result`
    /// whose every error is worth a retry. It may see a message more than once. A panic counts as
    /// an error that is worth a retry.
    pub fn handler<F, Fut, T>(self, handler: F) -> WorkerBuilder<T>
    where
        F: Fn(Message) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = T> + Send + 'static,
        T: Into<Handled> + Send + 'static,
    {
        WorkerBuilder {
            handler: Some(Arc::new(move |message| Box::pin(handler(message)))),
            classify: Arc::new(Into::into),
            options: self.options,
        }
    }

    /// What the handler's result means; give it after the handler.
    pub fn classify(mut self, classify: impl Fn(R) -> Handled + Send + Sync + 'static) -> Self {
        self.classify = Arc::new(classify);
        self
    }

    /// When and how often a message is tried again; full jitter from 2 s to 10 min and 10 calls if
    /// not set.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.options.retry = Some(retry);
        self
    }

    /// While it is open nothing is received. None if not set.
    pub fn breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.options.breaker = Some(breaker);
        self
    }

    /// How many messages are handled at once, at most; 1 if not set.
    pub const fn concurrency(mut self, messages: usize) -> Self {
        self.options.limits.concurrency = messages;
        self
    }

    /// How long a message stays hidden after its consumer has died, at least 10 ms; 30 s if not
    /// set.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.options.limits.lease = lease;
        self
    }

    /// How often a lease is prolonged while the handler runs, at most half of the lease; a third of
    /// it if not set.
    pub const fn heartbeat(mut self, every: Duration) -> Self {
        self.options.heartbeat = Some(every);
        self
    }

    /// How long the queue is asked to wait for a message; 1 s if not set. A shutdown may take as
    /// long.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.options.limits.wait = wait;
        self
    }

    /// How long a handler may take; then it is dropped, which counts as an error that is worth a
    /// retry. 5 min if not set.
    pub const fn handler_timeout(mut self, limit: Duration) -> Self {
        self.options.limits.handler_timeout = limit;
        self
    }

    /// How long an answer of the queue may take; 10 s if not set.
    pub const fn queue_timeout(mut self, limit: Duration) -> Self {
        self.options.limits.queue_timeout = limit;
        self
    }

    /// When this is ready, the worker takes no more messages and finishes. Never if not set.
    pub fn shutdown(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.options.shutdown = Box::pin(signal);
        self
    }

    /// How long handlers may go on after the shutdown; then their messages are given back, and the
    /// attempt is not counted. 25 s if not set.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.options.limits.grace = grace;
        self
    }

    /// Someone who watches; several hear in the order in which they were added.
    pub fn observer(mut self, observer: impl WorkerObserver + 'static) -> Self {
        self.options.observers.add(observer);
        self
    }

    /// Seeds its jitter, so that a run can be repeated; from the system if not set.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Checks all options and gives the worker.
    pub fn build(self) -> Result<Worker, ConfigError> {
        let Self { handler, classify, options } = self;
        let handler = handler.ok_or(ConfigError::new("handler", "must be given"))?;
        let mut limits = options.limits;
        limits.heartbeat = options.heartbeat.unwrap_or(limits.lease / 3);
        check(&limits)?;
        let retry = options.retry.map_or_else(default_retry, Ok)?;
        let seed = options.seed.or_else(|| Some(FromOs::new().ok()?.next_u64()));
        let seed =
            seed.ok_or(ConfigError::new("seed", "must be given: the system has no chance"))?;
        Ok(Worker {
            parts: Parts {
                queue: options.queue,
                handler: Arc::new(move |message| {
                    let (handler, classify) = (Arc::clone(&handler), Arc::clone(&classify));
                    // The call itself may panic, and belongs to the attempt.
                    Box::pin(async move { classify(handler(message).await) })
                }),
                retry,
                breaker: options.breaker,
                observers: options.observers,
                limits,
                chance: Seeded::new(seed),
            },
            shutdown: options.shutdown,
        })
    }
}

impl<R> fmt::Debug for WorkerBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("limits", &self.options.limits)
            .finish_non_exhaustive()
    }
}

fn default_retry() -> Result<Retry, ConfigError> {
    RetryPolicy::full_jitter(Duration::from_secs(2))
        .cap(Duration::from_secs(600))
        .max_calls(10)
        .retry_after(RetryAfterRule::exact().cap(Duration::from_secs(3_600)))
        .build()
}

fn check(limits: &Limits) -> Result<(), ConfigError> {
    let rules = [
        ((1..=CONCURRENCY_MAX).contains(&limits.concurrency), "concurrency", "must be 1 to 10,000"),
        // Timers go by milliseconds, and a lease must have room for heartbeats.
        (limits.lease >= LEASE_MIN, "lease", "must be at least 10 ms"),
        (limits.heartbeat >= HEARTBEAT_MIN, "heartbeat", "must be at least 1 ms"),
        // So that one that fails is not yet the end of the lease.
        (limits.heartbeat <= limits.lease / 2, "heartbeat", "must be at most half of the lease"),
        (!limits.wait.is_zero(), "wait", "must be above zero"),
        (!limits.handler_timeout.is_zero(), "handler_timeout", "must be above zero"),
        (!limits.queue_timeout.is_zero(), "queue_timeout", "must be above zero"),
    ];
    rules.into_iter().try_for_each(|(holds, option, rule)| ConfigError::unless(holds, option, rule))
}
