//! What a message carries beside its payload: tags, a time of delivery, how long it is kept; and
//! whether anybody would get it.
//!
//! Never: a send before the time that was named.

use serde_json::json;

use crate::pages::ids;
use crate::support::{Receiver, Server, time};

fn in_secs(secs: i64) -> String {
    let span = jiff::SignedDuration::from_secs(secs);
    let at = jiff::Timestamp::now().checked_add(span).unwrap();
    // To the microsecond, as it is kept.
    jiff::Timestamp::from_microsecond(at.as_microsecond()).unwrap().to_string()
}

#[tokio::test]
async fn tags_are_kept_shown_and_filtered_by() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let message = json!({"eventType": "t", "payload": {}, "tags": ["blue", "a b/ü"]});
    let made = server.post("/app/a/msg", &message).await.expect(202);
    assert_eq!(made["tags"], json!(["blue", "a b/ü"]));
    let plain = server.message("a", json!({"n": 1})).await;
    let read = server.get(&format!("/app/a/msg/{plain}")).await.expect(200);
    assert!(read["tags"].is_null() && read["deliverAt"].is_null());
    for (tag, found) in [("blue", true), ("a%20b/%C3%BC", true), ("b", false)] {
        let page = server.get(&format!("/app/a/msg?tag={tag}")).await.expect(200);
        assert_eq!(!ids(&page).is_empty(), found, "{tag}");
        assert!(page["data"].as_array().unwrap().iter().all(|row| *row == made));
    }
    server.wait_attempts("a", made["id"].as_str().unwrap(), 1).await;
    let page = server.get("/app/a/attempt/endpoint/e?tag=blue").await.expect(200);
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    server.get("/app/a/msg?tag=a%00").await.expect(422);
    let many = json!({"eventType": "t", "payload": {}, "tags": ["1", "2", "3", "4", "5", "6"]});
    server.post("/app/a/msg", &many).await.expect(422);
}

/// A message that names its time waits for it on disk, over a kill, while others go before it.
#[tokio::test]
async fn a_message_is_sent_at_the_time_that_it_names() {
    let mut server = Server::start().await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let at = in_secs(3);
    let message = json!({"eventType": "t", "payload": {"n": 1}, "deliverAt": at});
    let headers = [("idempotency-key", "k")];
    let body = message.to_string();
    let made = server.send("POST", "/api/v1/app/a/msg", &headers, body.clone()).await.expect(202);
    assert_eq!(made["deliverAt"], at);
    let waits = server.get("/app/a/endpoint/e/msg?status=1").await.expect(200);
    assert_eq!((ids(&waits).len(), &waits["data"][0]["nextAttempt"]), (1, &json!(at)));
    let sooner = server.message("a", json!({"n": 0})).await;
    // Recorded before the kill, or it might be sent twice.
    server.wait_delivered("a", &[sooner]).await;
    server.kill_and_restart();
    let hits = receiver.wait_for(2).await;
    assert_eq!(hits.iter().map(|hit| hit.n()).collect::<Vec<_>>(), [0, 1]);
    assert!(hits[1].at >= time(&made["deliverAt"]), "not before its time");
    let again = server.send("POST", "/api/v1/app/a/msg", &headers, body).await.expect(202);
    assert_eq!(again, made, "a repeat gets the first answer though the time is over");
    server.wait_idle("a").await;
    assert_eq!(server.metric("peyk_lane_repairs_total").await, 0.0);
}

#[tokio::test]
async fn a_time_of_delivery_is_near() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let post = async |at: String, hours: Option<u16>| {
        let message = json!({"eventType": "t", "payload": {}, "deliverAt": at,
            "payloadRetentionHours": hours});
        server.post("/app/a/msg", &message).await
    };
    post(in_secs(-30), None).await.expect(202);
    receiver.wait_for(1).await;
    post(in_secs(23 * 3_600), None).await.expect(202);
    for (secs, hours) in [(-120, None), (25 * 3_600, None), (2 * 3_600, Some(1))] {
        let refused = post(in_secs(secs), hours).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "deliverAt"]), "{secs}");
    }
    post("soon".to_owned(), None).await.expect(422);
    let page = server.get("/app/a/msg").await.expect(200);
    assert_eq!(ids(&page).len(), 2, "what was refused is not there");
    assert!(receiver.hits().len() == 1, "the one of tomorrow waits");
}

#[tokio::test]
async fn a_precheck_says_whether_anybody_would_get_it() {
    let server = Server::start().await;
    server.put("/event-type/t.a", &json!({"description": ""})).await.expect(201);
    let fields = json!({"eventTypes": ["t.a"], "channels": ["c"]});
    server.app_with("a", "https://h.example", fields).await;
    let ask = async |body: serde_json::Value| {
        server.post("/app/a/msg/precheck/active/", &body).await.expect(200)["active"].clone()
    };
    assert_eq!(ask(json!({"eventType": "t.a", "channels": ["x", "c"]})).await, true);
    assert_eq!(ask(json!({"eventType": "t.a"})).await, false);
    assert_eq!(ask(json!({"eventType": "t.b", "channels": ["c"]})).await, false);
    server.patch("/app/a/endpoint/e", &json!({"disabled": true})).await.expect(200);
    assert_eq!(ask(json!({"eventType": "t.a", "channels": ["c"]})).await, false, "disabled");
    server.post("/app/a/msg/precheck/active", &json!({})).await.expect(422);
    let under_key = async |body: &str| {
        let (path, key) = ("/api/v1/app/a/msg/precheck/active", [("idempotency-key", "k")]);
        server.send("POST", path, &key, body.to_owned()).await
    };
    let asked = r#"{"eventType": "t.a", "channels": ["c"]}"#;
    assert_eq!(under_key(asked).await.expect(200)["active"], false);
    server.patch("/app/a/endpoint/e", &json!({"disabled": false})).await.expect(200);
    assert_eq!(under_key(asked).await.expect(200)["active"], false, "the first answer");
    let other = under_key(r#"{"eventType": "t.b"}"#).await.expect(422);
    assert_eq!(other["detail"][0]["loc"], json!(["header", "idempotency-key"]));
    assert_eq!(ids(&server.get("/app/a/msg").await.expect(200)), Vec::<String>::new());
}
