//! Two nodes on one database: who owns what, how one hears of the other, and that nothing is
//! written by a node that was declared dead.
//!
//! Never: a wait that is not for a signal or for the database.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use domain::idempotency::IngestKey;
use domain::ids::{AppKey, EndpointKey};
use domain::nodes::{Partition, Partitions};
use resilience::{Clock, Forced, ManualClock};
use store::commits::{BatchStats, Commits, Elsewhere, Fresh};
use store::conformance::world::World;
use store::conformance::{Backend, START, Stores};
use store::inbox::Accepted;
use store::nodes::{Nodes, Order};
use store::postgres::{PostgresOptions, PostgresStore};
use testparts::Postgres;
use tokio::sync::Notify;
use tokio_postgres::{Client, NoTls};

const PATIENCE: Duration = Duration::from_secs(60);

/// What a node hears, and gives away at once what it should.
#[derive(Default)]
struct Heard {
    store: OnceLock<Arc<PostgresStore>>,
    inner: OnceLock<Arc<dyn Commits>>,
    elsewhere: Mutex<Vec<Elsewhere>>,
    news: Notify,
}

impl Commits for Heard {
    fn fresh(&self, rows: Vec<Fresh>) {
        self.inner.get().unwrap().fresh(rows);
    }

    fn withdrawn(&self, rows: Vec<domain::delivery::Pending>) {
        self.inner.get().unwrap().withdrawn(rows);
        self.news.notify_one();
    }

    fn directory_changed(&self, app: AppKey, endpoint: Option<EndpointKey>) {
        self.inner.get().unwrap().directory_changed(app, endpoint);
        self.news.notify_one();
    }

    fn elsewhere(&self, what: Elsewhere) {
        self.elsewhere.lock().unwrap().push(what);
        self.news.notify_one();
    }

    fn acquired(&self, _: Partitions) {
        self.news.notify_one();
    }

    fn shed(&self, partitions: Partitions) {
        let store = Arc::clone(self.store.get().unwrap());
        tokio::spawn(async move { store.release(partitions).await });
        self.news.notify_one();
    }

    fn batch(&self, stats: BatchStats) {
        self.inner.get().unwrap().batch(stats);
    }
}

struct Among(Arc<PostgresStore>, Arc<Heard>);

impl Backend for Among {
    fn stores(&self) -> Stores {
        Stores::of(&self.0).among(Arc::clone(&self.0) as _)
    }

    fn attach(&self, commits: Arc<dyn Commits>) {
        assert!(self.1.inner.set(commits).is_ok());
        self.0.attach(Arc::clone(&self.1) as _);
    }

    fn reopen(&mut self) {}
}

/// A node.
struct Node {
    world: World,
    store: Arc<PostgresStore>,
    heard: Arc<Heard>,
}

impl Node {
    async fn open(url: &str) -> Self {
        Self::with(url, |_| {}).await
    }

    async fn with(url: &str, change: impl FnOnce(&mut PostgresOptions)) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let mut options = PostgresOptions::new(url, Arc::clone(&clock) as Arc<dyn Clock>);
        change(&mut options);
        let store = PostgresStore::open(options, NoTls).await.unwrap();
        let heard = Arc::new(Heard::default());
        assert!(heard.store.set(Arc::clone(&store)).is_ok());
        let world = World::new(Box::new(Among(Arc::clone(&store), Arc::clone(&heard))), clock);
        Self { world, store, heard }
    }

    fn owned(&self) -> usize {
        self.store.share().owned().len()
    }

    fn owns(&self, endpoint: EndpointKey) -> bool {
        self.store.share().owns(endpoint)
    }

    /// Waits until it has heard something that `is` what is waited for.
    async fn hears(&self, what: &str, mut is: impl FnMut(&Self) -> bool) {
        let hears = async {
            while !is(self) {
                // Shares are added after the engine was told.
                let news = self.heard.news.notified();
                let _late = tokio::time::timeout(Duration::from_millis(20), news).await;
            }
        };
        let heard = tokio::time::timeout(PATIENCE, hears).await;
        assert!(heard.is_ok(), "waited in vain: {what}");
    }

    fn heard(&self, what: &Elsewhere) -> bool {
        self.heard.elsewhere.lock().unwrap().contains(what)
    }
}

/// Two nodes, each with its half.
async fn pair(url: &str) -> (Node, Node) {
    let first = Node::open(url).await;
    assert_eq!(first.owned(), 256, "alone it has everything at once");
    let second = Node::open(url).await;
    second.hears("its half", |node| node.owned() == 128).await;
    assert_eq!(first.owned(), 128);
    (first, second)
}

async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn two_nodes_share_and_one_that_leaves_gives_everything_back() {
    let url = Postgres::shared().fresh_database();
    let (first, second) = pair(&url).await;
    let both = first.store.share().owned().and(second.store.share().owned());
    assert_eq!(both, Partitions::ALL);
    second.store.close().await;
    first.hears("everything again", |node| node.owned() == 256).await;
    let client = raw(&url).await;
    assert_eq!(number(&client, "SELECT count(*) FROM peyk.node").await, 1);
    first.store.close().await;
    assert_eq!(
        number(&client, "SELECT count(*) FROM peyk.partition WHERE owner IS NULL").await,
        256
    );
}

#[tokio::test]
async fn a_node_without_work_owns_nothing() {
    let url = Postgres::shared().fresh_database();
    let idle = Node::with(&url, |options| options.works = false).await;
    assert_eq!(idle.owned(), 0);
    let works = Node::open(&url).await;
    assert_eq!(works.owned(), 256);
    let app = idle.world.app(1).await;
    let row = idle.world.one(&app).await;
    assert!(idle.world.told.take_fresh().is_empty());
    let told = Elsewhere::Pending(vec![row.endpoint]);
    works.hears("a row", |node| node.heard(&told)).await;
}

#[tokio::test]
async fn what_another_node_serves_is_told_to_it_and_not_handed_over_here() {
    let url = Postgres::shared().fresh_database();
    let (first, second) = pair(&url).await;
    let app = first.world.app(16).await;
    second
        .hears("the directory", |node| {
            node.world.told.take_changed().iter().any(|(changed, _)| *changed == app.app.key)
        })
        .await;
    first.world.told.take_fresh();
    let message = first.world.post(first.world.message(&app)).await;
    let kept: Vec<EndpointKey> =
        first.world.told.take_fresh().iter().map(|fresh| fresh.pending.endpoint).collect();
    let all = app.endpoints.iter().map(|endpoint| endpoint.key);
    let (own, foreign): (Vec<_>, Vec<_>) = all.partition(|key| first.owns(*key));
    assert!(!own.is_empty() && !foreign.is_empty(), "sixteen endpoints fall to both");
    assert_eq!(kept, own);
    let told = Elsewhere::Pending(foreign.clone());
    second.hears("its rows", |node| node.heard(&told)).await;

    let endpoint = foreign[0];
    for order in [
        Order::Forced(Some(Forced::Open)),
        Order::Forced(None),
        Order::Suspended,
        Order::LetOne(message),
    ] {
        first.store.order(endpoint, order).await.unwrap();
        let told = Elsewhere::Ordered(endpoint, order);
        second.hears("an order", |node| node.heard(&told)).await;
    }
    let row = first.world.row(message, endpoint).await.unwrap();
    first.world.stores.history.expunge(message).await.unwrap();
    let mut gone = Vec::new();
    second
        .hears("what is gone", |node| {
            gone.extend(node.world.told.take_withdrawn());
            gone.len() == foreign.len()
        })
        .await;
    let found = gone.iter().find(|gone| gone.endpoint == endpoint).unwrap();
    let name = |row: &domain::delivery::Pending| (row.message, row.due_at, row.trigger);
    assert_eq!(name(found), name(&row));
    let client = raw(&url).await;
    assert_eq!(number(&client, "SELECT count(*) FROM peyk.wake").await, 0, "all was read");
}

#[tokio::test]
async fn what_is_told_of_a_partition_that_went_is_left_to_whoever_has_it_now() {
    let url = Postgres::shared().fresh_database();
    let (first, second) = pair(&url).await;
    let client = raw(&url).await;
    let place = |node: &Node, n| node.store.share().owned().iter().nth(n).unwrap().0;
    let (went, came, stays) = (place(&first, 0), place(&second, 0), place(&first, 1));
    // Behind the back of both, as if a read had been on its way for as long as a hand-over takes.
    let swap = format!(
        "UPDATE peyk.partition SET owner = (SELECT it.owner FROM peyk.partition AS it
           WHERE it.id = CASE partition.id WHEN {went} THEN {came} ELSE {went} END)
         WHERE id IN ({went}, {came});
         INSERT INTO peyk.wake (partition, what, endpoint) VALUES ({went}, 0, 7), ({stays}, 0, 8)"
    );
    client.batch_execute(&swap).await.unwrap();
    let told = |node: &Node, endpoint| {
        let heard = node.heard.elsewhere.lock().unwrap();
        heard.iter().any(|what| {
            matches!(what, Elsewhere::Pending(told) if told.contains(&EndpointKey(endpoint)))
        })
    };
    first.hears("what is its own", |node| told(node, 8)).await;
    assert!(!told(&first, 7), "it has gone");
    let left = format!("SELECT count(*) FROM peyk.wake WHERE partition = {went}");
    assert_eq!(number(&client, &left).await, 1);
}

#[tokio::test]
async fn a_lost_notification_costs_time_and_nothing_else() {
    let url = Postgres::shared().fresh_database();
    let deaf = |options: &mut PostgresOptions| {
        options.direct_url = Some("postgres://postgres@127.0.0.1:1/none".into());
    };
    let first = Node::with(&url, deaf).await;
    let second = Node::with(&url, deaf).await;
    second.hears("its half", |node| node.owned() == 128).await;
    let app = first.world.app(16).await;
    first.world.post(first.world.message(&app)).await;
    let foreign: Vec<EndpointKey> =
        app.endpoints.iter().map(|it| it.key).filter(|key| second.owns(*key)).collect();
    let told = Elsewhere::Pending(foreign);
    second.hears("its rows", |node| node.heard(&told)).await;
}

#[tokio::test]
async fn one_idempotency_key_makes_one_message_on_whichever_node() {
    let url = Postgres::shared().fresh_database();
    let (first, second) = pair(&url).await;
    let app = first.world.app(3).await;
    for round in 0..20_u8 {
        let key = Some(IngestKey { scope: [round; 16], body: [1; 16] });
        let post = |node: &Node| {
            let new = store::inbox::NewMessage { key, ..node.world.message(&app) };
            node.world.stores.inbox.accept(new)
        };
        let (a, b) = tokio::join!(post(&first), post(&second));
        let is_new = |made: &Accepted| matches!(made, Accepted::New { .. });
        let made = [a.unwrap(), b.unwrap()];
        assert_eq!(made.iter().filter(|made| is_new(made)).count(), 1, "{made:?}");
        assert!(made.iter().any(|made| matches!(made, Accepted::Repeated(_))), "{made:?}");
    }
    let client = raw(&url).await;
    assert_eq!(number(&client, "SELECT count(*) FROM peyk.message").await, 20);
    assert_eq!(number(&client, "SELECT count(*) FROM peyk.pending").await, 60);
}

#[tokio::test]
async fn du_05_a_take_over_waits_for_an_open_transaction_and_nothing_is_written_after_it() {
    let url = Postgres::shared().fresh_database();
    let heir = Node::open(&url).await;
    let (client, mut silent) = (raw(&url).await, raw(&url).await);
    // A node whose process stands still in the middle of a batch.
    client
        .batch_execute(
            "INSERT INTO peyk.node (id, slot, works, heartbeat)
                 VALUES (42, 200, true, clock_timestamp() - interval '1 hour');
             UPDATE peyk.partition SET owner = 42 WHERE id < 10",
        )
        .await
        .unwrap();
    let batch = silent.transaction().await.unwrap();
    let fence = "SELECT id FROM peyk.node WHERE id = 42 FOR KEY SHARE";
    assert_eq!(batch.query(fence, &[]).await.unwrap().len(), 1);
    let write = "INSERT INTO peyk.setting (name, value) VALUES ('stale', '')";
    batch.execute(write, &[]).await.unwrap();
    // It waits for that lock, and not only once.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                 AND query LIKE 'DELETE FROM node%' AND datname = current_database()";
    for _ in 0..2 {
        heir.hears_sql(&client, waits, 1).await;
        heir.hears_sql(&client, waits, 0).await;
    }
    let owned = "SELECT count(*) FROM peyk.partition WHERE owner = 42";
    assert_eq!(number(&client, owned).await, 10);
    batch.commit().await.unwrap();
    heir.hears("its inheritance", |node| node.owned() == 256).await;
    // What was committed before is there; the next batch finds no row to lock.
    assert_eq!(number(&client, "SELECT count(*) FROM peyk.setting WHERE name = 'stale'").await, 1);
    assert_eq!(silent.query(fence, &[]).await.unwrap().len(), 0);
}

impl Node {
    async fn hears_sql(&self, client: &Client, sql: &str, count: i64) {
        let asks = async {
            while number(client, sql).await != count {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, asks).await.is_ok(), "{sql}");
    }
}

#[tokio::test]
async fn du_05_a_node_that_was_declared_dead_writes_nothing_and_knows_it() {
    let url = Postgres::shared().fresh_database();
    let (first, second) = pair(&url).await;
    let app = first.world.app(4).await;
    let row = first.world.one(&app).await;
    let client = raw(&url).await;
    let id = first.store.node().0;
    client.execute("DELETE FROM peyk.node WHERE id = $1", &[&id]).await.unwrap();
    let refused = first.world.stores.inbox.accept(first.world.message(&app)).await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    let result = first.world.result(row, None, store::ledger::Follow::Delivered);
    assert!(first.world.stores.ledger.record(vec![result]).await.is_err());
    tokio::time::timeout(PATIENCE, first.store.share().over()).await.unwrap();
    second.hears("everything", |node| node.owned() == 256).await;
    assert_eq!(second.world.rows(row.endpoint).await, [row], "still pending");
}

#[tokio::test]
async fn the_next_process_of_a_directory_has_at_once_what_the_last_one_had() {
    let url = Postgres::shared().fresh_database();
    let first = Node::open(&url).await;
    let former = Some(first.store.node());
    let next = Node::with(&url, |options| options.former = former).await;
    assert_eq!(next.owned(), 256);
    assert!(next.owns(EndpointKey(1)) && Partitions::ALL.contains(Partition::of(EndpointKey(1))));
}
