//! What one tenant may take: messages a second of an application, numbers of things.
//!
//! Never: one application held up by another.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn an_application_posts_no_faster_than_its_rate() {
    let server = Server::start().await;
    for uid in ["a", "b"] {
        server.post("/app", &json!({"name": uid, "uid": uid, "throttleRate": 1})).await.expect(201);
    }
    server.patch("/app/b", &json!({"throttleRate": null})).await.expect(200);
    let message = json!({"eventType": "t", "payload": {}});
    // At once: even a busy machine takes no minute for them.
    let answers = join_all((0..60).map(|_| server.post("/app/a/msg", &message))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 202);
    assert!(!taken.is_empty() && !refused.is_empty(), "{} taken", taken.len());
    for answer in refused {
        assert_eq!((answer.status, &answer.headers["retry-after"]), (429, &"1".parse().unwrap()));
        assert_eq!(answer.json()["code"], "rate_limited");
    }
    let stored = server.get("/app/a/msg?limit=250").await.expect(200);
    assert_eq!(stored["data"].as_array().unwrap().len(), taken.len(), "what was answered 202");
    let free = join_all((0..60).map(|_| server.post("/app/b/msg", &message))).await;
    assert!(free.iter().all(|it| it.status == 202));
}

#[tokio::test]
async fn an_operator_draws_bounds_closer() {
    let settings = [
        ("PEYK_LIMITS__ENDPOINTS_PER_APP_MAX", "1"),
        ("PEYK_LIMITS__EVENT_TYPES_PER_ENDPOINT_MAX", "1"),
        ("PEYK_LIMITS__CHANNELS_PER_ENDPOINT_MAX", "2"),
        ("PEYK_LIMITS__CHANNELS_PER_MESSAGE_MAX", "1"),
    ];
    let server = Server::with(&settings).await;
    for name in ["t.a", "t.b"] {
        server.put(&format!("/event-type/{name}"), &json!({"description": ""})).await.expect(201);
    }
    server.app_with("a", "https://h.example", json!({"channels": ["a", "b"]})).await;
    let second = json!({"url": "https://h.example"});
    let refused = server.post("/app/a/endpoint", &second).await.expect(400);
    assert_eq!(refused["code"], "limit_reached");
    assert_eq!(refused["detail"], "An application has at most 1 endpoints");
    for (body, field) in [
        (json!({"channels": ["a", "b", "c"]}), "channels"),
        (json!({"eventTypes": ["t.a", "t.b"]}), "eventTypes"),
    ] {
        let refused = server.patch("/app/a/endpoint/e", &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{refused}");
    }
    let message = |channels| json!({"eventType": "t", "payload": {}, "channels": channels});
    server.post("/app/a/msg", &message(json!(["a"]))).await.expect(202);
    let refused = server.post("/app/a/msg", &message(json!(["a", "b"]))).await.expect(422);
    assert_eq!(refused["detail"][0]["msg"], "must hold 1 to 1 channels");
    let precheck = json!({"eventType": "t", "channels": ["a", "b"]});
    server.post("/app/a/msg/precheck/active", &precheck).await.expect(422);
}

#[tokio::test]
async fn an_application_filters_on_no_type_that_it_may_not_see() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let flagged = json!({"name": "beta.made", "description": "", "featureFlag": "beta"});
    server.post("/event-type", &flagged).await.expect(201);
    let token = async |flags: serde_json::Value| {
        let body = json!({"featureFlags": flags});
        let made = server.post("/auth/app-portal-access/a", &body).await.expect(200);
        format!("Bearer {}", made["token"].as_str().unwrap())
    };
    let filter = async |token: &str| {
        let body = json!({"url": "https://h.example", "eventTypes": ["beta.made"]}).to_string();
        let headers = [("authorization", token)];
        server.send("POST", "/api/v1/app/a/endpoint", &headers, body).await
    };
    let refused = filter(&token(json!([])).await).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "eventTypes"]), "{refused}");
    filter(&token(json!(["beta"])).await).await.expect(201);
    // What the organisation subscribed it to stays, whoever changes the rest.
    let types = json!({"eventTypes": ["beta.made"]});
    server.patch("/app/a/endpoint/e", &types).await.expect(200);
    let plain = token(json!([])).await;
    let (headers, path) = ([("authorization", &*plain)], "/api/v1/app/a/endpoint/e");
    let body = r#"{"description":"d","eventTypes":["beta.made"]}"#;
    server.send("PATCH", path, &headers, body).await.expect(200);
}
