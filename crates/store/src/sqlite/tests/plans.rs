//! How lists find their rows: every statement that a list runs is explained.
//!
//! The lists are asked through the traits, with every filter, in both directions, filled and not
//! yet filled; SQLite tells which statements ran.
//! Never: a copy of a statement; what is explained is what ran.

use std::cell::RefCell;
use std::collections::BTreeSet;

use domain::dead_letter::DeadReason;
use domain::ids::{EndpointKey, PublicId};
use resilience::Timestamp;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use super::world::{World, answered, failed};
use crate::StoreError;
use crate::alerts::Alerts as _;
use crate::dead_letters::{DeadFilter, DeadLetters as _};
use crate::directory::Directory as _;
use crate::history::{AttemptFilter, History as _, MessageFilter, SentFilter, Standing};
use crate::ledger::{Follow, Ledger as _};
use crate::page::{Direction, PageOf};
use crate::tasks::{TaskFilter, TaskStatus, Tasks as _};

/// Steps that are taken although they look at more than they answer with.
const EXCUSED: [(&str, &str, &str); 2] = [
    (
        "INDEXED BY attempt_of WHERE message = ?1",
        "USE TEMP B-TREE FOR ORDER BY",
        "attempts of one message: as many as its endpoints and their sends; the index is by endpoint",
    ),
    (
        "(SELECT 1 FROM pending WHERE endpoint = ?1 LIMIT ?2)",
        "SCAN (subquery-1)",
        "counts what an index found, up to a bound",
    ),
];

thread_local! {
    /// What ran on a reader since it was last asked for.
    static RAN: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

fn note(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(statement, _) = event {
        RAN.with_borrow_mut(|ran| ran.insert(statement.sql().into_owned()));
    }
}

/// Steps of a plan that look at rows nobody asked for.
fn slow(sql: &str, plan: Vec<String>) -> Vec<String> {
    let excused =
        |step: &str| EXCUSED.iter().any(|(of, what, _)| sql.contains(of) && step == *what);
    let is_slow = |step: &String| {
        (step.starts_with("SCAN") || step.contains("TEMP B-TREE")) && !excused(step)
    };
    plan.into_iter().filter(is_slow).collect()
}

/// A store with one reader, which notes what runs on it.
async fn watched() -> World {
    let world = World::with(|options| options.readers = 1).await;
    let watching = world.store.readers.read(|conn| {
        conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note));
        Ok(())
    });
    watching.await.unwrap();
    world
}

/// Explains what `list` ran; it must have read from these tables, each by an index.
async fn check(world: &World, list: &str, tables: &[&str]) {
    let explained = world.store.readers.read(|conn| {
        let ran = RAN.take();
        let mut explained = Vec::new();
        for sql in ran.into_iter().filter(|sql| sql.contains("SELECT")) {
            explained.push((plan(conn, &sql)?, sql));
        }
        RAN.take();
        Ok(explained)
    });
    let explained = explained.await.unwrap();
    for table in tables {
        let read = explained
            .iter()
            .any(|(plan, _)| plan.iter().any(|step| step.starts_with(&format!("SEARCH {table} "))));
        assert!(read, "{list} reads {table} by an index: {explained:?}");
    }
    for (plan, sql) in explained {
        assert_eq!(slow(&sql, plan), [""; 0], "{list}: {sql}");
    }
}

fn plan(conn: &rusqlite::Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next()? {
        steps.push(row.get(3)?);
    }
    Ok(steps)
}

fn pages<P: Copy>(beyond: [P; 2]) -> [PageOf<P>; 4] {
    let [low, high] = beyond;
    let page = |beyond, direction| PageOf { beyond, direction, limit: 3 };
    [
        page(None, Direction::Ascending),
        page(None, Direction::Descending),
        page(Some(low), Direction::Ascending),
        page(Some(high), Direction::Descending),
    ]
}

/// Each filter by itself, all of them, and none.
fn message_filters(at: Timestamp) -> Vec<MessageFilter> {
    let none = MessageFilter::default();
    let all = MessageFilter {
        channel: Some("eu".into()),
        event_types: vec!["user.created".into(), "user.deleted".into()],
        tag: Some("vip".into()),
        before: Some(at),
        after: Some(at),
    };
    vec![
        MessageFilter { channel: all.channel.clone(), ..none.clone() },
        MessageFilter { event_types: all.event_types.clone(), ..none.clone() },
        MessageFilter { tag: all.tag.clone(), ..none.clone() },
        MessageFilter { before: all.before, ..none.clone() },
        MessageFilter { after: all.after, ..none.clone() },
        none,
        all,
    ]
}

fn attempt_filters(at: Timestamp, endpoint: EndpointKey) -> Vec<AttemptFilter> {
    let none = AttemptFilter::default();
    let mut filters: Vec<_> = message_filters(at)
        .into_iter()
        .map(|message| AttemptFilter { message, ..none.clone() })
        .collect();
    filters.extend([
        AttemptFilter { status: Some(0), ..none.clone() },
        AttemptFilter { status_class: Some(500), ..none.clone() },
        AttemptFilter { endpoint: Some(endpoint), ..none },
    ]);
    filters
}

/// Messages of which every second was delivered, every fourth is dead, the others wait.
async fn fill(world: &World) -> domain::delivery::Pending {
    let mut last = None;
    for number in 0..24 {
        let row = world.post(None).await;
        let dead = Follow::Dead { reason: DeadReason::Exhausted, error: None };
        match number % 4 {
            0 | 2 => drop(world.store.record(vec![answered(row, 200, Follow::Delivered)]).await),
            1 => drop(world.store.record(vec![failed(row, dead)]).await),
            _ => {}
        }
        last = Some(row);
    }
    last.unwrap()
}

#[tokio::test]
async fn lists_of_history_are_read_by_indexes() {
    let world = watched().await;
    let (app, endpoint) = (world.endpoint.app, world.endpoint.key);
    // At first all is beyond the lists, then all is in them, then both hold some.
    for stage in 0..3 {
        let row = fill(&world).await;
        if stage == 1 {
            world.chores().await;
        }
        let store = &world.store;
        let listed = if stage == 0 { vec![] } else { vec!["message_by_app"] };
        let keys = [domain::ids::MessageKey(0), row.message];
        for filter in message_filters(row.due_at) {
            for page in pages(keys) {
                store.messages(app, filter.clone(), page, true).await.unwrap();
                store.messages(app, filter.clone(), page, false).await.unwrap();
                let standings = vec![Standing::Delivered, Standing::Dead];
                let sent = SentFilter { message: filter.clone(), standings, payloads: true };
                store.messages_to(app, endpoint, sent, page).await.unwrap();
            }
        }
        let tables = [listed.clone(), vec!["message", "attempt", "closed", "pending"]].concat();
        check(&world, "messages", &tables).await;
        for filter in attempt_filters(row.due_at, endpoint) {
            for page in pages([0, u64::MAX >> 1].map(domain::ids::AttemptKey)) {
                store.attempts_of(row.message, filter.clone(), page).await.unwrap();
                store.attempts_to(endpoint, filter.clone(), page).await.unwrap();
            }
        }
        store.count_attempts(endpoint, Timestamp::EPOCH, None).await.unwrap();
        let listed = if stage == 0 { vec![] } else { vec!["attempt_by_endpoint"] };
        check(&world, "attempts", &[listed, vec!["attempt", "endpoint_url"]].concat()).await;
        store.deliveries(row.message).await.unwrap();
        store.waiting(endpoint, 10).await.unwrap();
        check(&world, "endpoints of a message", &["attempt", "closed", "pending"]).await;
    }
}

#[tokio::test]
async fn dead_letters_are_read_by_indexes() {
    let world = watched().await;
    let row = fill(&world).await;
    let org = PublicId::new(1, [1; 12]);
    let (at, none) = (row.due_at, DeadFilter::default());
    for of in [(None, None), (Some(world.endpoint.app), None), (None, Some(row.endpoint))] {
        let none = DeadFilter { app: of.0, endpoint: of.1, ..none.clone() };
        let filters = [
            DeadFilter { reasons: vec![DeadReason::Expired], ..none.clone() },
            DeadFilter { event_types: vec!["user.created".into()], ..none.clone() },
            DeadFilter { before: Some(at), ..none.clone() },
            DeadFilter { after: Some(at), ..none.clone() },
            none,
        ];
        for filter in filters {
            for page in pages([0, u64::MAX >> 1]) {
                world.store.list(org, filter.clone(), page).await.unwrap();
            }
            world.store.count(org, filter).await.unwrap();
        }
    }
    world.store.dead_letter(row.message, row.endpoint).await.unwrap();
    check(&world, "dead letters", &["closed", "message", "endpoint", "attempt"]).await;
}

#[tokio::test]
async fn the_directory_and_tasks_are_read_by_indexes() {
    let world = watched().await;
    let org = PublicId::new(1, [1; 12]);
    let filter = TaskFilter {
        app: Some(world.endpoint.app),
        statuses: vec![TaskStatus::Finished],
        ..TaskFilter::default()
    };
    for page in pages([0, u64::MAX >> 1]) {
        world.store.tasks(org, TaskFilter::default(), page).await.unwrap();
        world.store.tasks(org, filter.clone(), page).await.unwrap();
    }
    check(&world, "tasks", &["task"]).await;
    for page in pages([PublicId::new(0, [0; 12]), PublicId::new(9, [0; 12])]) {
        world.store.apps(org, page).await.unwrap();
        let PageOf { direction, limit, beyond } = page;
        let page = PageOf { beyond: beyond.map(|_| "m".to_owned()), direction, limit };
        world.store.event_types(org, true, page.clone()).await.unwrap();
        world.store.event_types(org, false, page).await.unwrap();
    }
    world.store.app_by_key(world.endpoint.app).await.unwrap();
    world.store.past_endpoints(vec![world.endpoint.key]).await.unwrap();
    check(&world, "directory", &["app", "endpoint", "event_type"]).await;
}

#[tokio::test]
async fn alerts() {
    let world = watched().await;
    let (at, app) = (Timestamp::from_secs(1), Some(world.endpoint.app));
    world.store.failing(at, app, 3).await.unwrap();
    world.store.failing(at, None, 3).await.unwrap();
    world.store.incident(PublicId::new(1, [1; 12])).await.unwrap();
    world.store.tellings(0, 3).await.unwrap();
    for page in pages([PublicId::new(0, [0; 12]), PublicId::new(9, [0; 12])]) {
        world.store.incidents(page).await.unwrap();
    }
    let tables = ["lane_state", "endpoint", "app", "alert_incident", "alert_telling"];
    check(&world, "alerts", &tables).await;
}

#[tokio::test]
async fn a_scan_or_a_sort_would_be_seen() {
    let world = watched().await;
    let seen = world.store.readers.read(|conn| {
        let mut seen = Vec::new();
        for sql in [
            "SELECT key FROM message WHERE event_type = 'a' ORDER BY accepted_at",
            "SELECT place FROM closed WHERE at > ?1",
            "SELECT key FROM task WHERE org = ?1 ORDER BY updated_at",
            "SELECT key FROM attempt INDEXED BY attempt_of WHERE message = ?1 ORDER BY key",
        ] {
            seen.push(slow(sql, plan(conn, sql)?).len());
        }
        Ok(seen)
    });
    assert_eq!(seen.await.unwrap(), [2, 1, 1, 0]);
}
