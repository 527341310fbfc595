//! What only a server beside Peyk can do to it: go away, come back, refuse to write, be of another
//! version.
//!
//! Never: what the suites show of every backend.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::Pending;
use resilience::{Clock, ManualClock, Timestamp};
use store::StoreError;
use store::commits::Commits;
use store::conformance::world::World;
use store::conformance::{Backend, START, Stores, samples};
use store::directory::IdOrUid;
use store::inbox::{Accepted, NewMessage};
use store::ledger::{Follow, Recorded};
use store::postgres::{PostgresOptions, PostgresStore};
use testparts::Postgres;
use tokio_postgres::NoTls;

/// A store that is not opened again.
struct Only(Arc<PostgresStore>);

impl Backend for Only {
    fn stores(&self) -> Stores {
        Stores::of(&self.0)
    }

    fn attach(&self, commits: Arc<dyn Commits>) {
        self.0.attach(commits);
    }

    fn reopen(&mut self) {}
}

async fn open(url: &str, clock: &Arc<ManualClock>) -> Result<Arc<PostgresStore>, StoreError> {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    PostgresStore::open(PostgresOptions::new(url, clock), NoTls).await
}

async fn world(url: &str) -> World {
    let clock = Arc::new(ManualClock::new(START));
    World::new(Box::new(Only(open(url, &clock).await.unwrap())), clock)
}

/// Repeats `ask` until it is answered; the store tries to connect again when it is asked.
async fn until_it_answers<T, F>(ask: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    let answered = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(fault) => assert!(fault.is_retryable(), "{fault}"),
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), answered).await.unwrap()
}

#[tokio::test]
async fn db_04_nothing_acknowledged_is_lost_when_the_server_dies_and_comes_back() {
    let mut server = Postgres::start();
    let url = server.fresh_database();
    let world = world(&url).await;
    let app = world.app(1).await;
    let kept = world.one(&app).await;
    server.kill();
    let refused = world.stores.inbox.accept(world.message(&app)).await.unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    assert!(world.stores.history.deliveries(kept.message).await.unwrap_err().is_retryable());
    let attempt = samples::answered(&kept, 200, world.now());
    let result = world.result(kept, Some(attempt), Follow::Delivered);
    assert!(world.stores.ledger.record(vec![result.clone()]).await.is_err());
    server.restart();
    let due = until_it_answers(|| world.stores.queue.due(kept.endpoint, Timestamp::MAX.into(), 10));
    assert_eq!(due.await.rows, [kept], "what was acknowledged");
    let recorded = until_it_answers(|| world.stores.ledger.record(vec![result.clone()])).await;
    assert_eq!(recorded, [Recorded::Applied]);
    let again = world.stores.ledger.record(vec![result]).await.unwrap();
    assert_eq!(again, [Recorded::Late], "a result that was applied already changes nothing");
    assert_eq!(world.attempts(kept.message).await.len(), 1);
    world.one(&app).await;
}

#[tokio::test]
async fn db_04_a_server_that_only_reads_takes_nothing_until_it_writes_again() {
    let server = Postgres::start();
    let url = server.fresh_database();
    let world = world(&url).await;
    let app = world.app(1).await;
    let name = url.rsplit('/').next().unwrap();
    let postgres = server.url("postgres");
    let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                  WHERE application_name = 'peyk'";
    server.sql(&postgres, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    server.sql(&postgres, others);
    let first = world.stores.inbox.accept(world.message(&app)).await.unwrap_err();
    assert!(first.is_retryable(), "{first}");
    server.sql(&postgres, &format!("ALTER DATABASE {name} RESET default_transaction_read_only"));
    let accepted = until_it_answers(|| world.stores.inbox.accept(world.message(&app))).await;
    assert!(matches!(accepted, Accepted::New { .. }));
}

#[tokio::test]
async fn only_the_row_that_cannot_be_written_is_refused() {
    let server = Postgres::shared();
    let url = server.fresh_database();
    let world = world(&url).await;
    let app = world.app(1).await;
    let row = world.one(&app).await;
    server.sql(&url, "ALTER TABLE peyk.message ADD CHECK (event_type <> 'cursed')");
    let mut cursed = world.message(&app);
    cursed.spec.event_type = "cursed".into();
    let attempt = samples::answered(&row, 200, world.now());
    let result = world.result(row, Some(attempt), Follow::Delivered);
    let (inbox, ledger) = (&world.stores.inbox, &world.stores.ledger);
    // All are queued before the first is written.
    let (well, cursed, also_well, recorded) = tokio::join!(
        inbox.accept(world.message(&app)),
        inbox.accept(cursed),
        inbox.accept(world.message(&app)),
        ledger.record(vec![result]),
    );
    assert!(matches!(well, Ok(Accepted::New { .. })), "{well:?}");
    assert!(matches!(also_well, Ok(Accepted::New { .. })), "{also_well:?}");
    assert_eq!(recorded, Ok(vec![Recorded::Applied]));
    assert!(matches!(cursed, Err(StoreError::Corrupt(_))), "{cursed:?}");
    assert_eq!(world.rows(row.endpoint).await.len(), 2);
}

#[tokio::test]
async fn what_is_not_as_expected_keeps_nothing_else_of_its_batch_back() {
    let server = Postgres::shared();
    let world = world(&server.fresh_database()).await;
    let app = world.app(1).await;
    let (row, gone) = (world.one(&app).await, world.one(&app).await);
    let mut named = world.message(&app);
    named.spec.event_id = Some("once".into());
    world.post(named.clone()).await;
    let sent = |row: Pending| {
        let attempt = samples::answered(&row, 200, world.now());
        world.result(row, Some(attempt), Follow::Delivered)
    };
    world.record(sent(gone)).await;
    let stale = NewMessage { app_version: app.app.version - 1, ..world.message(&app) };
    let (inbox, ledger) = (&world.stores.inbox, &world.stores.ledger);
    // All are queued before the first is written: each makes its batch go step by step.
    let (late, named, stale, well, recorded) = tokio::join!(
        ledger.record(vec![sent(gone)]),
        inbox.accept(named),
        inbox.accept(stale),
        inbox.accept(world.message(&app)),
        ledger.record(vec![sent(row)]),
    );
    assert_eq!(late, Ok(vec![Recorded::Late]));
    assert_eq!(named, Ok(Accepted::EventIdTaken));
    assert_eq!(stale, Ok(Accepted::Stale));
    assert!(matches!(well, Ok(Accepted::New { .. })), "{well:?}");
    assert_eq!(recorded, Ok(vec![Recorded::Applied]));
    assert_eq!(world.rows(row.endpoint).await.len(), 2, "the named one and the last");
    assert_eq!(world.attempts(row.message).await.len(), 1);
    assert_eq!(world.attempts(gone.message).await.len(), 2, "a late attempt is kept");
}

#[tokio::test]
async fn a_newer_schema_and_a_database_out_of_reach_are_refused_in_a_sentence() {
    let server = Postgres::shared();
    let url = server.fresh_database();
    let clock = Arc::new(ManualClock::new(START));
    let store = open(&url, &clock).await.unwrap();
    store.close().await;
    server.sql(&url, "INSERT INTO peyk.schema_version (version) VALUES (9999)");
    let newer = open(&url, &clock).await.map(drop).unwrap_err();
    assert!(
        matches!(newer, StoreError::Corrupt(_)) && newer.to_string().contains("newer"),
        "{newer}"
    );
    let nowhere = open("postgres://postgres@127.0.0.1:1/none", &clock).await.map(drop);
    let nowhere = nowhere.unwrap_err().to_string();
    assert!(nowhere.contains("cannot connect to the database"), "{nowhere}");
    let not_a_url = open("postgres://host:port/none", &clock).await.map(drop).unwrap_err();
    assert!(not_a_url.to_string().contains("URL"), "{not_a_url}");
}

#[tokio::test]
async fn db_01_a_nul_is_a_sign_in_texts_and_itself_in_payloads() {
    let server = Postgres::shared();
    let world = world(&server.fresh_database()).await;
    let app = world.app(1).await;
    let mut spec = samples::endpoint();
    spec.description = "a\0b".into();
    let change = store::directory::EndpointChange { spec: Some(spec), ..Default::default() };
    let key = app.endpoints[0].key;
    world.stores.directory.change_endpoint(key, change).await.unwrap();
    let kept = world.stores.directory.endpoint(key).await.unwrap().unwrap();
    assert_eq!(kept.spec.description, "a\u{FFFD}b");
    let org = store::conformance::world::ORG;
    let found = world.stores.directory.app(org, IdOrUid::Uid("\0".into())).await.unwrap();
    assert!(found.is_none());
    let filter =
        store::dead_letters::DeadFilter { event_types: vec!["\0".into()], ..Default::default() };
    assert_eq!(world.stores.dead_letters.count(org, filter).await, Ok(0));
    let mut message = world.message(&world.snapshot(app.app.key).await);
    message.spec.payload = b"{\"a\":\"\\u0000\"} \0 \xFF".as_slice().into();
    let payload = message.spec.payload.clone();
    let key = world.post(message).await;
    let envelope = world.stores.queue.envelope(key).await.unwrap().unwrap();
    assert_eq!(envelope.payload, payload);
}
