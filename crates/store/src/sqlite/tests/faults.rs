//! Faults of the disk: nothing is half written, everybody is told, and it goes on by itself.
//!
//! Never: a real full disk; SQLite is told how many pages there are.

use domain::delivery::DeliveryState;
use resilience::Timestamp;
use std::sync::atomic::Ordering;

use super::world::{World, answered};
use crate::StoreError;
use crate::history::History as _;
use crate::inbox::{Accepted, Inbox as _};
use crate::ledger::{Follow, Ledger as _, Recorded};
use crate::queue::Queue as _;

async fn pages_max(world: &World, pages: i64) {
    let set = world.store.shared.door.change(move |tx| {
        let sql = format!("PRAGMA max_page_count = {pages}");
        Ok(tx.conn.query_row(&sql, [], |row| row.get::<_, i64>(0))?)
    });
    set.await.unwrap();
}

#[tokio::test]
async fn a_full_disk_answers_503_and_service_resumes() {
    let world = World::open().await;
    let row = world.post(None).await;
    pages_max(&world, 1).await;
    let mut refused = 0;
    for _ in 0..5 {
        let mut large = world.message(None);
        large.spec.payload = vec![0; 600_000].into();
        let held = world.hold();
        let post = world.store.accept(large);
        let result = world.store.record(vec![answered(row, 200, Follow::Delivered)]);
        drop(held);
        let Err(StoreError::Unavailable(why)) = post.await else { panic!("it was written") };
        assert_eq!(why, "disk full");
        refused += usize::from(result.await.is_err());
    }
    assert_eq!(refused, 5, "what shared the batch is told too");
    assert!(world.told.lost.load(Ordering::SeqCst) >= 5);
    let due = world.store.due(row.endpoint, Timestamp::MAX.into(), 10).await.unwrap();
    assert_eq!(due.rows, [row], "the row is as it was");
    pages_max(&world, 1 << 30).await;
    let result = answered(row, 200, Follow::Delivered);
    assert_eq!(world.store.record(vec![result]).await, Ok(vec![Recorded::Applied]));
    let accepted = world.store.accept(world.message(None)).await;
    assert!(matches!(accepted, Ok(Accepted::New { .. })));
    let rows = world.store.deliveries(row.message).await.unwrap();
    assert_eq!(rows[0].state, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_probe_says_whether_a_message_could_be_committed() {
    let world = World::open().await;
    let row = world.post(None).await;
    assert_eq!(world.store.probe().await, Ok(()));
    pages_max(&world, 1).await;
    let mut large = world.message(None);
    large.spec.payload = vec![0; 600_000].into();
    assert!(world.store.accept(large).await.is_err());
    for _ in 0..3 {
        assert_eq!(world.store.probe().await, Err(StoreError::Unavailable("disk full".into())));
    }
    pages_max(&world, 1 << 30).await;
    assert_eq!(world.store.probe().await, Ok(()));
    assert_eq!(world.store.probe().await, Ok(()), "the first is overwritten by a short one");
    let left = world.store.shared.door.change(|tx| {
        let sql = "SELECT length(value) FROM setting WHERE name = 'probe'";
        Ok(tx.conn.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(left.await, Ok(8));
    let due = world.store.due(row.endpoint, Timestamp::MAX.into(), 10).await.unwrap();
    assert_eq!(due.rows, [row], "nothing else is touched");
}

#[tokio::test]
async fn a_transaction_lost_half_way_is_nobodys() {
    let world = World::open().await;
    let held = world.hold();
    let before = world.store.accept(world.message(None));
    let fault = world.break_batch();
    let behind = world.store.accept(world.message(None));
    drop(held);
    assert!(before.await.is_err());
    assert!(fault.await.is_err());
    assert!(behind.await.is_err());
    assert_eq!(world.store.depth().await.unwrap(), (0, None));
    assert_eq!(world.told.fresh.load(Ordering::SeqCst), 0);
    world.post(None).await;
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_refused() {
    let world = World::open().await;
    let other = rusqlite::Connection::open(world.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = world.store.accept(world.message(None)).await;
    assert_eq!(refused, Err(StoreError::Unavailable("the database is locked".into())));
    other.execute_batch("ROLLBACK").unwrap();
    world.post(None).await;
}
