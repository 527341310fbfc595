//! Whatever a caller sends, the answer is a 4xx with a reason in JSON.
//!
//! Never: 500 for it.

use std::io::{Read as _, Write as _};

use resilience::{Clock as _, SystemClock};
use serde_json::json;

use crate::support::Server;

/// Method, path, body, and the status of the answer.
const WRONG: &[(&str, &str, &str, u16)] = &[
    ("GET", "/api/v1/none", "", 404),
    ("GET", "/none/", "", 404),
    ("DELETE", "/api/v1/app", "", 405),
    ("POST", "/api/v1/app/a", "{}", 405),
    ("TRACE", "/api/v1/app", "", 405),
    ("POST", "/api/v1/app", "", 422),
    ("POST", "/api/v1/app", "{", 422),
    ("POST", "/api/v1/app", "[]", 422),
    ("POST", "/api/v1/app", r#"{"name":"x"} y"#, 422),
    ("POST", "/api/v1/app", r#"{"name":"x","uid":"a"}"#, 409),
    ("POST", "/api/v1/app", r#"{"name":"\u0000"}"#, 422),
    ("POST", "/api/v1/app", r#"{"name":1e999}"#, 422),
    ("POST", "/api/v1/app", r#"{"name":"x","uid":"."}"#, 422),
    ("POST", "/api/v1/app", r#"{"name":"x","uid":".."}"#, 422),
    ("POST", "/api/v1/app", r#"{"name":"x","uid":"x/y"}"#, 422),
    ("PATCH", "/api/v1/app/a", r#"{"uid":".."}"#, 422),
    ("POST", "/api/v1/app/a/endpoint", r#"{"url":"https://h.example","uid":".."}"#, 422),
    ("POST", "/api/v1/app/a/msg", r#"{"eventType":"t","payload":{},"eventId":".."}"#, 422),
    ("POST", "/api/v1/event-type", r#"{"name":"..","description":""}"#, 422),
    ("POST", "/api/v1/event-type", r#"{"name":"x"}"#, 422),
    ("GET", "/api/v1/app/a/endpoint/e/transformation", "", 404),
    ("POST", "/api/v1/app/a/endpoint/e/recover", "{}", 422),
    ("POST", "/api/v1/stats/usage/app", "{}", 422),
    ("POST", "/api/v1/auth/app-portal-access/none", "{}", 404),
    ("GET", "/api/v1/operational-webhook/endpoint/none", "", 404),
    ("GET", "/api/v1/app/%ff", "", 404),
    ("GET", "/api/v1/app/%00", "", 404),
    ("GET", "/api/v1/app/app_zzzzzzzzzzzzzzzzzzzzzzzzzzz", "", 404),
    ("GET", "/api/v1/app/a/msg/msg_000000000000000000000000000", "", 404),
    ("GET", "/api/v1/app/a/msg/%F0%9F%90%8E", "", 404),
    ("GET", "/api/v1/app/a/endpoint/none", "", 404),
    ("GET", "/api/v1/app/a/dead-letter/dl_x", "", 404),
    ("GET", "/api/v1/app/a/dead-letter/dl_zzzzzzzzzzzzzzzzzzzzzzzzzzz", "", 404),
    ("GET", "/api/v1/app/a/dead-letter?reason=none", "", 422),
    ("GET", "/api/v1/app/a/dead-letter?iterator=x", "", 422),
    ("GET", "/api/v1/app/a/msg?limit=251", "", 422),
    ("GET", "/api/v1/app/a/msg?iterator=ep_000000000000000000000000000", "", 422),
    ("GET", "/api/v1/app/a/msg?iterator=msg_zzzzzzzzzzzzzzzzzzzzzzzzzzz", "", 422),
    ("GET", "/api/v1/app/a/msg?before=yesterday", "", 422),
    ("GET", "/api/v1/app/a/msg?channel=%00", "", 422),
    ("GET", "/api/v1/app/a/msg?event_types=a%00b", "", 422),
    ("GET", "/api/v1/app/a/msg?with_content=maybe", "", 422),
    ("GET", "/api/v1/app/a/attempt/endpoint/e?status=9", "", 422),
    ("GET", "/api/v1/app?order=up", "", 422),
    ("GET", "/api/v1/event-type?iterator=%00", "", 422),
    ("GET", "/api/v1/event-type/a%20b", "", 404),
    ("PUT", "/api/v1/event-type/a%20b", r#"{"description":""}"#, 422),
    ("PUT", "/api/v1/app/a%20b", r#"{"name":"x"}"#, 422),
    ("PUT", "/api/v1/app/a/endpoint/%2e%2e", r#"{"url":"https://h.example"}"#, 422),
    ("POST", "/api/v1/app/a/msg", r#"{"eventType":"t","payload":{},"application":1}"#, 422),
    ("POST", "/api/v1/app/a/msg", r#"{"eventType":"t","payload":{},"application":{}}"#, 422),
    ("POST", "/api/v1/auth/app-portal-access/a", r#"{"application":[]}"#, 422),
    ("POST", "/api/v1/app/a/msg", r#"{"eventType":"t","payload":{"a":1e}}"#, 422),
    ("POST", "/api/v1/app/none/msg", r#"{"eventType":"t","payload":{}}"#, 404),
    ("POST", "/api/v1/app/a/endpoint", r#"{"url":"https://u:p@h.example"}"#, 422),
    ("POST", "/api/v1/app/a/endpoint", r#"{"url":"https://h.example","uid":"e"}"#, 409),
    ("POST", "/api/v1/app/a/endpoint", r#"{"url":"https://h.example","eventTypes":["no"]}"#, 422),
    ("POST", "/api/v1/app/a/endpoint/e/breaker", r#"{"state":"ajar"}"#, 422),
    (
        "PATCH",
        "/api/v1/app/a/endpoint/e",
        r#"{"retryPolicy":{"base":"99999999999999999999h"}}"#,
        422,
    ),
    ("PATCH", "/api/v1/app/a/endpoint/e/headers", r#"{"headers":{"webhook-id":"x"}}"#, 422),
];

#[tokio::test]
async fn every_wrong_request_gets_a_reason() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let deep = format!(r#"{{"eventType":"t","payload":{{"a":{}"#, "[".repeat(50_000));
    let deep = ("POST", "/api/v1/app/a/msg", deep.as_str(), 422);
    for &(method, path, body, status) in WRONG.iter().chain([&deep]) {
        let answer = server.send(method, path, &[], body.to_owned()).await;
        let shown = &body[..body.len().min(100)];
        assert_eq!(answer.status, status, "{method} {path} {shown}: {}", answer.text());
        assert_eq!(answer.headers["content-type"], "application/json", "{method} {path}");
        let json = answer.json();
        let detail = &json["detail"];
        assert_eq!(status == 422, detail.is_array(), "{json}");
        if status == 422 {
            let fault = &detail[0];
            assert!(
                fault["loc"].is_array() && fault["msg"].is_string() && fault["type"].is_string()
            );
        } else {
            assert!(json["code"].is_string() && detail.is_string(), "{json}");
        }
    }
    assert_eq!(server.get("/health").await.status, 200);
}

#[tokio::test]
async fn unknown_fields_may_hold_anything() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let writes = [
        ("POST", "/app", r#"{"name":"x","#, 201),
        ("PUT", "/app/a", r#"{"name":"x","uid":"a","#, 200),
        ("PATCH", "/app/a", "{", 200),
        ("POST", "/app/a/endpoint", r#"{"url":"https://h.example","#, 201),
        ("PATCH", "/app/a/endpoint/e", "{", 200),
        ("PATCH", "/app/a/endpoint/e", r#"{"retryPolicy":{"base":"1s"},"#, 200),
        ("PATCH", "/app/a/endpoint/e/headers", "{", 204),
        ("POST", "/app/a/endpoint/e/secret/rotate", "{", 200),
        ("POST", "/app/a/endpoint/e/breaker", r#"{"state":"auto","#, 200),
        ("PUT", "/event-type/t", r#"{"description":"","#, 201),
        ("POST", "/app/a/msg", r#"{"eventType":"t","payload":{},"#, 202),
    ];
    for odd in ["1e999", "-1e999", r#""\ud800""#, &deep] {
        for (method, path, start, status) in writes {
            let body = format!(r#"{start}"unknown":{odd}}}"#);
            let answer = server.send(method, &format!("/api/v1{path}"), &[], body).await;
            // What a PUT made is there the next time.
            let status = if method == "PUT" && answer.status == 200 { 200 } else { status };
            let odd = &odd[..odd.len().min(20)];
            assert_eq!(answer.status, status, "{method} {path} {odd}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn what_is_no_utf8_is_refused() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let bodies: [&[u8]; 2] = [
        b"{\"eventType\":\"t\",\"payload\":{\"a\":\"\xFF\"}}",
        b"{\"eventType\":\"\xFF\",\"payload\":{}}",
    ];
    for body in bodies {
        assert_eq!(server.send("POST", "/api/v1/app/a/msg", &[], body).await.status, 422);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_while_it_is_sent() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let message = |bytes: usize| json!({"eventType": "t", "payload": {"a": "x".repeat(bytes)}});
    server.post("/app/a/msg", &message((1 << 20) - 8)).await.expect(202);
    let refused = server.post("/app/a/msg", &message(1 << 20)).await.expect(413);
    assert_eq!(refused["code"], "payload_too_large");
    assert_eq!(refused["detail"], "The payload is larger than 1048576 bytes");
    let app = json!({"name": "x".repeat(2 << 20)});
    let refused = server.post("/app", &app).await;
    assert_eq!(refused.headers["connection"], "close");
    assert_eq!(refused.expect(413)["detail"], "The body is larger than 1114112 bytes");

    for _ in 0..5 {
        let refused = server.post("/app/a/msg", &message(8 << 20)).await;
        assert_eq!(refused.status, 413, "the reason is seen though all of it was sent");
    }

    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST /api/v1/app/a/msg HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 8000000\r\n\r\n{{",
        server.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_raw_payload_is_measured_as_it_is_sent() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let post = async |length: usize| {
        // Six bytes in JSON for each.
        let raw = "\u{1}".repeat(length);
        let params = json!({"rawPayload": raw});
        let message = json!({"eventType": "t", "payload": {}, "transformationsParams": params});
        server.post("/app/a/msg", &message).await
    };
    post(1 << 20).await.expect(202);
    let refused = post((1 << 20) + 1).await.expect(413);
    assert_eq!(refused["detail"], "The payload is larger than 1048576 bytes");
}

#[tokio::test]
async fn a_reason_names_the_field_and_the_rule() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let at = |secs: i64| {
        let now = SystemClock.now().as_secs();
        jiff::Timestamp::from_second(now + secs).unwrap().to_string()
    };
    let message = |rest: &str| format!(r#"{{"eventType":"t","payload":{{}},{rest}}}"#);
    let deliver_at = |at: &str| message(&format!(r#""deliverAt":"{at}""#));
    let since = format!(r#"{{"since":"{}"}}"#, at(600));
    let early = format!(r#""payloadRetentionHours":1,"deliverAt":"{}""#, at(7_200));
    let late = "must be at most 24 hours from now";
    let raw = r#""transformationsParams":{"rawPayload":7}"#;
    let twice = "must not be given twice";
    let table = [
        ("POST", "msg", deliver_at(&at(-90)), "deliverAt", "must not be in the past by more"),
        ("POST", "msg", deliver_at(&at(90_000)), "deliverAt", late),
        ("POST", "msg", deliver_at("9999-12-31T23:59:59Z"), "deliverAt", "must not be later than"),
        ("POST", "msg", message(&early), "deliverAt", "must be before the payload goes"),
        ("POST", "msg", message(r#""data":{}"#), "data", "must not be given beside payload"),
        ("POST", "msg", message(raw), "transformationsParams.rawPayload", "must be a text"),
        ("POST", "msg", message(r#""tags":["\ud800"]"#), "tags", "cannot be read: it holds half"),
        ("POST", "msg", message(r#""\ud800":1"#), "", "has a name with half of a surrogate pair"),
        ("PATCH", "", r#"{"name":"b","name":"c"}"#.to_owned(), "name", twice),
        ("PATCH", "", r#"{"name":"\udc00"}"#.to_owned(), "name", "cannot be read: it holds half"),
        ("PATCH", "endpoint/e", r#"{"uid":"f","uid":null}"#.to_owned(), "uid", twice),
        (
            "PATCH",
            "endpoint/e",
            r#"{"breaker":{"failures":1,"failures":2}}"#.to_owned(),
            "breaker.failures",
            twice,
        ),
        ("PATCH", "endpoint/e", r#"{"eventTypes":["t","a b"]}"#.to_owned(), "eventTypes.[1]", ""),
        ("POST", "endpoint/e/recover", since.clone(), "since", "must not be in the future"),
        ("POST", "endpoint/e/replay-missing", since.clone(), "since", "must not be in the future"),
        ("POST", "endpoint/e/bulk-replay", since, "since", "must not be in the future"),
    ];
    for (method, path, body, field, rule) in table {
        let path = format!("/api/v1/app/a/{path}");
        let answer = server.send(method, &path, &[], body.clone()).await.expect(422);
        let fault = &answer["detail"][0];
        let loc = fault["loc"].as_array().unwrap().iter().map(|part| part.as_str().unwrap());
        let loc = loc.skip(1).collect::<Vec<_>>().join(".");
        assert_eq!(loc, field, "{body}: {answer}");
        assert!(fault["msg"].as_str().unwrap().starts_with(rule), "{body}: {answer}");
        assert_eq!(answer["detail"].as_array().unwrap().len(), 1, "{answer}");
    }
    let body = message(r#""application":{"name":""}"#);
    let answer = server.send("POST", "/api/v1/app/new/msg", &[], body).await.expect(422);
    assert_eq!(answer["detail"][0]["loc"], json!(["body", "application", "name"]));
    assert_eq!(server.get("/app/a").await.expect(200)["name"], "a", "nothing was changed");
}

/// Sends bytes that are no request, all of them if the server takes them, and reads what comes.
fn sent_raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let _refused_early = stream.write_all(bytes);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn what_is_no_request_gets_a_reason_too() {
    let server = Server::start().await;
    let line = |length: usize| format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(length));
    let heads = |count: usize, length: usize| {
        let header = format!("x-filling: {}\r\n", "x".repeat(length));
        format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", header.repeat(count))
    };
    let table = [
        ("GET /\r\n\r\n".to_owned(), 400, "generic_error"),
        ("G\u{1}T / HTTP/1.1\r\n\r\n".to_owned(), 400, "generic_error"),
        ("GET / HTTP/1.1\r\nno header\r\n\r\n".to_owned(), 400, "generic_error"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400, "generic_error"),
        ("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n".to_owned(), 400, "generic_error"),
        ("POST / HTTP/1.1\r\ntransfer-encoding: x\r\n\r\n".to_owned(), 400, "generic_error"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, "generic_error"),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n".to_owned(), 400, "generic_error"),
        ("GET / HTTP/1.1\r\nhost: a b\r\n\r\n".to_owned(), 400, "generic_error"),
        (line(65_600), 414, "uri_too_long"),
        (heads(200, 10), 431, "headers_too_large"),
        (heads(20, 60_000), 431, "headers_too_large"),
        (heads(10, 6_600), 431, "headers_too_large"),
        (heads(10, 12_000), 431, "headers_too_large"),
        (heads(1, 2_000_000), 431, "headers_too_large"),
    ];
    let most = heads(98, 10).replacen("\r\n", "\r\nconnection: close\r\n", 1);
    assert!(sent_raw(&server, most.as_bytes()).starts_with("HTTP/1.1 307 "), "100 headers");
    let (begin, end) = ("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: ", "\r\n\r\n");
    let filled =
        |bytes: usize| format!("{begin}{}{end}", "x".repeat(bytes - begin.len() - end.len()));
    assert!(sent_raw(&server, filled(65_536).as_bytes()).starts_with("HTTP/1.1 307 "), "64 KiB");
    assert!(sent_raw(&server, filled(65_537).as_bytes()).starts_with("HTTP/1.1 431 "));
    // To what is no HTTP/1 at all, nothing that it would understand can be said.
    assert_eq!(sent_raw(&server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "");
    let good = "GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\n\r\n";
    for (request, status, code) in table {
        // Alone, and behind a good one.
        for (before, answers) in [("", 1), (good, 2)] {
            let request = format!("{before}{request}");
            let shown = request.chars().take(80).collect::<String>();
            let answer = sent_raw(&server, request.as_bytes());
            assert_eq!(answer.matches("HTTP/1.1 ").count(), answers, "{shown:?}: {answer}");
            let last = answer.rfind("HTTP/1.1 ").map(|at| &answer[at..]).unwrap();
            assert!(last.starts_with(&format!("HTTP/1.1 {status} ")), "{shown:?}: {answer}");
            let (head, body) = last.split_once("\r\n\r\n").unwrap();
            assert!(head.contains("content-type: application/json"), "{head}");
            assert!(head.contains("connection: close") && head.contains("\r\ndate: "), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["code"], code, "{shown:?}");
        }
    }
}

#[tokio::test]
async fn browsers_of_any_origin_may_call() {
    let server = Server::start().await;
    let headers = [
        ("origin", "https://x.example"),
        ("access-control-request-method", "PATCH"),
        ("access-control-request-headers", "authorization"),
    ];
    let preflight = server.send("OPTIONS", "/api/v1/app", &headers, "").await;
    assert_eq!(preflight.headers["access-control-allow-headers"], "authorization");
    assert_eq!(preflight.headers["access-control-max-age"], "600");
    let simple = server.send("GET", "/api/v1/app", &headers[..1], "").await;
    assert_eq!(
        (simple.status, &simple.headers["access-control-allow-origin"]),
        (200, &"*".parse().unwrap())
    );
}
