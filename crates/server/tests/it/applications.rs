//! Applications: made, changed, found by id and uid, removed.
//!
//! Never: a change of a field that was not named.

use serde_json::json;

use crate::support::{Receiver, Server};

#[tokio::test]
async fn an_application_lives() {
    let server = Server::start().await;
    let made = server
        .post("/app", &json!({"name": "A", "uid": "u", "rateLimit": 5, "metadata": {"k": "v"}}))
        .await
        .expect(201);
    assert_eq!((&made["rateLimit"], &made["throttleRate"]), (&json!(5), &json!(5)));
    let id = made["id"].as_str().unwrap();
    for path in [format!("/app/{id}"), "/app/u".into(), "/app/u/".into()] {
        assert_eq!(server.get(&path).await.expect(200), made);
    }
    let changed = server.patch("/app/u", &json!({"name": "B"})).await.expect(200);
    assert_eq!((&changed["name"], &changed["metadata"]), (&json!("B"), &json!({"k": "v"})));
    let cleared = server.patch("/app/u", &json!({"uid": null, "throttleRate": null})).await;
    let cleared = cleared.expect(200);
    assert!(cleared.get("uid").is_none() && cleared["throttleRate"].is_null());
    server.get("/app/u").await.expect(404);
    let replaced = server.put(&format!("/app/{id}"), &json!({"name": "C"})).await.expect(200);
    assert_eq!((&replaced["id"], &replaced["metadata"]), (&made["id"], &json!({})));
    let upserted = server.put("/app/unknown", &json!({"name": "D", "uid": "d"})).await.expect(201);
    assert_eq!(upserted["uid"], "d");
    server.delete(&format!("/app/{id}")).await.expect(204);
    server.get(&format!("/app/{id}")).await.expect(404);
    server.delete(&format!("/app/{id}")).await.expect(404);
}

#[tokio::test]
async fn a_uid_is_taken_once_and_freed_by_deletion() {
    let server = Server::start().await;
    let body = json!({"name": "A", "uid": "u"});
    let made = server.post("/app", &body).await.expect(201);
    server.post("/app", &body).await.expect(409);
    let same = server.post("/app?get_if_exists=true", &json!({"name": "other", "uid": "u"})).await;
    assert_eq!(same.expect(200), made);
    server.post("/app", &json!({"name": "B", "uid": "v"})).await.expect(201);
    server.put("/app/v", &body).await.expect(409);
    server.patch("/app/v", &json!({"uid": "u"})).await.expect(409);
    server.delete("/app/u").await.expect(204);
    server.post("/app", &body).await.expect(201);
}

#[tokio::test]
async fn a_message_may_bring_its_application_along() {
    let server = Server::start().await;
    let message = |uid: serde_json::Value| json!({"eventType": "t", "payload": {}, "application": {"name": "New", "uid": uid}});
    let missing = server.post("/app/new/msg", &message(json!(null))).await.expect(422);
    assert_eq!(missing["detail"][0]["type"], "application_uid_missing");
    let mismatch = server.post("/app/new/msg", &message(json!("other"))).await.expect(422);
    assert_eq!(mismatch["detail"][0]["type"], "application_uid_mismatch");
    server.get("/app/new").await.expect(404);
    server.post("/app/new/msg", &message(json!("new"))).await.expect(202);
    assert_eq!(server.get("/app/new").await.expect(200)["name"], "New");
    server.post("/app/new/msg", &message(json!("other"))).await.expect(202);
    let list = server.get("/app").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_is_sent_for_a_deleted_application() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.delete("/app/a").await.expect(204);
    let message = json!({"eventType": "t", "payload": {}});
    let refused = server.post("/app/a/msg", &message).await.expect(404);
    assert_eq!(refused["detail"], "Application not found");
    assert!(receiver.hits().is_empty());
}
