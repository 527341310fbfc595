//! Rotating a secret: the old one signs on for its grace, the new one at once.
//!
//! Never: a delivery that no live secret signed.

use serde_json::{Value, json};
use webhook::{Secret, WebhookVerifier};

use crate::support::receiver::Hit;
use crate::support::{Receiver, Reply, Server};

fn verifies(hit: &Hit, key: &Value) -> bool {
    let secret = Secret::parse(key.as_str().unwrap()).unwrap();
    let lines = hit.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let at = hit.header("webhook-timestamp").parse().unwrap();
    WebhookVerifier::standard().key(&secret).build().unwrap().verify(lines, &hit.body, at).is_ok()
}

#[tokio::test]
async fn sg_07_old_and_new_secrets_sign_side_by_side() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    server.app_with("a", &receiver.url("/"), json!({"secret": own})).await;
    let first = server.get("/app/a/endpoint/e/secret").await.expect(200);
    assert_eq!(first["key"], own);
    let rotate = "/app/a/endpoint/e/secret/rotate";
    let second = server.post(rotate, &json!({})).await.expect(200);
    assert_ne!(second["key"], first["key"]);
    assert_eq!(server.get("/app/a/endpoint/e/secret").await.expect(200), second);
    server.message("a", json!({})).await;
    let hit = receiver.wait_for(1).await.remove(0);
    assert!(verifies(&hit, &first["key"]) && verifies(&hit, &second["key"]));
    let signatures: Vec<_> = hit.header("webhook-signature").split(' ').collect();
    assert_eq!(signatures.len(), 2);

    let third = server.post(rotate, &json!({"gracePeriodSeconds": 0})).await.expect(200);
    server.message("a", json!({})).await;
    let hit = receiver.wait_for(2).await.remove(1);
    assert!(verifies(&hit, &first["key"]) && verifies(&hit, &third["key"]));
    assert!(!verifies(&hit, &second["key"]), "no grace ends it at once");
}

#[tokio::test]
async fn sg_07_a_retry_is_signed_for_those_who_know_only_one_of_the_secrets() {
    let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let patient = json!({"retryPolicy": {"base": "20ms"}, "breaker": {"openFor": "20ms",
        "openForMax": "20ms"}});
    server.app_with("a", &receiver.url("/"), patient).await;
    let first = server.get("/app/a/endpoint/e/secret").await.expect(200);
    server.message("a", json!({"n": 1})).await;
    receiver.wait_for(1).await;
    let rotate = "/app/a/endpoint/e/secret/rotate";
    let second = server.post(rotate, &json!({"gracePeriodSeconds": 3_600})).await.expect(200);
    let third = server.post(rotate, &json!({"gracePeriodSeconds": 3_600})).await.expect(200);
    let seen = receiver.hits().len();
    // One may have been signed before the second rotation.
    let hit = receiver.wait_for(seen + 2).await.remove(seen + 1);
    for key in [&first, &second, &third] {
        assert!(verifies(&hit, &key["key"]));
    }
    let newest = only_first(&hit);
    assert!(verifies(&newest, &third["key"]) && !verifies(&newest, &first["key"]), "newest first");
}

#[tokio::test]
async fn sg_07_a_grace_that_ends_between_two_sends_ends() {
    let server = Server::with(&[("PEYK_RETRY__BASE", "1500ms")]).await;
    let receiver = Receiver::scripted(|number, _| Reply::status([500, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let first = server.get("/app/a/endpoint/e/secret").await.expect(200);
    let rotate = "/app/a/endpoint/e/secret/rotate";
    let second = server.post(rotate, &json!({"gracePeriodSeconds": 1})).await.expect(200);
    server.message("a", json!({"n": 1})).await;
    let hits = receiver.wait_for(2).await;
    assert!(verifies(&hits[0], &second["key"]));
    assert!(verifies(&hits[1], &second["key"]) && !verifies(&hits[1], &first["key"]));
    assert_eq!(hits[1].header("webhook-signature").split(' ').count(), 1);
}

/// A hit with only the first of its signatures.
fn only_first(hit: &Hit) -> Hit {
    let mut hit = hit.clone();
    for name in ["webhook-signature", "svix-signature"] {
        let first = hit.header(name).split(' ').next().unwrap().parse().unwrap();
        hit.headers.insert(name, first);
    }
    hit
}

#[tokio::test]
async fn ten_rotations_pass() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let rotate = "/app/a/endpoint/e/secret/rotate";
    for _ in 0..10 {
        server.post(rotate, &json!({})).await.expect(200);
    }
    assert_eq!(server.post(rotate, &json!({})).await.expect(400)["code"], "limit_reached");
    server.post(rotate, &json!({"gracePeriodSeconds": 604_801})).await.expect(422);
    server.post(rotate, &json!({"key": "whsec_x"})).await.expect(422);
    server.send("POST", &format!("/api/v1{rotate}"), &[], "").await.expect(422);
}
