//! A store with one endpoint, and ways to hold it up.
//!
//! Never: a sleep; tests wait for what they want to see.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use domain::application::ApplicationSpec;
use domain::attempt::{Answer, Attempt, Failure, FailureKind, Outcome};
use domain::delivery::Pending;
use domain::endpoint::Endpoint;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::message::{ContentType, MessageSpec};
use resilience::{Clock, ManualClock, RetryAfter, Timestamp};
use tempfile::TempDir;
use webhook::Secret;

use super::super::{SqliteOptions, SqliteStore};
use crate::cipher::Cipher;
use crate::commits::{BatchStats, Commits, Fresh};
use crate::conformance::samples;
use crate::directory::{Directory as _, NewEndpoint};
use crate::inbox::{Accepted, Inbox as _, NewMessage};
use crate::ledger::{Follow, Record};
use crate::{Reply, StoreError};

/// Counts what it is told.
#[derive(Default)]
pub(super) struct Told {
    pub(super) fresh: AtomicUsize,
    pub(super) lost: AtomicUsize,
    pub(super) batches: AtomicUsize,
}

impl Commits for Told {
    fn fresh(&self, rows: Vec<Fresh>) {
        self.fresh.fetch_add(rows.len(), Ordering::SeqCst);
    }
    fn withdrawn(&self, _: Vec<Pending>) {}
    fn directory_changed(&self, _: AppKey, _: Option<EndpointKey>) {}
    fn batch(&self, stats: BatchStats) {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.lost.fetch_add(usize::from(!stats.committed), Ordering::SeqCst);
    }
}

pub(super) struct World {
    pub(super) store: Arc<SqliteStore>,
    pub(super) manual: Arc<ManualClock>,
    pub(super) told: Arc<Told>,
    pub(super) endpoint: Arc<Endpoint>,
    options: SqliteOptions,
    _dir: TempDir,
}

impl World {
    pub(super) async fn open() -> Self {
        Self::with(|_| ()).await
    }

    pub(super) async fn with_cipher(cipher: Option<Cipher>) -> Self {
        Self::with(|options| options.cipher = cipher).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut SqliteOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let manual = Arc::new(ManualClock::new(Timestamp::from_secs(1_790_000_000)));
        let clock: Arc<dyn Clock> = Arc::clone(&manual) as _;
        let mut options = SqliteOptions::new(dir.path().join("peyk.db"), clock);
        // What is held together goes into one batch, however busy the machine is.
        options.batch_time_max = Duration::MAX;
        change(&mut options);
        let store = SqliteStore::open(options.clone()).unwrap();
        let app = ApplicationSpec {
            name: "one".into(),
            uid: None,
            throttle_rate: None,
            metadata: "{}".into(),
        };
        let app = store.create_app(PublicId::new(1, [1; 12]), app, [1; 12]).await.unwrap();
        let secret = domain::endpoint::LiveSecret {
            secret: Secret::from_random_hmac([5; 24]),
            expires_at: None,
        };
        let new = NewEndpoint { app: app.key, spec: samples::endpoint(), secret, random: [2; 12] };
        let endpoint = store.create_endpoint(new).await.unwrap();
        let told = Arc::new(Told::default());
        store.attach(Arc::clone(&told) as Arc<dyn Commits>);
        Self { store, manual, told, endpoint, options, _dir: dir }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.options.path.clone()
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.options.clock)
    }

    /// Opens the same file with no patience: every post has waited too long.
    pub(super) fn impatient(&mut self) {
        self.options.wait_max = Duration::ZERO;
        self.reopen();
    }

    /// Closes the store and opens the same file.
    pub(super) fn reopen(&mut self) {
        self.store.close();
        self.store = SqliteStore::open(self.options.clone()).unwrap();
        self.store.attach(Arc::clone(&self.told) as Arc<dyn Commits>);
    }

    pub(super) fn message(&self, key: Option<IngestKey>) -> NewMessage {
        NewMessage {
            app: self.endpoint.app,
            app_version: self.endpoint.version,
            spec: MessageSpec {
                event_type: "user.created".into(),
                event_id: None,
                channels: Vec::new(),
                tags: Vec::new(),
                payload: Bytes::from_static(b"{\"a\":\"\0\xFF\"}"),
                content_type: ContentType::Json,
                retention_hours: None,
                deliver_at: None,
                trace: None,
            },
            random: [3; 12],
            targets: vec![Arc::clone(&self.endpoint)],
            key,
            edited_from: None,
        }
    }

    /// Accepts a message; the row of its delivery.
    pub(super) async fn post(&self, key: Option<IngestKey>) -> Pending {
        let accepted = self.store.accept(self.message(key)).await.unwrap();
        let Accepted::New { key, accepted_at, .. } = accepted else { panic!("{accepted:?}") };
        Pending {
            endpoint: self.endpoint.key,
            due_at: accepted_at,
            message: key,
            age_from: accepted_at,
            sends: 0,
            budget_used: 0,
            last_delay: Duration::ZERO,
            trigger: domain::delivery::Trigger::Scheduled,
        }
    }

    /// Holds the writer up in the middle of a batch, until what is returned is dropped.
    pub(super) fn hold(&self) -> Sender<()> {
        let (release, released) = channel::<()>();
        let (begun, has_begun) = channel::<()>();
        drop(self.store.shared.door.change(move |_| {
            begun.send(()).ok();
            released.recv().ok();
            Ok(())
        }));
        has_begun.recv().unwrap();
        release
    }

    /// Ends the transaction under the writer's feet, as a full disk may.
    pub(super) fn break_batch(&self) -> Reply<'static, ()> {
        self.store.shared.door.change(|tx| {
            tx.conn.execute_batch("ROLLBACK")?;
            Err(StoreError::Unavailable("disk full".into()))
        })
    }

    /// How a statement would find its rows.
    pub(super) async fn plan(&self, sql: &'static str) -> Vec<String> {
        let plan = self.store.readers.read(move |conn| {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push(row.get::<_, String>(3)?);
            }
            Ok(steps)
        });
        plan.await.unwrap()
    }

    /// Has the writer do all its chores.
    pub(super) async fn chores(&self) {
        for _ in 0..100 {
            let now = super::super::stopwatch::started() + Duration::from_secs(60);
            self.store.shared.door.chore(now).await.unwrap();
        }
    }
}

/// The result of a send that was answered.
pub(super) fn answered(pending: Pending, status: u16, follow: Follow) -> Record {
    let outcome = Outcome::Answered(Answer {
        status,
        retry_after: RetryAfter::Absent,
        body: Bytes::from_static(b"\0\xFF\xFE"),
        cut: None,
        redirect_origin: None,
    });
    record(pending, outcome, follow)
}

/// The result of a send that was not.
pub(super) fn failed(pending: Pending, follow: Follow) -> Record {
    let text = "connection refused".to_owned();
    record(pending, Outcome::Failed(Failure { kind: FailureKind::Connect, text }), follow)
}

fn record(pending: Pending, outcome: Outcome, follow: Follow) -> Record {
    let attempt = Attempt {
        number: pending.sends + 1,
        started_at: pending.due_at,
        took: Duration::from_millis(3),
        trigger: pending.trigger,
        outcome,
        resent: false,
    };
    let mut random = [0; 12];
    random[0] = u8::from(pending.trigger == domain::delivery::Trigger::Manual);
    Record {
        pending,
        attempt: Some(attempt),
        random,
        follow,
        lane: None,
        disable: None,
        run: None,
        news: Default::default(),
    }
}
