//! Attempts: as many as were set, in whatever way, each a request on the wire and a row, and the
//! delay grows by the number of the attempt whichever process makes it.
//!
//! Never: one more or one less than the setting says.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::receiver::Hit;
use crate::support::server::{command, refused_setting};
use crate::support::{Receiver, Reply, Server, time};

/// The waits between requests.
fn gaps(hits: &[Hit]) -> Vec<Duration> {
    hits.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect()
}

#[tokio::test]
async fn bo_04_gaps_go_on_growing_over_kills() {
    let mut server = Server::with(&[
        ("PEYK_RETRY__STRATEGY", "exponential"),
        ("PEYK_RETRY__BASE", "100ms"),
        ("PEYK_RETRY__ATTEMPTS_MAX", "5"),
    ])
    .await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    for count in 1..=4 {
        server.wait_attempts("a", &id, count).await;
        server.kill_and_restart();
    }
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(5)));
    let hits = receiver.hits();
    let numbers: Vec<_> = hits.iter().map(|hit| hit.header("webhook-attempt")).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5"]);
    for (gap, least) in gaps(&hits).into_iter().zip([100, 200, 400, 800]) {
        assert!(gap >= Duration::from_millis(least), "{gap:?} instead of {least} ms");
    }
}

/// Posts a message that always fails and counts: requests, rows, and what its dead letter says.
async fn exhaust(server: &Server, app: &str, receiver: &Receiver, most: usize) {
    let before = receiver.hits().len();
    let id = server.message(app, json!({"n": most})).await;
    let dead = server.wait_dead(app, 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(most)));
    assert_eq!(server.attempts(app, &id).await.len(), most);
    assert_eq!(receiver.hits().len() - before, most);
}

async fn failing() -> Receiver {
    Receiver::scripted(|_, _| Reply::status(500)).await
}

#[tokio::test]
async fn bo_05_attempts_max_in_the_environment_is_what_the_receiver_sees() {
    for most in 1..=3 {
        let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", &most.to_string())]).await;
        let receiver = failing().await;
        server.app_with("a", &receiver.url("/"), json!({})).await;
        exhaust(&server, "a", &receiver, most).await;
    }
}

#[tokio::test]
async fn bo_05_attempts_max_in_the_file_is_what_the_receiver_sees() {
    let mut server = Server::start().await;
    let receiver = failing().await;
    for most in 1..=3 {
        server.stop();
        server.unset("PEYK_RETRY__ATTEMPTS_MAX");
        let file = format!("[retry]\nattempts_max = {most}\n");
        std::fs::write(server.dir().join("peyk.toml"), file).unwrap();
        server.start_again();
        let app = format!("a{most}");
        server.app_with(&app, &receiver.url("/"), json!({})).await;
        exhaust(&server, &app, &receiver, most).await;
    }
}

#[tokio::test]
async fn bo_05_attempts_max_of_the_endpoint_is_what_the_receiver_sees() {
    let (server, receiver) = (Server::start().await, failing().await);
    for most in 1..=3 {
        let app = format!("a{most}");
        let policy = json!({"retryPolicy": {"attemptsMax": most}});
        server.app_with(&app, &receiver.url("/"), policy).await;
        exhaust(&server, &app, &receiver, most).await;
    }
    let patched = json!({"retryPolicy": {"attemptsMax": 2}});
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.patch("/app/a/endpoint/e", &patched).await.expect(200);
    exhaust(&server, "a", &receiver, 2).await;
}

#[tokio::test]
async fn bo_05_none_at_all_is_refused_everywhere() {
    let name = "PEYK_RETRY__ATTEMPTS_MAX";
    assert!(refused_setting(name, "0").contains(name));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("peyk.toml"), "[retry]\nattempts_max = 0\n").unwrap();
    let output = command(dir.path(), &["serve"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("retry.attempts_max"));

    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let none = json!({"url": "https://h.example", "retryPolicy": {"attemptsMax": 0}});
    server.post("/app/a/endpoint", &none).await.expect(422);
}

#[tokio::test]
async fn bo_07_each_request_is_one_row_and_delays_do_not_feed_on_each_other() {
    let server = Server::with(&[
        ("PEYK_RETRY__STRATEGY", "exponential"),
        ("PEYK_RETRY__BASE", "100ms"),
        ("PEYK_RETRY__ATTEMPTS_MAX", "5"),
    ])
    .await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    server.wait_dead("a", 1).await;
    let (hits, rows) = (receiver.hits(), server.attempts("a", &id).await);
    assert_eq!((hits.len(), rows.len()), (5, 5));
    for (number, row) in rows.iter().enumerate() {
        assert_eq!((&row["number"], &row["resent"]), (&json!(number + 1), &json!(false)));
        assert_eq!(row["responseStatusCode"], 503);
    }
    for (gap, least) in gaps(&hits).into_iter().zip([100, 200, 400, 800]) {
        assert!(gap >= Duration::from_millis(least), "{gap:?} instead of {least} ms");
    }
    let delay = |row: &Value| time(&row["nextAttemptAt"]).since(time(&row["timestamp"]));
    // Fed back as its own base the fourth delay would be 6.4 s.
    assert!(delay(&rows[3]) < Duration::from_millis(6_400), "{:?}", delay(&rows[3]));
}

#[tokio::test]
async fn bo_01_a_high_attempt_number_stays_at_the_cap() {
    let server = Server::with(&[
        ("PEYK_RETRY__STRATEGY", "exponential"),
        ("PEYK_RETRY__BASE", "1ms"),
        ("PEYK_RETRY__CAP", "2ms"),
        ("PEYK_RETRY__ATTEMPTS_MAX", "200"),
        ("PEYK_BREAKER__ENABLED", "false"),
    ])
    .await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["attempts"], receiver.hits().len()), (&json!(200), 200));
}
