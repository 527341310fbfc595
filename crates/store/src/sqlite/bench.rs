//! What a message costs the writer, on one thread: `cargo test --release -p peyk-store bench --
//! --ignored --nocapture`.
//!
//! Never: a verdict; it prints figures for people.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::application::ApplicationSpec;
use domain::attempt::{Answer, Attempt, Outcome};
use domain::delivery::{Pending, Trigger};
use domain::endpoint::{Endpoint, LiveSecret};
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::limits::BATCH_TIME_MAX;
use domain::message::{ContentType, MessageSpec};
use resilience::{Chance as _, Clock, RetryAfter, Seeded, SystemClock};
use tokio::sync::oneshot;
use webhook::Secret;

use super::SqliteOptions;
use super::checkpoint::Helper;
use super::door::{Door, Job, Room};
use super::migrate::open_writer;
use super::shared::Shared;
use super::stopwatch::started;
use super::writer::Writer;
use crate::commits::{BatchStats, Commits, Fresh};
use crate::conformance::samples;
use crate::directory::NewEndpoint;
use crate::inbox::NewMessage;
use crate::ledger::{Follow, Record};

const ENDPOINTS: usize = 1_000;

/// Keeps what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<Fresh>>);

impl Commits for Told {
    fn fresh(&self, rows: Vec<Fresh>) {
        self.0.lock().unwrap().extend(rows);
    }
    fn withdrawn(&self, _: Vec<Pending>) {}
    fn directory_changed(&self, _: AppKey, _: Option<EndpointKey>) {}
    fn batch(&self, stats: BatchStats) {
        assert!(stats.committed);
    }
}

/// One run.
struct Bench<'c> {
    writer: Writer<'c>,
    sender: Sender<Job>,
    receiver: Receiver<Job>,
    told: Arc<Told>,
    chance: Seeded,
    targets: Vec<Arc<Endpoint>>,
    keys: bool,
}

impl Bench<'_> {
    fn directory(&mut self, apps: usize) {
        self.writer.tx.conn.execute_batch("BEGIN").unwrap();
        let org = PublicId::new(1, [1; 12]);
        for number in 0..ENDPOINTS {
            if number < apps {
                let spec = ApplicationSpec {
                    name: "bench".into(),
                    uid: None,
                    throttle_rate: None,
                    metadata: "{}".into(),
                };
                self.writer.tx.create_app(org, spec, [0; 12]).unwrap();
            }
            let app = i64::try_from(number % apps).unwrap() + 1;
            let secret = LiveSecret { secret: Secret::from_random_hmac([1; 24]), expires_at: None };
            let new = NewEndpoint {
                app: AppKey(app),
                spec: samples::endpoint(),
                secret,
                random: [0; 12],
            };
            self.targets.push(self.writer.tx.create_endpoint(new, None).unwrap());
        }
        self.writer.tx.conn.execute_batch("COMMIT").unwrap();
    }

    fn versions(&self) -> Vec<i64> {
        let sql = "SELECT version FROM app ORDER BY key";
        let mut statement = self.writer.tx.conn.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// One batch: posts, and the results of the batch before, as it comes when a queue is full.
    fn round(&mut self, batch: usize, payload: &Bytes, versions: &[i64]) {
        let rows = std::mem::take(&mut *self.told.0.lock().unwrap());
        let results = rows.len();
        for _ in 0..batch {
            let post = self.post(payload, versions);
            let (answer, _) = oneshot::channel();
            self.sender.send(Job::Accept(Box::new(post), started(), answer)).unwrap();
        }
        let records = rows.into_iter().map(delivered).collect();
        let (answer, mut answered) = oneshot::channel();
        self.sender.send(Job::Record(records, answer)).unwrap();
        while let Ok(job) = self.receiver.try_recv() {
            self.writer.turn(Some(job), &self.receiver);
            self.writer.look();
        }
        assert_eq!(answered.try_recv().unwrap().unwrap().len(), results);
    }

    fn post(&mut self, payload: &Bytes, versions: &[i64]) -> NewMessage {
        let chosen = usize::try_from(self.chance.below(ENDPOINTS as u64)).unwrap();
        let target = Arc::clone(&self.targets[chosen]);
        let mut scope = [0; 16];
        scope[..8].copy_from_slice(&self.chance.next_u64().to_le_bytes());
        scope[8..].copy_from_slice(&self.chance.next_u64().to_le_bytes());
        NewMessage {
            app: target.app,
            app_version: versions[usize::try_from(target.app.0 - 1).unwrap()],
            spec: MessageSpec {
                event_type: "invoice.paid".into(),
                event_id: None,
                channels: Vec::new(),
                tags: Vec::new(),
                payload: payload.clone(),
                content_type: ContentType::Json,
                retention_hours: None,
                deliver_at: None,
                trace: None,
            },
            random: [7; 12],
            targets: vec![target],
            key: self.keys.then_some(IngestKey { scope, body: [3; 16] }),
            edited_from: None,
        }
    }
}

fn delivered(fresh: Fresh) -> Record {
    let attempt = Attempt {
        number: 1,
        started_at: fresh.pending.due_at,
        took: Duration::from_micros(900),
        trigger: Trigger::Scheduled,
        outcome: Outcome::Answered(Answer {
            status: 200,
            retry_after: RetryAfter::Absent,
            body: Bytes::from_static(b"ok"),
            cut: None,
            redirect_origin: None,
        }),
        resent: false,
    };
    Record {
        pending: fresh.pending,
        attempt: Some(attempt),
        random: [9; 12],
        follow: Follow::Delivered,
        lane: None,
        disable: None,
        run: None,
        news: Default::default(),
    }
}

/// Time on a processor of the calling thread so far.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn run(path: &Path, apps: usize, keys: bool, batch: usize) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let options = SqliteOptions::new(path, Arc::clone(&clock));
    let conn = open_writer(path, options.writer_cache_kib).unwrap();
    let (sender, receiver) = channel();
    let room = Room { jobs: 1, bytes: 1, wait: Duration::MAX };
    let told = Arc::new(Told::default());
    let shared = Arc::new(Shared::new(clock, Door::new(sender.clone(), room), 0, BATCH_TIME_MAX));
    shared.commits.set(Arc::clone(&told) as Arc<dyn Commits>).ok().unwrap();
    let helper = Helper::start(path, Arc::clone(&shared)).unwrap();
    let writer = Writer::new(&conn, shared).unwrap();
    let (chance, targets) = (Seeded::new(1), Vec::new());
    let mut bench = Bench { writer, sender, receiver, told, chance, targets, keys };
    bench.directory(apps);
    let (versions, payload) = (bench.versions(), Bytes::from(vec![b'x'; 500]));
    let messages = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(200_000);
    for part in 1..=4 {
        let (cpu, begun) = (on_cpu(), SystemClock.now());
        for _ in 0..messages / 4 / batch {
            bench.round(batch, &payload, &versions);
        }
        let each = |span: Duration| span.as_secs_f64() * 1e6 * 4.0 / messages as f64;
        println!(
            "{apps:5} apps, keys {keys:5}, batches of {batch:4}, quarter {part}: {:5.2} µs on CPU, {:5.2} µs in all",
            each(on_cpu() - cpu),
            each(SystemClock.now().since(begun)),
        );
    }
    helper.close();
}

#[test]
#[ignore = "a benchmark"]
fn bench() {
    let dir = tempfile::tempdir().unwrap();
    let chosen = std::env::args().find_map(|arg| arg.strip_prefix("run=")?.parse().ok());
    let runs = [
        (1, false, 64),
        (1, false, 500),
        (1_000, false, 64),
        (1_000, true, 64),
        (1_000, true, 500),
    ];
    for (number, (apps, keys, batch)) in runs.into_iter().enumerate() {
        if chosen.is_none_or(|chosen: usize| chosen == number) {
            run(&dir.path().join(format!("{number}.db")), apps, keys, batch);
        }
    }
}
