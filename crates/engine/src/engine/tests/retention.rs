//! What becomes of deliveries whose payload goes, wherever they are, and what goes by itself.
//!
//! Never: real time; the wall clock moves when a test says so.

use domain::dead_letter::DeadReason;
use domain::delivery::DeliveryState;
use domain::endpoint::{EndpointSpec, Ordering as Order};
use domain::policy::{RetrySettings, Strategy};
use store::dead_letters::{DeadFilter, DeadLetters as _};
use store::prune::days;
use store::queue::Queue as _;

use super::*;

const GONE: Option<DeliveryState> = Some(DeliveryState::Dead(DeadReason::PayloadGone));
/// As long as the first retry waits.
const RETRY: Duration = Duration::from_secs(3_600);

struct Desk {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    transport: Arc<ScriptedTransport>,
    engine: Engine,
    running: Running,
    app: PublicId,
    org: PublicId,
    endpoint: EndpointKey,
    made: AtomicU64,
}

/// An endpoint, and a receiver that answers 503 after a second to what has `bad` in it.
async fn open(ordering: Order) -> Desk {
    let clock = Arc::new(ManualClock::new(NOW));
    let store = MemoryStore::new(Arc::clone(&clock) as _);
    let org = PublicId::parse(Kind::Organisation, ORG).unwrap();
    let app = store.create_app(org, samples::app(None), [1; 12]).await.unwrap();
    let spec = EndpointSpec { ordering, ..samples::endpoint() };
    let new = NewEndpoint { app: app.key, spec, secret: samples::secret(2), random: [2; 12] };
    let endpoint = store.create_endpoint(new).await.unwrap();
    let transport = Arc::new(ScriptedTransport::new(|request| {
        let bad = request.body.windows(3).any(|piece| piece == b"bad");
        Script::status(if bad { 503 } else { 200 }).after(Duration::from_secs(1))
    }));
    let retry = RetrySettings {
        strategy: Strategy::Fixed,
        base: RETRY,
        cap: RETRY,
        age_max: days(200),
        ..RetrySettings::default()
    };
    let parts = Parts {
        settings: crate::settings::Settings { retry, ..crate::settings::Settings::default() },
        stores: Stores::of(&store),
        transport: Arc::clone(&transport) as _,
        clock: Arc::clone(&clock) as _,
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
    let (app, endpoint, made) = (app.id, endpoint.key, AtomicU64::new(0));
    Desk { store, clock, transport, engine, running, app, org, endpoint, made }
}

impl Desk {
    async fn post(&self, body: &'static str, retention_hours: Option<u16>) -> MessageKey {
        let payload = Bytes::from_static(body.as_bytes());
        let spec = MessageSpec { payload, retention_hours, ..samples::message() };
        let mut random = [3; 12];
        random[..8].copy_from_slice(&self.made.fetch_add(1, Ordering::SeqCst).to_le_bytes());
        let post =
            Post { org: self.org, app: IdOrUid::Id(self.app), spec, only: None, key: None, random };
        let accepted = self.engine.ingest(post).await.unwrap();
        let Accepted::New { key, .. } = accepted else { panic!("{accepted:?}") };
        key
    }

    async fn state(&self, message: MessageKey) -> Option<DeliveryState> {
        let rows = self.store.deliveries(message).await.unwrap();
        rows.first().map(|row| row.state)
    }

    /// Lets time on tokio's clock pass until a delivery stands so.
    async fn until(&self, message: MessageKey, state: Option<DeliveryState>) {
        for _ in 0..1_000 {
            if self.state(message).await == state {
                return;
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        panic!("it stands as {:?}", self.state(message).await);
    }

    /// Lets the engine look around for so long.
    async fn pass(&self, secs: u64) {
        for _ in 0..secs * 10 {
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    }

    /// Bodies that were sent.
    fn sent(&self) -> Vec<Bytes> {
        self.transport.take().into_iter().map(|sent| sent.body).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_waits_in_memory_is_not_sent_once_it_is_deleted() {
    let desk = open(Order::Unordered).await;
    desk.engine.force(desk.endpoint, Some(Forced::Open)).await.unwrap();
    let gone = desk.post("gone", None).await;
    let stays = desk.post("stays", None).await;
    desk.pass(2).await;
    desk.store.expunge(gone).await.unwrap();
    assert_eq!(desk.state(gone).await, GONE);
    desk.engine.force(desk.endpoint, Some(Forced::Closed)).await.unwrap();
    desk.until(stays, Some(DeliveryState::Delivered)).await;
    assert_eq!(desk.sent(), ["stays"]);
    assert_eq!(desk.state(gone).await, GONE);
}

#[tokio::test(start_paused = true)]
async fn the_next_in_order_does_not_wait_for_a_head_whose_payload_went() {
    let desk = open(Order::Ordered).await;
    let head = desk.post("bad", None).await;
    desk.pass(3).await;
    assert_eq!(desk.sent(), ["bad"]);
    let next = desk.post("next", None).await;
    desk.pass(3).await;
    assert_eq!(desk.transport.count(), 0, "the head waits for its retry");
    desk.store.expunge(head).await.unwrap();
    desk.until(next, Some(DeliveryState::Delivered)).await;
    assert_eq!((desk.sent(), desk.state(head).await), (vec![Bytes::from("next")], GONE));
}

#[tokio::test(start_paused = true)]
async fn nor_for_one_that_was_out_when_its_payload_went() {
    let desk = open(Order::Ordered).await;
    let head = desk.post("bad", None).await;
    let next = desk.post("next", None).await;
    while desk.transport.under_way(desk.endpoint) == 0 {
        tokio::task::yield_now().await;
    }
    desk.store.expunge(head).await.unwrap();
    desk.until(next, Some(DeliveryState::Delivered)).await;
    assert_eq!(desk.sent(), ["bad", "next"]);
    assert_eq!(desk.state(head).await, GONE);
    assert_eq!(desk.store.all_attempts().len(), 2, "what was sent is on record");
}

#[tokio::test(start_paused = true)]
async fn a_success_that_was_out_when_its_payload_went_is_delivered() {
    let desk = open(Order::Unordered).await;
    let message = desk.post("good", None).await;
    while desk.transport.under_way(desk.endpoint) == 0 {
        tokio::task::yield_now().await;
    }
    desk.store.expunge(message).await.unwrap();
    assert_eq!(desk.state(message).await, GONE);
    desk.until(message, Some(DeliveryState::Delivered)).await;
    assert_eq!(desk.transport.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn in_strict_order_a_payload_that_went_is_a_gap() {
    let desk = open(Order::Strict).await;
    let head = desk.post("bad", None).await;
    let next = desk.post("next", None).await;
    desk.pass(3).await;
    desk.store.expunge(head).await.unwrap();
    desk.pass(5).await;
    assert_eq!(desk.sent(), ["bad"]);
    assert!(desk.store.delete(head, desk.endpoint).await.unwrap());
    // A lane that is blocked asks again each second.
    desk.clock.advance(Duration::from_secs(2));
    desk.until(next, Some(DeliveryState::Delivered)).await;
}

#[tokio::test(start_paused = true)]
async fn each_minute_what_is_old_enough_goes() {
    let desk = open(Order::Unordered).await;
    let done = desk.post("done", None).await;
    desk.until(done, Some(DeliveryState::Delivered)).await;
    desk.engine.force(desk.endpoint, Some(Forced::Open)).await.unwrap();
    let named = desk.post("named", Some(5 * 24)).await;
    desk.clock.advance(days(5) + Duration::from_secs(1));
    desk.until(named, GONE).await;
    assert!(desk.store.envelope(named).await.unwrap().is_none());
    let letters = async || {
        let page = PageOf { beyond: None, direction: Direction::Ascending, limit: 10 };
        desk.store.list(desk.org, DeadFilter::default(), page).await.unwrap().rows.len()
    };
    assert_eq!(letters().await, 1);
    desk.clock.advance(days(30) + Duration::from_secs(1));
    desk.pass(2).await;
    assert_eq!(letters().await, 0);
    assert_eq!(desk.store.all_messages().len(), 2);
    desk.clock.advance(days(55));
    desk.pass(2).await;
    assert_eq!(desk.store.all_messages().len(), 0);
    assert_eq!(desk.sent(), ["done"]);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_goes_in_one_look_and_nothing_after_the_end() {
    let desk = open(Order::Unordered).await;
    let mut made = Vec::new();
    for _ in 0..1_200 {
        made.push(desk.post("x", None).await);
    }
    desk.until(made[1_199], Some(DeliveryState::Delivered)).await;
    desk.pass(20).await;
    desk.clock.advance(days(91));
    desk.pass(30).await;
    assert_eq!(desk.store.all_messages().len(), 0, "many pieces before the next look");
    let last = desk.post("last", None).await;
    desk.until(last, Some(DeliveryState::Delivered)).await;
    desk.running.drain(Duration::from_secs(1)).await;
    desk.clock.advance(days(91));
    for _ in 0..100 {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(desk.store.all_messages().len(), 1, "nobody prunes any more");
}
