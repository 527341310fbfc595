//! Who may do what: tokens of the organisation, of an application, and none.
//!
//! Never: another application's data.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn an_application_reaches_only_itself() {
    let server = Server::start().await;
    let own = server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    server.post("/app", &json!({"name": "b", "uid": "b"})).await.expect(201);
    let token = server.made_token(&["--app", own["id"].as_str().unwrap()]);
    let bearer = format!("Bearer {token}");
    let table = [
        ("GET", "/app/a", "", 200),
        ("GET", "/app/a/endpoint", "", 200),
        ("GET", "/app/b", "", 404),
        ("GET", "/app/b/msg", "", 404),
        ("GET", "/app/none", "", 404),
        ("GET", "/event-type", "", 200),
        ("GET", "/app/a/dead-letter", "", 200),
        ("GET", "/app/a/endpoint/none/stats", "", 404),
        ("GET", "/app/b/endpoint/e/stats", "", 404),
        ("GET", "/app/b/endpoint/e/msg", "", 404),
        ("GET", "/app/b/msg/m/endpoint", "", 404),
        ("GET", "/app/b/msg/m/endpoint/e/attempt", "", 404),
        ("POST", "/app/a/msg/precheck/active", r#"{"eventType":"t"}"#, 200),
        ("POST", "/app/b/msg/precheck/active", r#"{"eventType":"t"}"#, 404),
        ("POST", "/app/a/endpoint/e/send-example", r#"{"eventType":"svix.ping"}"#, 403),
        ("DELETE", "/app/a/msg/m/attempt/t/content", "", 403),
        ("PUT", "/stats/usage/event-types", "{}", 403),
        ("POST", "/event-type/import/openapi", r#"{"spec":{"webhooks":{}}}"#, 403),
        ("GET", "/app", "", 403),
        ("POST", "/app", r#"{"name":"c"}"#, 403),
        ("PATCH", "/app/a", "{}", 403),
        ("PUT", "/app/a", r#"{"name":"c"}"#, 403),
        ("DELETE", "/app/a", "", 403),
        ("POST", "/app/a/msg", r#"{"eventType":"t","payload":{}}"#, 403),
        ("POST", "/event-type", r#"{"name":"t","description":""}"#, 403),
        ("GET", "/dead-letter", "", 403),
        ("POST", "/app/a/endpoint", r#"{"url":"https://h.example"}"#, 201),
    ];
    for (method, path, body, status) in table {
        let headers = [("authorization", bearer.as_str())];
        let answer = server.send(method, &format!("/api/v1{path}"), &headers, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
}

#[tokio::test]
async fn organisations_do_not_see_each_other() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let other = server.made_token(&["--org", "org_00000000000SvixManagement00"]);
    let headers = [("authorization", &*format!("Bearer {other}"))];
    let read = server.send("GET", "/api/v1/app/a", &headers, "").await;
    assert_eq!(read.status, 404);
    let made = server.send("POST", "/api/v1/app", &headers, r#"{"name":"x","uid":"a"}"#).await;
    assert_eq!(made.status, 201, "a uid is the organisation's own");
}

#[tokio::test]
async fn without_a_good_token_nothing_is_told() {
    let server = Server::start().await;
    for value in ["", "Bearer", "Bearer x", "Basic eDp5", &format!("Token {}", server.token)] {
        let headers = [("authorization", value)];
        let answer = server.send("GET", "/api/v1/app/a", &headers, "").await;
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(answer.expect(401)["code"], "authentication_failed", "{value}");
    }
    let secret = [("authorization", "Bearer the secret of the integration tests")];
    let answer = server.send("GET", "/api/v1/app", &secret, "").await.expect(401);
    assert!(answer["detail"].as_str().unwrap().contains("peyk token"));
    for path in ["/api/v1/health/ping", "/api/v1/health/ping/", "/api/v1/health", "/metrics"] {
        let answer = server.send("GET", path, &[("authorization", "")], "").await;
        assert!((200..300).contains(&answer.status), "{path}");
    }
}
