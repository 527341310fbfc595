//! Retention on a large table: pieces stay small, find what they want by an index, and let posts
//! through.
//!
//! Never: a measurement of time; rows and answers are counted.

use std::time::Duration;

use domain::ids::{MessageKey, key_floor};
use resilience::Timestamp;
use rusqlite::params;

use super::super::prune::STATEMENTS;
use super::world::{World, answered};
use crate::StoreError;
use crate::counts::Counts as _;
use crate::history::{History as _, MessageFilter};
use crate::inbox::{Accepted, Inbox as _};
use crate::ledger::{Follow, Ledger as _};
use crate::page::{Direction, PageOf};
use crate::prune::{Counts, Cursor, Prune as _, Retention, days};

/// Messages that are old, each with one attempt.
const OLD: usize = 10_000;

/// Writes [`OLD`] messages that were delivered 91 days ago.
async fn fill(world: &mut World) {
    let begun = world.clock().now().minus(days(91));
    let (app, endpoint) = (world.endpoint.app.0, world.endpoint.key.0);
    let fill = world.store.shared.door.change(move |tx| {
        let first = key_floor(begun).cast_signed();
        let old = i64::try_from(OLD).unwrap();
        let numbers = "WITH RECURSIVE number (n) AS
             (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?1)";
        let sql = format!(
            "{numbers} INSERT INTO message (key, random, app, accepted_at, event_type, payload)
             SELECT ?2 + 512 * n, randomblob(12), ?3, ?4, 'old', randomblob(200) FROM number"
        );
        tx.conn.execute(&sql, params![old, first, app, begun.as_micros()])?;
        let sql = format!(
            "{numbers} INSERT INTO attempt (key, random, message, endpoint, n, started_at, took,
                 manual, resent, status)
             SELECT ?2 + 512 * n + 256, randomblob(12), ?2 + 512 * n, ?3, 1, ?4, 0, 0, 0, 200
             FROM number"
        );
        tx.conn.execute(&sql, params![old, first, endpoint, begun.as_micros()])?;
        Ok(())
    });
    fill.await.unwrap();
    // The lists learn of them at the start.
    world.reopen();
    while world.store.roll_up().await.unwrap().more {}
}

/// Prunes to the end; how many messages went.
async fn prune(world: &World, now: Timestamp, keep: Retention) -> usize {
    let (mut from, mut gone) = (Cursor::default(), 0);
    loop {
        let piece = world.store.prune(now, keep, from).await.unwrap();
        gone += piece.counts.messages;
        from = piece.reached;
        if !piece.more {
            return gone;
        }
    }
}

async fn count(world: &World, sql: &'static str) -> i64 {
    let counted = world
        .store
        .readers
        .read(move |conn| Ok::<i64, StoreError>(conn.query_row(sql, [], |row| row.get(0))?));
    counted.await.unwrap()
}

/// RT-01: what is old goes in pieces of 500 rows, and every post that is made beside a piece is
/// taken at once.
#[tokio::test]
async fn rt_01_posts_are_taken_while_twenty_thousand_rows_go() {
    let mut world = World::open().await;
    fill(&mut world).await;
    let (mut gone, mut from, mut made) = (Counts::default(), Cursor::default(), 0);
    loop {
        let now = world.clock().now();
        let piece = world.store.prune(now, Retention::default(), from);
        let (piece, post) = tokio::join!(piece, world.store.accept(world.message(None)));
        assert!(matches!(post, Ok(Accepted::New { .. })), "{post:?}");
        made += 1;
        let piece = piece.unwrap();
        assert!(piece.counts.messages + piece.counts.attempts <= 500);
        gone.messages += piece.counts.messages;
        gone.attempts += piece.counts.attempts;
        from = piece.reached;
        if !piece.more {
            break;
        }
    }
    assert_eq!((gone.messages, gone.attempts), (OLD, OLD));
    assert!(made > 2 * OLD / 500, "{made} pieces");
    let page = PageOf { beyond: None, direction: Direction::Ascending, limit: OLD };
    let filter = MessageFilter::default();
    let left = world.store.messages(world.endpoint.app, filter, page, false).await.unwrap().rows;
    assert_eq!(left.len(), made);
    let due = crate::queue::Queue::depth(&*world.store).await.unwrap();
    assert_eq!(due.0, u64::try_from(made).unwrap());
}

#[tokio::test]
async fn no_list_names_what_is_gone_in_the_end() {
    let mut world = World::open().await;
    fill(&mut world).await;
    world.chores().await;
    assert!(count(&world, "SELECT count(*) FROM message_by_app").await >= 100);
    let waits = world.post(None).await;
    assert_eq!(prune(&world, world.clock().now(), Retention::default()).await, OLD);
    world.store.record(vec![answered(waits, 200, Follow::Delivered)]).await.unwrap();
    world.chores().await;
    assert_eq!(count(&world, "SELECT count(*) FROM message").await, 1);
    assert_eq!(count(&world, "SELECT count(*) FROM attempt").await, 1);
    assert_eq!(count(&world, "SELECT sum(length(keys)) FROM message_by_app").await, 8);
    assert_eq!(count(&world, "SELECT sum(length(keys)) FROM attempt_by_endpoint").await, 8);
    assert!(count(&world, "SELECT freelist_count FROM pragma_freelist_count").await > 100);
}

#[tokio::test]
async fn a_piece_that_is_lost_with_its_batch_is_made_again() {
    let mut world = World::open().await;
    fill(&mut world).await;
    world.chores().await;
    let now = world.clock().now();
    let held = world.hold();
    let fault = world.break_batch();
    let piece = tokio::spawn(world.store.prune(now, Retention::default(), Cursor::default()));
    // Both stand in the queue once the plan was made on a reader.
    while world.store.shared.door.waiting() < 2 {
        tokio::task::yield_now().await;
    }
    drop(held);
    assert!(piece.await.unwrap().is_err() && fault.await.is_err());
    assert_eq!(count(&world, "SELECT count(*) FROM message").await, i64::try_from(OLD).unwrap());
    let piece = world.store.prune(now, Retention::default(), Cursor::default()).await.unwrap();
    assert!(piece.counts.messages > 0);
}

/// What has come to need a message between the plan and its turn keeps it.
#[tokio::test]
async fn a_resend_that_overtakes_a_piece_keeps_its_message() {
    let mut world = World::open().await;
    fill(&mut world).await;
    world.chores().await;
    let (now, endpoint) = (world.clock().now(), world.endpoint.key);
    let first = MessageKey(key_floor(now.minus(days(91))));
    let held = world.hold();
    let resent = world.store.resend(first, endpoint);
    let piece = tokio::spawn(world.store.prune(now, Retention::default(), Cursor::default()));
    while world.store.shared.door.waiting() < 2 {
        tokio::task::yield_now().await;
    }
    drop(held);
    assert_eq!(resent.await, Ok(crate::history::Resent::Pending));
    assert!(piece.await.unwrap().unwrap().counts.messages > 0);
    assert!(crate::queue::Queue::envelope(&*world.store, first).await.unwrap().is_some());
}

#[tokio::test]
async fn every_piece_finds_its_rows_by_an_index() {
    let world = World::open().await;
    for sql in STATEMENTS {
        let plan = world.plan(sql).await;
        assert!(plan.iter().any(|step| step.starts_with("SEARCH")), "{sql}: {plan:?}");
        let slow = |step: &&String| step.starts_with("SCAN") || step.contains("TEMP B-TREE");
        assert_eq!(plan.iter().find(slow), None, "{sql}: {plan:?}");
    }
}

#[tokio::test]
async fn a_post_beside_rows_that_wait_long_is_looked_for_by_its_own_time() {
    let world = World::open().await;
    // The first row of all is due in an hour; what comes after it is due before.
    let put_off = world.post(None).await;
    let due_at = put_off.due_at.plus(Duration::from_secs(3_600));
    let follow = Follow::Retry {
        due_at,
        tried_at: due_at,
        budget_used: 1,
        delay: Duration::ZERO,
        term: resilience::Term::Backoff,
    };
    let done = world.post(None).await;
    let results = vec![answered(put_off, 503, follow), answered(done, 200, Follow::Delivered)];
    world.store.record(results).await.unwrap();
    let short =
        Retention { messages: Duration::ZERO, payload: Duration::ZERO, ..Retention::default() };
    let soon = world.clock().now().plus(Duration::from_secs(7_200));
    assert_eq!(prune(&world, soon, short).await, 1);
    world.manual.advance(Duration::from_secs(5));
    let fresh = world.post(None).await;
    assert_eq!(prune(&world, soon, short).await, 0);
    assert!(crate::queue::Queue::envelope(&*world.store, fresh.message).await.unwrap().is_some());
}
