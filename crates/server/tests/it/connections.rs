//! The body and the connection of a send: whole each time, and no hidden repeats.
//!
//! Never: a request more on the wire than the log says.

use serde_json::json;

use crate::support::{Raw, Receiver, Reply, Server, Step};

#[tokio::test]
async fn hc_02_a_receiver_that_takes_and_closes_gets_no_free_repeats() {
    let server = Server::start().await;
    let raw = Raw::start(|_| vec![Step::Close]).await;
    server.app_with("a", &raw.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(3)));
    let rows = server.attempts("a", &id).await;
    assert_eq!((rows.len(), raw.requests().len(), raw.connections()), (3, 3, 3));
    for row in rows {
        assert_eq!((&row["errorKind"], &row["resent"]), (&json!("reset"), &json!(false)));
    }
}

#[tokio::test]
async fn hc_02_a_kept_connection_that_dies_is_replaced_once() {
    let server = Server::start().await;
    // The second request meets a connection that its receiver gives up.
    let raw = Raw::start(|number| match number {
        1 => vec![Step::Close],
        _ => vec![Step::send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")],
    })
    .await;
    server.app_with("a", &raw.url("/"), json!({})).await;
    let first = server.message("a", json!({"n": 1})).await;
    server.wait_delivered("a", &[first]).await;
    let second = server.message("a", json!({"n": 2})).await;
    let row = server.wait_attempts("a", &second, 1).await.remove(0);
    assert_eq!(
        (&row["status"], &row["resent"], &row["number"]),
        (&json!(0), &json!(true), &json!(1))
    );
    assert_eq!((raw.requests().len(), raw.connections()), (3, 2));
}

#[tokio::test]
async fn hc_06_hr_10_a_mebibyte_is_the_same_on_each_attempt() {
    let server = Server::start().await;
    let receiver =
        Receiver::scripted(|number, _| Reply::status([503, 503, 200][number.min(2)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let payload = format!("{{\"a\": \"{}\"}}", "é🐎x".repeat(149_790));
    assert!(payload.len() > (1 << 20) - 100 && payload.len() <= 1 << 20, "{}", payload.len());
    let body = format!("{{\"eventType\":\"t\",\"payload\":{payload}}}");
    server.send("POST", "/api/v1/app/a/msg", &[], body).await.expect(202);
    let hits = receiver.wait_for(3).await;
    for hit in &hits {
        assert!(hit.body == payload, "byte for byte");
        assert_eq!(hit.header("content-length"), payload.len().to_string());
    }
    server.wait_idle("a").await;
    assert_eq!(receiver.hits().len(), 3);
}

#[tokio::test]
async fn hc_07_a_connection_that_was_told_to_close_is_not_used_again() {
    let server = Server::start().await;
    // It says so and keeps its end open all the same.
    let raw = Raw::start(|_| {
        vec![Step::send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")]
    })
    .await;
    server.app_with("a", &raw.url("/"), json!({"ordered": true})).await;
    let ids = server.messages("a", 3).await;
    server.wait_delivered("a", &ids).await;
    assert_eq!((raw.requests().len(), raw.connections()), (3, 3));
}

#[tokio::test]
async fn hc_08_interim_answers_are_no_answers() {
    let server = Server::start().await;
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
    let raw = Raw::start(move |number| {
        let last = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        match number {
            0 => vec![Step::send(
                "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n\
                 HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
            )],
            _ => vec![Step::send(format!("{interim}{last}"))],
        }
    })
    .await;
    server.app_with("a", &raw.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let rows = server.wait_attempts("a", &id, 2).await;
    assert_eq!(rows[0]["responseStatusCode"], 500);
    assert_eq!(rows[1]["responseStatusCode"], 200);
    assert_eq!(raw.requests().len(), 2);
}

#[tokio::test]
async fn hc_08_endless_interim_answers_end_by_the_deadline() {
    let settings = [("PEYK_ATTEMPT__DEADLINE", "5s"), ("PEYK_RETRY__BASE", "1h")];
    let server = Server::with(&settings).await;
    let raw = Raw::start(|_| vec![Step::drip("HTTP/1.1 102 Processing\r\n\r\n")]).await;
    server.app_with("a", &raw.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let row = server.wait_attempts("a", &id, 1).await.remove(0);
    assert_eq!((&row["errorKind"], &row["responseStatusCode"]), (&json!("timeout"), &json!(0)));
}
