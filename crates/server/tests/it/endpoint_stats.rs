//! Statistics of an endpoint: exact counts of attempts in a window.
//!
//! Never: a count that differs from the list of attempts.

use serde_json::json;

use crate::support::{Receiver, Reply, Server};

/// Ports `test_endpoint_stats`.
#[tokio::test]
async fn test_endpoint_stats() {
    let server = Server::with(&[("PEYK_BREAKER__ENABLED", "false")]).await;
    let receiver = Receiver::scripted(|_, hit| match hit.n() {
        0..3 => Reply::status(200),
        _ => Reply::status(500),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let path = "/app/a/endpoint/e/stats";
    let counts = |success: u64, fail: u64| json!({"success": success, "pending": 0, "sending": 0, "fail": fail, "canceled": 0});
    assert_eq!(server.get(path).await.expect(200), counts(0, 0));
    server.messages("a", 5).await;
    // Each of the two that fail is tried three times.
    server.wait_dead("a", 2).await;
    let listed = server.get("/app/a/attempt/endpoint/e").await.expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 9);
    for slash in ["", "/"] {
        assert_eq!(server.get(&format!("{path}{slash}")).await.expect(200), counts(3, 6));
    }
    let now = jiff::Timestamp::now();
    let hours = |hours: i64| now.checked_sub(jiff::SignedDuration::from_hours(hours)).unwrap();
    let ask = async |since: jiff::Timestamp, until: jiff::Timestamp| {
        server.get(&format!("{path}?since={since}&until={until}")).await
    };
    let later = jiff::Timestamp::now();
    assert_eq!(ask(hours(28 * 24), later).await.expect(200), counts(3, 6));
    assert_eq!(ask(hours(48), hours(24)).await.expect(200), counts(0, 0), "before all of them");
    for (since, until) in [(29 * 24, 0), (1, -1), (1, 2)] {
        let refused = ask(hours(since), hours(until)).await.expect(400);
        assert_eq!(refused["code"], "invalid_range", "{since} {until}");
    }
    server.get(&format!("{path}?since=yesterday")).await.expect(422);
    server.get("/app/a/endpoint/none/stats").await.expect(404);
}
