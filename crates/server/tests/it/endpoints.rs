//! Endpoints: made, changed, disabled, removed; and their headers.
//!
//! Never: a delivery by rules that were changed before it was posted.

use serde_json::json;

use crate::support::{Receiver, Server};

#[tokio::test]
async fn an_endpoint_lives() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "A", "uid": "a"})).await.expect(201);
    server.post("/event-type", &json!({"name": "t", "description": ""})).await.expect(201);
    let made = server
        .post(
            "/app/a/endpoint",
            &json!({"url": "https://H.Example", "uid": "u", "eventTypes": ["t"], "channels": ["c"],
                "metadata": {"k": "v"}, "timeout": "5s", "ordered": "strict",
                "retryPolicy": {"base": "500ms", "retryOn": "408,5xx"}}),
        )
        .await
        .expect(201);
    assert_eq!((&made["url"], &made["version"]), (&json!("https://h.example/"), &json!(1)));
    assert_eq!((&made["filterTypes"], &made["ordered"]), (&json!(["t"]), &json!("strict")));
    assert_eq!(made["retryPolicy"]["base"], "500ms");
    assert!(made["retryPolicy"]["cap"].is_null(), "null is the server's");
    let id = made["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/app/a/endpoint/{id}")).await.expect(200), made);
    let path = "/app/a/endpoint/u";
    let changed = server.patch(path, &json!({"description": "d"})).await.expect(200);
    assert_eq!((&changed["description"], &changed["channels"]), (&json!("d"), &json!(["c"])));
    let cleared = server.patch(path, &json!({"channels": null, "retryPolicy": null})).await;
    let cleared = cleared.expect(200);
    assert!(cleared["channels"].is_null() && cleared["retryPolicy"].is_null());
    server.delete("/event-type/t").await.expect(204);
    server.patch(path, &json!({"version": 2})).await.expect(200);
    server.patch(path, &json!({"eventTypes": ["t", "other"]})).await.expect(422);
    let replaced = server.put(path, &json!({"url": "http://h.example/x"})).await.expect(200);
    assert!(replaced["uid"].is_null() && replaced["eventTypes"].is_null());
    let upserted = server.put("/app/a/endpoint/none", &json!({"url": "http://h.example"})).await;
    assert_ne!(upserted.expect(201)["id"], made["id"]);
    server.delete(&format!("/app/a/endpoint/{id}")).await.expect(204);
    server.get(&format!("/app/a/endpoint/{id}")).await.expect(404);
    server.post("/app", &json!({"name": "B", "uid": "b"})).await.expect(201);
    server.get(&format!("/app/b/endpoint/{id}")).await.expect(404);
}

#[tokio::test]
async fn headers_are_set_patched_and_sent_as_spelled() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({"headers": {"X-One": "1"}})).await;
    let path = "/app/a/endpoint/e/headers";
    let all = json!({"headers": {"X-Two": "2", "X-Three": "3", "Authorization": "Bearer t",
        "X-Four": "4", "x-client-SECRET": "s"}});
    server.put(path, &all).await.expect(204);
    let read = server.get(path).await.expect(200);
    assert_eq!(read["headers"], json!({"X-Two": "2", "X-Three": "3", "X-Four": "4"}));
    assert_eq!(read["sensitive"], json!(["Authorization", "x-client-SECRET"]));
    let change = json!({"headers": {"x-two": "22", "X-Three": null}, "deleteHeaders": ["X-Four"]});
    server.patch(path, &change).await.expect(204);
    server
        .put("/app/a/endpoint/e", &json!({"url": receiver.url("/"), "uid": "e"}))
        .await
        .expect(200);
    server.message("a", json!({})).await;
    let hit = receiver.wait_for(1).await.remove(0);
    assert_eq!((hit.header("x-two"), hit.header("authorization")), ("22", "Bearer t"));
    assert_eq!((hit.header("x-one"), hit.header("x-three"), hit.header("x-four")), ("", "", ""));
}

#[tokio::test]
async fn a_secret_is_given_at_creation_and_replaced_by_rotation_alone() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let (path, url) = ("/app/a/endpoint/e", "https://h.example");
    let key = async || server.get(&format!("{path}/secret")).await.expect(200)["key"].clone();
    let own = key().await;
    let other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    for body in [json!({"url": url, "uid": "e", "secret": other}), json!({"secret": other})] {
        for method in ["PUT", "PATCH"] {
            let answer =
                server.send(method, &format!("/api/v1{path}"), &[], body.to_string()).await;
            let faults = answer.expect(422)["detail"].clone();
            let fault = faults.as_array().unwrap().iter().find(|fault| {
                fault["loc"] == json!(["body", "secret"])
                    && fault["msg"].as_str().unwrap().contains("/secret/rotate")
            });
            assert!(fault.is_some(), "{method} {faults}");
        }
    }
    assert_eq!(key().await, own);
    // The one that is in force, or none, says nothing new.
    for secret in [&own, &json!(null)] {
        let body = json!({"url": url, "uid": "e", "secret": secret});
        server.put(path, &body).await.expect(200);
        server.patch(path, &json!({"secret": secret})).await.expect(200);
    }
    assert_eq!(key().await, own);
    // A PUT that creates is a creation.
    let body = json!({"url": url, "uid": "new", "secret": other});
    server.put("/app/a/endpoint/new", &body).await.expect(201);
    let new = server.get("/app/a/endpoint/new/secret").await.expect(200);
    assert_eq!(new["key"], other);
}

#[tokio::test]
async fn what_a_pair_shows_of_itself_is_its_current_secret() {
    let server = Server::with(&[("PEYK_SIGNING__DEFAULT", "ed25519")]).await;
    server.app_with("a", "https://h.example", json!({})).await;
    let secret = server.get("/app/a/endpoint/e/secret").await.expect(200)["key"].clone();
    assert!(secret.as_str().unwrap().starts_with("whpk_"));
    server.patch("/app/a/endpoint/e", &json!({"secret": secret})).await.expect(200);
}

#[tokio::test]
async fn a_disabled_endpoint_waits_and_a_deleted_one_gets_nothing() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/one"), json!({"disabled": true})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let breaker = server.get("/app/a/endpoint/e/breaker").await.expect(200);
    assert_eq!(breaker["waiting"], 1);
    let refused = server.post(&format!("/app/a/msg/{id}/endpoint/e/resend"), &json!({})).await;
    assert_eq!(refused.expect(400)["code"], "endpoint_disabled");
    assert!(receiver.hits().is_empty());
    server.patch("/app/a/endpoint/e", &json!({"disabled": false})).await.expect(200);
    receiver.wait_for(1).await;
    server.wait_attempts("a", &id, 1).await;
    server.delete("/app/a/endpoint/e").await.expect(204);
    server.message("a", json!({"n": 2})).await;
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    let attempts = server.attempts("a", &id).await;
    assert_eq!(attempts.len(), 1, "history outlives the endpoint");
    assert_eq!(receiver.hits().len(), 1);
}

#[tokio::test]
async fn https_only_and_ed25519_can_be_set() {
    let settings = [("PEYK_ENDPOINT__HTTPS_ONLY", "true"), ("PEYK_SIGNING__DEFAULT", "ed25519")];
    let server = Server::with(&settings).await;
    server.post("/app", &json!({"name": "A", "uid": "a"})).await.expect(201);
    server.post("/app/a/endpoint", &json!({"url": "http://h.example"})).await.expect(422);
    let good = json!({"url": "https://h.example", "uid": "e"});
    server.post("/app/a/endpoint", &good).await.expect(201);
    let key = server.get("/app/a/endpoint/e/secret").await.expect(200);
    assert!(key["key"].as_str().unwrap().starts_with("whpk_"));
}
