//! Payloads: what was posted is what is sent, signed and read back, byte for byte, or refused.
//!
//! Never: a payload parsed and written anew, or a 5xx for what a caller may send.

use serde_json::{Value, json};
use webhook::{Secret, WebhookVerifier};

use crate::support::receiver::Hit;
use crate::support::{Receiver, Server};

/// Whether a hit was signed with this key.
fn verifies(hit: &Hit, key: &Value) -> bool {
    let secret = Secret::parse(key.as_str().unwrap()).unwrap();
    let lines = hit.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let at = hit.header("webhook-timestamp").parse().unwrap();
    WebhookVerifier::standard().key(&secret).build().unwrap().verify(lines, &hit.body, at).is_ok()
}

/// Posts each text as a payload; it must arrive and be read back unchanged.
async fn pass_through(payloads: &[&str]) {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({"ordered": true})).await;
    let key = server.get("/app/a/endpoint/e/secret").await.expect(200);
    for (count, payload) in payloads.iter().enumerate() {
        let body =
            format!("{{\"eventType\":\"t\",\"eventId\":\"e{count}\",\"payload\":{payload}}}");
        let made = server.send("POST", "/api/v1/app/a/msg", &[], body).await;
        assert_eq!(made.status, 202, "{payload}: {}", made.text());
        assert!(made.text().contains(payload), "{}", made.text());
        let hit = receiver.wait_for(count + 1).await.remove(count);
        assert_eq!(hit.body, *payload);
        assert_eq!(hit.header("content-length"), payload.len().to_string(), "bytes");
        assert!(verifies(&hit, &key["key"]), "{payload}");
        let read = server.get(&format!("/app/a/msg/e{count}")).await;
        assert!(read.text().contains(payload), "{}", read.text());
        let listed = server.get("/app/a/msg?limit=1").await;
        assert!(listed.text().contains(payload), "{}", listed.text());
    }
}

#[tokio::test]
async fn db_01_nul_in_a_payload_passes_through() {
    pass_through(&[
        r#"{"a":"x\u0000y"}"#,
        r#"{"a\u0000":1}"#,
        r#"{"a":"\\u0000"}"#,
        r#"{"\u0000":"\u0000"}"#,
    ])
    .await;
}

#[tokio::test]
async fn db_02_unpaired_surrogates_pass_through() {
    pass_through(&[r#"{"a":"\ud800"}"#, r#"{"a":"\udc00\ud800"}"#, r#"{"\udfff":"\uD83D"}"#]).await;
}

#[tokio::test]
async fn sg_03_special_unicode_passes_through() {
    let texts = [
        "{\"a\":\"\u{2028}\u{2029}\"}",
        "{\"a\":\"x\u{FEFF}y\"}",
        "{\"👩\u{200D}💻\":\"🏳\u{FE0F}\u{200D}🌈\"}",
        "{\"nfc\":\"\u{E9}\",\"nfd\":\"e\u{301}\"}",
        "{\"rtl\":\"\u{202E}abc\u{200F}שלום\"}",
        "{\"кириллица\":\"да\"}",
    ];
    pass_through(&texts).await;
}

#[tokio::test]
async fn sg_11_duplicate_keys_and_spellings_pass_through() {
    pass_through(&[
        r#"{"a":1,"a":2}"#,
        r#"{"a":1.0,"b":1e2,"c":-0,"d":123456789012345678901234567890}"#,
        "{ \"a\" :\t1 ,\n \"b\":\"\\/\\u00e9\" }",
        "{}",
    ])
    .await;
}

#[tokio::test]
async fn db_01_nul_in_names_is_refused() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let refused = [
        ("/app/a/msg", json!({"eventType": "t\0", "payload": {}})),
        ("/app/a/msg", json!({"eventType": "t", "eventId": "e\0", "payload": {}})),
        ("/app/a/msg", json!({"eventType": "t", "channels": ["c\0"], "payload": {}})),
        ("/app/a/endpoint", json!({"url": "https://h.example/\0"})),
        ("/app/a/endpoint", json!({"url": "https://h.example", "uid": "u\0"})),
        ("/app/a/endpoint", json!({"url": "https://h.example", "headers": {"x": "a\0b"}})),
        ("/app/a/endpoint", json!({"url": "https://h.example", "headers": {"x\0": "a"}})),
        ("/app", json!({"name": "a", "uid": "\0"})),
    ];
    for (path, body) in refused {
        server.post(path, &body).await.expect(422);
    }
}

#[tokio::test]
async fn pl_01_an_empty_body_is_refused_and_an_empty_payload_stays_empty() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let key = server.get("/app/a/endpoint/e/secret").await.expect(200);
    for headers in [vec![], vec![("content-type", "application/json")]] {
        let refused = server.send("POST", "/api/v1/app/a/msg", &headers, "").await;
        assert_eq!(refused.status, 422, "{}", refused.text());
    }
    for payload in ["", "null", "[]", "\"\""] {
        let body = format!("{{\"eventType\":\"t\",\"payload\":{payload}}}");
        server.send("POST", "/api/v1/app/a/msg", &[], body).await.expect(422);
    }
    // What is sent in place of a payload may be empty: zero bytes then, signed as such.
    let empty =
        json!({"eventType": "t", "payload": {}, "transformationsParams": {"rawPayload": ""}});
    server.post("/app/a/msg", &empty).await.expect(202);
    let hit = receiver.wait_for(1).await.remove(0);
    assert_eq!((hit.body.len(), hit.header("content-length")), (0, "0"));
    assert!(verifies(&hit, &key["key"]));
    assert_eq!(receiver.hits().len(), 1, "nothing that was refused");
}

#[tokio::test]
async fn pl_01_an_empty_chunked_body_is_refused() {
    use std::io::{Read as _, Write as _};
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST /api/v1/app/a/msg HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         authorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        server.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
}

#[tokio::test]
async fn pl_02_any_text_goes_out_under_its_own_type() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({"ordered": true})).await;
    let key = server.get("/app/a/endpoint/e/secret").await.expect(200);
    let kinds = [
        ("text/xml; charset=utf-8", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<a>é</a>"),
        ("application/x-www-form-urlencoded", "a=1&b=%2B"),
        ("text/plain", "{\"a\" : 1}"),
        ("application/cloudevents+json; charset=utf-8", "{\"specversion\":\"1.0\"}"),
        ("multipart/form-data; boundary=x", "--x\r\n\r\na\r\n--x--\r\n"),
        ("application/octet-stream", "\u{0}\u{1}\u{7F}\u{80}"),
    ];
    for (count, (kind, text)) in kinds.into_iter().enumerate() {
        let params = json!({"rawPayload": text, "headers": {"Content-Type": kind}});
        let message = json!({"eventType": "t", "payload": {}, "transformationsParams": params});
        let made = server.post("/app/a/msg", &message).await.expect(202);
        let hit = receiver.wait_for(count + 1).await.remove(count);
        assert_eq!((&hit.body[..], hit.header("content-type")), (text.as_bytes(), kind));
        assert!(verifies(&hit, &key["key"]), "{kind}");
        let id = made["id"].as_str().unwrap();
        let read = server.get(&format!("/app/a/msg/{id}")).await;
        assert!(read.text().contains("\"payload\":"), "{}", read.text());
    }
    // Bytes that are no UTF-8 cannot stand in the request; nothing is guessed.
    let body: &[u8] = b"{\"eventType\":\"t\",\"payload\":{},\
        \"transformationsParams\":{\"rawPayload\":\"\xFF\"}}";
    server.send("POST", "/api/v1/app/a/msg", &[], body).await.expect(422);
}

#[tokio::test]
async fn sg_10_only_keys_of_a_safe_length_are_taken() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let key = |bytes: usize| format!("whsec_{}", base64(&vec![7; bytes]));
    let newline = format!("{}\n", key(24));
    let bare = key(24).replace("whsec_", "");
    for refused in ["", "whsec_", &key(23), &key(100), &newline, &bare, "whsec_%%%"] {
        let endpoint = json!({"url": receiver.url("/"), "secret": refused});
        server.post("/app/a/endpoint", &endpoint).await.expect(422);
    }
    for (n, taken) in [key(24), key(64), key(25), key(25).replace('=', "")].iter().enumerate() {
        let app = format!("b{n}");
        server.app_with(&app, &receiver.url("/"), json!({"secret": taken})).await;
        server.message(&app, json!({})).await;
        let hit = receiver.wait_for(n + 1).await.remove(n);
        assert!(verifies(&hit, &json!(taken)), "{taken}");
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[tokio::test]
async fn sg_13_the_signed_id_is_made_here_whatever_the_caller_names() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({"ordered": true})).await;
    let long = "x".repeat(1_000);
    for id in ["msg_1.1700000000", "a b", "a\nb", "a,b", "é", "", &long] {
        let message = json!({"eventType": "t", "eventId": id, "payload": {}});
        server.post("/app/a/msg", &message).await.expect(422);
    }
    let keys = [("idempotency-key", "a.1700000000"), ("idempotency-key", "a,b;c")];
    for (count, key) in keys.iter().enumerate() {
        let message = json!({"eventType": "t", "eventId": format!("a.{count}"), "payload": {}});
        let headers = [*key];
        let made = server.send("POST", "/api/v1/app/a/msg", &headers, message.to_string()).await;
        let made = made.expect(202);
        let hit = receiver.wait_for(count + 1).await.remove(count);
        let id = hit.header("webhook-id");
        assert_eq!(id, made["id"]);
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{id}");
        assert!(!hit.header("webhook-timestamp").contains('.'));
    }
}

#[tokio::test]
async fn sg_12_names_on_the_wire_verify_in_any_case() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let key = server.get("/app/a/endpoint/e/secret").await.expect(200);
    server.message("a", json!({"n": 1})).await;
    let hit = receiver.wait_for(1).await.remove(0);
    let secret = Secret::parse(key["key"].as_str().unwrap()).unwrap();
    let verifier = WebhookVerifier::standard().key(&secret).build().unwrap();
    let at = hit.header("webhook-timestamp").parse().unwrap();
    for spell in [str::to_uppercase, str::to_lowercase] as [fn(&str) -> String; 2] {
        let lines: Vec<(String, &str)> = hit
            .headers
            .iter()
            .map(|(name, value)| (spell(name.as_str()), value.to_str().unwrap()))
            .collect();
        let lines = lines.iter().map(|(name, value)| (name.as_str(), *value));
        assert!(verifier.verify(lines, &hit.body, at).is_ok());
    }
}
