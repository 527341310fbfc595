//! A world: a store that outlives the processes, and lives of the engine that end in a crash, a
//! drain, or at rest.
//!
//! Never: let a life see anything of the one before but what is stored.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::delivery::DeliveryState;
use domain::ids::{EndpointKey, MessageKey};
use engine::events::{Event, Observer};
use engine::{Engine, Parts, Settings, Stores};
use futures_util::FutureExt;
use resilience::{Chance, Seeded, Timestamp};
use store::directory::{Directory, NewEndpoint};
use store::inbox::Accepted;
use store::memory::MemoryStore;
use store::page::{Direction, PageOf};
use store::recoveries::Recoveries;
use store::tasks::{Task, TaskFilter, TaskKind, TaskStatus, Tasks};
use tokio::time::sleep;

use super::faults::{Deaf, Lag, Lagging, SimClock};
use super::operator::{self, Desk};
use super::oracle::{Known, Oracle};
use super::plan;
use super::receivers::{Receivers, SimTransport};

/// A world that does not come to rest in so many lives never will.
const LIVES_MAX: u32 = 16;

/// What was seen in a world, or in many.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub worlds: u64,
    pub lives: u64,
    pub hits: u64,
    pub delivered: u64,
    pub cancelled: u64,
    pub pruned: u64,
    /// Letters that went back by themselves, and tasks of that which were stopped.
    pub recovered: u64,
    pub relapsed: u64,
    pub dead: std::collections::BTreeMap<&'static str, u64>,
    pub events: std::collections::BTreeMap<&'static str, u64>,
    pub simulated: Duration,
    pub trace: u64,
}

impl Report {
    pub fn add(&mut self, other: &Self) {
        self.worlds += other.worlds;
        self.lives += other.lives;
        self.hits += other.hits;
        self.delivered += other.delivered;
        self.cancelled += other.cancelled;
        self.pruned += other.pruned;
        self.recovered += other.recovered;
        self.relapsed += other.relapsed;
        self.simulated += other.simulated;
        other
            .dead
            .iter()
            .for_each(|(reason, count)| *self.dead.entry(reason).or_default() += count);
        other
            .events
            .iter()
            .for_each(|(name, count)| *self.events.entry(name).or_default() += count);
    }

    /// Whether chance has led everywhere.
    pub fn has_seen_everything(&self) {
        for reason in ["rejected", "gone", "exhausted", "expired", "poisonous", "payload_gone"] {
            assert!(self.dead.contains_key(reason), "no delivery died as {reason}");
        }
        for event in ["opened", "closed", "gone", "refused", "suspended", "resumed", "paused"] {
            assert!(self.events.contains_key(event), "never {event}");
        }
        assert!(self.pruned > 0, "no message went");
        assert!(self.recovered > 0 && self.relapsed > 0, "nothing came back by itself");
        assert!(self.cancelled > 0 && self.delivered > 0 && self.lives > 2 * self.worlds);
    }
}

/// Counts events, and makes them part of the trace.
pub struct Watcher {
    oracle: Arc<Mutex<Oracle>>,
    counts: Mutex<std::collections::BTreeMap<&'static str, u64>>,
}

impl Observer for Watcher {
    fn observe(&self, event: &Event) {
        let name = match event {
            Event::Attempted { .. } => "attempted",
            Event::Buried { .. } => "buried",
            Event::BreakerOpened { .. } => "opened",
            Event::BreakerClosed { .. } => "closed",
            Event::EndpointGone { .. } => "gone",
            Event::RefusalsHeld { .. } => "refused",
            Event::EndpointSuspended { .. } => "suspended",
            Event::EndpointResumed { .. } => "resumed",
            Event::SendingPaused { .. } => "paused",
        };
        *self.counts.lock().unwrap().entry(name).or_default() += 1;
        self.oracle.lock().unwrap().note(name);
    }
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Crash,
    Drain,
    DrainCutShort,
    Rest,
}

struct World {
    chance: Seeded,
    clock: Arc<SimClock>,
    store: Arc<MemoryStore>,
    settings: Settings,
    oracle: Arc<Mutex<Oracle>>,
    receivers: Arc<Receivers>,
    watcher: Arc<Watcher>,
    accepted: Arc<Mutex<BTreeSet<MessageKey>>>,
    lag: Arc<Lag>,
    steps: bool,
    bodies: u64,
    poison: Option<Bytes>,
    inflight: PathBuf,
}

/// Plays one seed.
pub fn play(seed: u64) -> Result<Report, String> {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let mut world = World::new(seed, scratch.path().join("inflight"));
    let plan = 1 + world.chance.below(4);
    for life in 1.. {
        let end = match life {
            _ if u64::from(life) > plan => End::Rest,
            _ => plan::one_of(
                &mut world.chance,
                &[End::Crash, End::Crash, End::Drain, End::DrainCutShort],
            ),
        };
        if world.live(life, end) == End::Rest {
            break;
        }
        if life > LIVES_MAX {
            return Err("it never comes to rest".to_owned());
        }
        let found = world.oracle.lock().unwrap().faults.join("\n");
        if !found.is_empty() {
            return Err(found);
        }
    }
    world.report()
}

impl World {
    fn new(seed: u64, inflight: PathBuf) -> Self {
        let mut chance = Seeded::new(seed.wrapping_mul(0x5851_F42D_4C95_7F2D));
        let clock = SimClock::new(Timestamp::from_secs(1_800_000_000));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let settings = plan::settings(&mut chance);
        let limits = plan::limits(&settings);
        let mut oracle = Oracle::new(Arc::clone(&clock), Arc::clone(&store), limits);
        oracle.shows = std::env::args().any(|arg| arg == "--nocapture");
        let app = store.create_app(plan::ORG, plan::app(), [1; 12]);
        let app = app.now_or_never().expect("at once").expect("an application");
        for number in 0..1 + chance.below(4) {
            let spec = plan::endpoint(&mut chance, number);
            let (ordering, automatic) = (spec.ordering, spec.auto_replay.unwrap_or(true));
            let new = NewEndpoint { app: app.key, spec, secret: plan::secret(), random: [2; 12] };
            let made = store.create_endpoint(new).now_or_never().expect("at once").expect("made");
            let receiver = plan::receiver(&mut chance);
            oracle.note((made.key, ordering, automatic, &receiver));
            oracle.receivers.insert(made.key, receiver);
            oracle.known.insert(made.key, Known::new(ordering, automatic));
        }
        let poison = (chance.below(8) == 0).then(|| Bytes::from_static(b"poison"));
        let oracle = Arc::new(Mutex::new(oracle));
        let watched = Arc::clone(&oracle);
        let receivers = Receivers::new(chance.next_u64(), Arc::clone(&oracle), poison.clone());
        let (lag, steps) =
            (Lag::new(chance.next_u64(), chance.below(3) == 0), chance.below(6) == 0);
        oracle.lock().unwrap().stepped = steps;
        Self {
            chance,
            clock,
            store,
            settings,
            oracle,
            receivers,
            watcher: Arc::new(Watcher { oracle: watched, counts: Mutex::default() }),
            accepted: Arc::default(),
            lag,
            steps,
            bodies: 0,
            poison,
            inflight,
        }
    }

    fn parts(&mut self) -> Parts {
        let lagging =
            Arc::new(Lagging { inner: Arc::clone(&self.store), lag: Arc::clone(&self.lag) });
        let mut stores = Stores::of(&self.store);
        stores.queue = Arc::clone(&lagging) as _;
        stores.ledger = lagging;
        Parts {
            settings: self.settings.clone(),
            stores,
            transport: Arc::new(SimTransport(Arc::clone(&self.receivers))),
            clock: Arc::clone(&self.clock) as _,
            chance: Box::new(Seeded::new(self.chance.next_u64())),
            tracing: Default::default(),
            observer: Arc::clone(&self.watcher) as _,
            wording: |notice| Bytes::from_static(notice.news.name().as_bytes()),
            mailer: Some(Arc::new(Deaf)),
            alerting: None,
            forwarding: None,
            inflight_path: Some(self.inflight.clone()),
        }
    }

    /// One life in a runtime of its own, which takes every task with it when it ends.
    fn live(&mut self, life: u32, end: End) -> End {
        let pause = if life == 1 { Duration::ZERO } else { plan::seconds(&mut self.chance, 60) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let ended = runtime.block_on(async {
            self.clock.resume(pause);
            self.receivers.revive();
            self.oracle.lock().unwrap().life_begins(pause, Arc::clone(&self.store));
            let ended = self.run(end).await;
            let image = self.store.crash_image();
            self.oracle.lock().unwrap().crashed(&image);
            self.oracle.lock().unwrap().life_ends();
            self.clock.freeze();
            self.store = image;
            ended
        });
        drop(runtime);
        ended
    }

    async fn run(&mut self, end: End) -> End {
        let (engine, running) = loop {
            let store = Arc::clone(&self.store);
            let started = Engine::start(self.parts(), move |commits| store.attach(commits)).await;
            match started {
                Ok(started) => break started,
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        };
        self.lag.set(0, 0);
        let busy = Duration::from_secs(2) + plan::seconds(&mut self.chance, 90);
        self.produce(&engine, busy);
        self.operate(&engine, busy);
        if end == End::Crash && self.chance.below(2) == 0 {
            *self.receivers.fatal_in.lock().unwrap() = Some(1 + self.chance.below(30));
        }
        let receivers = Arc::clone(&self.receivers);
        let over = async {
            match end {
                End::Rest => self.rest(busy).await,
                _ => sleep(busy).await,
            }
        };
        let killed = tokio::select! {
            biased;
            () = receivers.killed.notified() => true,
            () = over => false,
        };
        self.check_engine(&engine);
        if killed {
            return End::Crash;
        }
        match end {
            End::Crash => {}
            End::Drain | End::Rest => running.drain(plan::seconds(&mut self.chance, 20)).await,
            End::DrainCutShort => {
                let cut = plan::seconds(&mut self.chance, 12);
                let _cut = tokio::time::timeout(cut, running.drain(Duration::from_secs(12))).await;
            }
        }
        end
    }

    fn check_engine(&self, engine: &Engine) {
        let repairs = engine.lane_repairs();
        if repairs > 0 {
            let text = format!("{repairs} lane repairs");
            self.oracle.lock().unwrap().faults.push(text);
        }
    }

    /// Waits until nothing is pending that could still be sent or closed.
    async fn rest(&self, busy: Duration) {
        sleep(busy).await;
        self.oracle.lock().unwrap().restore_clock();
        for _ in 0..2_000 {
            let off = |endpoint: EndpointKey| self.oracle.lock().unwrap().known[&endpoint].shut;
            let waits =
                |row: &domain::delivery::Pending| !row.trigger.is_extra() || !off(row.endpoint);
            if !self.store.all_pending().iter().any(waits) && !self.is_owed() {
                return;
            }
            sleep(Duration::from_secs(10)).await;
        }
    }

    /// Whether dead letters are about to go back by themselves.
    fn is_owed(&self) -> bool {
        let running = self.store.running(1).now_or_never().expect("at once").expect("no fault");
        let ready = self.store.ready(None, 100).now_or_never().expect("at once").expect("no fault");
        let off = |endpoint: EndpointKey| self.oracle.lock().unwrap().known[&endpoint].shut;
        !running.is_empty() || ready.iter().any(|recovery| !off(recovery.endpoint))
    }

    /// Tasks of outages.
    fn of_outages(&self) -> Vec<Task> {
        let filter = TaskFilter { kinds: vec![TaskKind::Outage], ..TaskFilter::default() };
        let page = PageOf { beyond: None, direction: Direction::Ascending, limit: usize::MAX };
        let found = self.store.tasks(plan::ORG, filter, page).now_or_never();
        found.expect("at once").expect("no fault").rows
    }

    fn operate(&mut self, engine: &Engine, busy: Duration) {
        let desk = Desk {
            engine: engine.clone(),
            store: Arc::clone(&self.store),
            oracle: Arc::clone(&self.oracle),
            receivers: Arc::clone(&self.receivers),
            lag: Arc::clone(&self.lag),
            clock: Arc::clone(&self.clock),
            steps: self.steps,
        };
        let count = self.chance.below(8);
        tokio::spawn(operator::work(desk, Seeded::new(self.chance.next_u64()), count, busy));
    }

    fn produce(&mut self, engine: &Engine, busy: Duration) {
        for _ in 0..self.chance.below(30) {
            self.bodies += 1;
            let body = match self.poison.take_if(|_| self.bodies > 3) {
                Some(poison) => poison,
                None => Bytes::from(format!("{{\"n\":{}}}", self.bodies)),
            };
            let post = plan::post(&mut self.chance, body);
            let at = self.chance.between(Duration::ZERO, busy);
            let at = if self.chance.below(2) == 0 { at / 20 } else { at };
            let patience = self.chance.between(Duration::ZERO, Duration::from_millis(500));
            let gives_up = self.chance.below(5) == 0;
            let (engine, accepted) = (engine.clone(), Arc::clone(&self.accepted));
            tokio::spawn(async move {
                sleep(at).await;
                for _ in 0..8 {
                    let patience = if gives_up { patience } else { Duration::from_secs(60) };
                    let asked = engine.ingest(post.clone());
                    match tokio::time::timeout(patience, asked).await {
                        Ok(Ok(Accepted::New { key, .. })) => {
                            accepted.lock().unwrap().insert(key);
                            return;
                        }
                        Ok(Ok(Accepted::Repeated(message))) => {
                            accepted.lock().unwrap().insert(message.key);
                            return;
                        }
                        Ok(Ok(other)) => panic!("{other:?}"),
                        Ok(Err(_)) => sleep(Duration::from_millis(200)).await,
                        Err(_) => return,
                    }
                }
            });
        }
    }

    fn report(&mut self) -> Result<Report, String> {
        let accepted = self.accepted.lock().unwrap().clone();
        let mut oracle = self.oracle.lock().unwrap();
        oracle.store = Arc::clone(&self.store);
        oracle.at_rest(&accepted);
        if std::fs::read(&self.inflight).is_ok_and(|left| !left.is_empty()) {
            oracle
                .faults
                .push("something stands in the in-flight file after a clean end".to_owned());
        }
        if !oracle.faults.is_empty() {
            return Err(oracle.faults.join("\n"));
        }
        let events = self.watcher.counts.lock().unwrap().clone();
        let tasks = self.of_outages();
        let stopped = |task: &&Task| task.status == TaskStatus::Stopped;
        let mut report = Report {
            worlds: 1,
            lives: u64::from(oracle.life),
            hits: oracle.hits.len() as u64,
            events,
            simulated: oracle.elapsed(),
            pruned: (oracle.stored.len() - self.store.all_messages().len()) as u64,
            recovered: tasks.iter().map(|task| task.tally.done).sum(),
            relapsed: tasks.iter().filter(stopped).count() as u64,
            trace: oracle.trace,
            ..Report::default()
        };
        for (_, row) in self.store.all_deliveries() {
            match row.state {
                DeliveryState::Delivered => report.delivered += 1,
                DeliveryState::Cancelled(_) => report.cancelled += 1,
                DeliveryState::Dead(reason) => *report.dead.entry(reason.name()).or_default() += 1,
                DeliveryState::Pending => {}
            }
        }
        Ok(report)
    }
}
