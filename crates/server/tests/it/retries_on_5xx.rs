//! What fails for now is sent again, with the same id and a fresh signature each time.
//!
//! Never: another id, another body.

use serde_json::json;
use webhook::{Secret, WebhookVerifier};

use crate::support::{Receiver, Reply, Server};

#[tokio::test]
async fn sg_04_each_send_verifies_and_carries_the_same_id() {
    let server = Server::start().await;
    let receiver =
        Receiver::scripted(|number, _| Reply::status([500, 503, 200][number.min(2)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let hits = receiver.wait_for(3).await;
    let attempts = server.wait_attempts("a", &id, 3).await;

    let secret = server.get("/app/a/endpoint/e/secret").await.expect(200);
    let secret = Secret::parse(secret["key"].as_str().unwrap()).unwrap();
    let verifier = WebhookVerifier::standard().key(&secret).build().unwrap();
    for (number, (hit, attempt)) in hits.iter().zip(&attempts).enumerate() {
        let lines =
            hit.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
        let at = hit.header("webhook-timestamp").parse().unwrap();
        assert_eq!(verifier.verify(lines, &hit.body, at).unwrap().id.unwrap(), id);
        assert_eq!(hit.header("webhook-attempt"), (number + 1).to_string());
        assert_eq!(hit.header("idempotency-key"), hits[0].header("idempotency-key"));
        assert_eq!(hit.body, hits[0].body);
        assert_eq!(attempt["number"], json!(number + 1));
    }
    let codes: Vec<_> =
        attempts.iter().map(|row| row["responseStatusCode"].as_u64().unwrap()).collect();
    assert_eq!(codes, [500, 503, 200]);
    assert_eq!(attempts[0]["delaySetBy"], "backoff");
    assert!(attempts[0]["nextAttemptAt"].is_string() && attempts[2]["nextAttemptAt"].is_null());

    for (query, count) in [("status=2&status_code_class=500", 2), ("status=0", 1), ("status=1", 0)]
    {
        let path = format!("/app/a/attempt/msg/{id}?{query}");
        let list = server.get(&path).await.expect(200);
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn an_endpoint_has_a_policy_of_its_own() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(418)).await;
    let policy = json!({"retryPolicy": {"retryOn": "418", "attemptsMax": 2, "base": "10ms"}});
    server.app_with("a", &receiver.url("/"), policy).await;
    let id = server.message("a", json!({})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(2)));
    assert_eq!(server.attempts("a", &id).await.len(), 2);
}
