//! Payloads held against the schema of their event type: refused, only counted, or let be.
//!
//! Never: a payload in a log, or a schema that is used after it was replaced.

use serde_json::{Value, json};

use crate::support::server::Answer;
use crate::support::{Receiver, Reply, Server};

async fn with(mode: &str) -> Server {
    let server = Server::with(&[("PEYK_SCHEMA__VALIDATION", mode)]).await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    server
}

/// Of an order: its number, from `least` on.
fn order(least: u64) -> Value {
    json!({"type": "object", "required": ["n"], "properties": {"n": {"minimum": least}}})
}

async fn post(server: &Server, payload: Value) -> Answer {
    server.post("/app/a/msg", &json!({"eventType": "order", "payload": payload})).await
}

#[tokio::test]
async fn a_payload_that_breaks_its_schema_is_refused() {
    let server = with("enforce").await;
    post(&server, json!({"n": 0})).await.expect(202);
    let body =
        json!({"name": "order", "description": "", "schemas": {"1": order(5), "2": order(1)}});
    server.post("/event-type", &body).await.expect(201);
    let refused = post(&server, json!({"n": 0, "secret": "s3cret"})).await.expect(422);
    let fault = &refused["detail"][0];
    assert_eq!(fault["loc"], json!(["body", "payload", "n"]), "{refused}");
    let said = fault["msg"].as_str().unwrap();
    assert!(
        said.starts_with("breaks the rule `minimum` of its schema (version 2) at `/n`"),
        "{said}"
    );
    assert!(!refused.to_string().contains("s3cret"));
    assert_eq!(server.metric("peyk_schema_findings_total{result=\"refused\"}").await, 1.0);
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "nothing of it is stored");
    post(&server, json!({"n": 1})).await.expect(202);
    // A large one is looked at beside the others.
    let fill = "x".repeat(100_000);
    post(&server, json!({"n": 1, "fill": fill})).await.expect(202);
    post(&server, json!({"n": 0, "fill": fill})).await.expect(422);
    // Another body is sent in place of it.
    let raw = json!({"eventType": "order", "payload": {},
        "transformationsParams": {"rawPayload": "<n/>"}});
    server.post("/app/a/msg", &raw).await.expect(202);
}

#[tokio::test]
async fn a_written_schema_is_in_force_at_once() {
    let server = with("enforce").await;
    let path = "/event-type/order";
    let kept = |least: u64| json!({"description": "", "schemas": {"1": order(least)}});
    server.put(path, &kept(1)).await.expect(201);
    post(&server, json!({"n": 1})).await.expect(202);
    server.put(path, &kept(2)).await.expect(200);
    post(&server, json!({"n": 1})).await.expect(422);
    server.patch(path, &json!({"schemas": {"9": order(3), "10": order(0)}})).await.expect(200);
    post(&server, json!({"n": 0})).await.expect(202);
    server.delete(path).await.expect(204);
    post(&server, json!({})).await.expect(422);
    server.delete(&format!("{path}?expunge=true")).await.expect(204);
    post(&server, json!({})).await.expect(202);
    let schema = json!({"content": {"application/json": {"schema": order(7)}}});
    let spec = json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
        "webhooks": {"order": {"post": {"requestBody": schema}}}});
    server.post("/event-type/import/openapi", &json!({"spec": spec})).await.expect(200);
    post(&server, json!({"n": 6})).await.expect(422);
    server.post("/event-type", &json!({"name": "order", "description": ""})).await.expect(409);
    server.patch(path, &json!({"schemas": null})).await.expect(200);
    post(&server, json!({})).await.expect(202);
}

#[tokio::test]
async fn a_repeat_has_its_first_answer_though_the_schema_was_tightened() {
    let server = with("enforce").await;
    let path = "/event-type/order";
    let kept = |least: u64| json!({"description": "", "schemas": {"1": order(least)}});
    server.put(path, &kept(1)).await.expect(201);
    let body = |n: u64| json!({"eventType": "order", "payload": {"n": n}}).to_string();
    let send = async |key: &str, n: u64| {
        let headers = [("idempotency-key", key)];
        server.send("POST", "/api/v1/app/a/msg", &headers, body(n)).await
    };
    let first = send("k", 1).await.expect(202);
    server.put(path, &kept(2)).await.expect(200);
    assert_eq!(send("k", 1).await.expect(202), first);
    let other = send("k", 0).await.expect(422);
    assert_eq!(other["detail"][0]["loc"], json!(["header", "idempotency-key"]));
    let new = send("l", 1).await.expect(422);
    assert_eq!(new["detail"][0]["loc"], json!(["body", "payload", "n"]));
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_refused() {
    for mode in ["off", "warn", "enforce"] {
        let server = with(mode).await;
        for (schema, said) in [
            (json!({"pattern": "("}), "cannot be compiled: at `/pattern`"),
            (json!({"$ref": "https://example.com/x"}), "must refer to its parts by `#/…`"),
        ] {
            let body = json!({"name": "t", "description": "", "schemas": {"1": {}, "2": schema}});
            let refused = server.post("/event-type", &body).await.expect(422);
            let fault = &refused["detail"][0];
            assert_eq!(fault["loc"], json!(["body", "schemas", "2"]), "{refused}");
            assert!(fault["msg"].as_str().unwrap().starts_with(said), "{refused}");
            let body = json!({"description": "", "schemas": {"1": schema}});
            server.put("/event-type/t", &body).await.expect(422);
            let content = json!({"content": {"application/json": {"schema": schema}}});
            let spec = json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
                "webhooks": {"t": {"post": {"requestBody": content}}}});
            server.post("/event-type/import/openapi", &json!({"spec": spec})).await.expect(422);
        }
    }
}

#[tokio::test]
async fn a_warning_says_what_rule_is_broken_and_nothing_of_the_payload() {
    let server = with("warn").await;
    let body = json!({"name": "order", "description": "", "schemas": {"1": order(5)}});
    server.post("/event-type", &body).await.expect(201);
    post(&server, json!({"n": 1, "s3cret": "s3cret"})).await.expect(202);
    post(&server, json!({"n": 5})).await.expect(202);
    assert_eq!(server.metric("peyk_schema_findings_total{result=\"warned\"}").await, 1.0);
    let log = server.log();
    assert!(log.contains("breaks the schema") && log.contains("/properties/n/minimum"), "{log}");
    assert!(log.contains("at=\"/n\"") || log.contains("\"at\":\"/n\""), "the place: {log}");
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn a_replay_with_another_payload_is_held_to_the_schema_too() {
    let settings = [("PEYK_SCHEMA__VALIDATION", "enforce"), ("PEYK_RETRY__ATTEMPTS_MAX", "1")];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(404)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let body = json!({"name": "order", "description": "", "schemas": {"1": order(1)}});
    server.post("/event-type", &body).await.expect(201);
    post(&server, json!({"n": 1})).await.expect(202);
    let letter = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/app/a/dead-letter/{}/replay", letter["id"].as_str().unwrap());
    server.post(&path, &json!({"payload": {"n": 0}})).await.expect(422);
    let deep = format!(r#"{{"payload":{{"n":2,"a":{}{}}}}}"#, "[".repeat(1_100), "]".repeat(1_100));
    let refused = server.send("POST", &format!("/api/v1{path}"), &[], deep).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "payload"]), "{refused}");
    server.post(&path, &json!({"payload": {"n": 2}})).await.expect(202);
}
