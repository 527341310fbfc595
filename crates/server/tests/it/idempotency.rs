//! One idempotency key, one message, however often and however much at once it is posted.
//!
//! Never: a 5xx for a repeat.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::{Receiver, Server};

#[tokio::test]
async fn id_01_two_hundred_posts_at_once_make_one_message() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let body = json!({"eventType": "t", "payload": {"n": 1}}).to_string();
    let headers = [("idempotency-key", "one")];
    let posts = (0..200).map(|_| server.send("POST", "/api/v1/app/a/msg", &headers, body.clone()));
    let answers = join_all(posts).await;
    let first = answers[0].text();
    for answer in &answers {
        assert_eq!((answer.status, answer.text()), (202, first.clone()));
    }
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let id = list["data"][0]["id"].as_str().unwrap();
    server.wait_attempts("a", id, 1).await;
    assert_eq!(receiver.hits().len(), 1);
}

#[tokio::test]
async fn another_body_another_path_another_key() {
    let server = Server::start().await;
    for uid in ["a", "b"] {
        server.post("/app", &json!({"name": uid, "uid": uid})).await.expect(201);
    }
    let send = |app: &'static str, key: &'static str, n: u32| {
        let body = json!({"eventType": "t", "payload": {"n": n}}).to_string();
        let server = &server;
        async move {
            let path = format!("/api/v1/app/{app}/msg");
            server.send("POST", &path, &[("idempotency-key", key)], body).await
        }
    };
    let first = send("a", "k", 1).await.expect(202);
    let differs = send("a", "k", 2).await.expect(422);
    assert_eq!(differs["detail"][0]["loc"], json!(["header", "idempotency-key"]));
    assert_eq!(send("a", "k", 1).await.expect(202), first);
    assert_ne!(send("b", "k", 1).await.expect(202)["id"], first["id"]);
    assert_ne!(send("a", "l", 1).await.expect(202)["id"], first["id"]);
    let long = "x".repeat(256);
    assert_ne!(send("a", long.leak(), 1).await.expect(202)["id"], first["id"]);
}

#[tokio::test]
async fn a_key_is_visible_ascii_without_spaces() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let posts = [
        ("/api/v1/app/a/msg", json!({"eventType": "t", "payload": {}}).to_string()),
        ("/api/v1/app", json!({"name": "b"}).to_string()),
    ];
    let bad: [&[(&str, &str)]; 5] = [
        &[("idempotency-key", "")],
        &[("idempotency-key", "a b")],
        &[("idempotency-key", "a\tb")],
        &[("idempotency-key", &"x".repeat(257))],
        &[("idempotency-key", "a"), ("idempotency-key", "b")],
    ];
    for (path, body) in &posts {
        for headers in bad {
            let refused = server.send("POST", path, headers, body.clone()).await.expect(422);
            let fault = &refused["detail"][0];
            assert_eq!(fault["loc"], json!(["header", "idempotency-key"]), "{headers:?}");
        }
    }
    assert_eq!(server.get("/app").await.expect(200)["data"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/app/a/msg").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn a_key_belongs_to_the_application_and_not_to_its_name() {
    let server = Server::start().await;
    let body = json!({"eventType": "t", "payload": {}, "application": {"name": "a", "uid": "a"}});
    let post = async || {
        let headers = [("idempotency-key", "k")];
        server.send("POST", "/api/v1/app/a/msg", &headers, body.to_string()).await.expect(202)
    };
    // The first post makes the application; the repeat finds it there.
    let first = post().await;
    assert_eq!(post().await, first);
    assert_eq!(server.send("DELETE", "/api/v1/app/a", &[], String::new()).await.status, 204);
    let other = post().await;
    assert_ne!(other["id"], first["id"], "the name leads to another application now");
    let path = format!("/app/a/msg/{}", other["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200)["id"], other["id"]);
    assert_eq!(post().await, other);
}

#[tokio::test]
async fn id_03_what_was_refused_is_not_remembered() {
    let server = Server::start().await;
    let headers = [("idempotency-key", "k")];
    let message = json!({"eventType": "t", "payload": {}}).to_string();
    let path = "/api/v1/app/later/msg";
    assert_eq!(server.send("POST", path, &headers, "{}").await.status, 422);
    assert_eq!(server.send("POST", path, &headers, message.clone()).await.status, 404);
    server.post("/app", &json!({"name": "a", "uid": "later"})).await.expect(201);
    assert_eq!(server.send("POST", path, &headers, message).await.status, 202);
}

#[tokio::test]
async fn an_event_id_is_taken_once() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let message = json!({"eventType": "t", "eventId": "e", "payload": {}});
    server.post("/app/a/msg", &message).await.expect(202);
    assert_eq!(server.post("/app/a/msg", &message).await.expect(409)["code"], "conflict");
}

#[tokio::test]
async fn creates_of_the_directory_are_repeated_too() {
    let server = Server::start().await;
    let headers = [("idempotency-key", "k")];
    let body = json!({"name": "a"}).to_string();
    let make = || server.send("POST", "/api/v1/app", &headers, body.clone());
    let (first, second) = (make().await.expect(201), make().await.expect(201));
    assert_eq!(first, second);
    let other = server.send("POST", "/api/v1/app", &headers, r#"{"name":"b"}"#).await;
    assert_eq!(other.status, 422);
    let list = server.get("/app").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}
