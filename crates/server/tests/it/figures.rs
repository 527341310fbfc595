//! Figures of endpoints and applications: what was counted, step by step.
//!
//! Never: a figure that differs from what the receiver answered.

use serde_json::json;

use crate::support::{Receiver, Reply, Server};

#[tokio::test]
async fn figures_say_what_became_of_attempts_and_outlive_the_process() {
    let mut server = Server::with(&[("PEYK_BREAKER__ENABLED", "false")]).await;
    // The first three are taken, the fourth at its second attempt, the fifth never.
    let receiver = Receiver::scripted(|_, hit| match (hit.n(), hit.header("webhook-attempt")) {
        (0..3, _) | (3, "2") => Reply::status(200),
        _ => Reply::status(500),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let path = "/app/a/endpoint/e/figures";
    let none = server.get(path).await.expect(200);
    assert_eq!((&none["steps"], &none["total"]["successRate"]), (&json!([]), &json!(null)));
    server.messages("a", 5).await;
    server.wait_dead("a", 1).await;
    server.wait_idle("a").await;
    let check = async |server: &Server| {
        let found = server.get(&format!("{path}?step=minute")).await.expect(200);
        let total = &found["total"];
        assert_eq!(total["attempts"], 8, "{found}");
        assert_eq!(total["classes"]["success"], 4);
        assert_eq!(total["classes"]["transient"], 4);
        assert_eq!(total["successRate"], 0.5);
        assert_eq!(total["deadLetters"]["exhausted"], 1);
        assert_eq!(total["messages"], 0);
        assert_eq!(total["attemptsToSuccess"][0], json!({"upTo": 1, "count": 3}));
        assert_eq!(total["attemptsToSuccess"][1], json!({"upTo": 2, "count": 1}));
        assert_eq!(total["attemptsToSuccess"][7], json!({"upTo": null, "count": 0}));
        let (p50, p99) = (&total["durationMs"]["p50"], &total["durationMs"]["p99"]);
        assert!(p50.as_f64().unwrap() <= p99.as_f64().unwrap(), "{found}");
        let steps = found["steps"].as_array().unwrap();
        let sum = |name: &str| steps.iter().map(|step| step[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("attempts"), 8);
        assert!(steps[0]["at"].as_str().unwrap().ends_with(":00Z"), "{found}");
        let of_app = server.get("/app/a/figures").await.expect(200);
        assert_eq!(
            (&of_app["total"]["messages"], &of_app["total"]["attempts"]),
            (&json!(5), &json!(8))
        );
    };
    check(&server).await;
    server.kill_and_restart();
    check(&server).await;
}

#[tokio::test]
async fn what_is_asked_for_is_checked() {
    let server = Server::start().await;
    server.app_with("a", "http://127.0.0.1:9/", json!({})).await;
    for path in ["/app/a/endpoint/e/figures", "/app/a/figures"] {
        server.get(&format!("{path}?step=week")).await.expect(422);
        server.get(&format!("{path}?since=yesterday")).await.expect(422);
        let long =
            format!("{path}?step=minute&since=2026-01-01T00:00:00Z&until=2026-01-03T00:00:00Z");
        assert_eq!(server.get(&long).await.expect(400)["code"], "invalid_range");
        let future = format!("{path}?until=2100-01-01T00:00:00Z");
        assert_eq!(server.get(&future).await.expect(400)["code"], "invalid_range");
    }
    server.get("/app/a/endpoint/none/figures").await.expect(404);
    server.get("/app/none/figures").await.expect(404);
}
