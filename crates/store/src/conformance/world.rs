//! What a case works with: the stores, the clock, what was told of commits, and the usual steps in
//! one word.
//!
//! Never: assert anything about a backend but that the usual steps succeed.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::application::AppSnapshot;
use domain::attempt::Attempt;
use domain::delivery::{DeliveryState, Pending};
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::message::Message;
use resilience::{ManualClock, Timestamp};

use super::backend::{Backend, Stores};
use super::samples;
use crate::commits::{BatchStats, Commits, Fresh};
use crate::directory::{IdOrUid, NewEndpoint};
use crate::history::{AttemptFilter, AttemptRow};
use crate::inbox::{Accepted, NewMessage};
use crate::ledger::{Follow, Record, Recorded};
use crate::page::{Direction, PageOf};

/// The organisation that cases work in.
pub const ORG: PublicId = PublicId::from_bytes([1; 20]);

/// Everything that was told of commits, in order.
#[derive(Default)]
pub struct Told {
    fresh: Mutex<Vec<Fresh>>,
    withdrawn: Mutex<Vec<Pending>>,
    changed: Mutex<Vec<(AppKey, Option<EndpointKey>)>>,
    noted: AtomicBool,
    recovered: AtomicBool,
    batches: Mutex<Vec<BatchStats>>,
}

impl Commits for Told {
    fn fresh(&self, rows: Vec<Fresh>) {
        self.fresh.lock().unwrap().extend(rows);
    }

    fn withdrawn(&self, rows: Vec<Pending>) {
        self.withdrawn.lock().unwrap().extend(rows);
    }

    fn directory_changed(&self, app: AppKey, endpoint: Option<EndpointKey>) {
        self.changed.lock().unwrap().push((app, endpoint));
    }

    fn noted(&self) {
        self.noted.store(true, Ordering::SeqCst);
    }

    fn recovered(&self) {
        self.recovered.store(true, Ordering::SeqCst);
    }

    fn batch(&self, stats: BatchStats) {
        self.batches.lock().unwrap().push(stats);
    }
}

impl Told {
    /// Takes the rows that were handed over since the last time.
    pub fn take_fresh(&self) -> Vec<Fresh> {
        std::mem::take(&mut self.fresh.lock().unwrap())
    }

    /// Takes the rows that were withdrawn since the last time.
    pub fn take_withdrawn(&self) -> Vec<Pending> {
        std::mem::take(&mut self.withdrawn.lock().unwrap())
    }

    /// Takes the directory changes since the last time.
    pub fn take_changed(&self) -> Vec<(AppKey, Option<EndpointKey>)> {
        std::mem::take(&mut self.changed.lock().unwrap())
    }

    /// Whether there were new notices since the last time.
    pub fn take_noted(&self) -> bool {
        self.noted.swap(false, Ordering::SeqCst)
    }

    /// Whether an endpoint worked again since the last time.
    pub fn take_recovered(&self) -> bool {
        self.recovered.swap(false, Ordering::SeqCst)
    }

    /// Takes the ends of batches since the last time.
    pub fn take_batches(&self) -> Vec<BatchStats> {
        std::mem::take(&mut self.batches.lock().unwrap())
    }
}

/// A backend and what belongs to it.
pub struct World {
    /// Its traits.
    pub stores: Stores,
    /// The clock it reads.
    pub clock: Arc<ManualClock>,
    /// What it told.
    pub told: Arc<Told>,
    backend: Box<dyn Backend>,
    drawn: AtomicU64,
}

impl World {
    /// Attaches to a backend that was just opened on `clock`.
    pub fn new(backend: Box<dyn Backend>, clock: Arc<ManualClock>) -> Self {
        let told = Arc::new(Told::default());
        backend.attach(Arc::<Told>::clone(&told));
        Self { stores: backend.stores(), clock, told, backend, drawn: AtomicU64::new(0) }
    }

    /// Closes the backend and opens it again.
    pub fn reopen(&mut self) {
        self.backend.reopen();
        self.backend.attach(Arc::<Told>::clone(&self.told));
        self.stores = self.backend.stores();
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        resilience::Clock::now(&*self.clock)
    }

    /// Lets 1 s pass.
    pub fn tick(&self) {
        self.clock.advance(Duration::from_secs(1));
    }

    /// 12 bytes never given before.
    pub fn random(&self) -> [u8; 12] {
        let mut bytes = [0xA5; 12];
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        bytes[..8].copy_from_slice(&drawn.to_be_bytes());
        bytes
    }

    /// A new application with so many endpoints.
    pub async fn app(&self, endpoints: usize) -> AppSnapshot {
        let app = self.stores.directory.create_app(ORG, samples::app(None), self.random());
        let app = app.await.unwrap().key;
        let new =
            (0..endpoints).map(|_| self.stores.directory.create_endpoint(self.to_create(app)));
        let new: Vec<_> = new.collect();
        for endpoint in new {
            endpoint.await.unwrap();
        }
        self.snapshot(app).await
    }

    /// A new endpoint of it.
    pub async fn endpoint(&self, app: AppKey) -> Arc<Endpoint> {
        self.stores.directory.create_endpoint(self.to_create(app)).await.unwrap()
    }

    /// An endpoint to create.
    pub fn to_create(&self, app: AppKey) -> NewEndpoint {
        let random = self.random();
        NewEndpoint { app, spec: samples::endpoint(), secret: samples::secret(random[7]), random }
    }

    /// The application as it is now.
    pub async fn snapshot(&self, app: AppKey) -> AppSnapshot {
        self.stores.directory.app_by_key(app).await.unwrap().unwrap()
    }

    /// A message to every endpoint of `app`.
    pub fn message(&self, app: &AppSnapshot) -> NewMessage {
        NewMessage {
            app: app.app.key,
            app_version: app.app.version,
            spec: samples::message(),
            random: self.random(),
            targets: app.endpoints.clone(),
            key: None,
            edited_from: None,
        }
    }

    /// Accepts a message that must be new.
    pub async fn post(&self, new: NewMessage) -> MessageKey {
        match self.stores.inbox.accept(new).await.unwrap() {
            Accepted::New { key, .. } => key,
            other => panic!("not accepted: {other:?}"),
        }
    }

    /// Accepts so many messages at once, and returns the keys of their deliveries' messages.
    pub async fn post_many(&self, app: &AppSnapshot, count: usize) -> Vec<MessageKey> {
        let posts: Vec<_> =
            (0..count).map(|_| self.stores.inbox.accept(self.message(app))).collect();
        for post in posts {
            post.await.unwrap();
        }
        let fresh = self.told.take_fresh();
        fresh.iter().map(|fresh| fresh.pending.message).collect()
    }

    /// Accepts a message to the first endpoint of `app` only, and returns its row.
    pub async fn one(&self, app: &AppSnapshot) -> Pending {
        let mut new = self.message(app);
        new.targets.truncate(1);
        let key = self.post(new).await;
        self.row(key, app.endpoints[0].key).await.unwrap()
    }

    /// A message by its key.
    pub async fn read(&self, app: AppKey, key: MessageKey) -> Message {
        let page = PageOf { beyond: None, direction: Direction::Descending, limit: 250 };
        let found =
            self.stores.history.messages(app, Default::default(), page, true).await.unwrap();
        found.rows.into_iter().find(|message| message.key == key).unwrap()
    }

    /// Every pending row of an endpoint, due or not.
    pub async fn rows(&self, endpoint: EndpointKey) -> Vec<Pending> {
        self.stores.queue.due(endpoint, Timestamp::MAX.into(), 1_000).await.unwrap().rows
    }

    /// The first pending row of a delivery.
    pub async fn row(&self, message: MessageKey, endpoint: EndpointKey) -> Option<Pending> {
        self.rows(endpoint).await.into_iter().find(|row| row.message == message)
    }

    /// A result to record.
    pub fn result(&self, pending: Pending, attempt: Option<Attempt>, follow: Follow) -> Record {
        Record {
            pending,
            attempt,
            random: self.random(),
            follow,
            lane: None,
            disable: None,
            run: None,
            news: Default::default(),
        }
    }

    /// Records one result.
    pub async fn record(&self, record: Record) -> Recorded {
        self.stores.ledger.record(vec![record]).await.unwrap()[0]
    }

    /// Records that `row` was answered 404 and is a dead letter now.
    pub async fn bury(&self, row: Pending) {
        let attempt = samples::answered(&row, 404, self.now());
        let record = self.result(row, Some(attempt), samples::dead());
        assert_eq!(self.record(record).await, Recorded::Applied);
    }

    /// Records that `row` was answered 200.
    pub async fn deliver(&self, row: Pending) {
        let attempt = samples::answered(&row, 200, self.now());
        let record = self.result(row, Some(attempt), Follow::Delivered);
        assert_eq!(self.record(record).await, Recorded::Applied);
    }

    /// Where a delivery stands.
    pub async fn state(&self, message: MessageKey, endpoint: EndpointKey) -> Option<DeliveryState> {
        let rows = self.stores.history.deliveries(message).await.unwrap();
        rows.into_iter().find(|row| row.endpoint == endpoint).map(|row| row.state)
    }

    /// Every attempt of a message, oldest first.
    pub async fn attempts(&self, message: MessageKey) -> Vec<AttemptRow> {
        let page: PageOf<AttemptKey> = all();
        self.stores.history.attempts_of(message, AttemptFilter::default(), page).await.unwrap().rows
    }

    /// An application by its uid.
    pub async fn by_uid(&self, uid: &str) -> Option<AppSnapshot> {
        self.stores.directory.app(ORG, IdOrUid::Uid(uid.to_owned())).await.unwrap()
    }
}

/// Everything, oldest first.
pub const fn all<P>() -> PageOf<P> {
    PageOf { beyond: None, direction: Direction::Ascending, limit: 1_000 }
}
