//! A posted message arrives once, signed, byte for byte.
//!
//! Never: more than one request for it.

use serde_json::json;
use webhook::{Secret, WebhookVerifier};

use crate::support::{Receiver, Server};

#[tokio::test]
async fn a_message_arrives_once_signed_and_byte_for_byte() {
    let (mut server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/hook?k=%2F+"), json!({"headers": {"X-Mine": "1"}})).await;
    let payload = "{ \"b\":1.0e2,\"a\":\"\\ud800\\u0000 \u{2028}é🐎\",\"a\":2 }";
    let body =
        format!("{{\"eventType\":\"test.event\",\"eventId\":\"e.1\",\"payload\":{payload}}}");
    let made = server.send("POST", "/api/v1/app/a/msg/", &[], body).await;
    assert!(made.text().contains(payload), "{}", made.text());
    assert_eq!(made.status, 202);
    let id = made.text().split("\"id\":\"").nth(1).unwrap()[..31].to_owned();

    let hit = receiver.wait_for(1).await.remove(0);
    assert_eq!(hit.body, payload);
    assert_eq!(hit.path, "/hook?k=%2F+");
    assert_eq!(hit.header("content-type"), "application/json");
    assert_eq!((hit.header("webhook-id"), hit.header("x-mine")), (&*id, "1"));
    assert_eq!(hit.header("webhook-attempt"), "1");
    assert_eq!(hit.header("idempotency-key"), hit.header("x-idempotency-key"));

    let secret = server.get("/app/a/endpoint/e/secret").await.expect(200);
    let secret = Secret::parse(secret["key"].as_str().unwrap()).unwrap();
    let verifier = WebhookVerifier::standard().key(&secret).build().unwrap();
    let sent_at = hit.header("webhook-timestamp").parse().unwrap();
    let lines = hit.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    assert_eq!(verifier.verify(lines, &hit.body, sent_at).unwrap().id.unwrap(), id);

    let attempt = server.wait_attempts("a", "e.1", 1).await.remove(0);
    assert_eq!((&attempt["status"], &attempt["statusText"]), (&json!(0), &json!("success")));
    assert_eq!(
        (&attempt["responseStatusCode"], &attempt["response"]),
        (&json!(200), &json!("said 200"))
    );
    assert_eq!((&attempt["msgId"], &attempt["number"]), (&json!(id), &json!(1)));
    let path = format!("/app/a/msg/e.1/attempt/{}", attempt["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200), attempt);
    let to_endpoint = server.get("/app/a/attempt/endpoint/e").await.expect(200);
    assert_eq!(to_endpoint["data"], json!([attempt]));

    let read = server.get("/app/a/msg/e.1").await;
    assert!(read.text().contains(payload), "reads back what was sent");
    let left_out = server.get("/app/a/msg/e.1?with_content=false").await.expect(200);
    assert_eq!(left_out["payload"], json!({}));
    assert_eq!(server.stop(), Some(0));
    assert_eq!(receiver.hits().len(), 1);
}

#[tokio::test]
async fn only_endpoints_that_want_a_message_get_it() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/all"), json!({})).await;
    server.post("/event-type", &json!({"name": "t.one", "description": ""})).await.expect(201);
    for (path, filter) in [
        ("/typed", json!({"eventTypes": ["t.one"]})),
        ("/channel", json!({"channels": ["c"]})),
        ("/off", json!({"disabled": true})),
    ] {
        let mut endpoint = filter;
        endpoint["url"] = receiver.url(path).into();
        server.post("/app/a/endpoint", &endpoint).await.expect(201);
    }
    for message in [
        json!({"eventType": "t.one", "payload": {}}),
        json!({"eventType": "t.two", "payload": {}, "channels": ["c", "d"]}),
    ] {
        server.post("/app/a/msg", &message).await.expect(202);
    }
    let mut paths: Vec<_> = receiver.wait_for(4).await.into_iter().map(|hit| hit.path).collect();
    paths.sort();
    assert_eq!(paths, ["/all", "/all", "/channel", "/typed"]);
}

#[tokio::test]
async fn a_raw_payload_is_sent_verbatim() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let message = json!({"eventType": "t", "payload": {}, "transformationsParams":
        {"rawPayload": "<a>\u{0}é</a>", "headers": {"Content-Type": "text/xml"}}});
    let made = server.post("/app/a/msg", &message).await.expect(202);
    assert_eq!(made["payload"], json!({"rawPayload": "<a>\u{0}é</a>"}));
    let hit = receiver.wait_for(1).await.remove(0);
    assert_eq!((&hit.body[..], hit.header("content-type")), ("<a>\0é</a>".as_bytes(), "text/xml"));
}
