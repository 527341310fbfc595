//! The store stops, hangs and comes back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use receiver::{
    Begin, BeginRequest, IdempotencyLayer, IdempotencyStore, LeaseToken, MemoryIdempotencyStore,
    ScopedKey, StoreError, StoreFailure, StoredResponse,
};
use testparts::{Postgres, Redis};

use crate::support::{Handler, Server, postgres, redis};

/// A server whose store is given this long.
async fn server<St: IdempotencyStore>(store: St, failure: StoreFailure) -> (Server, Handler) {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(store).on_store_error(failure);
    let layer = layer.store_timeout(Duration::from_millis(300)).build().unwrap();
    (Server::start(handler.app(layer)).await, handler)
}

async fn assert_refused(server: &Server, handler: &Handler) {
    let runs = handler.runs();
    let reply = server.post("during", "body").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.text(), "idempotency_store_unavailable");
    assert_eq!(handler.runs(), runs);
}

async fn assert_back(server: &Server) {
    let reply = server.post_until("after", |reply| reply.status == StatusCode::CREATED).await;
    assert!(server.post("after", "body").await.is_replay(), "{reply:?}");
}

/// DU-02, DB-05: 503 while Redis is away, and work goes on when it is back, though it is empty.
#[tokio::test]
async fn redis_away_refuses_and_redis_back_works() {
    let mut parts = Redis::start();
    let (server, handler) = server(redis(&parts.url()).await, StoreFailure::Closed503).await;
    assert_eq!(server.post("before", "body").await.text(), "run 1");
    parts.pause();
    assert_refused(&server, &handler).await;
    parts.resume();
    assert_back(&server).await;
    parts.stop();
    assert_refused(&server, &handler).await;
    parts.restart();
    assert_back(&server).await;
    let forgotten = server.post("before", "body").await;
    assert!(!forgotten.is_replay(), "without persistence a restart forgets");
}

/// DB-04: the same, and what was recorded is still there.
#[tokio::test]
async fn postgres_away_refuses_and_postgres_back_replays() {
    let mut parts = Postgres::start();
    let store = postgres(&parts.fresh_database()).await;
    let (server, handler) = server(store, StoreFailure::Closed503).await;
    assert_eq!(server.post("before", "body").await.text(), "run 1");
    parts.pause();
    assert_refused(&server, &handler).await;
    parts.resume();
    assert_back(&server).await;
    parts.kill();
    assert_refused(&server, &handler).await;
    parts.restart();
    assert_back(&server).await;
    let replay = server.post("before", "body").await;
    assert!(replay.is_replay());
    assert_eq!(replay.text(), "run 1");
}

#[tokio::test]
async fn an_open_layer_handles_what_it_cannot_record() {
    let mut parts = Redis::start();
    let (server, _) = server(redis(&parts.url()).await, StoreFailure::Open).await;
    parts.stop();
    for run in ["run 1", "run 2"] {
        let reply = server.post("k", "body").await;
        assert_eq!((reply.status, reply.text().as_str()), (StatusCode::CREATED, run));
    }
}

/// The store goes away while the handler runs: closed says so, open gives the response all the
/// same.
#[tokio::test]
async fn a_response_that_was_not_recorded_is_kept_back_unless_open() {
    for (failure, status) in [(StoreFailure::Closed503, 503), (StoreFailure::Open, 201)] {
        let mut parts = Redis::start();
        let handler = Handler::gated();
        let layer = IdempotencyLayer::builder(redis(&parts.url()).await).on_store_error(failure);
        let layer = layer.store_timeout(Duration::from_millis(300)).build().unwrap();
        let server = Server::start(handler.app(layer)).await;
        let first = server.posting("k", "body");
        handler.entered(1).await;
        parts.stop();
        handler.release();
        assert_eq!(first.await.unwrap().status, status);
    }
}

/// A store whose first `complete` fails: before it has recorded, or after.
struct Blinks {
    inner: MemoryIdempotencyStore,
    completes: AtomicUsize,
    records_first: bool,
}

impl IdempotencyStore for Blinks {
    async fn begin(&self, request: &BeginRequest<'_>) -> Result<Begin, StoreError> {
        self.inner.begin(request).await
    }

    async fn heartbeat(&self, token: &LeaseToken, lease: Duration) -> Result<(), StoreError> {
        self.inner.heartbeat(token, lease).await
    }

    async fn complete(
        &self,
        token: &LeaseToken,
        response: &StoredResponse,
        record_ttl: Duration,
    ) -> Result<(), StoreError> {
        let is_first = self.completes.fetch_add(1, Ordering::SeqCst) == 0;
        if !is_first || self.records_first {
            self.inner.complete(token, response, record_ttl).await?;
        }
        if is_first { Err(StoreError::unavailable("blinked")) } else { Ok(()) }
    }

    async fn abandon(&self, token: &LeaseToken) -> Result<(), StoreError> {
        self.inner.abandon(token).await
    }

    async fn forget(&self, key: &ScopedKey) -> Result<bool, StoreError> {
        self.inner.forget(key).await
    }
}

/// ID-02: what the handler did is recorded though the store failed once in between.
#[tokio::test]
async fn id_02_a_store_that_blinks_loses_no_response() {
    for records_first in [false, true] {
        let (inner, completes) = (MemoryIdempotencyStore::default(), AtomicUsize::new(0));
        let store = Blinks { inner, completes, records_first };
        let (server, handler) = server(store, StoreFailure::Closed503).await;
        let first = server.post("k", "body").await;
        assert_eq!((first.status, first.text().as_str()), (StatusCode::CREATED, "run 1"));
        assert!(server.post("k", "body").await.is_replay());
        assert_eq!(handler.runs(), 1);
    }
}
