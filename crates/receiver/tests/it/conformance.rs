//! What every store must do, asked of each of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use receiver::{
    AfterCrash, Begin, BeginRequest, IdempotencyStore, LeaseToken, MemoryIdempotencyStore,
    PgIdempotencyStore, ScopedKey, StoreError, StoredResponse,
};

use crate::support::{pool, postgres, redis, until};

const DAY: Duration = Duration::from_secs(86_400);
const ONE: [u8; 32] = [1; 32];
const TWO: [u8; 32] = [2; 32];

fn key(key: &str) -> ScopedKey {
    ScopedKey { scope: "tenant".into(), key: key.into() }
}

fn response(body: &[u8]) -> StoredResponse {
    let mut headers = HeaderMap::new();
    headers.append("link", HeaderValue::from_static("<1>"));
    headers.append("link", HeaderValue::from_static("<2>"));
    headers.append("etag", HeaderValue::from_bytes(b"\xff: ").unwrap());
    StoredResponse { status: StatusCode::CREATED, headers, body: Bytes::copy_from_slice(body) }
}

fn started(begin: Result<Begin, StoreError>) -> LeaseToken {
    match begin.unwrap() {
        Begin::Started(token) => token,
        other => panic!("{other:?}"),
    }
}

fn is_stale<T: std::fmt::Debug>(outcome: &Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Stale))
}

/// Begins until the lease of whoever holds the key has lapsed.
async fn begin_after<S: IdempotencyStore>(store: &S, request: &BeginRequest<'_>) -> Begin {
    until(async || match store.begin(request).await.unwrap() {
        Begin::InProgress { .. } => None,
        other => Some(other),
    })
    .await
}

async fn conforms<S: IdempotencyStore>(store: Arc<S>) {
    a_record_goes_from_begun_to_replayed(&*store).await;
    every_byte_comes_back(&*store).await;
    another_request_under_the_key_is_told(&*store).await;
    an_abandoned_key_is_free(&*store).await;
    a_lapsed_lease_is_taken_over(&*store).await;
    a_lapsed_lease_may_need_a_person(&*store).await;
    a_heartbeat_prolongs_the_lease(&*store).await;
    a_record_expires(&*store).await;
    the_first_response_stays(&*store).await;
    scopes_are_apart(&*store).await;
    no_span_is_too_long(&*store).await;
    one_of_many_begins(store).await;
}

async fn a_record_goes_from_begun_to_replayed<S: IdempotencyStore>(store: &S) {
    let key = key("life");
    let request = BeginRequest::new(&key, &ONE);
    let token = started(store.begin(&request).await);
    match store.begin(&request).await.unwrap() {
        Begin::InProgress { retry_in } => {
            let lease = Duration::from_secs(25)..=Duration::from_secs(30);
            assert!(lease.contains(&retry_in), "{retry_in:?}");
        }
        other => panic!("{other:?}"),
    }
    store.complete(&token, &response(b"body"), DAY).await.unwrap();
    assert_eq!(store.begin(&request).await.unwrap(), Begin::Replay(response(b"body")));
    assert!(store.forget(&key).await.unwrap());
    assert!(!store.forget(&key).await.unwrap());
    started(store.begin(&request).await);
}

async fn every_byte_comes_back<S: IdempotencyStore>(store: &S) {
    let all: Vec<u8> = (0..=255).collect();
    let large = all.repeat(1024);
    for (name, body) in [("empty", &[][..]), ("all", &all), ("large", &large)] {
        let key = key(name);
        let request = BeginRequest::new(&key, &ONE);
        let token = started(store.begin(&request).await);
        store.complete(&token, &response(body), DAY).await.unwrap();
        assert_eq!(store.begin(&request).await.unwrap(), Begin::Replay(response(body)));
    }
}

async fn another_request_under_the_key_is_told<S: IdempotencyStore>(store: &S) {
    let key = key("mismatch");
    let other = BeginRequest::new(&key, &TWO);
    let token = started(store.begin(&BeginRequest::new(&key, &ONE)).await);
    assert_eq!(store.begin(&other).await.unwrap(), Begin::Mismatch, "while it runs");
    store.complete(&token, &response(b""), DAY).await.unwrap();
    assert_eq!(store.begin(&other).await.unwrap(), Begin::Mismatch, "afterwards");
}

async fn an_abandoned_key_is_free<S: IdempotencyStore>(store: &S) {
    let key = key("abandoned");
    let first = started(store.begin(&BeginRequest::new(&key, &ONE)).await);
    store.abandon(&first).await.unwrap();
    assert!(is_stale(&store.abandon(&first).await));
    assert!(is_stale(&store.complete(&first, &response(b""), DAY).await));
    // Also for another request: nothing is known of the key.
    let second = started(store.begin(&BeginRequest::new(&key, &TWO)).await);
    assert!(second.fence() > first.fence());
    assert!(is_stale(&store.abandon(&first).await));
}

async fn a_lapsed_lease_is_taken_over<S: IdempotencyStore>(store: &S) {
    let key = key("lapsed");
    let brief = BeginRequest::new(&key, &ONE).lease(Duration::from_millis(1));
    let first = started(store.begin(&brief).await);
    let second = started(Ok(begin_after(store, &BeginRequest::new(&key, &ONE)).await));
    assert!(second.fence() > first.fence());
    assert!(is_stale(&store.heartbeat(&first, DAY).await));
    assert!(is_stale(&store.complete(&first, &response(b"first"), DAY).await));
    assert!(is_stale(&store.abandon(&first).await));
    store.complete(&second, &response(b"second"), DAY).await.unwrap();
    assert!(is_stale(&store.complete(&first, &response(b"first"), DAY).await));
    assert_eq!(store.begin(&brief).await.unwrap(), Begin::Replay(response(b"second")));
}

async fn a_lapsed_lease_may_need_a_person<S: IdempotencyStore>(store: &S) {
    let key = key("indeterminate");
    let request = BeginRequest::new(&key, &ONE).after_crash(AfterCrash::Indeterminate);
    let first = started(store.begin(&request.lease(Duration::from_millis(1))).await);
    assert_eq!(begin_after(store, &request).await, Begin::Indeterminate);
    assert_eq!(store.begin(&request).await.unwrap(), Begin::Indeterminate);
    let other = BeginRequest::new(&key, &TWO).after_crash(AfterCrash::Indeterminate);
    assert_eq!(store.begin(&other).await.unwrap(), Begin::Mismatch);
    assert!(store.forget(&key).await.unwrap());
    assert!(is_stale(&store.complete(&first, &response(b""), DAY).await));
    started(store.begin(&request).await);
}

async fn a_heartbeat_prolongs_the_lease<S: IdempotencyStore>(store: &S) {
    let key = key("heartbeat");
    let request = BeginRequest::new(&key, &ONE).after_crash(AfterCrash::Indeterminate);
    let token = started(store.begin(&request.lease(Duration::from_millis(1))).await);
    assert_eq!(begin_after(store, &request).await, Begin::Indeterminate, "it has lapsed");
    store.heartbeat(&token, DAY).await.unwrap();
    match store.begin(&request).await.unwrap() {
        Begin::InProgress { retry_in } => assert!(retry_in > DAY / 2, "{retry_in:?}"),
        other => panic!("{other:?}"),
    }
    store.complete(&token, &response(b""), DAY).await.unwrap();
    store.heartbeat(&token, DAY).await.unwrap();
    assert!(matches!(store.begin(&request).await.unwrap(), Begin::Replay(_)));
}

async fn a_record_expires<S: IdempotencyStore>(store: &S) {
    let key = key("expires");
    let first = started(store.begin(&BeginRequest::new(&key, &ONE)).await);
    store.complete(&first, &response(b""), Duration::from_millis(1)).await.unwrap();
    // Under another fingerprint: as long as the record is there it is a mismatch.
    let second = until(async || match store.begin(&BeginRequest::new(&key, &TWO)).await.unwrap() {
        Begin::Mismatch => None,
        other => Some(started(Ok(other))),
    })
    .await;
    assert!(second.fence() > first.fence());
    assert!(is_stale(&store.complete(&first, &response(b""), DAY).await));
}

async fn the_first_response_stays<S: IdempotencyStore>(store: &S) {
    let key = key("twice");
    let request = BeginRequest::new(&key, &ONE);
    let token = started(store.begin(&request).await);
    store.complete(&token, &response(b"first"), DAY).await.unwrap();
    store.complete(&token, &response(b"second"), DAY).await.unwrap();
    store.abandon(&token).await.unwrap();
    assert_eq!(store.begin(&request).await.unwrap(), Begin::Replay(response(b"first")));
}

async fn scopes_are_apart<S: IdempotencyStore>(store: &S) {
    let mut seen = HashSet::new();
    for (scope, key) in
        [("", "a:b"), ("a", "b"), ("a:b", ""), ("a", ":b"), ("3:a:b", ""), ("", "b")]
    {
        let key = ScopedKey { scope: scope.into(), key: key.into() };
        let token = started(store.begin(&BeginRequest::new(&key, &ONE)).await);
        assert!(seen.insert(token.key().clone()));
    }
}

async fn no_span_is_too_long<S: IdempotencyStore>(store: &S) {
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);
    let key = key("for ever");
    let mut request = BeginRequest::new(&key, &ONE).lease(Duration::MAX);
    request.record_ttl = Duration::MAX;
    let token = started(store.begin(&request).await);
    store.heartbeat(&token, Duration::MAX).await.unwrap();
    match store.begin(&request).await.unwrap() {
        Begin::InProgress { retry_in } => {
            assert!((CENTURY - DAY..=CENTURY).contains(&retry_in), "{retry_in:?}");
        }
        other => panic!("{other:?}"),
    }
    store.complete(&token, &response(b"kept"), Duration::MAX).await.unwrap();
    assert_eq!(store.begin(&request).await.unwrap(), Begin::Replay(response(b"kept")));
}

/// ID-01: whoever asks at the same time, one gets the key.
async fn one_of_many_begins<S: IdempotencyStore>(store: Arc<S>) {
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let key = key("crowd");
                store.begin(&BeginRequest::new(&key, &ONE)).await.unwrap()
            })
        })
        .collect();
    let mut begun = 0;
    for task in tasks {
        match task.await.unwrap() {
            Begin::Started(_) => begun += 1,
            Begin::InProgress { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(begun, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    conforms(Arc::new(MemoryIdempotencyStore::default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_conforms() {
    let server = testparts::Redis::start();
    conforms(Arc::new(redis(&server.url()).await)).await;
    let apart = redis(&server.url()).await.prefix("another");
    started(apart.begin(&BeginRequest::new(&key("life"), &TWO)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_conforms() {
    let server = testparts::Postgres::start();
    let url = server.fresh_database();
    let (store, again) = tokio::join!(postgres(&url), postgres(&url));
    conforms(Arc::new(store)).await;
    // TM-05: sessions in other time zones see the same leases.
    server.sql(&url, "ALTER ROLE postgres SET timezone = 'Pacific/Kiritimati'");
    conforms(Arc::new({
        again.forget(&key("life")).await.unwrap();
        server.sql(&url, "DELETE FROM peyk_idempotency");
        postgres(&url).await
    }))
    .await;
    assert_eq!(server.sql(&url, "SHOW timezone"), "Pacific/Kiritimati");
}

#[tokio::test]
async fn a_missing_table_is_told() {
    let server = testparts::Postgres::start();
    let store = PgIdempotencyStore::new(pool(&server.fresh_database()));
    let told = store.forget(&key("any")).await.unwrap_err().to_string();
    assert!(told.contains("\"peyk_idempotency\" does not exist"), "{told}");
}

/// RT-01: pieces of a bounded size, and only what has expired.
#[tokio::test]
async fn postgres_prunes_what_has_expired_piece_by_piece() {
    let server = testparts::Postgres::start();
    let url = server.fresh_database();
    let store = postgres(&url).await;
    started(store.begin(&BeginRequest::new(&key("kept"), &ONE)).await);
    let rows = "INSERT INTO peyk_idempotency SELECT 's', n::text, '', 0, now(), now() \
                FROM generate_series(1, 25) n";
    server.sql(&url, rows);
    for pruned in [10, 10, 5, 0] {
        assert_eq!(store.prune(10).await.unwrap(), pruned);
    }
    assert_eq!(server.sql(&url, "SELECT key FROM peyk_idempotency"), "kept");
}

#[tokio::test]
async fn memory_makes_room_but_never_of_what_is_in_progress() {
    let store = MemoryIdempotencyStore::bounded(2, 1 << 20).unwrap();
    let begin = async |name: &str| {
        let key = key(name);
        store.begin(&BeginRequest::new(&key, &ONE)).await
    };
    let first = started(begin("first").await);
    let second = started(begin("second").await);
    assert!(matches!(begin("third").await, Err(StoreError::Full)));
    store.complete(&second, &response(b""), DAY).await.unwrap();
    started(begin("third").await);
    assert!(matches!(begin("second").await, Err(StoreError::Full)), "it made room");
    store.complete(&first, &response(b""), DAY).await.unwrap();
    assert!(matches!(begin("first").await.unwrap(), Begin::Replay(_)));
}

#[tokio::test]
async fn memory_is_bounded_in_bytes() {
    let store = MemoryIdempotencyStore::bounded(1_000, 10_000).unwrap();
    for number in 0..100 {
        let key = key(&number.to_string());
        let token = started(store.begin(&BeginRequest::new(&key, &ONE)).await);
        store.complete(&token, &response(&[0; 4_000]), DAY).await.unwrap();
    }
    let mut kept = 0;
    for number in 0..100 {
        kept += usize::from(store.forget(&key(&number.to_string())).await.unwrap());
    }
    assert_eq!(kept, 2, "of 4,000 bytes and a head each, two fit");
}

#[test]
fn a_store_without_room_is_not_made() {
    for (records_max, bytes_max, option) in
        [(0, 0, "records_max"), (0, usize::MAX, "records_max"), (1, 1_023, "bytes_max")]
    {
        let refused = MemoryIdempotencyStore::bounded(records_max, bytes_max).unwrap_err();
        assert_eq!(refused.option, option);
    }
    assert!(MemoryIdempotencyStore::bounded(usize::MAX, usize::MAX).is_ok());
}
