//! URLs and custom headers arrive as they were given, or are refused; and neither is told to
//! anybody who may not read them.
//!
//! Never: a value cut, filled in, or written into a log, a metric or an error.

use serde_json::json;

use crate::support::server::refused_setting;
use crate::support::{Raw, Receiver, Reply, Server, Step, until};

#[tokio::test]
async fn hd_02_a_long_credential_is_sent_whole_or_refused() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let long = format!("Bearer {}", "x".repeat(4_089));
    assert_eq!(long.len(), 4_096);
    server.app_with("a", &receiver.url("/"), json!({"headers": {"Authorization": long}})).await;
    server.message("a", json!({})).await;
    assert_eq!(receiver.wait_for(1).await[0].header("authorization"), long);
    let longer = json!({"headers": {"Authorization": format!("{long}x")}});
    server.patch("/app/a/endpoint/e/headers", &longer).await.expect(422);
    server.patch("/app/a/endpoint/e", &longer).await.expect(422);
    server.message("a", json!({})).await;
    assert_eq!(receiver.wait_for(2).await[1].header("authorization"), long, "as it was");
}

#[tokio::test]
async fn hd_03_placeholders_are_only_text() {
    let mut server = Server::start().await;
    let receiver = Receiver::start().await;
    let values = json!({"X-A": "a{{b", "X-B": "{{secret}}", "X-C": "${x}", "X-D": "%{y} $(id)"});
    server.app_with("a", &receiver.url("/"), json!({"headers": values})).await;
    for count in 1..=2 {
        server.message("a", json!({})).await;
        let hit = receiver.wait_for(count).await.remove(count - 1);
        assert_eq!((hit.header("x-a"), hit.header("x-b")), ("a{{b", "{{secret}}"));
        assert_eq!((hit.header("x-c"), hit.header("x-d")), ("${x}", "%{y} $(id)"));
        server.kill_and_restart();
    }
}

#[tokio::test]
async fn ur_01_an_ipv6_literal_is_dialled_with_its_brackets() {
    let answer = || vec![Step::send("HTTP/1.1 204 No Content\r\n\r\n")];
    let Ok(raw) = Raw::on("[::1]:0", move |_| answer()).await else {
        println!("skipped: this machine has no IPv6 loopback");
        return;
    };
    let server = Server::with(&[("PEYK_ALLOWED_TARGETS", "::1/128")]).await;
    server.app_with("a", &raw.url("/x"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let head = raw.wait_for(1).await.remove(0);
    let host = format!("\r\nhost: [::1]:{}\r\n", raw.address().port());
    assert!(String::from_utf8_lossy(&head).to_ascii_lowercase().contains(&host));
    server.wait_delivered("a", &[id]).await;
    for (url, status) in [
        ("http://[2606:4700::1111]/", 201),
        ("http://[2606:4700::ABCD]:8080/x", 201),
        ("http://[::ffff:8.8.8.8]/", 201),
        ("http://[fe80::1%25eth0]/", 422),
        ("http://[::1/", 422),
        ("http://::1/", 422),
    ] {
        let made = server.post("/app/a/endpoint", &json!({"url": url, "disabled": true})).await;
        assert_eq!(made.status, status, "{url}: {}", made.text());
    }
}

#[tokio::test]
async fn ur_02_a_long_url_is_sent_byte_for_byte_or_refused() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let query = "/p%2Fq/%C3%A9?sig=a%2Fb/c+d%2B%20e&t=";
    let mut sent = Vec::new();
    for length in [255, 256, 297, 300, 1_100, 2_000, 8_000] {
        let start = receiver.url(query);
        let url = format!("{start}{}", "x".repeat(length - start.len()));
        let made = server.post("/app/a/endpoint", &json!({"url": url})).await.expect(201);
        assert_eq!(made["url"], url);
        sent.push(url);
    }
    for length in [8_193, 70_000] {
        let url = format!("https://h.example/{}", "x".repeat(length - 18));
        server.post("/app/a/endpoint", &json!({"url": url})).await.expect(422);
    }
    let id = server.message("a", json!({})).await;
    let hits = receiver.wait_for(sent.len()).await;
    let mut arrived: Vec<_> = hits.iter().map(|hit| receiver.url(&hit.path)).collect();
    arrived.sort_by_key(String::len);
    assert_eq!(arrived, sent);
    let rows = server.wait_attempts("a", &id, sent.len()).await;
    assert!(rows.iter().all(|row| sent.iter().any(|url| row["url"] == *url)));
}

const SECRETS: [&str; 5] = ["T0KEN", "S3CR3T", "H34DER", "U53R", "whsec_"];

#[track_caller]
fn tells_nothing(what: &str, text: &str) {
    for secret in SECRETS {
        let told = text.lines().find(|line| line.contains(secret));
        assert!(told.is_none(), "{secret} in {what}: {told:?}");
    }
}

#[tokio::test]
async fn ur_03_no_failure_tells_the_url() {
    let path = "/p/T0KEN?key=S3CR3T";
    let receiver = Receiver::scripted(|_, hit| match hit.header("x-kind") {
        "moved" => Reply::status(302).header("location", "http://127.0.0.1:1/p/T0KEN?key=S3CR3T"),
        _ => Reply::status(500),
    })
    .await;
    let torn = Raw::start(|_| vec![Step::Close]).await;
    let settings = [("PEYK_LOG__LEVEL", "trace"), ("PEYK_ALLOWED_TARGETS", "127.0.0.1/32")];
    let mut server = Server::with(&settings).await;
    // Answers 500, a redirect, a reset, no TLS, a closed port, a forbidden address.
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    let targets = [
        ("failing", receiver.url(path)),
        ("moved", receiver.url(path)),
        ("torn", torn.url(path)),
        ("tls", receiver.url(path).replace("http:", "https:")),
        ("refused", format!("http://{closed}{path}")),
        ("forbidden", format!("http://127.0.0.2:9{path}")),
    ];
    let mut told = String::new();
    for (kind, url) in &targets {
        let headers = json!({"x-kind": kind, "authorization": "Bearer H34DER"});
        server.app_with(kind, url, json!({"headers": headers})).await;
        let id = server.message(kind, json!({})).await;
        let letter = server.wait_dead(kind, 1).await.remove(0);
        told += &format!("{}\n", letter["lastError"]);
        for row in server.attempts(kind, &id).await {
            told += &format!("{} {} {}\n", row["error"], row["errorKind"], row["redirectOrigin"]);
        }
    }
    for url in ["https://U53R:S3CR3T@h.example/p/T0KEN", "ftp://h/T0KEN", "https://h:x/T0KEN"] {
        let refused = server.post("/app/failing/endpoint", &json!({"url": url})).await;
        assert_eq!(refused.status, 422);
        told += &format!("{}\n", refused.text());
    }
    let secret = json!({"url": "https://h.example", "secret": "whsec_T0KEN"});
    told += &server.post("/app/failing/endpoint", &secret).await.expect(422).to_string();
    told += &server.get("/app/failing/endpoint/none").await.text();
    tells_nothing("an error", &told);
    tells_nothing("a metric", &server.send("GET", "/metrics", &[], "").await.text());
    server.kill_and_restart();
    server.stop();
    assert!(server.log().contains("stopped"), "there is a log");
    tells_nothing("the log", &server.log());
}

#[tokio::test]
async fn hc_09_ur_03_a_name_that_does_not_resolve_is_tried_again_and_its_path_is_not_told() {
    let settings = [("PEYK_LOG__LEVEL", "trace"), ("PEYK_RETRY__BASE", "1h")];
    let server = Server::with(&settings).await;
    server.app_with("a", "http://none.invalid/p/T0KEN?key=S3CR3T", json!({})).await;
    let id = server.message("a", json!({})).await;
    let rows = until("a failure of the resolver", || async {
        let rows = server.attempts("a", &id).await;
        // Without a name server the fault is on this side: nothing is counted, and sending pauses.
        (!rows.is_empty() || server.log().contains("sending paused")).then_some(rows)
    })
    .await;
    for row in rows {
        assert_eq!((&row["errorKind"], &row["delaySetBy"]), (&json!("dns"), &json!("backoff")));
        tells_nothing("an error", &row["error"].to_string());
    }
    assert!(server.dead_letters("a").await.is_empty());
    assert_eq!(server.breaker("a").await["waiting"], 1);
    tells_nothing("the log", &server.log());
    tells_nothing("a metric", &server.send("GET", "/metrics", &[], "").await.text());
}

#[test]
fn ur_03_a_setting_that_is_refused_is_not_repeated() {
    for (name, value) in [
        ("PEYK_DATABASE_URL", "mysql://U53R:S3CR3T@h/d"),
        ("PEYK_DATABASE_URL", "postgres://U53R:S3CR3T@h:port/d"),
        ("PEYK_PROXY__URL", "ftp://U53R:S3CR3T@proxy"),
        ("PEYK_PROXY__URL", "http://U53R:S3CR3T@proxy/path"),
        ("PEYK_JWT_SECRET", "S3CR3T"),
    ] {
        tells_nothing(name, &refused_setting(name, value));
    }
}

#[tokio::test]
async fn ur_04_user_info_is_refused_with_a_hint() {
    let server = Server::start().await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    for url in [
        "https://user:pa%3Ass@h.example/",
        "https://good.example@127.0.0.1/",
        r"https://127.0.0.1\@good.example/",
        "https://h.example:443@10.0.0.1:80/",
        "https://@h.example/",
    ] {
        let refused = server.post("/app/a/endpoint", &json!({"url": url})).await;
        let detail = refused.expect(422)["detail"][0].clone();
        assert_eq!(detail["loc"], json!(["body", "url"]), "{url}");
        if !url.contains('\\') {
            assert!(detail["msg"].as_str().unwrap().contains("header"), "{url}: {detail}");
        }
    }
}
