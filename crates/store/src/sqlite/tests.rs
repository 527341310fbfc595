//! What only this backend can get wrong: files, batches, arrears, runs of keys, faults of the disk.
//!
//! Never: a case that the conformance suites have.

mod cost;
mod faults;
mod lists;
mod plans;
mod prune;
mod tasks;
mod world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::delivery::{CancelReason, DeliveryState, Trigger};
use domain::idempotency::IngestKey;
use domain::limits::IDEMPOTENCY_WINDOW;
use resilience::Timestamp;

use super::{SqliteOptions, SqliteStore};
use crate::StoreError;
use crate::cipher::Cipher;
use crate::directory::Directory as _;
use crate::history::History as _;
use crate::inbox::{Accepted, Inbox as _};
use crate::ledger::{Follow, Ledger as _, Recorded};
use crate::queue::Queue as _;
use crate::recall::{Made, Recall as _, Told};
use world::{World, answered, failed};

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let world = World::open().await;
    let pending = world.post(None).await;
    // The files as they are while the store is open: what a killed process leaves behind.
    let copy = tempfile::tempdir().unwrap();
    for name in ["peyk.db", "peyk.db-wal"] {
        std::fs::copy(world.path().with_file_name(name), copy.path().join(name)).unwrap();
    }
    let options = SqliteOptions::new(copy.path().join("peyk.db"), world.clock());
    let after = SqliteStore::open(options).unwrap();
    let due = after.due(pending.endpoint, Timestamp::MAX.into(), 10).await.unwrap();
    assert_eq!(due.rows, [pending]);
    assert!(after.envelope(pending.message).await.unwrap().is_some());
    assert_eq!(after.installation(), world.store.installation());
    assert_eq!(after.depth().await.unwrap().0, 1);
}

#[tokio::test]
async fn secrets_open_only_with_their_key() {
    let mut world = World::with_cipher(Some(Cipher::from_main_key("main"))).await;
    world.post(None).await;
    let path = world.path();
    world.store.close();
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(6).any(|piece| piece == b"whsec_"), "a secret stands in the file");
    for cipher in [None, Some(Cipher::from_main_key("other"))] {
        let mut options = SqliteOptions::new(&path, world.clock());
        options.cipher = cipher;
        let fault = SqliteStore::open(options).map(drop).unwrap_err();
        assert!(matches!(&fault, StoreError::Corrupt(why) if why.contains("main key")), "{fault}");
    }
    world.reopen();
    assert!(world.store.endpoint(world.endpoint.key).await.unwrap().is_some());
}

#[tokio::test]
async fn answers_are_sealed_as_secrets_are() {
    let mut world = World::with_cipher(Some(Cipher::from_main_key("main"))).await;
    let (body, made) = (bytes::Bytes::from_static(b"the answer"), Made::Nothing);
    let (key, told) =
        (IngestKey { scope: [1; 16], body: [2; 16] }, Told { status: 200, body, made });
    world.store.keep(key, told.clone()).await.unwrap();
    let path = world.path();
    world.store.close();
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(10).any(|piece| piece == b"the answer"), "it stands in the file");
    world.reopen();
    assert_eq!(world.store.recall(key.scope).await.unwrap().unwrap().told, told);
}

#[tokio::test]
async fn a_full_queue_refuses_posts_but_takes_results() {
    let world = World::with(|options| options.waiting_max = 4).await;
    let row = world.post(None).await;
    let held = world.hold();
    // Held, the writer takes nothing from the queue.
    let waiting: Vec<_> = (0..4).map(|_| world.store.accept(world.message(None))).collect();
    let refused = world.store.accept(world.message(None)).await;
    assert_eq!(refused, Err(StoreError::Overloaded));
    let result = world.store.record(vec![answered(row, 200, Follow::Delivered)]);
    drop(held);
    for post in waiting {
        assert!(matches!(post.await, Ok(Accepted::New { .. })));
    }
    assert_eq!(result.await, Ok(vec![Recorded::Applied]));
    assert!(matches!(world.store.accept(world.message(None)).await, Ok(Accepted::New { .. })));
}

#[tokio::test]
async fn a_post_that_waited_too_long_is_refused_and_not_written() {
    let mut world = World::open().await;
    let row = world.post(None).await;
    world.impatient();
    let held = world.hold();
    let post = world.store.accept(world.message(None));
    let result = world.store.record(vec![answered(row, 200, Follow::Delivered)]);
    drop(held);
    assert_eq!(post.await, Err(StoreError::Overloaded));
    assert_eq!(result.await, Ok(vec![Recorded::Applied]), "results wait as long as it takes");
    assert_eq!(world.store.depth().await.unwrap().0, 0);
}

#[tokio::test]
async fn bytes_that_wait_are_bounded() {
    let world = World::with(|options| options.waiting_bytes_max = 10_000).await;
    let held = world.hold();
    let mut large = world.message(None);
    large.spec.payload = vec![0; 6_000].into();
    let first = world.store.accept(large.clone());
    assert_eq!(world.store.accept(large).await, Err(StoreError::Overloaded));
    drop(held);
    assert!(first.await.is_ok());
}

#[tokio::test]
async fn a_closed_store_says_so_and_loses_nothing() {
    let mut world = World::open().await;
    let held = world.hold();
    let queued = world.store.accept(world.message(None));
    drop(held);
    world.store.close();
    assert!(matches!(queued.await, Ok(Accepted::New { .. })), "what was queued is finished");
    let late = world.store.accept(world.message(None)).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))));
    assert!(matches!(world.store.depth().await, Err(StoreError::Unavailable(_))));
    world.store.close();
    world.reopen();
    assert_eq!(world.store.depth().await.unwrap().0, 1);
    let left = std::fs::metadata(world.path().with_file_name("peyk.db-wal"));
    assert!(left.is_err() || left.is_ok_and(|file| file.len() < 1 << 20));
}

#[tokio::test]
async fn a_change_that_fails_takes_back_only_itself() {
    let world = World::open().await;
    let held = world.hold();
    let first = world.store.accept(world.message(None));
    let broken = world.store.shared.door.change(|tx| {
        tx.put_due(domain::ids::MessageKey(7), domain::ids::EndpointKey(7), (0, Trigger::Manual))?;
        Err::<(), _>(StoreError::Missing("sense"))
    });
    let last = world.store.accept(world.message(None));
    drop(held);
    assert!(matches!(first.await, Ok(Accepted::New { .. })));
    assert_eq!(broken.await, Err(StoreError::Missing("sense")));
    assert!(matches!(last.await, Ok(Accepted::New { .. })));
    assert_eq!(world.store.depth().await.unwrap().0, 2);
    assert_eq!(
        world.told.fresh.load(Ordering::SeqCst),
        2,
        "nobody was told of what was taken back"
    );
}

#[tokio::test]
async fn a_manual_send_beside_a_waiting_row_is_counted_on() {
    let world = World::open().await;
    let waits = world.post(None).await;
    assert_eq!(
        world.store.resend(waits.message, waits.endpoint).await,
        Ok(crate::history::Resent::Pending)
    );
    let due = world.store.due(waits.endpoint, Timestamp::MAX.into(), 10).await.unwrap();
    let manual = due.rows.into_iter().find(|row| row.trigger == Trigger::Manual).unwrap();
    let result = failed(manual, Follow::Unchanged);
    assert_eq!(world.store.record(vec![result]).await, Ok(vec![Recorded::Applied]));
    let due = world.store.due(waits.endpoint, Timestamp::MAX.into(), 10).await.unwrap();
    assert_eq!(due.rows, [domain::delivery::Pending { sends: 1, ..waits }]);
    // The scheduled send was under way meanwhile, with the same number: both are kept.
    let result = answered(waits, 200, Follow::Delivered);
    assert_eq!(world.store.record(vec![result]).await, Ok(vec![Recorded::Applied]));
    let rows = world.store.deliveries(waits.message).await.unwrap();
    assert_eq!((rows[0].state, rows[0].sends), (DeliveryState::Delivered, 2));
}

#[tokio::test]
async fn what_waits_for_a_deleted_endpoint_is_swept() {
    let world = World::open().await;
    let row = world.post(None).await;
    world.store.delete_endpoint(row.endpoint).await.unwrap();
    world.manual.advance(Duration::from_secs(61));
    world.chores().await;
    let rows = world.store.deliveries(row.message).await.unwrap();
    assert_eq!(rows[0].state, DeliveryState::Cancelled(CancelReason::EndpointDeleted));
    assert_eq!(world.store.depth().await.unwrap().0, 0);
    // A late success still makes it delivered.
    let late = answered(row, 200, Follow::Delivered);
    assert_eq!(world.store.record(vec![late]).await, Ok(vec![Recorded::Late]));
    let rows = world.store.deliveries(row.message).await.unwrap();
    assert_eq!(rows[0].state, DeliveryState::Delivered);
}

#[tokio::test]
async fn keys_survive_runs_and_restarts_and_end_in_time() {
    let mut world = World::open().await;
    let key = |number: u32| {
        let mut scope = [0; 16];
        scope[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
        scope[8..12].copy_from_slice(&number.to_be_bytes());
        Some(IngestKey { scope, body: [1; 16] })
    };
    let mut made = Vec::new();
    for number in 0..300 {
        made.push(world.post(key(number)).await);
        if number % 100 == 99 {
            // As if it were time for a run.
            world
                .store
                .shared
                .door
                .change(|tx| {
                    tx.used.write_now();
                    Ok(())
                })
                .await
                .unwrap();
            world.chores().await;
        }
    }
    for _ in 0..2 {
        for number in [0, 99, 100, 250, 299] {
            let again = world.store.accept(world.message(key(number))).await.unwrap();
            let Accepted::Repeated(message) = again else { panic!("{number}: {again:?}") };
            assert_eq!(message.key, made[usize::try_from(number).unwrap()].message);
        }
        world.reopen();
    }
    world.manual.advance(IDEMPOTENCY_WINDOW + Duration::from_secs(1));
    world.chores().await;
    let runs = world.store.readers.read(|conn| {
        Ok(conn.query_row("SELECT count(*) FROM key_part", [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(runs.await, Ok(0), "runs that are over are dropped");
    let again = world.store.accept(world.message(key(5))).await.unwrap();
    assert!(matches!(again, Accepted::New { .. }), "{again:?}");
}

#[tokio::test]
async fn a_key_in_a_batch_that_was_lost_is_free_again() {
    let world = World::open().await;
    let key = Some(IngestKey { scope: [9; 16], body: [1; 16] });
    let held = world.hold();
    let lost = world.store.accept(world.message(key));
    let fault = world.break_batch();
    drop(held);
    assert!(matches!(lost.await, Err(StoreError::Unavailable(_))));
    drop(fault.await);
    let again = world.store.accept(world.message(key)).await;
    assert!(matches!(again, Ok(Accepted::New { .. })), "{again:?}");
}
