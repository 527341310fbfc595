//! Why a delivery is where it is: each reason as a caller comes to see it.
//!
//! Never: the words of a sentence, but for what a script or a person must find in them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Server, time, until};

/// What is said of the delivery of a message to endpoint `e`.
async fn explained(server: &Server, message: &str) -> Value {
    let path = format!("/app/a/msg/{message}/endpoint/e/explain");
    server.get(&path).await.expect(200)
}

async fn wait_reason(server: &Server, message: &str, reason: &str) -> Value {
    until(reason, || async move {
        let said = explained(server, message).await;
        (said["reason"] == reason).then_some(said)
    })
    .await
}

fn sentence(said: &Value) -> &str {
    said["sentence"].as_str().unwrap()
}

#[tokio::test]
async fn a_retry_tells_what_set_its_time() {
    let settings = [("PEYK_RETRY__STRATEGY", "fixed"), ("PEYK_RETRY__BASE", "1h")];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let said = wait_reason(&server, &id, "retry").await;
    assert_eq!((&said["state"], &said["attempts"]), (&json!("pending"), &json!(1)));
    assert_eq!(said["nextAttempt"], said["terms"]["dueAt"]);
    assert_eq!(said["terms"]["setBy"], "backoff");
    assert_eq!(
        (&said["terms"]["strategy"], &said["terms"]["base"]),
        (&json!("fixed"), &json!("1h"))
    );
    let delay = said["terms"]["delayMs"].as_u64().unwrap();
    assert!((3_599_000..=3_601_000).contains(&delay), "{said}");
    let words = sentence(&said);
    assert!(words.contains("500") && words.contains("fixed"), "{words}");

    receiver.script(|_, _| Reply::status(503).header("retry-after", "120"));
    let id = server.message("a", json!({})).await;
    let said = wait_reason(&server, &id, "retry").await;
    assert_eq!(
        (&said["terms"]["setBy"], &said["terms"]["retryAfterS"]),
        (&json!("retry_after"), &json!(120))
    );
    // The hold of the lane ends with that hint, and the first one is due later.
    let unsent = server.message("a", json!({})).await;
    let said = wait_reason(&server, &unsent, "hold_retry_after").await;
    assert_eq!(said["terms"]["setBy"], Value::Null);
    assert!(said["nextAttempt"].is_string(), "{said}");
}

#[tokio::test]
async fn what_ends_tells_how() {
    let server = Server::start().await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let said = wait_reason(&server, &id, "delivered").await;
    assert_eq!((&said["state"], &said["terms"]), (&json!("delivered"), &Value::Null));
    assert!(sentence(&said).contains("200"), "{said}");

    receiver.script(|_, _| Reply::status(404));
    let id = server.message("a", json!({})).await;
    let said = wait_reason(&server, &id, "rejected").await;
    assert_eq!(said["state"], "dead");
    assert!(sentence(&said).contains("404") && sentence(&said).contains("Replay"), "{said}");
    let letter = server.dead_letters("a").await[0]["id"].as_str().unwrap().to_owned();
    server.delete(&format!("/app/a/dead-letter/{letter}")).await.expect(204);
    let said = explained(&server, &id).await;
    assert!(sentence(&said).contains("resend"), "no replay is offered: {said}");

    let path = format!("/app/a/msg/{id}/endpoint/e/explain");
    server.delete("/app/a/endpoint/e").await.expect(204);
    server.get(&path).await.expect(404);
    server.get("/app/a/msg/msg_x/endpoint/e/explain").await.expect(404);
}

#[tokio::test]
async fn what_waits_tells_for_what() {
    let server = Server::with(&[("PEYK_WINDOW__START", "1"), ("PEYK_WINDOW__MAX", "1")]).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let receiver = Receiver::scripted(move |_, _| Reply::status(200).held(&held)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let first = server.message("a", json!({})).await;
    let second = server.message("a", json!({})).await;
    receiver.wait_for(1).await;
    assert_eq!(wait_reason(&server, &first, "in_flight").await["nextAttempt"], Value::Null);
    let said = wait_reason(&server, &second, "window_full").await;
    assert!(sentence(&said).contains("under way"), "{said}");

    server.patch("/app/a/endpoint/e", &json!({"disabled": true})).await.expect(200);
    wait_reason(&server, &second, "endpoint_disabled").await;
    server.patch("/app/a/endpoint/e", &json!({"disabled": false})).await.expect(200);
    gate.open();
    wait_reason(&server, &second, "delivered").await;

    server.force("a", "open").await;
    let id = server.message("a", json!({})).await;
    let said = wait_reason(&server, &id, "breaker_forced_open").await;
    assert_eq!(said["nextAttempt"], Value::Null);
    server.force("a", "auto").await;
    wait_reason(&server, &id, "delivered").await;

    let at = (jiff::Timestamp::now() + Duration::from_secs(3_600)).to_string();
    let body = json!({"eventType": "t", "payload": {}, "deliverAt": at});
    let id = server.post("/app/a/msg", &body).await.expect(202)["id"].as_str().unwrap().to_owned();
    let said = wait_reason(&server, &id, "scheduled").await;
    assert_eq!(time(&said["nextAttempt"]), time(&json!(at)));
}

#[tokio::test]
async fn an_open_breaker_tells_when_it_tries_again() {
    let settings = [
        ("PEYK_BREAKER__FAILURES", "2"),
        ("PEYK_RETRY__STRATEGY", "fixed"),
        ("PEYK_RETRY__BASE", "1s"),
    ];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 2).await;
    let open = server.wait_breaker("a", "open").await;
    let id = server.message("a", json!({})).await;
    let said = wait_reason(&server, &id, "breaker_open").await;
    assert_eq!(said["nextAttempt"], open["openUntil"]);
    assert!(sentence(&said).contains("failures in a row"), "{said}");
}

#[tokio::test]
async fn an_ordered_endpoint_tells_who_goes_first() {
    let settings = [("PEYK_RETRY__STRATEGY", "fixed"), ("PEYK_RETRY__BASE", "1h")];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({"ordered": true})).await;
    let first = server.message("a", json!({})).await;
    let head = wait_reason(&server, &first, "retry").await;
    let second = server.message("a", json!({})).await;
    let said = wait_reason(&server, &second, "hold_head").await;
    assert!(sentence(&said).contains(&first), "{said}");

    // Everywhere the time of the head's retry is told, and not that of its row, which keeps its
    // place.
    let retry = &head["nextAttempt"];
    assert!(time(retry) > time(&json!(jiff::Timestamp::now().to_string())), "{head}");
    assert_eq!((&head["terms"]["dueAt"], &said["nextAttempt"]), (retry, retry));
    assert_eq!((&said["terms"]["dueAt"], &said["terms"]["setBy"]), (retry, &Value::Null));
    let delay = head["terms"]["delayMs"].as_u64().unwrap();
    assert!((3_599_000..=3_601_000).contains(&delay), "{head}");
    let attempt = server.attempts("a", &first).await.remove(0);
    assert_eq!(&attempt["nextAttemptAt"], retry);
    let listed = server.get("/app/a/endpoint/e/msg").await.expect(200);
    for row in listed["data"].as_array().unwrap() {
        assert_eq!(&row["nextAttempt"], retry, "{row}");
    }

    // A dead head of a strict one: nobody knows.
    receiver.script(|_, _| Reply::status(404));
    server.app_with("b", &receiver.url("/"), json!({"ordered": "strict"})).await;
    server.message("b", json!({})).await;
    server.wait_dead("b", 1).await;
    let behind = server.message("b", json!({})).await;
    let path = format!("/app/b/msg/{behind}/endpoint/e/explain");
    let said = until("hold_gap", || async {
        let said = server.get(&path).await.expect(200);
        (said["reason"] == "hold_gap").then_some(said)
    })
    .await;
    assert_eq!((&said["terms"]["dueAt"], &said["nextAttempt"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_message_that_did_not_go_there_says_so() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example/", json!({"channels": ["c"]})).await;
    let id = server.message("a", json!({})).await;
    let path = |message: &str, to: &str| format!("/app/a/msg/{message}/endpoint/{to}/explain");
    let said = server.get(&path(&id, "e")).await.expect(404);
    assert_eq!(said["code"], "not_found");
    let detail = said["detail"].as_str().unwrap();
    assert!(detail.contains("not routed") && detail.contains("channels"), "{detail}");
    for unknown in [path(&id, "none"), path("msg_x", "e")] {
        assert_eq!(server.get(&unknown).await.expect(404)["detail"], "Entity not found");
    }
}
