//! Whether a send is under way, as those see it who read the store beside the engine.
//!
//! Never: real time; a gate says when the ledger answers.

mod alerts;
mod health;
mod holds;
mod homes;
mod recovery;
mod retention;
mod rig;
mod storage;
mod suspects;
mod suspension;

use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use domain::application::ApplicationSpec;
use domain::endpoint::LiveSecret;
use domain::ids::Kind;
use domain::limits::PAGE_ROWS_MAX;
use domain::message::{ContentType, MessageSpec};
use resilience::{ManualClock, Seeded, Timestamp};
use store::Reply;
use store::conformance::samples;
use store::directory::{Directory as _, NewEndpoint};
use store::history::{AttemptFilter, History as _};
use store::ledger::{LaneState, Ledger, Record, Recorded, Suspect};
use store::memory::MemoryStore;
use store::page::{Direction, PageOf};
use tokio::sync::Semaphore;
use webhook::Secret;

use super::*;
use crate::events::Unobserved;
use crate::transport::scripted::{Script, ScriptedTransport};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const ORG: &str = "org_2PeykDefaultOrganisation000";

/// A ledger whose answers to records come when the gate is opened, though the records are there.
struct Gated {
    inner: Arc<MemoryStore>,
    gate: Arc<Semaphore>,
    /// The next answer is lost.
    loses: Arc<AtomicBool>,
}

impl Ledger for Gated {
    fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>> {
        let (done, gate) = (self.inner.record(records), Arc::clone(&self.gate));
        let loses = Arc::clone(&self.loses);
        Box::pin(async move {
            let done = done.await;
            gate.acquire().await.unwrap().forget();
            if loses.swap(false, Ordering::SeqCst) {
                return Err(StoreError::Unavailable("told to fail".to_owned()));
            }
            done
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

struct World {
    store: Arc<MemoryStore>,
    gate: Arc<Semaphore>,
    loses: Arc<AtomicBool>,
    engine: Engine,
    endpoint: EndpointKey,
    app: PublicId,
    _running: Running,
}

async fn world(script: fn() -> Script) -> World {
    let clock = Arc::new(ManualClock::new(NOW));
    let store = MemoryStore::new(Arc::clone(&clock) as _);
    let spec = ApplicationSpec {
        name: "one".to_owned(),
        uid: None,
        throttle_rate: None,
        metadata: "{}".to_owned(),
    };
    let org = PublicId::parse(Kind::Organisation, ORG).unwrap();
    let app = store.create_app(org, spec, [1; 12]).await.unwrap();
    let secret = LiveSecret { secret: Secret::from_random_hmac([5; 24]), expires_at: None };
    let new = NewEndpoint { app: app.key, spec: samples::endpoint(), secret, random: [2; 12] };
    let endpoint = store.create_endpoint(new).await.unwrap();
    let (gate, loses) = (Arc::new(Semaphore::new(0)), Arc::default());
    let mut stores = Stores::of(&store);
    let gated = (Arc::clone(&store), Arc::clone(&gate), Arc::clone(&loses));
    stores.ledger = Arc::new(Gated { inner: gated.0, gate: gated.1, loses: gated.2 });
    let parts = Parts {
        settings: crate::settings::Settings::default(),
        stores,
        transport: Arc::new(ScriptedTransport::new(move |_| script())),
        clock,
        chance: Box::new(Seeded::new(1)),
        tracing: Default::default(),
        observer: Arc::new(Unobserved),
        wording: |notice| Bytes::from_static(notice.news.name().as_bytes()),
        mailer: None,
        alerting: None,
        forwarding: None,
        inflight_path: None,
    };
    let attached = Arc::clone(&store);
    let (engine, running) =
        Engine::start(parts, move |commits| attached.attach(commits)).await.unwrap();
    World { store, gate, loses, engine, endpoint: endpoint.key, app: app.id, _running: running }
}

impl World {
    async fn post(&self) -> MessageKey {
        let spec = MessageSpec {
            event_type: "a".to_owned(),
            event_id: None,
            channels: Vec::new(),
            tags: Vec::new(),
            payload: Bytes::from_static(b"{}"),
            content_type: ContentType::Json,
            retention_hours: None,
            deliver_at: None,
            trace: None,
        };
        let org = PublicId::parse(Kind::Organisation, ORG).unwrap();
        let post =
            Post { org, app: IdOrUid::Id(self.app), spec, only: None, key: None, random: [3; 12] };
        let accepted = self.engine.ingest(post).await.unwrap();
        let Accepted::New { key, .. } = accepted else { panic!("{accepted:?}") };
        key
    }

    /// Waits until an attempt can be read.
    async fn attempted(&self, message: MessageKey) {
        let page = PageOf { beyond: None, direction: Direction::Ascending, limit: PAGE_ROWS_MAX };
        let filter = AttemptFilter::default();
        while self.store.attempts_of(message, filter.clone(), page).await.unwrap().rows.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Asks whether a send is in the air, and has the dispatcher take the question up. `None`: it
    /// has not been answered yet.
    async fn ask(
        &self,
        message: MessageKey,
    ) -> (Option<Result<bool, StoreError>>, JoinHandle<Result<bool, StoreError>>) {
        let (engine, endpoint) = (self.engine.clone(), self.endpoint);
        let mut asked = tokio::spawn(async move { engine.in_flight(endpoint, message).await });
        // The question is in the queue before this one.
        tokio::task::yield_now().await;
        self.engine.settled().await;
        tokio::task::yield_now().await;
        let at_once = if asked.is_finished() { Some((&mut asked).await.unwrap()) } else { None };
        (at_once, asked)
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_in_the_air_is_in_flight() {
    let world = world(Script::hang).await;
    let message = world.post().await;
    world.engine.settled().await;
    assert_eq!(world.ask(message).await.0, Some(Ok(true)));
    let other = MessageKey(message.0 + 1);
    assert_eq!(world.ask(other).await.0, Some(Ok(false)));
}

#[tokio::test(start_paused = true)]
async fn a_send_whose_attempt_can_be_read_is_not_in_flight() {
    let world = world(|| Script::status(200)).await;
    let message = world.post().await;
    world.attempted(message).await;
    let (at_once, asked) = world.ask(message).await;
    assert_eq!(at_once, None, "the confirmation is awaited");
    world.gate.add_permits(1);
    assert_eq!(asked.await.unwrap(), Ok(false));
    assert_eq!(world.ask(message).await.0, Some(Ok(false)));
}

#[tokio::test(start_paused = true)]
async fn a_question_does_not_wait_for_a_store_that_fails() {
    let world = world(|| Script::status(200)).await;
    let message = world.post().await;
    world.attempted(message).await;
    world.loses.store(true, Ordering::SeqCst);
    let (at_once, asked) = world.ask(message).await;
    assert_eq!(at_once, None);
    world.gate.add_permits(1);
    assert!(matches!(asked.await.unwrap(), Err(StoreError::Unavailable(_))));
    world.gate.add_permits(1);
    while world.engine.in_flight(world.endpoint, message).await != Ok(false) {}
}
