//! What an organisation uses: counted beside other work, and read like any background task.
//!
//! Never: a count of what another organisation sent.

use std::time::Duration;

use resilience::{Clock as _, SystemClock, Timestamp};
use serde_json::json;

use crate::support::{Receiver, Reply, Server, until};

fn text(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).unwrap().to_string()
}

#[tokio::test]
async fn messages_to_endpoints_are_counted_by_application() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(200)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let second = json!({"url": receiver.url("/"), "uid": "f"});
    server.post("/app/a/endpoint", &second).await.expect(201);
    server.app_with("b", &receiver.url("/"), json!({})).await;
    server.messages("a", 3).await;
    server.messages("b", 1).await;
    let now = SystemClock.now();
    let (past, end) = (text(now.minus(Duration::from_secs(60))), text(now));
    let id = async |uid: &str| server.get(&format!("/app/{uid}")).await.expect(200)["id"].take();
    let (a, b) = (id("a").await, id("b").await);
    let span = json!({"since": past, "until": text(now.plus(Duration::from_secs(60)))});
    let ended = async |body: &serde_json::Value| {
        let begun = server.post("/stats/usage/app", body).await.expect(202);
        assert_eq!(begun["task"], "application.stats");
        let path = format!("/background-task/{}", begun["id"].as_str().unwrap());
        let ended = until("the end of a count", || async {
            let task = server.get(&path).await.expect(200);
            (task["status"] != "running").then_some(task)
        });
        (begun["unresolvedAppIds"].clone(), ended.await)
    };
    let (unresolved, all) = ended(&span).await;
    assert_eq!((&unresolved, &all["status"]), (&json!([]), &json!("finished")));
    let expected = json!({"appStats": [
        {"appId": a, "appUid": "a", "messageDestinations": 6},
        {"appId": b, "appUid": "b", "messageDestinations": 1},
    ]});
    assert_eq!(all["data"], expected);
    let named = json!({"since": past, "until": end, "appIds": ["b", "none", b]});
    let (unresolved, one) = ended(&named).await;
    assert_eq!(unresolved, json!(["none"]));
    assert_eq!(one["data"]["appStats"].as_array().unwrap().len(), 1);
    let before = json!({"since": "2020-01-01T00:00:00Z", "until": past, "appIds": ["a"]});
    let (_, none) = ended(&before).await;
    assert_eq!(none["data"]["appStats"][0]["messageDestinations"], 0);
    // Listed with the others, and of no concern to an application.
    let list = server.get("/background-task?task=application.stats&limit=2").await.expect(200);
    assert_eq!((list["data"][0].clone(), &list["done"]), (none, &json!(false)));
    let next = list["iterator"].as_str().unwrap();
    let rest = server.get(&format!("/background-task?iterator={next}")).await.expect(200);
    assert_eq!(rest["data"], json!([all]));
    let token = format!("Bearer {}", server.made_token(&["--app", a.as_str().unwrap()]));
    let headers = [("authorization", &*token)];
    let path = format!("/api/v1/background-task/{}", all["id"].as_str().unwrap());
    assert_eq!(server.send("GET", &path, &headers, "").await.status, 404);
    assert_eq!(server.send("POST", &format!("{path}/cancel"), &[], "").await.status, 409);
    assert_eq!(server.send("POST", "/api/v1/stats/usage/app", &headers, "{}").await.status, 403);
}

#[tokio::test]
async fn subscriptions_can_be_read_again() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let found = server.put("/stats/usage/event-types", &json!({})).await.expect(200);
    let path = format!("/background-task/{}", found["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.expect(200), found);
    assert_eq!(found["data"]["event_types"][0]["hasCatchAllEndpoint"], true);
}

#[tokio::test]
async fn a_span_that_is_none_is_refused() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let now = SystemClock.now();
    let (past, later) =
        (text(now.minus(Duration::from_secs(60))), text(now.plus(Duration::from_secs(900))));
    for (body, field) in [
        (json!({"until": past}), "since"),
        (json!({"since": past}), "until"),
        (json!({"since": past, "until": past}), "until"),
        (json!({"since": past, "until": later}), "until"),
        (json!({"since": past, "until": text(now), "appIds": []}), "appIds"),
        (json!({"since": past, "until": text(now), "appIds": ["none"]}), "appIds"),
    ] {
        let refused = server.post("/stats/usage/app", &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{body}: {refused}");
    }
}
