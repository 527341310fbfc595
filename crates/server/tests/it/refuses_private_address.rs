//! An address that is not public is not dialled unless the operator named it, and URLs stay out of
//! the logs.
//!
//! Never: a request to it.

use serde_json::json;

use crate::support::{Receiver, Reply, Server};

#[tokio::test]
async fn ur_03_what_is_forbidden_is_dead_and_no_url_is_logged() {
    let settings = [("PEYK_ALLOWED_TARGETS", ""), ("PEYK_LOG__LEVEL", "trace")];
    let (server, receiver) = (Server::with(&settings).await, Receiver::start().await);
    let url = receiver.url("/p/T0KEN?key=S3CR3T");
    server.app_with("a", &url, json!({"headers": {"authorization": "Bearer H34DER"}})).await;
    let id = server.message("a", json!({})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!(dead["reason"], "forbidden_target");
    let attempt = server.wait_attempts("a", &id, 1).await.remove(0);
    assert_eq!((&attempt["status"], &attempt["responseStatusCode"]), (&json!(2), &json!(0)));
    assert_eq!(attempt["errorKind"], "forbidden");
    assert!(receiver.hits().is_empty());
    let metrics = server.send("GET", "/metrics", &[], "").await.text();
    for text in [server.log(), metrics, attempt["error"].to_string()] {
        for secret in ["T0KEN", "S3CR3T", "H34DER", "whsec_"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[tokio::test]
async fn ss_01_a_redirect_is_not_followed() {
    let (server, other) = (Server::start().await, Receiver::start().await);
    let location = other.url("/inner");
    let receiver = Receiver::scripted(move |_, _| Reply {
        headers: vec![("location", location.clone())],
        ..Reply::status(302)
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["lastStatusCode"]), (&json!("rejected"), &json!(302)));
    assert!(other.hits().is_empty());
}
