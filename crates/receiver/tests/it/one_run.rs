//! One request under a key reaches the handler, whoever else comes, and whoever leaves.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use receiver::{
    AfterCrash, IdempotencyLayer, IdempotencyStore, InProgress, KeySource, MemoryIdempotencyStore,
};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower_service::Service as _;

use crate::support::{Handler, LONG, Server, app, postgres, redis};

/// ID-01: one of 100 runs the handler, the others hear that it is in progress.
async fn one_of_a_hundred_runs(store: impl IdempotencyStore) {
    let handler = Handler::gated();
    let layer = IdempotencyLayer::builder(store).store_timeout(Duration::from_secs(9));
    let server = Server::start(handler.app(layer.build().unwrap())).await;
    let mut posts = JoinSet::new();
    for _ in 0..100 {
        let server = server.clone();
        posts.spawn(async move { server.post("k", "body").await });
    }
    // The one that runs is held until all others have been answered.
    for _ in 0..99 {
        let reply = posts.join_next().await.unwrap().unwrap();
        assert_eq!((reply.status.as_u16(), &*reply.text()), (409, "request_in_progress"));
        assert_eq!(reply.headers["retry-after"], "1");
    }
    handler.release();
    assert_eq!(posts.join_next().await.unwrap().unwrap().text(), "run 1");
    let replay = server.post("k", "body").await;
    assert_eq!((replay.is_replay(), &*replay.text(), handler.runs()), (true, "run 1", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn id_01_one_of_a_hundred_runs_in_memory() {
    one_of_a_hundred_runs(MemoryIdempotencyStore::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn id_01_one_of_a_hundred_runs_on_redis() {
    let parts = testparts::Redis::start();
    one_of_a_hundred_runs(redis(&parts.url()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn id_01_one_of_a_hundred_runs_on_postgres() {
    let parts = testparts::Postgres::start();
    one_of_a_hundred_runs(postgres(&parts.fresh_database()).await).await;
}

#[tokio::test]
async fn a_repeat_may_wait_for_the_first() {
    let handler = Handler::gated();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.in_progress(InProgress::wait(LONG)).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    let first = server.posting("k", "b");
    handler.entered(1).await;
    let repeats: Vec<_> = (0..8).map(|_| server.posting("k", "b")).collect();
    handler.release();
    let first = first.await.unwrap();
    assert!(!first.is_replay());
    for repeat in repeats {
        let reply = repeat.await.unwrap();
        assert!(reply.is_replay());
        assert_eq!(reply.body, first.body);
    }
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn waiting_ends() {
    let handler = Handler::gated();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.in_progress(InProgress::wait(Duration::from_millis(1))).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    let first = server.posting("k", "b");
    handler.entered(1).await;
    assert_eq!(server.post("k", "b").await.text(), "request_in_progress");
    handler.release();
    assert_eq!(first.await.unwrap().status, StatusCode::CREATED);
}

/// ID-02: a caller that hangs up does not cut off the handler, nor lose its response.
#[tokio::test]
async fn id_02_a_caller_that_leaves_does_not_stop_the_handler() {
    let handler = Handler::gated();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let server = Server::start(handler.app(layer.build().unwrap())).await;
    let mut caller = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let request =
        "POST / HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\ncontent-length: 4\r\n\r\nbody";
    caller.write_all(request.as_bytes()).unwrap();
    handler.entered(1).await;
    drop(caller);
    // The server has noticed when it answers on another connection; the handler is held all along.
    assert_eq!(server.post("k", "body").await.text(), "request_in_progress");
    handler.release();
    let reply = server.post_until("k", |reply| reply.status == StatusCode::CREATED).await;
    assert!(reply.is_replay());
    assert_eq!((reply.text().as_str(), handler.runs()), ("run 1", 1));
}

/// ID-02: a handler that panics gives its key back at once, or keeps it for somebody to look at.
#[tokio::test]
async fn id_02_a_panic_frees_the_key_or_asks_for_a_person() {
    for after_crash in [AfterCrash::Rerun, AfterCrash::Indeterminate] {
        let handler = Handler::new();
        let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
        // The lease of one that reruns would outlast the test: it is given back, not left to lapse.
        let layer = match after_crash {
            AfterCrash::Rerun => layer.lease(LONG * 2),
            AfterCrash::Indeterminate => layer
                .lease(Duration::from_millis(90))
                .heartbeat(Duration::from_millis(20))
                .store_timeout(Duration::from_millis(60)),
        };
        let layer = layer.after_crash(after_crash);
        let runs = handler.clone();
        let panics = move |_| {
            let runs = runs.clone();
            async move {
                assert_ne!(runs.enter().await, 1, "the first run fails");
                Response::new(Body::from("done"))
            }
        };
        let server = Server::start(app(layer.build().unwrap(), panics)).await;
        assert_eq!(server.post("k", "body").await.text(), "handler_failed");
        let end = server.post_until("k", |reply| reply.text() != "request_in_progress").await;
        match after_crash {
            AfterCrash::Rerun => assert_eq!((end.text().as_str(), handler.runs()), ("done", 2)),
            AfterCrash::Indeterminate => {
                assert_eq!((end.text().as_str(), handler.runs()), ("outcome_unknown", 1));
            }
        }
    }
}

/// ID-02: a rule that panics does not block the key: what the handler did is recorded or given back
/// as without the rule.
#[tokio::test]
async fn id_02_a_panicking_rule_does_not_block_the_key() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.store_if(|_| panic!("no rule")).build().unwrap();
    let runs = handler.clone();
    let fails_once = move |_| {
        let runs = runs.clone();
        async move {
            let run = runs.enter().await;
            let status = if run == 1 { 503 } else { 200 };
            let response = Response::builder().status(status);
            response.body(Body::from(format!("run {run}"))).unwrap()
        }
    };
    let server = Server::start(app(layer, fails_once)).await;
    assert_eq!(server.post("k", "body").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.post("k", "body").await.text(), "run 2");
    let again = server.post("k", "body").await;
    assert_eq!((again.is_replay(), again.text().as_str()), (true, "run 2"));
}

/// Whatever is asked before the handler fails its own request alone.
#[tokio::test]
async fn a_panicking_scope_or_key_fails_one_request() {
    let panics = |parts: &http::request::Parts| {
        assert_ne!(parts.uri.query(), Some("bad"), "bad");
    };
    let handler = Handler::new();
    let builder = || IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let scope = builder().scope(move |parts| {
        panics(parts);
        String::new()
    });
    let key = builder().key(KeySource::from_fn(move |parts, _| {
        panics(parts);
        Some("k".to_owned())
    }));
    for layer in [scope.build().unwrap(), key.build().unwrap()] {
        let server = Server::start(handler.app(layer)).await;
        let bad = server.request("POST", "/?bad").header("idempotency-key", "k");
        let bad = server.send(bad, b"body").await;
        assert_eq!((bad.status.as_u16(), bad.text().as_str()), (500, "handler_failed"));
        assert_eq!(server.post("k", "body").await.status, StatusCode::CREATED);
    }
    assert_eq!(handler.runs(), 2);
}

/// A handler that takes longer than its lease keeps it by heartbeats. On a paused clock, so without
/// a socket.
#[tokio::test(start_paused = true)]
async fn heartbeats_outlast_the_lease() {
    let lease = Duration::from_secs(30);
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).lease(lease);
    let slow = move |_| async move {
        sleep(lease * 10).await;
        Response::new(Body::from("done"))
    };
    let app = app(layer.build().unwrap(), slow);
    let post = async |mut app: Router| {
        let request = Request::post("/").header("idempotency-key", "k").body(Body::empty());
        app.call(request.unwrap()).await.unwrap().status()
    };
    let first = tokio::spawn(post(app.clone()));
    for _ in 0..9 {
        sleep(lease).await;
        assert_eq!(post(app.clone()).await, StatusCode::CONFLICT);
    }
    assert_eq!(first.await.unwrap(), StatusCode::OK);
    assert_eq!(post(app).await, StatusCode::OK);
}

/// Whoever lost its lease is not heard: its successor's response is the one that counts.
#[tokio::test]
async fn a_lost_lease_records_nothing() {
    let handler = Handler::gated();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).build().unwrap();
    let server = Server::start(handler.app(layer.clone())).await;
    let first = server.posting("k", "body");
    handler.entered(1).await;
    let key = receiver::ScopedKey { scope: String::new(), key: "k".into() };
    assert!(layer.store().forget(&key).await.unwrap());
    let second = server.posting("k", "body");
    handler.entered(2).await;
    handler.release();
    handler.release();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((first.status, first.text().as_str()), (StatusCode::CONFLICT, "lease_lost"));
    assert_eq!(second.text(), "run 2");
    let replay = server.post("k", "body").await;
    assert!(replay.is_replay());
    assert_eq!(replay.text(), "run 2");
}
