//! The hooks that the simulation uses: slow commits, failing ones, crashes.
//!
//! Never: what the conformance suites say already.

use std::sync::Arc;
use std::time::Duration;

use domain::application::ApplicationSpec;
use domain::ids::PublicId;
use resilience::{ManualClock, Timestamp};

use super::MemoryStore;
use crate::StoreError;
use crate::directory::{Directory, IdOrUid};

const ORG: PublicId = PublicId::from_bytes([1; 20]);

fn store() -> Arc<MemoryStore> {
    MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_secs(1_700_000_000))))
}

fn app(uid: &str) -> ApplicationSpec {
    ApplicationSpec {
        name: uid.to_owned(),
        uid: Some(uid.to_owned()),
        throttle_rate: None,
        metadata: "{}".to_owned(),
    }
}

async fn exists(store: &MemoryStore, uid: &str) -> bool {
    store.app(ORG, IdOrUid::Uid(uid.to_owned())).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_slow_commit_is_seen_by_nobody_before_its_time() {
    let store = store();
    store.commit_delay(Duration::from_millis(50));
    let asked = tokio::time::Instant::now();
    let written = store.create_app(ORG, app("a"), [1; 12]);
    tokio::time::sleep(Duration::from_millis(49)).await;
    assert!(!exists(&store, "a").await);
    written.await.unwrap();
    assert_eq!(asked.elapsed(), Duration::from_millis(50));
    assert!(exists(&store, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_undoes_nothing() {
    let store = store();
    store.commit_delay(Duration::from_millis(50));
    drop(store.create_app(ORG, app("a"), [1; 12]));
    tokio::time::sleep(Duration::from_millis(51)).await;
    assert!(exists(&store, "a").await);
}

#[tokio::test]
async fn failing_writes_change_nothing_and_are_counted() {
    let store = store();
    store.fail_next(2);
    for _ in 0..2 {
        let refused = store.create_app(ORG, app("a"), [1; 12]).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
        assert!(!exists(&store, "a").await);
    }
    store.create_app(ORG, app("a"), [1; 12]).await.unwrap();
    assert!(exists(&store, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_crash_keeps_what_was_committed_and_nothing_else() {
    let store = store();
    store.create_app(ORG, app("kept"), [1; 12]).await.unwrap();
    store.commit_delay(Duration::from_millis(50));
    let lost = store.create_app(ORG, app("lost"), [2; 12]);
    let image = store.crash_image();
    lost.await.unwrap();
    assert!(exists(&image, "kept").await);
    assert!(!exists(&image, "lost").await);
    image.create_app(ORG, app("new"), [3; 12]).await.unwrap();
    assert!(!exists(&store, "new").await, "the image is a copy");
}
