//! What one receiver does is no other receiver's trouble.
//!
//! Never: a healthy delivery behind a hanging one.

use std::time::Duration;

use serde_json::json;

use crate::support::{Raw, Receiver, Server, Step, until};

/// Longer than a test waits, so that what hangs still hangs at its end.
const LONG: (&str, &str) = ("PEYK_ATTEMPT__DEADLINE", "30s");

#[tokio::test]
async fn qf_01_a_thousand_hanging_deliveries_hold_nobody_else_up() {
    let server = Server::with(&[LONG]).await;
    let hung = Raw::start(|_| vec![Step::Hang]).await;
    let healthy = Receiver::start().await;
    server.app_with("hung", &hung.url("/"), json!({})).await;
    server.app_with("healthy", &healthy.url("/"), json!({})).await;
    server.messages("hung", 1_000).await;
    hung.wait_for(4).await;
    let ids = server.messages("healthy", 50).await;
    healthy.wait_for(50).await;
    let hanging = server.get("/app/hung/attempt/endpoint/e").await.expect(200);
    assert_eq!(hanging["data"], json!([]), "none of them has ended yet");
    assert_eq!(server.breaker("hung").await["waiting"], 1_000);
    assert!(hung.connections() <= 64, "{} connections", hung.connections());
    server.wait_delivered("healthy", &ids).await;
    assert_eq!(healthy.hits().len(), 50);
}

#[tokio::test]
async fn qf_01_a_hundred_hanging_endpoints_hold_nobody_else_up() {
    let server = Server::with(&[LONG]).await;
    let hung = Raw::start(|_| vec![Step::Hang]).await;
    let healthy = Receiver::start().await;
    server.post("/app", &json!({"name": "a", "uid": "hung"})).await.expect(201);
    for n in 0..100 {
        let endpoint = json!({"url": hung.url(&format!("/{n}"))});
        server.post("/app/hung/endpoint", &endpoint).await.expect(201);
    }
    server.app_with("healthy", &healthy.url("/"), json!({})).await;
    server.messages("hung", 4).await;
    hung.wait_for(400).await;
    server.messages("healthy", 50).await;
    healthy.wait_for(50).await;
    assert_eq!(server.metric("peyk_attempts_total{class=\"transient\"}").await, 0.0);
}

#[tokio::test]
async fn qf_03_of_one_batch_only_the_hanging_one_hangs() {
    let server = Server::with(&[LONG]).await;
    let hung = Raw::start(|_| vec![Step::Hang]).await;
    let healthy = Receiver::start().await;
    server.app_with("a", &hung.url("/"), json!({})).await;
    for n in 0..9 {
        let endpoint = json!({"url": healthy.url(&format!("/{n}"))});
        server.post("/app/a/endpoint", &endpoint).await.expect(201);
    }
    // One message is one batch of ten deliveries, the hanging one first.
    let id = server.message("a", json!({})).await;
    hung.wait_for(1).await;
    healthy.wait_for(9).await;
    let rows = server.wait_attempts("a", &id, 9).await;
    assert!(rows.iter().all(|row| row["status"] == 0), "{rows:?}");
    assert_eq!(server.breaker("a").await["waiting"], 1);
}

#[tokio::test]
async fn a_rate_is_kept_by_sends_and_resends() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("slow", &receiver.url("/"), json!({"throttleRate": 3})).await;
    let ids = server.messages("slow", 9).await;
    server.wait_delivered("slow", &ids[..1]).await;
    let path = format!("/app/slow/msg/{}/endpoint/e/resend", ids[0]);
    for _ in 0..3 {
        until("a resend", || async {
            (server.post(&path, &json!({})).await.status == 202).then_some(())
        })
        .await;
    }
    let hits = receiver.wait_for(12).await;
    // Three at once, then three a second: three seconds, less what the first was held up by.
    let span = hits[11].at.since(hits[0].at);
    assert!(span >= Duration::from_millis(2_500), "{span:?}");
    server.wait_idle("slow").await;
    assert_eq!(receiver.hits().len(), 12);
}

#[tokio::test]
async fn a_rate_of_one_endpoint_slows_no_other() {
    let (server, receiver) = (Server::with(&[LONG]).await, Receiver::start().await);
    server.app_with("slow", &receiver.url("/slow"), json!({"throttleRate": 1})).await;
    server.app_with("fast", &receiver.url("/fast"), json!({})).await;
    server.messages("slow", 100).await;
    let ids = server.messages("fast", 50).await;
    server.wait_delivered("fast", &ids).await;
    let waiting = server.breaker("slow").await["waiting"].as_u64().unwrap();
    assert!(waiting > 30, "{waiting}");
}
