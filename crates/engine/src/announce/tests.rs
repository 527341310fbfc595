//! Notices over the reference model, round by round.
//!
//! Never: a send; whether a message goes out is seen in its pending row.

use domain::application::AppSnapshot;
use domain::message::Message;
use resilience::ManualClock;
use store::conformance::world::{ORG, World as Stored, all};
use store::conformance::{START, samples};
use store::directory::EndpointChange;
use store::memory::MemoryStore;

use super::*;

fn wording(notice: &Notice) -> Bytes {
    Bytes::from(format!("{} {:?}", notice.news.name(), notice.endpoint.0))
}

struct World {
    store: Arc<MemoryStore>,
    stored: Stored,
    teller: AppKey,
    app: AppKey,
}

impl World {
    /// `ORG` is told by an application with one endpoint, and has one itself.
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let stored = Stored::new(Box::new(Arc::clone(&store)), clock);
        let directory = &stored.stores.directory;
        let spec = samples::app(teller_of(ORG).as_deref());
        let teller = directory.create_app(MANAGEMENT, spec, [7; 12]).await.unwrap().key;
        let app = stored.app(0).await.app.key;
        stored.endpoint(teller).await;
        Self { store, stored, teller, app }
    }

    fn announcer(&self) -> Announcer {
        let stores = self.stored.stores.clone();
        let roster = Arc::new(Roster::new(Arc::clone(&stores.directory)));
        Announcer::new(stores, roster, wording, Tracing::default())
    }

    /// A new endpoint of the organisation, as it is announced.
    async fn happens(&self) -> String {
        let made = self.stored.endpoint(self.app).await;
        format!("endpoint.created {:?}", made.id)
    }

    async fn teller(&self) -> AppSnapshot {
        self.stored.snapshot(self.teller).await
    }

    async fn messages(&self) -> Vec<Message> {
        let history = &self.stored.stores.history;
        history.messages(self.teller, Default::default(), all(), true).await.unwrap().rows
    }

    /// What was announced, in order.
    async fn announced(&self) -> Vec<String> {
        let messages = self.messages().await;
        let texts = messages.iter().map(|it| String::from_utf8(it.spec.payload.to_vec()).unwrap());
        texts.collect()
    }

    async fn waiting(&self) -> usize {
        self.stored.stores.notices.waiting(1_000).await.unwrap().len()
    }
}

#[tokio::test]
async fn each_notice_is_one_message_in_its_order() {
    let world = World::new().await;
    let announcer = world.announcer();
    let mut expected = Vec::new();
    for _ in 0..PIECE + 20 {
        expected.push(world.happens().await);
    }
    assert_eq!(announcer.round().await, Ok(PIECE));
    assert_eq!(announcer.round().await, Ok(20));
    assert_eq!(announcer.round().await, Ok(0));
    assert_eq!(world.announced().await, expected);
    let to = world.teller().await.endpoints[0].key;
    assert_eq!(world.stored.rows(to).await.len(), expected.len());
    let first = world.messages().await.remove(0);
    assert_eq!(first.spec.event_type, "endpoint.created");
}

#[tokio::test]
async fn endpoints_get_what_they_filter_for() {
    let world = World::new().await;
    let announcer = world.announcer();
    world.happens().await;
    assert_eq!(announcer.round().await, Ok(1), "the application is known from now on");
    let endpoint = world.teller().await.endpoints.remove(0);
    let mut spec = endpoint.spec.clone();
    spec.event_types = Some(vec!["endpoint.deleted".to_owned()]);
    let change = EndpointChange { spec: Some(spec), ..EndpointChange::default() };
    world.stored.stores.directory.change_endpoint(endpoint.key, change).await.unwrap();
    // Nobody tells this roster of changes; the store does.
    world.happens().await;
    assert_eq!(announcer.round().await, Ok(1));
    assert_eq!((world.waiting().await, world.messages().await.len()), (1, 1), "it was stale");
    assert_eq!(announcer.round().await, Ok(1));
    assert_eq!((world.waiting().await, world.messages().await.len()), (0, 2));
    assert_eq!(world.stored.rows(endpoint.key).await.len(), 1, "it wants no such message");
}

#[tokio::test]
async fn what_nobody_is_told_of_any_more_goes() {
    let world = World::new().await;
    let announcer = world.announcer();
    world.happens().await;
    assert_eq!(announcer.round().await, Ok(1));
    world.happens().await;
    world.stored.stores.directory.delete_app(world.teller).await.unwrap();
    assert_eq!(announcer.round().await, Ok(1), "by the copy of the application");
    assert_eq!(announcer.round().await, Ok(1), "which is not there");
    assert_eq!((announcer.round().await, world.messages().await.len()), (Ok(0), 1));
}

#[tokio::test]
async fn a_store_that_fails_and_a_crash_lose_and_repeat_nothing() {
    let mut world = World::new().await;
    let mut expected = Vec::new();
    for _ in 0..6 {
        expected.push(world.happens().await);
    }
    world.store.fail_next(3);
    assert!(world.announcer().round().await.is_err());
    while world.waiting().await > 3 {
        tokio::task::yield_now().await;
    }
    // What was committed is, and what was not is still there for whoever starts next.
    world.stored.reopen();
    let next = world.announcer();
    while next.round().await.unwrap() > 0 {}
    let mut found = world.announced().await;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let mut ids: Vec<_> = world.messages().await.iter().map(|it| it.id.random()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

#[tokio::test]
async fn event_types_are_made_once_and_left_alone() {
    let world = World::new().await;
    let directory = &*world.stored.stores.directory;
    make_event_types(directory, START).await.unwrap();
    let made = directory.event_types(MANAGEMENT, false, all()).await.unwrap();
    let mut names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(made.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), names);
    let archived = EventType { archived: true, ..made[0].clone() };
    directory.update_event_type(MANAGEMENT, archived.clone()).await.unwrap();
    make_event_types(directory, START).await.unwrap();
    let found = directory.event_type(MANAGEMENT, archived.name.clone()).await.unwrap();
    assert_eq!(found, Some(archived));
}
