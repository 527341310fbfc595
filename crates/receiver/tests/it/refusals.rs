//! Requests that do not reach the handler, and those that pass it by.

use http::StatusCode;
use receiver::{IdempotencyLayer, KeySource, MemoryIdempotencyStore, Missing};

use crate::support::{Handler, Server};

#[tokio::test]
async fn a_request_without_a_usable_key_is_refused() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    let missing = server.send(server.request("POST", "/"), b"").await;
    assert_eq!((missing.status.as_u16(), &*missing.text()), (400, "idempotency_key_missing"));
    assert_eq!(missing.headers["content-type"], "application/problem+json");
    let two = server.request("POST", "/").header("idempotency-key", "a");
    let two = server.send(two.header("idempotency-key", "b"), b"").await;
    assert_eq!((two.status.as_u16(), &*two.text()), (400, "idempotency_key_malformed"));
    assert_eq!(server.post("a b", "").await.text(), "idempotency_key_malformed");
    assert_eq!(handler.runs(), 0);
    assert_eq!(server.post("\"a b\"", "").await.text(), "run 1");
}

#[tokio::test]
async fn other_methods_and_absent_keys_may_pass() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.on_missing(Missing::Pass).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    for run in ["run 1", "run 2"] {
        assert_eq!(server.send(server.request("POST", "/"), b"").await.text(), run);
    }
    for run in ["run 3", "run 4"] {
        let put = server.request("PUT", "/").header("idempotency-key", "k");
        assert_eq!(server.send(put, b"").await.text(), run);
    }
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    assert_eq!(server.post("k", "body").await.status, StatusCode::CREATED);
    for (method, path, body) in
        [("POST", "/", "other"), ("PATCH", "/", "body"), ("POST", "/?a", "body")]
    {
        let request = server.request(method, path).header("idempotency-key", "k");
        let reply = server.send(request, body.as_bytes()).await;
        assert_eq!((reply.status.as_u16(), &*reply.text()), (422, "idempotency_key_reused"));
    }
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn equal_keys_of_two_tenants_are_two_keys() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.scope(|parts| format!("{:?}", parts.headers.get("x-tenant")));
    let server = Server::start(handler.app(layer.build().unwrap())).await;
    for (tenant, run) in [("a", "run 1"), ("b", "run 2"), ("a", "run 1")] {
        let request = server.request("POST", "/").header("idempotency-key", "k");
        assert_eq!(server.send(request.header("x-tenant", tenant), b"").await.text(), run);
    }
}

#[tokio::test]
async fn the_body_is_bounded_on_the_byte() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default()).max_body(4);
    let server = Server::start(handler.app(layer.build().unwrap())).await;
    assert_eq!(server.post("a", "1234").await.status, StatusCode::CREATED);
    let refused = server.post("b", "12345").await;
    assert_eq!((refused.status.as_u16(), &*refused.text()), (413, "body_too_large"));
    assert_eq!(handler.runs(), 1);
}

#[tokio::test]
async fn a_key_may_come_from_the_body() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let id = |body: &[u8]| String::from_utf8(body.get(..2)?.to_vec()).ok();
    let layer = layer.key(KeySource::from_fn(move |_, body| id(body))).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    for (body, said) in
        [("a1", "run 1"), ("b2", "run 2"), ("a1", "run 1"), ("c", "idempotency_key_missing")]
    {
        let request = server.request("POST", "/");
        assert_eq!(server.send(request, body.as_bytes()).await.text(), said);
    }
}

/// DB-01: what one of the stores cannot keep is refused by the layer, and not by its store for
/// ever.
#[tokio::test]
async fn db_01_a_scope_that_cannot_be_kept_is_refused() {
    let handler = Handler::new();
    let layer = IdempotencyLayer::builder(MemoryIdempotencyStore::default());
    let layer = layer.scope(|_| "a\0b".to_owned()).build().unwrap();
    let server = Server::start(handler.app(layer)).await;
    let refused = server.post("k", "").await;
    assert_eq!((refused.status.as_u16(), &*refused.text()), (400, "idempotency_key_malformed"));
    assert_eq!(handler.runs(), 0);
}
