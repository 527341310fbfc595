//! What is recorded and what comes back.

use axum::body::Body;
use http::{Response, StatusCode};
use receiver::{IdempotencyLayer, IdempotencyStore, MemoryIdempotencyStore};

use crate::support::{Handler, Server, app, postgres, redis};

fn all_bytes() -> Vec<u8> {
    (0..=255).cycle().take(100_000).collect()
}

#[tokio::test]
async fn a_replay_is_equal_byte_for_byte() {
    let handle = |_| async {
        let response = Response::builder().status(418).header("content-type", "x/y; a=\"b\"");
        let response =
            response.header("link", "<1>").header("link", "<2>").header("etag", "W/\"1\"");
        response.header("set-cookie", "secret").body(Body::from(all_bytes())).unwrap()
    };
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).build().unwrap();
    let server = Server::start(app(layer, handle)).await;
    let mut first = server.post("k", "body").await;
    let mut replay = server.post("k", "body").await;
    assert_eq!(first.body, all_bytes());
    assert!(!first.is_replay() && replay.is_replay());
    replay.headers.remove("idempotency-replayed");
    assert!(first.headers.remove("set-cookie").is_some(), "the first caller gets every header");
    for reply in [&mut first, &mut replay] {
        reply.headers.remove("date");
    }
    assert_eq!(first, replay);
}

/// ID-03: "not now" is not remembered, a refusal is.
#[tokio::test]
async fn id_03_what_may_pass_is_not_recorded() {
    for (status, runs) in
        [(200, 1), (204, 1), (400, 1), (404, 1), (409, 1), (408, 2), (429, 2), (500, 2), (503, 2)]
    {
        let handler = Handler::new();
        let counted = handler.clone();
        let handle = move |_| {
            let handler = counted.clone();
            async move {
                handler.enter().await;
                Response::builder().status(status).body(Body::empty()).unwrap()
            }
        };
        let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
        let server = Server::start(app(layer.build().unwrap(), handle)).await;
        assert_eq!(server.post("k", "body").await.status, status);
        assert_eq!(server.post("k", "body").await.status, status);
        assert_eq!(handler.runs(), runs, "{status}");
        // A corrected body under the key of a recorded refusal is no repeat of it.
        let corrected = server.post("k", "corrected").await.status;
        let expected = if runs == 1 { StatusCode::UNPROCESSABLE_ENTITY.as_u16() } else { status };
        assert_eq!(corrected, expected, "{status}");
    }
}

/// ID-08: what one process handled, another does not handle again.
async fn handled_by_one_is_replayed_by_another(stores: [impl IdempotencyStore; 2]) {
    for (store, is_replay) in stores.into_iter().zip([false, true]) {
        let layer = IdempotencyLayer::builder(store).build().unwrap();
        let server = Server::start(Handler::new().app(layer)).await;
        let reply = server.post("k", "body").await;
        assert_eq!((reply.text().as_str(), reply.is_replay()), ("run 1", is_replay));
    }
}

#[tokio::test]
async fn id_08_processes_share_what_is_in_redis() {
    let parts = testparts::Redis::start();
    let stores = [redis(&parts.url()).await, redis(&parts.url()).await];
    handled_by_one_is_replayed_by_another(stores).await;
}

#[tokio::test]
async fn id_08_processes_share_what_is_in_postgres() {
    let parts = testparts::Postgres::start();
    let url = parts.fresh_database();
    let stores = [postgres(&url).await, postgres(&url).await];
    handled_by_one_is_replayed_by_another(stores).await;
}

#[tokio::test]
async fn what_is_recorded_can_be_chosen() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.store_if(|status| status == 200).replay_header("x-again").build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    for run in ["run 1", "run 2"] {
        assert_eq!(server.post("k", "body").await.text(), run, "201 is not 200");
    }
}

#[tokio::test]
async fn a_response_too_large_is_refused_the_same_way_each_time() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).max_response(4);
    let server = Server::start(handler.app(layer.build().unwrap())).await;
    for is_replay in [false, true] {
        let reply = server.post("k", "body").await;
        assert_eq!((reply.status.as_u16(), reply.text().as_str()), (500, "response_too_large"));
        assert_eq!(reply.is_replay(), is_replay);
    }
    assert_eq!(handler.runs(), 1, "it took effect");
}
