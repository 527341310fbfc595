//! What goes wrong on this side: a clock that steps, reads that are late or fail, answers that are
//! late or lost.
//!
//! Never: change what the store holds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::ids::{EndpointKey, MessageKey};
use domain::message::Envelope;
use domain::until::Until;
use engine::mail::{AlertLetter, Letter, Mailer, Mailing};
use resilience::{Chance, Clock, Seeded, Timestamp};
use store::ledger::{LaneState, Ledger, Record, Recorded, Suspect};
use store::memory::MemoryStore;
use store::queue::{DueRows, Queue};
use store::{Reply, StoreError};
use tokio::time::Instant;

/// A wall clock that follows tokio's time while a life lasts, and can be set.
pub struct SimClock(Mutex<(Timestamp, Option<Instant>)>);

impl SimClock {
    pub fn new(at: Timestamp) -> Arc<Self> {
        Arc::new(Self(Mutex::new((at, None))))
    }

    /// A life begins, in the runtime of the caller, after `pause`.
    pub fn resume(&self, pause: Duration) {
        let mut shown = self.0.lock().unwrap();
        *shown = (shown.0.plus(pause), Some(Instant::now()));
    }

    /// A life ends; the runtime may go.
    pub fn freeze(&self) {
        let now = self.now();
        *self.0.lock().unwrap() = (now, None);
    }

    /// Sets it to `now`.
    pub fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap() = (now, Some(Instant::now()));
    }

    /// Sets it by `span`, back or forwards.
    pub fn step(&self, span: Duration, back: bool) {
        let mut shown = self.0.lock().unwrap();
        shown.0 = if back { shown.0.minus(span) } else { shown.0.plus(span) };
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let shown = self.0.lock().unwrap();
        shown.1.map_or(shown.0, |since| shown.0.plus(since.elapsed()))
    }
}

/// How the store answers on this node, beside what it holds.
pub struct Lag {
    chance: Mutex<Seeded>,
    /// Answers come so much later at most.
    millis_max: AtomicU64,
    /// Reads fail, and answers are lost, once in so many times; 0 for never.
    one_in: AtomicU64,
    /// Told that answers may be lost though what was asked is done.
    loses: AtomicBool,
}

impl Lag {
    pub fn new(seed: u64, loses: bool) -> Arc<Self> {
        Arc::new(Self {
            chance: Mutex::new(Seeded::new(seed)),
            millis_max: AtomicU64::new(0),
            one_in: AtomicU64::new(0),
            loses: AtomicBool::new(loses),
        })
    }

    pub fn set(&self, millis_max: u64, one_in: u64) {
        self.millis_max.store(millis_max, Ordering::Relaxed);
        self.one_in.store(one_in, Ordering::Relaxed);
    }

    async fn wait(&self) {
        let most = self.millis_max.load(Ordering::Relaxed);
        if most > 0 {
            let millis = self.chance.lock().unwrap().below(most + 1);
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }

    fn fails(&self) -> Result<(), StoreError> {
        let one_in = self.one_in.load(Ordering::Relaxed);
        if one_in > 0 && self.chance.lock().unwrap().below(one_in) == 0 {
            return Err(StoreError::Unavailable("told to fail".to_owned()));
        }
        Ok(())
    }
}

/// A store whose reads may be out of date when they arrive, and whose records may be answered late
/// or not at all.
pub struct Lagging {
    pub inner: Arc<MemoryStore>,
    pub lag: Arc<Lag>,
}

impl Lagging {
    fn read<'a, T: Send + 'a>(&'a self, read: Reply<'a, T>) -> Reply<'a, T> {
        Box::pin(async move {
            let read = read.await?;
            self.lag.wait().await;
            self.lag.fails()?;
            Ok(read)
        })
    }
}

impl Queue for Lagging {
    fn endpoints(
        &self,
        after: Option<EndpointKey>,
        limit: usize,
    ) -> Reply<'_, Vec<(EndpointKey, Timestamp)>> {
        self.read(self.inner.endpoints(after, limit))
    }

    fn due(&self, endpoint: EndpointKey, until: Until, limit: usize) -> Reply<'_, DueRows> {
        self.read(self.inner.due(endpoint, until, limit))
    }

    fn envelope(&self, message: MessageKey) -> Reply<'_, Option<Arc<Envelope>>> {
        self.read(self.inner.envelope(message))
    }

    fn lane_states(&self) -> Reply<'_, Vec<LaneState>> {
        self.inner.lane_states()
    }

    fn depth(&self) -> Reply<'_, (u64, Option<Timestamp>)> {
        self.inner.depth()
    }
}

impl Ledger for Lagging {
    fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>> {
        let (done, lag) = (self.inner.record(records), Arc::clone(&self.lag));
        Box::pin(async move {
            let done = done.await?;
            lag.wait().await;
            if lag.loses.load(Ordering::Relaxed) {
                lag.fails()?;
            }
            Ok(done)
        })
    }

    fn keep_lanes(&self, lanes: Vec<LaneState>) -> Reply<'static, ()> {
        self.inner.keep_lanes(lanes)
    }

    fn keep_suspects(&self, suspects: Vec<Suspect>) -> Reply<'static, ()> {
        self.inner.keep_suspects(suspects)
    }

    fn suspects(&self) -> Reply<'_, Vec<Suspect>> {
        self.inner.suspects()
    }
}

/// A mail server that never answers: what owners are told stays in sight.
pub struct Deaf;

impl Mailer for Deaf {
    fn send(&self, _: Letter) -> Mailing<'_> {
        Box::pin(std::future::pending())
    }

    fn send_alert(&self, _: AlertLetter) -> Mailing<'_> {
        Box::pin(std::future::pending())
    }
}
