//! What callers of the Svix API count on, as far as no other file shows it.
//!
//! Never: a behaviour that is ours alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webhook::{Secret, WebhookVerifier};

use crate::support::receiver::Hit;
use crate::support::{Raw, Receiver, Reply, Server, Step};

/// What a list shows, by the name that each row was given.
async fn page(server: &Server, path: &str, query: &str) -> (Vec<String>, Value) {
    let page = server.get(&format!("{path}?{query}")).await.expect(200);
    let name =
        |row: &Value| row.get("uid").unwrap_or_else(|| &row["name"]).as_str().unwrap().to_owned();
    (page["data"].as_array().unwrap().iter().map(name).collect(), page)
}

/// The common test of lists: of ten rows, in the order of the list.
async fn listed(server: &Server, path: &str, all: &[&str], turns: bool) {
    for (limit, count, done) in [(1, 1, false), (6, 6, false), (10, 10, true), (50, 10, true)] {
        let (rows, page) = page(server, path, &format!("limit={limit}")).await;
        assert_eq!((&rows[..], &page["done"]), (&all[..count].map_owned()[..], &json!(done)));
    }
    let (_, first) = page(server, path, "limit=6").await;
    let on = format!("limit=6&iterator={}", first["iterator"].as_str().unwrap());
    let (rest, last) = page(server, path, &on).await;
    assert_eq!((rest, &last["done"]), (all[6..].map_owned(), &json!(true)), "{path}");
    let back = format!("limit=3&iterator={}", last["prevIterator"].as_str().unwrap());
    assert_eq!(page(server, path, &back).await.0, all[3..6].map_owned(), "{path}");
    server.get(&format!("{path}?limit=6&iterator=BAD-$$$ITERATOR")).await.expect(422);
    server.get(&format!("{path}?limit=300")).await.expect(422);
    if !turns {
        return;
    }
    let mut turned = all.map_owned();
    turned.reverse();
    let other = if all.is_sorted() { "descending" } else { "ascending" };
    let (rows, first) = page(server, path, &format!("order={other}&limit=3")).await;
    assert_eq!(rows, turned[..3]);
    let on = format!("order={other}&limit=3&iterator={}", first["iterator"].as_str().unwrap());
    let (rows, second) = page(server, path, &on).await;
    assert_eq!(rows, turned[3..6]);
    let back = second["prevIterator"].as_str().unwrap();
    let back = format!("order={other}&limit=3&iterator={back}");
    assert_eq!(page(server, path, &back).await.0, turned[..3]);
}

trait Owned {
    fn map_owned(&self) -> Vec<String>;
}

impl Owned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|&text| text.to_owned()).collect()
    }
}

/// Ports `test_list` of applications, endpoints and event types.
#[tokio::test]
async fn test_list() {
    let server = Server::start().await;
    let names: Vec<_> = (0..10).map(|n| format!("n{n}")).collect();
    for name in &names {
        server.post("/app/", &json!({"name": name, "uid": name})).await.expect(201);
        let kind = json!({"name": name, "description": "", "schemas": {"1": {}}});
        server.post("/event-type/", &kind).await.expect(201);
    }
    for name in &names {
        let endpoint = json!({"url": "https://h.example", "uid": name});
        server.post("/app/n0/endpoint/", &endpoint).await.expect(201);
    }
    let mut all: Vec<_> = names.iter().map(String::as_str).collect();
    listed(&server, "/app/", &all, true).await;
    listed(&server, "/event-type/", &all, false).await;
    all.reverse();
    listed(&server, "/app/n0/endpoint/", &all, true).await;
}

/// Ports `test_uid` of endpoints.
#[tokio::test]
async fn test_uid_of_an_endpoint() {
    let server = Server::start().await;
    for app in ["a", "b"] {
        server.app_with(app, "https://h.example", json!({})).await;
    }
    let other = json!({"url": "https://h.example", "uid": "f"});
    let made = server.post("/app/a/endpoint", &other).await.expect(201);
    let taken = json!({"url": "https://h.example", "uid": "e"});
    server.post("/app/a/endpoint", &taken).await.expect(409);
    server.put("/app/a/endpoint/f", &taken).await.expect(409);
    server.patch("/app/a/endpoint/f", &json!({"uid": "e"})).await.expect(409);
    server.delete("/app/a/endpoint/e").await.expect(204);
    server.patch("/app/a/endpoint/f", &json!({"uid": "e"})).await.expect(200);
    server.get("/app/a/endpoint/f").await.expect(404);
    assert_eq!(server.get("/app/a/endpoint/e").await.expect(200)["id"], made["id"]);
    let none = server.put("/app/a/endpoint/e", &json!({"url": "https://h.example"})).await;
    assert!(none.expect(200)["uid"].is_null());
    server.get("/app/a/endpoint/e").await.expect(404);
    server.post("/app/a/endpoint", &taken).await.expect(201);
}

/// Ports `test_message_attempts` and `test_message_attempts_empty_retry_schedule`; here 403 is
/// tried again only where the policy names it.
#[tokio::test]
async fn test_message_attempts() {
    let server = Server::with(&[("PEYK_BREAKER__ENABLED", "false")]).await;
    let receiver = Receiver::scripted(|_, hit| Reply::status(hit.path[1..].parse().unwrap())).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let thrice = json!({"strategy": "schedule", "schedule": ["10ms", "10ms"], "attemptsMax": 3});
    let mut all = thrice.clone();
    all["retryOn"] = "all".into();
    let once = json!({"attemptsMax": 1});
    for (app, url, policy, count, code) in [
        ("ok", receiver.url("/204"), &thrice, 1, 204),
        ("refused", receiver.url("/403"), &thrice, 1, 403),
        ("all", receiver.url("/403"), &all, 3, 403),
        ("failed", receiver.url("/500"), &thrice, 3, 500),
        ("closed", format!("http://{closed}/"), &thrice, 3, 0),
        ("once", receiver.url("/500"), &once, 1, 500),
    ] {
        server.app_with(app, &url, json!({"retryPolicy": policy})).await;
        let id = server.message(app, json!({})).await;
        let rows = server.wait_attempts(app, &id, count).await;
        server.wait_idle(app).await;
        assert_eq!(server.attempts(app, &id).await.len(), count, "{app}");
        let (status, text) = if code == 204 { (0, "success") } else { (2, "fail") };
        for row in rows {
            assert_eq!(row["responseStatusCode"], code, "{app}: {row}");
            assert_eq!((&row["status"], &row["statusText"]), (&json!(status), &json!(text)));
        }
    }
}

fn verifies(hit: &Hit, key: &str) -> bool {
    let lines = hit.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let at = hit.header("webhook-timestamp").parse().unwrap();
    let key = Secret::parse(key).unwrap();
    WebhookVerifier::standard().key(&key).build().unwrap().verify(lines, &hit.body, at).is_ok()
}

/// Ports `test_custom_endpoint_secret`, `test_endpoint_secret_get_and_rotation` and
/// `test_endpoint_rotate_signing_symmetric_and_asymmetric`.
#[tokio::test]
async fn test_endpoint_rotate_signing_symmetric_and_asymmetric() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let pair = Secret::from_random_ed25519([9; 32]);
    let (private, public) = (pair.to_private_text(), pair.to_public_text());
    assert!(private.starts_with("whsk_") && public.starts_with("whpk_"));
    let own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    server.app_with("a", &receiver.url("/"), json!({"secret": own})).await;
    let key = async || server.get("/app/a/endpoint/e/secret").await.expect(200)["key"].clone();
    assert_eq!((key().await, key().await), (json!(own), json!(own)));
    let rotate = "/app/a/endpoint/e/secret/rotate";
    server.post(rotate, &json!({"key": private})).await.expect(200);
    assert_eq!(key().await, public);
    let fresh = Secret::from_random_hmac([8; 24]).to_private_text();
    server.post(rotate, &json!({"key": fresh})).await.expect(200);
    assert_eq!(key().await, fresh);
    server.message("a", json!({})).await;
    let hit = receiver.wait_for(1).await.remove(0);
    let versions =
        hit.header("webhook-signature").split(' ').fold(BTreeMap::new(), |mut all, it| {
            *all.entry(it.split_once(',').unwrap().0).or_insert(0) += 1;
            all
        });
    assert_eq!(versions, BTreeMap::from([("v1", 2), ("v1a", 1)]));
    for secret in [own, &private, &fresh] {
        assert!(verifies(&hit, secret));
    }
    server.post("/app", &json!({"name": "b", "uid": "b"})).await.expect(201);
    let with = |secret: &str| json!({"url": receiver.url("/"), "uid": "e", "secret": secret});
    let cut = &private[..private.len() - 8];
    for bad in ["whsk_", cut, &public, "whsk_%%%"] {
        let refused = server.post("/app/b/endpoint", &with(bad)).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "secret"]), "{bad}");
    }
    server.post("/app/b/endpoint", &with(&private)).await.expect(201);
    let shown = server.get("/app/b/endpoint/e/secret").await.expect(200);
    assert_eq!(shown["key"], public, "the private half stays here");
}

/// Ports `test_endpoint_header_key_capitalization`.
#[tokio::test]
async fn test_endpoint_header_key_capitalization() {
    let server = Server::start().await;
    let raw = Raw::start(|_| vec![Step::send("HTTP/1.1 204 No Content\r\n\r\n")]).await;
    let headers = json!({"X-tEsT-HeAdEr": "kEpT", "x-low": "1"});
    let fields = json!({"headers": headers, "ordered": true});
    server.app_with("a", &raw.url("/"), fields).await;
    // Over one connection, with bodies of different sizes.
    let texts = [0, 100_000, 10].map(|length| "x-low: ".repeat(length));
    for text in &texts {
        server.message("a", json!({"text": text})).await;
    }
    for (request, text) in raw.wait_for(3).await.iter().zip(&texts) {
        let request = String::from_utf8(request.to_vec()).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nX-tEsT-HeAdEr: kEpT"), "{head}");
        assert!(head.contains("\r\nx-low: 1"), "{head}");
        assert_eq!(body, json!({"text": text}).to_string());
    }
    assert_eq!(raw.connections(), 1);
}

/// Ports `test_endpoint_headers_manipulation`: which names are refused, and what is read back.
#[tokio::test]
async fn test_endpoint_headers_manipulation() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example", json!({})).await;
    let path = "/app/a/endpoint/e/headers";
    for name in ["User-Agent", "te", "Transfer-Encoding", "Content-Length", "svix-id", "host"] {
        let refused = server.put(path, &json!({"headers": {name: "x"}})).await;
        assert_eq!(refused.status, 422, "{name}: {}", refused.text());
    }
    let all = json!({"headers": {"X-One": "1", "Authorization": "secret"}});
    server.put(path, &all).await.expect(204);
    let read = server.get(path).await.expect(200);
    assert_eq!(read, json!({"headers": {"X-One": "1"}, "sensitive": ["Authorization"]}));
    server.patch(path, &json!({"headers": {"X-One": null, "X-Two": "2"}})).await.expect(204);
    let read = server.get(path).await.expect(200);
    assert_eq!(read, json!({"headers": {"X-Two": "2"}, "sensitive": ["Authorization"]}));
}

/// Ports `test_expunge_message_payload`.
#[tokio::test]
async fn test_expunge_message_payload() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"sensitive": 1})).await;
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    let made = server.post("/auth/app-portal-access/a/", &json!({})).await.expect(200);
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let path = format!("/app/a/msg/{id}");
    let content = format!("/api/v1{path}/content/");
    let refused = server.send("DELETE", &content, &[("authorization", &bearer)], "").await;
    assert_eq!(refused.expect(403)["code"], "insufficient access");
    assert_eq!(server.get(&path).await.expect(200)["payload"], json!({"sensitive": 1}));
    let gone = server.send("DELETE", &content, &[], "").await;
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    let read = server.get(&path).await.expect(200);
    assert_eq!(read["payload"], json!({"expired": true}));
    let resent = server.post(&format!("{path}/endpoint/e/resend"), &json!({})).await;
    assert_eq!(resent.expect(400)["code"], "missing_payload");
}
