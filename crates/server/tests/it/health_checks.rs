//! Health checks through the binary: a receiver that says it is well is sent a probe at once.
//!
//! Never: a question with what is not meant for whoever is asked.

use serde_json::json;

use crate::support::{Receiver, Reply, Server, until};

/// Nothing is probed by itself for an hour; a question follows ten seconds after a breaker opened.
const SLOW: [(&str, &str); 4] = [
    ("PEYK_BREAKER__OPEN_FOR", "100ms"),
    ("PEYK_BREAKER__OPEN_FOR_MAX", "200ms"),
    ("PEYK_SUSPEND_PROBE_EVERY", "1h"),
    ("PEYK_RETRY__ATTEMPTS_MAX", "1000"),
];

#[tokio::test]
async fn a_yes_ends_the_wait_of_a_suspended_endpoint() {
    let server = Server::with(&SLOW).await;
    let (receiver, doctor) = (Receiver::start().await, Receiver::start().await);
    doctor.script(|_, _| Reply::status(200));
    let fields =
        json!({"healthCheckUrl": doctor.url("/well?token=x"), "headers": {"x-key": "hunter2"}});
    server.app_with("a", &receiver.url("/"), fields).await;
    server.force("a", "suspended").await;
    let id = server.message("a", json!({})).await;
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    let asked = doctor.hits();
    assert_eq!(asked.len(), 1, "asked once, and believed");
    assert!(asked.iter().all(|hit| hit.path == "/well?token=x" && hit.body.is_empty()));
    // Custom headers are for the receiver alone, and nothing is signed.
    for name in ["x-key", "webhook-signature", "svix-signature", "idempotency-key"] {
        assert!(asked.iter().all(|hit| hit.headers.get(name).is_none()), "{name}");
    }
    assert!(asked[0].header("user-agent").starts_with("Peyk/"));
    assert_eq!(receiver.hits()[0].header("x-key"), "hunter2");
    until("the end of the suspension", || async {
        (server.breaker("a").await["state"] == "closed").then_some(())
    })
    .await;
    for (result, count) in [("well", 1.0), ("unwell", 0.0)] {
        let name = format!("peyk_health_checks_total{{result=\"{result}\"}}");
        assert_eq!(server.metric(&name).await, count, "{result}");
    }
    assert!(!server.log().contains("token=x"));
}
