//! Posts other than messages, sent again under one idempotency key: one effect and one answer, for
//! as long as there is what the answer tells of.
//!
//! Never: an answer that names what is gone.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::server::Answer;
use crate::support::{Receiver, Reply, Server};

const KEY: [(&str, &str); 1] = [("idempotency-key", "k")];

/// Posts under the key.
async fn post(server: &Server, path: &str, body: &Value) -> Answer {
    server.send("POST", &format!("/api/v1{path}"), &KEY, body.to_string()).await
}

/// A server with the application `a`, its endpoint `e` and the event type `t`.
async fn furnished() -> Server {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    server.post("/event-type", &json!({"name": "t", "description": ""})).await.expect(201);
    server
}

#[tokio::test]
async fn what_was_deleted_is_made_anew() {
    let server = Server::start().await;
    let (app, endpoint) = (json!({"name": "A", "uid": "a"}), json!({"url": "https://h.example"}));
    let event_type = json!({"name": "t", "description": ""});
    let first = post(&server, "/app", &app).await.expect(201);
    assert_eq!(post(&server, "/app", &app).await.expect(201), first);
    let old = post(&server, "/app/a/endpoint", &endpoint).await.expect(201);
    assert_eq!(post(&server, "/app/a/endpoint", &endpoint).await.expect(201), old);

    // The endpoint alone.
    server.delete(&format!("/app/a/endpoint/{}", old["id"].as_str().unwrap())).await.expect(204);
    let new = post(&server, "/app/a/endpoint", &endpoint).await.expect(201);
    assert_ne!(new["id"], old["id"]);
    assert_eq!(post(&server, "/app/a/endpoint", &endpoint).await.expect(201), new);

    // The application, and with it the endpoint, which its name leads to no longer.
    server.delete("/app/a").await.expect(204);
    post(&server, "/app/a/endpoint", &endpoint).await.expect(404);
    let second = post(&server, "/app", &app).await.expect(201);
    assert_ne!(second["id"], first["id"]);
    let newest = post(&server, "/app/a/endpoint", &endpoint).await.expect(201);
    assert_ne!(newest["id"], new["id"]);
    let list = server.get("/app/a/endpoint").await.expect(200);
    assert_eq!(list["data"], json!([newest]));

    // An event type, archived and then removed.
    post(&server, "/event-type", &event_type).await.expect(201);
    for path in ["/event-type/t", "/event-type/t?expunge=true"] {
        server.delete(path).await.expect(204);
        post(&server, "/event-type", &event_type).await.expect(201);
        assert_eq!(server.get("/event-type/t").await.expect(200)["archived"], false);
    }
    // Somebody else's by that name is not what the key made.
    server.delete("/event-type/t?expunge=true").await.expect(204);
    server.post("/event-type", &event_type).await.expect(201);
    post(&server, "/event-type", &event_type).await.expect(409);
}

#[tokio::test]
async fn a_secret_is_rotated_once_and_for_its_endpoint_only() {
    let server = furnished().await;
    let path = "/app/a/endpoint/e/secret/rotate";
    let first = post(&server, path, &json!({})).await.expect(200);
    assert_eq!(post(&server, path, &json!({})).await.expect(200), first);
    assert_eq!(server.get("/app/a/endpoint/e/secret").await.expect(200), first);
    // The same names lead to another endpoint now.
    server.delete("/app/a/endpoint/e").await.expect(204);
    post(&server, path, &json!({})).await.expect(404);
    let endpoint = json!({"url": "https://h.example", "uid": "e"});
    server.post("/app/a/endpoint", &endpoint).await.expect(201);
    let second = post(&server, path, &json!({})).await.expect(200);
    assert_ne!(second, first);
    assert_eq!(server.get("/app/a/endpoint/e/secret").await.expect(200), second);
}

#[tokio::test]
async fn a_key_belongs_to_the_thing_and_not_to_its_spelling() {
    let server = furnished().await;
    let app = server.get("/app/a").await.expect(200);
    let by_id = format!("/app/{}", app["id"].as_str().unwrap());
    let endpoint = json!({"url": "https://h.example"});
    let first = post(&server, "/app/a/endpoint", &endpoint).await.expect(201);
    let again = post(&server, &format!("{by_id}/endpoint"), &endpoint).await.expect(201);
    assert_eq!(again, first);
    let message = json!({"eventType": "t", "payload": {}});
    let first = post(&server, "/app/a/msg", &message).await.expect(202);
    assert_eq!(post(&server, &format!("{by_id}/msg"), &message).await.expect(202), first);
    // Another method of naming it, another application, another caller: three other keys.
    server.post("/app", &json!({"name": "B", "uid": "b"})).await.expect(201);
    let other = post(&server, "/app/b/endpoint", &endpoint).await.expect(201);
    assert_ne!(other["id"], again["id"]);
    let token = server.made_token(&["--app", app["id"].as_str().unwrap()]);
    let bearer = format!("Bearer {token}");
    let headers = [KEY[0], ("authorization", &*bearer)];
    let theirs =
        server.send("POST", "/api/v1/app/a/endpoint", &headers, endpoint.to_string()).await;
    assert_ne!(theirs.expect(201)["id"], again["id"]);
}

#[tokio::test]
async fn every_post_has_one_effect_however_many_ask_at_once() {
    let server = furnished().await;
    let posts = [
        ("/app", json!({"name": "B"}), 201),
        ("/app/a/endpoint", json!({"url": "https://h.example"}), 201),
        ("/event-type", json!({"name": "u", "description": ""}), 201),
        ("/app/a/endpoint/e/secret/rotate", json!({}), 200),
        ("/app/a/endpoint/e/breaker", json!({"state": "open"}), 200),
    ];
    for (path, body, status) in &posts {
        let answers = join_all((0..50).map(|_| post(&server, path, body))).await;
        let first = answers[0].text();
        for answer in &answers {
            assert_eq!((answer.status, answer.text()), (*status, first.clone()), "{path}");
        }
        let mut other = body.clone();
        other["unknown"] = json!(1);
        let refused = post(&server, path, &other).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["header", "idempotency-key"]), "{path}");
    }
    assert_eq!(server.get("/app").await.expect(200)["data"].as_array().unwrap().len(), 2);
    let endpoints = server.get("/app/a/endpoint").await.expect(200);
    assert_eq!(endpoints["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_replay_and_a_resend_are_made_once_and_shown_as_asked_for() {
    let server = Server::with(&[("PEYK_RETRY__BASE", "1ms")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(404)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    // The replay is answered 503, and its retry 200.
    receiver.script(|number, _| Reply::status(if number == 1 { 503 } else { 200 }));
    let replay = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    let first = post(&server, &replay, &json!({})).await.expect(202);
    server.wait_attempts("a", &id, 3).await;
    assert_eq!(post(&server, &replay, &json!({})).await.expect(202), first);
    let resend = format!("/app/a/msg/{id}/endpoint/e/resend");
    for _ in 0..2 {
        post(&server, &resend, &json!({})).await.expect(202);
    }
    server.wait_attempts("a", &id, 4).await;
    server.wait_idle("a").await;
    let rows = server.attempts("a", &id).await;
    let made: Vec<_> = rows
        .iter()
        .map(|row| (row["number"].as_u64(), row["triggerType"].as_u64(), row["status"].as_u64()))
        .collect();
    let expected = [(1, 0, 2), (2, 1, 2), (3, 0, 0), (4, 1, 0)];
    assert_eq!(made, expected.map(|(n, by, status)| (Some(n), Some(by), Some(status))));
    assert_eq!(receiver.hits().len(), 4);
}

#[tokio::test]
async fn a_replay_with_another_payload_is_shown_as_asked_for() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|number, _| Reply::status([404, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    let body = json!({"payload": {"n": 2}});
    let first = post(&server, &path, &body).await.expect(202);
    assert_eq!(post(&server, &path, &body).await.expect(202), first);
    let row = server.wait_attempts("a", first["msgId"].as_str().unwrap(), 1).await.remove(0);
    assert_eq!((&row["triggerType"], &row["status"]), (&json!(1), &json!(0)));
    assert_eq!(receiver.hits().len(), 2);
}

/// Posts under a key of its own; the status and the body, byte for byte.
async fn raw(server: &Server, (key, path, body): (&str, &str, &Value)) -> (u16, String) {
    let headers = [("idempotency-key", key)];
    let path = format!("/api/v1{path}");
    let answer = server.send("POST", &path, &headers, body.to_string()).await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn a_kill_forgets_no_answer_and_repeats_no_effect() {
    let mut server = furnished().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(404)).await;
    server.app_with("r", &receiver.url("/"), json!({})).await;
    let id = server.message("r", json!({})).await;
    let dead = server.wait_dead("r", 1).await.remove(0);
    receiver.script(|_, _| Reply::status(200));
    let replay = format!("/app/r/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    let resend = format!("/app/r/msg/{id}/endpoint/e/resend");
    let big =
        json!({"name": "big", "description": "", "schemas": {"1": {"title": "x".repeat(40_000)}}});
    let spec =
        json!({"spec": {"openapi": "3.1.0", "webhooks": {"w": {"post": {"description": "d"}}}}});
    let posts = [
        ("/app", json!({"name": "B"}), 201),
        ("/app/a/endpoint", json!({"url": "https://h.example"}), 201),
        ("/operational-webhook/endpoint", json!({"url": "https://h.example"}), 201),
        ("/event-type", json!({"name": "u", "description": ""}), 201),
        ("/event-type", big, 201),
        ("/event-type/import/openapi", spec, 200),
        ("/app/a/endpoint/e/secret/rotate", json!({}), 200),
        ("/app/a/endpoint/e/breaker", json!({"state": "open"}), 200),
        (&replay, json!({}), 202),
        (&resend, json!({}), 202),
        ("/app/a/msg/expunge-all-contents", json!({}), 202),
        ("/auth/app/a/expire-all", json!({}), 204),
        ("/auth/app-portal-access/a", json!({"featureFlags": ["beta"]}), 200),
    ];
    let mut first = Vec::new();
    for (number, (path, body, status)) in posts.iter().enumerate() {
        let answer = raw(&server, (&format!("k{number}"), path, body)).await;
        assert_eq!(answer.0, *status, "{path}: {}", answer.1);
        first.push(answer);
        if *path == replay {
            server.wait_attempts("r", &id, 2).await;
        }
    }
    server.wait_attempts("r", &id, 3).await;
    server.kill_and_restart();
    for ((number, (path, body, _)), first) in posts.iter().enumerate().zip(&first) {
        let key = format!("k{number}");
        assert_eq!(raw(&server, (&key, path, body)).await, *first, "{path}");
        let mut other = body.clone();
        other["unknown"] = json!(1);
        assert_eq!(raw(&server, (&key, path, &other)).await.0, 422, "{path}");
    }
    let count = async |path: &str| {
        let list = server.get(path).await.expect(200);
        list["data"].as_array().unwrap().len()
    };
    assert_eq!(count("/app").await, 3, "a, r and B");
    assert_eq!(count("/app/a/endpoint").await, 2);
    assert_eq!(count("/operational-webhook/endpoint").await, 1);
    assert_eq!(count("/background-task").await, 1);
    server.wait_idle("r").await;
    assert_eq!(receiver.hits().len(), 3, "the message, its replay, its resend");
    let secret = server.get("/app/a/endpoint/e/secret").await.expect(200);
    assert_eq!(secret.to_string(), first[6].1);
}

#[tokio::test]
async fn a_kill_keeps_to_what_is_still_there() {
    let mut server = furnished().await;
    let endpoint = json!({"url": "https://h.example"});
    let first = post(&server, "/app/a/endpoint", &endpoint).await.expect(201);
    server.delete(&format!("/app/a/endpoint/{}", first["id"].as_str().unwrap())).await.expect(204);
    server.kill_and_restart();
    let second = post(&server, "/app/a/endpoint", &endpoint).await.expect(201);
    assert_ne!(second["id"], first["id"]);
    server.kill_and_restart();
    assert_eq!(post(&server, "/app/a/endpoint", &endpoint).await.expect(201), second);
}

#[tokio::test]
async fn a_token_is_given_again_and_stored_nowhere() {
    let mut server = furnished().await;
    let made = async |server: &Server| {
        post(server, "/auth/app-portal-access/a", &json!({"readOnly": true})).await.expect(200)
    };
    let first = made(&server).await;
    assert_eq!(made(&server).await, first);
    let signature = first["token"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
    server.kill_and_restart();
    assert_eq!(made(&server).await, first);
    server.stop();
    for file in std::fs::read_dir(server.dir().join("data")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let holds = bytes.windows(signature.len()).any(|part| part == signature.as_bytes());
            assert!(!holds, "{path:?} holds the token");
        }
    }
}

#[tokio::test]
async fn a_count_that_was_forgotten_is_begun_anew() {
    let mut server = furnished().await;
    let span = json!({"since": "2024-01-01T00:00:00Z", "until": "2024-01-02T00:00:00Z"});
    let first = post(&server, "/stats/usage/app", &span).await.expect(202);
    assert_eq!(post(&server, "/stats/usage/app", &span).await.expect(202), first);
    server.kill_and_restart();
    let second = post(&server, "/stats/usage/app", &span).await.expect(202);
    assert_ne!(second["id"], first["id"]);
    assert_eq!(post(&server, "/stats/usage/app", &span).await.expect(202), second);
}
