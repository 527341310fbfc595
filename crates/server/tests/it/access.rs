//! Tokens of applications: made over the API, ended by themselves, one by one, or all at once.
//!
//! Never: a token that is good after its end was answered.

use serde_json::{Value, json};

use crate::support::Server;
use crate::support::server::Answer;

async fn with(server: &Server, token: &str, method: &str, path: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    server.send(method, &format!("/api/v1{path}"), &headers, "").await
}

async fn access(server: &Server, app: &str, body: Value) -> String {
    let made = server.post(&format!("/auth/app-portal-access/{app}"), &body).await.expect(200);
    let token = made["token"].as_str().unwrap().to_owned();
    let url = format!("http://{}/portal/#key={token}", server.address());
    assert_eq!(made, json!({"url": url, "token": token}));
    token
}

#[tokio::test]
async fn test_app_portal_access_with_application() {
    let server = Server::start().await;
    let path = "/auth/app-portal-access/a";
    server.post(path, &json!({})).await.expect(404);
    let kind = |refused: &Value| refused["detail"][0]["type"].as_str().unwrap().to_owned();
    let refused = server.post(path, &json!({"application": {"name": "a"}})).await.expect(422);
    assert_eq!(kind(&refused), "application_uid_missing");
    let other = json!({"application": {"name": "a", "uid": "b"}});
    let refused = server.post(path, &other).await.expect(422);
    assert_eq!(kind(&refused), "application_uid_mismatch");
    let token = access(&server, "a", json!({"application": {"name": "made", "uid": "a"}})).await;
    let read = with(&server, &token, "GET", "/app/a").await.expect(200);
    assert_eq!(read["name"], "made");
    access(&server, "a", json!({"application": {"name": "other", "uid": "b"}})).await;
    assert_eq!(server.get("/app/a").await.expect(200)["name"], "made", "it was there");
    server.get("/app/b").await.expect(404);
}

#[tokio::test]
async fn test_dashboard_access_without_body() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let path = "/api/v1/auth/dashboard-access/a/";
    let made = server.send("POST", path, &[], "").await.expect(200);
    with(&server, made["token"].as_str().unwrap(), "GET", "/app/a").await.expect(200);
    let proxied = [("x-forwarded-proto", "https")];
    let made = server.send("POST", path, &proxied, "").await.expect(200);
    assert!(made["url"].as_str().unwrap().starts_with("https://"), "{made}");
}

#[tokio::test]
async fn a_token_of_an_application_makes_and_ends_no_others() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let token = access(&server, "a", json!({})).await;
    for path in ["/auth/app-portal-access/a", "/auth/dashboard-access/a", "/auth/app/a/expire-all"]
    {
        let refused = with(&server, &token, "POST", path).await.expect(403);
        assert_eq!(refused["code"], "insufficient access", "{path}");
    }
    server.post("/auth/app/none/expire-all", &json!({})).await.expect(404);
    let other = server.made_token(&["--org", "org_00000000000SvixManagement00"]);
    for path in ["/auth/app-portal-access/a", "/auth/app/a/expire-all"] {
        assert_eq!(with(&server, &other, "POST", path).await.status, 404, "{path}");
    }
    for body in [
        json!({"expiry": 59}),
        json!({"expiry": 604_801}),
        json!({"featureFlags": [""]}),
        json!({"sessionId": 5}),
        json!({"capabilities": ["Everything"]}),
        json!({"capabilities": []}),
    ] {
        server.post("/auth/app-portal-access/a", &body).await.expect(422);
    }
    server.post("/auth/app/a/expire-all", &json!({"expiry": -1})).await.expect(422);
}

#[tokio::test]
async fn test_event_type_feature_flags() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    for (name, flag) in [("open", Value::Null), ("beta", json!("b")), ("alpha", json!("a"))] {
        let body = json!({"name": name, "description": "", "featureFlag": flag});
        server.post("/event-type", &body).await.expect(201);
    }
    for (flags, seen) in [(json!([]), vec!["open"]), (json!(["b"]), vec!["beta", "open"])] {
        let token = access(&server, "a", json!({"featureFlags": flags})).await;
        let list = with(&server, &token, "GET", "/event-type").await.expect(200);
        let names: Vec<_> = list["data"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, seen);
        assert_eq!(with(&server, &token, "GET", "/event-type/alpha").await.status, 404);
    }
}

#[tokio::test]
async fn a_read_only_token_changes_nothing_and_sees_no_secret() {
    let server = Server::start().await;
    server.app_with("a", "http://127.0.0.1:9/", json!({})).await;
    let token = access(&server, "a", json!({"readOnly": true})).await;
    for (method, path, status) in [
        ("GET", "/app/a/endpoint/e", 200),
        ("GET", "/app/a/msg", 200),
        ("GET", "/app/a/endpoint/e/secret", 403),
        ("DELETE", "/app/a/endpoint/e", 403),
        ("POST", "/app/a/endpoint", 403),
        ("POST", "/app/a/dead-letter/replay", 403),
        ("POST", "/auth/logout", 204),
        ("GET", "/app/a/endpoint/e", 401),
    ] {
        let answer = with(&server, &token, method, path).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_token_may_do_what_its_capabilities_say() {
    let server = Server::start().await;
    server.app_with("a", "http://127.0.0.1:9/", json!({})).await;
    let (endpoint, secret) = ("/app/a/endpoint/e", "/app/a/endpoint/e/secret");
    for (names, reads_secret, rotates, recovers, makes) in [
        (json!(["ViewBase"]), 403, 403, 403, 403),
        (json!(["ViewBase", "ViewEndpointSecret"]), 200, 403, 403, 403),
        (json!(["ViewBase", "ManageEndpointSecret"]), 200, 422, 403, 403),
        (json!(["ViewBase", "CreateAttempts"]), 403, 403, 422, 403),
        (json!(["ViewBase", "ManageEndpoint"]), 200, 422, 403, 422),
    ] {
        let token = access(&server, "a", json!({"capabilities": names})).await;
        for (method, path, status) in [
            ("GET", endpoint.to_owned(), 200),
            ("GET", secret.to_owned(), reads_secret),
            // Without the body that they take.
            ("POST", format!("{secret}/rotate"), rotates),
            ("POST", format!("{endpoint}/recover"), recovers),
            ("POST", "/app/a/endpoint".to_owned(), makes),
            ("POST", "/app/a/msg".to_owned(), 403),
        ] {
            let answer = with(&server, &token, method, &path).await;
            // A body that is none is 400 or 422, by how it is read.
            let passed = if answer.status == 400 { 422 } else { answer.status };
            assert_eq!(passed, status, "{names} {method} {path}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_link_leads_to_no_host_that_only_the_request_names() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let path = "/api/v1/auth/app-portal-access/a";
    let evil = [("host", "evil.example"), ("x-forwarded-proto", "https")];
    let made = server.send("POST", path, &evil, "{}").await.expect(200);
    let here = format!("http://{}/portal/#key=", server.address());
    assert!(made["url"].as_str().unwrap().starts_with(&here), "{made}");
    let server = Server::with(&[("PEYK_PUBLIC_URL", "https://peyk.example/hooks/")]).await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let made = server.send("POST", path, &[], "{}").await.expect(200);
    let set = "https://peyk.example/hooks/portal/#key=";
    assert!(made["url"].as_str().unwrap().starts_with(set), "{made}");
}

#[tokio::test]
async fn a_token_does_not_outlive_its_application() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let token = access(&server, "a", json!({})).await;
    with(&server, &token, "GET", "/event-type").await.expect(200);
    assert_eq!(server.delete("/app/a").await.status, 204);
    for path in ["/event-type", "/app/a", "/background-task"] {
        let refused = with(&server, &token, "GET", path).await.expect(401);
        assert_eq!(refused["code"], "authentication_failed", "{path}");
    }
}

#[tokio::test]
async fn a_token_that_was_logged_out_is_refused_also_after_a_restart() {
    let mut server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let (token, other) = (access(&server, "a", json!({})).await, server.made_token(&[]));
    let second = access(&server, "a", json!({"sessionId": "s"})).await;
    with(&server, &token, "GET", "/app/a").await.expect(200);
    let done = with(&server, &token, "POST", "/auth/logout/").await;
    assert_eq!((done.status, done.body.len()), (204, 0));
    let refused = with(&server, &token, "GET", "/app/a").await.expect(401);
    assert_eq!(refused["code"], "authentication_failed");
    with(&server, &token, "POST", "/auth/logout").await.expect(401);
    let refused = with(&server, &other, "POST", "/auth/logout").await.expect(400);
    assert_eq!(refused["code"], "bad_token", "one of an organisation");
    server.kill_and_restart();
    with(&server, &token, "GET", "/app/a").await.expect(401);
    with(&server, &second, "GET", "/app/a").await.expect(200);
    server.get("/app/a").await.expect(200);
}

#[tokio::test]
async fn all_tokens_of_an_application_or_of_a_session_end_at_once() {
    let mut server = Server::start().await;
    for uid in ["a", "b"] {
        server.post("/app", &json!({"name": uid, "uid": uid})).await.expect(201);
    }
    let session = |name: &str| json!({"sessionId": name});
    let (one, two) =
        (access(&server, "a", session("one")).await, access(&server, "a", session("two")).await);
    let (plain, foreign) =
        (access(&server, "a", json!({})).await, access(&server, "b", session("one")).await);
    with(&server, &one, "GET", "/app/a").await.expect(200);
    let path = "/auth/app/a/expire-all";
    let done = server.post(path, &json!({"sessionIds": ["one"]})).await;
    assert_eq!((done.status, done.body.len()), (204, 0));
    with(&server, &one, "GET", "/app/a").await.expect(401);
    with(&server, &two, "GET", "/app/a").await.expect(200);
    with(&server, &foreign, "GET", "/app/b").await.expect(200);
    server.post(path, &json!({"expiry": 3_600})).await.expect(204);
    with(&server, &plain, "GET", "/app/a").await.expect(200);
    server.post(path, &json!({})).await.expect(204);
    let refused = async |server: &Server| {
        for token in [&one, &two, &plain] {
            assert_eq!(with(server, token, "GET", "/app/a").await.status, 401);
        }
        with(server, &foreign, "GET", "/app/b").await.expect(200);
    };
    refused(&server).await;
    let new = access(&server, "a", session("one")).await;
    with(&server, &new, "GET", "/app/a").await.expect(200);
    server.kill_and_restart();
    refused(&server).await;
    with(&server, &new, "GET", "/app/a").await.expect(200);
}

#[tokio::test]
async fn each_token_has_its_requests_a_second() {
    let server = Server::with(&[("PEYK_LIMITS__REQUESTS_PER_S_PER_TOKEN", "1")]).await;
    let other = server.made_token(&["--org", "org_00000000000SvixManagement00"]);
    // Two within a second are refused however slow the machine is: one of many will be.
    let mut refused = None;
    for _ in 0..100 {
        let answer = server.get("/app").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    with(&server, &other, "GET", "/app").await.expect(200);
    let refused = refused.unwrap();
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.expect(429)["code"], "rate_limited");
    server.send("GET", "/api/v1/health/ping", &[], "").await.expect(204);
}

/// A token that was ended is of no use to whoever repeats the request that made it.
#[tokio::test]
async fn a_repeat_gets_the_same_token_until_it_was_ended() {
    let mut server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let path = "/api/v1/auth/app-portal-access/a";
    let repeated = async |server: &Server| {
        let made = server.send("POST", path, &[("idempotency-key", "k")], "{}").await.expect(200);
        made["token"].as_str().unwrap().to_owned()
    };
    let first = repeated(&server).await;
    assert_eq!(repeated(&server).await, first);
    with(&server, &first, "POST", "/auth/logout").await.expect(204);
    let second = repeated(&server).await;
    assert_ne!(second, first);
    with(&server, &second, "GET", "/app/a").await.expect(200);
    assert_eq!(repeated(&server).await, second);
    server.post("/auth/app/a/expire-all", &json!({})).await.expect(204);
    server.kill_and_restart();
    let third = repeated(&server).await;
    with(&server, &third, "GET", "/app/a").await.expect(200);
    assert_eq!(with(&server, &second, "GET", "/app/a").await.status, 401);
}

#[tokio::test]
async fn one_header_says_who_asks() {
    let server = Server::start().await;
    let token = format!("Bearer {}", server.made_token(&[]));
    for other in [token.as_str(), "Bearer x", "Basic eA=="] {
        for headers in [
            [("authorization", &*token), ("authorization", other)],
            [("authorization", other), ("authorization", &*token)],
        ] {
            let refused = server.send("GET", "/api/v1/app", &headers, "").await.expect(401);
            assert!(refused["detail"].as_str().unwrap().contains("one `authorization`"));
        }
    }
}
