//! Examples: sent to one endpoint as real messages.
//!
//! Never: to an endpoint that was not named.

use serde_json::json;

use crate::support::{Receiver, Server};

const PATH: &str = "/app/a/endpoint/e/send-example";

/// Ports `test_send_example`.
#[tokio::test]
async fn test_send_example() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let schemas = json!({"1": {"type": "object", "examples": [{"id": 7}, {"id": 8}]}, "2": {}});
    let made = json!({"name": "t.made", "description": "", "schemas": schemas});
    server.post("/event-type", &made).await.expect(201);
    server.put("/event-type/t.other", &json!({"description": ""})).await.expect(201);
    // It filters all of this out, and gets it though.
    let fields = json!({"eventTypes": ["t.other"], "channels": ["c"]});
    server.app_with("a", &receiver.url("/e"), fields).await;
    let all = json!({"url": receiver.url("/all"), "uid": "all"});
    server.post("/app/a/endpoint", &all).await.expect(201);
    let ping = server.post(PATH, &json!({"eventType": "svix.ping"})).await.expect(200);
    assert_eq!((&ping["eventType"], &ping["payload"]), (&json!("svix.ping"), &json!({})));
    let hit = receiver.wait_for(1).await.remove(0);
    assert_eq!((&*hit.path, &hit.body[..]), ("/e", &br#"{"success": true}"#[..]));
    assert_eq!(hit.header("webhook-id"), ping["id"].as_str().unwrap());
    let first = server.post(&format!("{PATH}/"), &json!({"eventType": "t.made"})).await.expect(200);
    assert_eq!(&receiver.wait_for(2).await[1].body[..], br#"{"id":7}"#);
    let read = server.get(&format!("/app/a/msg/{}", first["id"].as_str().unwrap())).await;
    assert_eq!(read.expect(200)["payload"], json!({"id": 7}));
    let asked = json!({"eventType": "t.made", "exampleIndex": 1});
    let second = server.post(&format!("{PATH}?with_content=true"), &asked).await.expect(200);
    assert_eq!(second["payload"], json!({"id": 8}));
    let hits = receiver.wait_for(3).await;
    assert!(hits.iter().all(|hit| hit.path == "/e"), "to nobody else");
}

#[tokio::test]
async fn an_example_that_is_not_there_is_not_sent() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let schemas = json!({"1": {"examples": ["text"]}, "2": {"examples": [{}]}});
    let made = json!({"name": "t.made", "description": "", "schemas": schemas});
    server.post("/event-type", &made).await.expect(201);
    server.put("/event-type/t.bare", &json!({"description": ""})).await.expect(201);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    for asked in [
        json!({"eventType": "t.none"}),
        json!({"eventType": "t.bare"}),
        json!({"eventType": "t.made"}),
        json!({"eventType": "t.made", "exampleIndex": 1}),
    ] {
        let refused = server.post(PATH, &asked).await.expect(400);
        assert_eq!(refused["code"], "invalid_scheme", "{asked}");
    }
    server.post(PATH, &json!({})).await.expect(422);
    let ping = json!({"eventType": "svix.ping"});
    server.post("/app/a/endpoint/none/send-example", &ping).await.expect(404);
    server.patch("/app/a/endpoint/e", &json!({"disabled": true})).await.expect(200);
    assert_eq!(server.post(PATH, &ping).await.expect(400)["code"], "endpoint_disabled");
    let page = server.get("/app/a/msg").await.expect(200);
    assert_eq!((&page["data"], receiver.hits().len()), (&json!([]), 0));
}

/// ID-08, for examples: a repeat over a restart is no second message.
#[tokio::test]
async fn id_08_an_example_under_a_key_is_sent_once() {
    let mut server = Server::start().await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let path = format!("/api/v1{PATH}");
    let (headers, ping) = ([("idempotency-key", "k")], r#"{"eventType":"svix.ping"}"#);
    let first = server.send("POST", &path, &headers, ping).await.expect(200);
    receiver.wait_for(1).await;
    server.wait_idle("a").await;
    server.kill_and_restart();
    assert_eq!(server.send("POST", &path, &headers, ping).await.expect(200), first);
    let other = r#"{"eventType":"svix.ping","exampleIndex":0}"#;
    server.send("POST", &path, &headers, other).await.expect(422);
    let page = server.get("/app/a/msg").await.expect(200);
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
}
