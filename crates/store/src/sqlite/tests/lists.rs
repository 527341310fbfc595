//! Lists while they are filled: every committed row is seen exactly once, whatever is listed
//! already.
//!
//! Never: trust the watermark; pages are walked as a caller walks them.

use std::time::Duration;

use domain::ids::{MessageKey, key_time};

use super::super::deliveries::{CLOSED_TO, SENT_TO, WAIT_FOR};
use super::super::sent::STATUS;
use super::world::{World, answered};
use crate::history::{AttemptFilter, History as _, MessageFilter};
use crate::ledger::{Follow, Ledger as _};
use crate::page::{Direction, PageOf};

const PAGE: usize = 7;

async fn messages(world: &World, direction: Direction, filter: &MessageFilter) -> Vec<MessageKey> {
    let (mut found, mut beyond) = (Vec::new(), None);
    loop {
        let page = PageOf { beyond, direction, limit: PAGE };
        let rows = world
            .store
            .messages(world.endpoint.app, filter.clone(), page, false)
            .await
            .unwrap()
            .rows;
        found.extend(rows.iter().map(|row| row.key));
        match rows.last() {
            Some(last) if rows.len() == PAGE => beyond = Some(last.key),
            _ => return found,
        }
    }
}

async fn attempts(world: &World, direction: Direction) -> Vec<MessageKey> {
    let (mut found, mut beyond) = (Vec::new(), None);
    loop {
        let page = PageOf { beyond, direction, limit: PAGE };
        let filter = AttemptFilter::default();
        let rows = world.store.attempts_to(world.endpoint.key, filter, page).await.unwrap().rows;
        found.extend(rows.iter().map(|row| row.message));
        match rows.last() {
            Some(last) if rows.len() == PAGE => beyond = Some(last.key),
            _ => return found,
        }
    }
}

async fn check(world: &World, made: &[MessageKey]) {
    let newest: Vec<_> = made.iter().rev().copied().collect();
    let none = MessageFilter::default();
    assert_eq!(messages(world, Direction::Ascending, &none).await, made);
    assert_eq!(messages(world, Direction::Descending, &none).await, newest);
    assert_eq!(attempts(world, Direction::Ascending).await, made);
    assert_eq!(attempts(world, Direction::Descending).await, newest);
    let typed = MessageFilter { event_types: vec!["user.created".into()], ..none.clone() };
    assert_eq!(messages(world, Direction::Descending, &typed).await, newest);
    let other = MessageFilter { event_types: vec!["user.deleted".into()], ..none };
    assert!(messages(world, Direction::Ascending, &other).await.is_empty());
}

#[tokio::test]
async fn every_row_is_seen_once_at_every_stage() {
    let mut world = World::open().await;
    let mut made = Vec::new();
    for stage in 0..5 {
        for _ in 0..11 {
            let row = world.post(None).await;
            world.store.record(vec![answered(row, 200, Follow::Delivered)]).await.unwrap();
            made.push(row.message);
        }
        check(&world, &made).await;
        match stage {
            1 => world.chores().await,
            3 => world.reopen(),
            _ => world.manual.advance(Duration::from_millis(3)),
        }
        check(&world, &made).await;
    }
    world.chores().await;
    check(&world, &made).await;
    let listed = world.store.readers.read(|conn| {
        let sql = "SELECT (SELECT sum(length(keys)) FROM message_by_app) + (SELECT sum(length(keys)) FROM attempt_by_endpoint)";
        Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(listed.await, Ok(8 * 110), "everything is listed in the end");
}

#[tokio::test]
async fn a_window_cut_off_by_a_crash_is_written_again() {
    let mut world = World::open().await;
    let mut made = Vec::new();
    for _ in 0..250 {
        let row = world.post(None).await;
        world.store.record(vec![answered(row, 200, Follow::Delivered)]).await.unwrap();
        made.push(row.message);
    }
    world.store.close();
    // What a first piece leaves behind: a row of the window, and up to where the window goes.
    let conn = rusqlite::Connection::open(world.path()).unwrap();
    let tables = "DELETE FROM message_by_app; DELETE FROM attempt_by_endpoint; DELETE FROM listed";
    conn.execute_batch(tables).unwrap();
    let keys: Vec<u8> =
        made[..100].iter().flat_map(|key| key.0.cast_signed().to_be_bytes()).collect();
    let sql = "INSERT INTO message_by_app VALUES (?1, ?2, ?3)";
    let row = rusqlite::params![world.endpoint.app.0, made[99].0.cast_signed(), keys];
    conn.execute(sql, row).unwrap();
    let sql = "INSERT INTO listed VALUES ('messages', 0, ?1)";
    conn.execute(sql, [made[199].0.cast_signed()]).unwrap();
    drop(conn);
    world.reopen();
    check(&world, &made).await;
    world.chores().await;
    check(&world, &made).await;
    let held = world.store.readers.read(|conn| {
        let sql = "SELECT sum(length(keys)) / 8 FROM message_by_app";
        Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(held.await, Ok(250), "each of them once");
}

/// Where one delivery stands, and how an attempt ended, are found by keys.
#[tokio::test]
async fn what_went_to_an_endpoint_is_found_by_keys() {
    let world = World::open().await;
    let [moved, fresh] = WAIT_FOR;
    for sql in [SENT_TO, CLOSED_TO, moved, fresh, STATUS] {
        let plan = world.plan(sql).await;
        assert!(!plan.is_empty() && plan.iter().all(|step| is_quick(step)), "{sql}: {plan:?}");
    }
}

fn is_quick(step: &str) -> bool {
    step.starts_with("SEARCH") || step.starts_with("SCALAR SUBQUERY")
}

/// A span of time is one range of a list, though the clock was set back in it.
#[tokio::test]
async fn a_clock_that_steps_back_hides_nothing() {
    let world = World::open().await;
    let first = world.post(None).await;
    world.manual.set(first.due_at.minus(Duration::from_secs(30)));
    let second = world.post(None).await;
    assert!(second.message > first.message && second.due_at < first.due_at);
    let at = Some(key_time(first.message.0));
    let before = MessageFilter { before: at, ..MessageFilter::default() };
    assert!(messages(&world, Direction::Descending, &before).await.is_empty());
    let after = MessageFilter { after: at, ..MessageFilter::default() };
    let both = [first.message, second.message];
    assert_eq!(messages(&world, Direction::Ascending, &after).await, both, "before or after, one");
}
