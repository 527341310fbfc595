//! How statements find their rows: whatever ran is explained.
//!
//! Posts, results, looks at the queue and at lists go through the traits; then the plan of each
//! statement that they ran is looked at, in a session like the writer's, over tables that are not
//! empty.
//! Never: a copy of a statement; what is explained is what ran.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::application::AppSnapshot;
use domain::delivery::{CancelReason, Pending, Trigger};
use domain::idempotency::IngestKey;
use resilience::{Clock, ManualClock, Timestamp};
use testparts::Postgres;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::conn::RAN;
use super::link;
use super::{PostgresOptions, PostgresStore};
use crate::commits::Commits;
use crate::conformance::world::{ORG, World};
use crate::conformance::{Backend, START, Stores, samples};
use crate::dead_letters::DeadFilter;
use crate::history::{AttemptFilter, MessageFilter, SentFilter};
use crate::inbox::{Accepted, NewMessage};
use crate::ledger::Follow;
use crate::page::{Direction, PageOf};

/// Tables that grow with traffic.
const LARGE: [&str; 6] = ["message", "attempt", "pending", "closed", "buried", "wake"];

/// Statements that look at all of a table, or may, and why.
const EXCUSED: [(&str, &str); 2] = [
    ("SELECT count(*) FROM pending", "at the start, and now and then where several nodes write"),
    ("WITH RECURSIVE step", "begins at the first row and jumps on by the index"),
];

/// What batches in one statement do, of which each is to be seen.
const AT_ONCE: [&[&str]; 5] = [
    &["FROM whole", "arrived AS"],
    &["FROM whole", "sent AS"],
    &["FROM whole", "sent AS", "moved AS"],
    &["FROM whole", "sent AS", "ended AS"],
    &["FROM whole", "arrived AS", "taken AS", "ended AS"],
];

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

/// A session like that of the writer.
async fn session(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&link::session()).await.unwrap();
    client.batch_execute(link::ANY_LENGTH).await.unwrap();
    client
}

/// Messages of which every second was delivered, every fourth is dead, the others wait.
async fn fill(url: &str) -> (World, AppSnapshot) {
    let clock = Arc::new(ManualClock::new(START));
    let options = PostgresOptions::new(url, Arc::clone(&clock) as Arc<dyn Clock>);
    let store = PostgresStore::open(options, NoTls).await.unwrap();
    let world = World::new(Box::new(Only(store)), clock);
    let app = world.app(2).await;
    world.post_many(&app, 100).await;
    for (place, row) in world.rows(app.endpoints[0].key).await.into_iter().enumerate() {
        match place % 4 {
            0 | 2 => world.deliver(row).await,
            1 => world.bury(row).await,
            _ => {}
        }
    }
    Postgres::shared().sql(url, "ANALYZE");
    (world, app)
}

/// The plan of a statement, whatever it is run with.
async fn plan(client: &Client, sql: &str) -> Vec<String> {
    let values = client.prepare(sql).await.unwrap().params().len();
    let mut run = String::from("hot");
    if values > 0 {
        write!(run, " ({})", vec!["NULL"; values].join(", ")).unwrap();
    }
    client.batch_execute(&format!("PREPARE hot AS {sql}")).await.unwrap();
    let lines = client.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE {run}")).await.unwrap();
    client.batch_execute("DEALLOCATE hot").await.unwrap();
    let line = |line: &SimpleQueryMessage| match line {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    lines.iter().filter_map(line).collect()
}

/// The table that a step of a plan reads.
fn table(step: &str) -> Option<&str> {
    let step = step.split(" on ").nth(1).filter(|_| step.contains("Scan"))?;
    step.split_whitespace().next()
}

/// Steps that look at all rows of a large table.
fn slow(plan: &[String]) -> Vec<&str> {
    let is_slow = |(place, step): &(usize, &String)| {
        let is_large = table(step).is_some_and(|table| LARGE.contains(&table));
        let mut details = plan[place + 1..].iter().take_while(|next| !next.contains("->"));
        let bounded = step.contains("Index") && details.any(|next| next.contains("Index Cond:"));
        is_large && !bounded
    };
    plan.iter().enumerate().filter(is_slow).map(|(_, step)| step.trim()).collect()
}

/// Posts of each kind, new and repeated.
async fn post(world: &World, app: &AppSnapshot) {
    let inbox = &world.stores.inbox;
    let key = IngestKey { scope: [1; 16], body: [2; 16] };
    let keyed = NewMessage { key: Some(key), ..world.message(app) };
    let named = NewMessage { spec: samples::full_message(), ..world.message(app) };
    for _ in 0..2 {
        inbox.accept(keyed.clone()).await.unwrap();
        inbox.accept(named.clone()).await.unwrap();
    }
    let stale = NewMessage { app_version: -1, ..world.message(app) };
    assert_eq!(inbox.accept(stale).await, Ok(Accepted::Stale));
    inbox.used(key).await.unwrap();
}

/// Results of each kind, on time and late, by themselves and beside a post.
async fn record(world: &World, app: &AppSnapshot) {
    let (ledger, now) = (&world.stores.ledger, world.now());
    let later = now.plus(Duration::from_secs(60));
    let refused = |row: &Pending| Some(samples::answered(row, 404, now));
    for follow in [samples::retry(later, 1), samples::dead(), Follow::Delivered] {
        let row = world.one(app).await;
        let record = world.result(row, refused(&row), follow);
        for _ in 0..2 {
            ledger.record(vec![record.clone()]).await.unwrap();
        }
    }
    let row = world.one(app).await;
    let record = world.result(row, None, Follow::Cancelled(CancelReason::EndpointDeleted));
    let (_, posted) =
        tokio::join!(ledger.record(vec![record]), world.stores.inbox.accept(world.message(app)));
    assert!(matches!(posted, Ok(Accepted::New { .. })));
    let row = world.one(app).await;
    let mut failed = world.result(row, refused(&row), samples::retry(later, 1));
    failed.lane = Some(samples::lane(row.endpoint));
    world.record(failed).await;
    for status in [404, 200] {
        world.tick();
        world.stores.history.resend(row.message, row.endpoint).await.unwrap();
        let rows = world.rows(row.endpoint).await;
        let manual = rows.into_iter().find(|row| row.trigger == Trigger::Manual).unwrap();
        let follow = if status == 200 { Follow::Delivered } else { Follow::Unchanged };
        let attempt = Some(samples::answered(&manual, status, world.now()));
        world.record(world.result(manual, attempt, follow)).await;
    }
}

/// Looks at the queue and at lists.
async fn look(world: &World, app: &AppSnapshot, row: Pending) {
    let Stores { queue, history, dead_letters, .. } = &world.stores;
    queue.endpoints(None, 10).await.unwrap();
    queue.envelope(row.message).await.unwrap();
    queue.depth().await.unwrap();
    history.deliveries(row.message).await.unwrap();
    history.waiting(row.endpoint, 10).await.unwrap();
    history.count_attempts(row.endpoint, Timestamp::EPOCH, None).await.unwrap();
    for direction in [Direction::Ascending, Direction::Descending] {
        let keys = PageOf { beyond: Some(row.message), direction, limit: 3 };
        let page = PageOf { beyond: None, direction, limit: 3 };
        history.messages(app.app.key, MessageFilter::default(), keys, true).await.unwrap();
        history.messages_to(app.app.key, row.endpoint, SentFilter::default(), keys).await.unwrap();
        history.attempts_of(row.message, AttemptFilter::default(), page).await.unwrap();
        history.attempts_to(row.endpoint, AttemptFilter::default(), page).await.unwrap();
        let of = |app, endpoint| DeadFilter { app, endpoint, ..DeadFilter::default() };
        for of in [of(None, None), of(Some(app.app.key), None), of(None, Some(row.endpoint))] {
            let page = PageOf { beyond: None, direction, limit: 3 };
            dead_letters.list(ORG, of.clone(), page).await.unwrap();
            dead_letters.count(ORG, of).await.unwrap();
        }
    }
    dead_letters.dead_letter(row.message, row.endpoint).await.unwrap();
}

#[tokio::test]
async fn statements_find_their_rows_by_indexes() {
    let url = Postgres::shared().fresh_database();
    let (world, app) = fill(&url).await;
    post(&world, &app).await;
    record(&world, &app).await;
    let row = world.one(&app).await;
    look(&world, &app, row).await;
    let ran = RAN.lock().unwrap().clone();
    let client = session(&url).await;
    let mut found = Vec::new();
    for sql in &ran {
        let plan = plan(&client, sql).await;
        let excused = EXCUSED.iter().any(|(part, _)| sql.contains(part));
        let slow = slow(&plan);
        if !slow.is_empty() && !excused {
            found.push(format!("{slow:?} in {sql}"));
        }
    }
    for parts in AT_ONCE {
        let made = |sql: &String| parts.iter().all(|part| sql.contains(part));
        assert!(ran.iter().any(made), "no batch in one statement with {parts:?}");
    }
    assert_eq!(found, [""; 0], "{}", found.join("\n"));
    for (part, why) in EXCUSED {
        assert!(ran.iter().any(|sql| sql.contains(part)), "excuses nothing: {part}: {why}");
    }
}

#[tokio::test]
async fn a_scan_would_be_seen() {
    let url = Postgres::shared().fresh_database();
    let _world = fill(&url).await;
    let client = session(&url).await;
    for (sql, seen) in [
        ("SELECT key FROM message WHERE event_type = $1", true),
        ("DELETE FROM pending WHERE age_from = $1", true),
        ("SELECT key FROM message WHERE key = $1", false),
        ("SELECT n FROM attempt WHERE message = $1 AND endpoint = $2", false),
    ] {
        let plan = plan(&client, sql).await;
        assert_eq!(!slow(&plan).is_empty(), seen, "{plan:#?}");
    }
}
