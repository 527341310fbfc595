//! Routes of alerts that do not work: what is seen of them, and how they are mended.
//!
//! Never: a vendor; every channel is led to a receiver on this machine.

use serde_json::{Value, json};

use crate::console::run::peyk;
use crate::support::mail_server::MailServer;
use crate::support::{Raw, Receiver, Reply, Server, Step, until};

const MANAGEMENT: &str = "org_00000000000SvixManagement00";

/// Waits until the log says so.
async fn said(server: &Server, text: &str) {
    until(text, || async { server.log().contains(text).then_some(()) }).await;
}

async fn delivery(server: &Server, name: &str) -> Value {
    server.get(&format!("/alert/route/{name}")).await.expect(200)["delivery"].clone()
}

async fn tried(server: &Server, name: &str) {
    server.post(&format!("/alert/route/{name}/test"), &json!({})).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_is_gone_is_seen_to_be_off_until_it_is_set_anew() {
    let (server, receiver) =
        (Server::start().await, Receiver::scripted(|_, _| Reply::status(410)).await);
    let route = json!({"channel": "slack", "url": receiver.url("/T0/wonderland")});
    server.put("/alert/route/chat", &route).await.expect(201);
    let gone = peyk(&server, &["alert", "test", "chat"]);
    assert!(gone.code != 0 && gone.err.contains("slack answered 410"), "{}", gone.err);
    said(&server, "a route of alerts is off: it answered 410").await;
    let off = peyk(&server, &["alert", "test", "chat"]);
    assert!(off.code != 0 && off.err.contains("chat is disabled"), "{}", off.err);
    assert_eq!(receiver.hits().len(), 1);

    receiver.script(|_, _| Reply::status(200));
    server.put("/alert/route/chat", &route).await.expect(200);
    assert_eq!(delivery(&server, "chat").await["disabled"], false);
    let well = peyk(&server, &["alert", "test", "chat"]);
    assert!(well.code == 0 && well.err.contains("slack answered 200"), "{}", well.err);

    // What is off and led elsewhere sends nothing to the old address.
    receiver.script(|_, _| Reply::status(410));
    peyk(&server, &["alert", "test", "chat"]);
    tried(&server, "chat").await;
    let other = Receiver::start().await;
    server.patch("/alert/route/chat", &json!({"url": other.url("/")})).await.expect(200);
    other.wait_for(1).await;
    assert_eq!(receiver.hits().len(), 3);
    let log = server.log();
    assert_eq!(log.matches("a route of alerts is off").count(), 2, "once each time: {log}");
    assert!(!log.contains("wonderland"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_route_does_not_take_is_seen_in_the_log_and_in_the_list() {
    let (server, receiver) =
        (Server::start().await, Receiver::scripted(|_, _| Reply::status(400)).await);
    let route = json!({"channel": "teams", "url": receiver.url("/")});
    server.put("/alert/route/chat", &route).await.expect(201);
    tried(&server, "chat").await;
    said(&server, "a notification of alerts is given up").await;
    let log = server.log();
    let line = log.lines().find(|line| line.contains("a notification of alerts is given up"));
    let line = line.unwrap();
    assert!(line.contains("chat") && line.contains("rejected"), "{line}");
    let listed = server.get("/alert/route").await.expect(200);
    let row = &listed["data"][0];
    assert_eq!(row["delivery"], delivery(&server, "chat").await);
    assert_eq!(row["delivery"]["lastAttempt"]["statusCode"], 400, "{listed}");
}

#[tokio::test]
async fn nobody_reads_the_url_of_a_route_back() {
    let (server, receiver) =
        (Server::start().await, Receiver::scripted(|_, _| Reply::status(400)).await);
    let route = json!({"channel": "slack", "url": receiver.url("/T0/wonderland")});
    server.put("/alert/route/chat", &route).await.expect(201);
    tried(&server, "chat").await;
    said(&server, "a notification of alerts is given up").await;
    let bearer = format!("Bearer {}", server.made_token(&["--org", MANAGEMENT]));
    let read = async |path: &str| {
        let headers = [("authorization", bearer.as_str())];
        server.send("GET", &format!("/api/v1{path}"), &headers, "").await.expect(200)
    };
    let dead = read("/dead-letter").await;
    let (id, message) = (&dead["data"][0]["id"], &dead["data"][0]["msgId"]);
    let (id, message) = (id.as_str().unwrap(), message.as_str().unwrap());
    let origin = receiver.url("/");
    let origin = origin.trim_end_matches('/');
    for path in [
        "/dead-letter".to_owned(),
        "/app/alerts/endpoint".to_owned(),
        "/app/alerts/endpoint/chat".to_owned(),
        "/app/alerts/attempt/endpoint/chat".to_owned(),
        format!("/app/alerts/dead-letter/{id}"),
        format!("/app/alerts/msg/{message}/endpoint"),
        format!("/app/alerts/attempt/msg/{message}"),
    ] {
        let shown = read(&path).await.to_string();
        assert!(shown.contains(origin) && !shown.contains("wonderland"), "{path}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_to_an_address_that_is_not_allowed_says_so() {
    let server = Server::with(&[("PEYK_ALLOWED_TARGETS", "")]).await;
    let receiver = Receiver::start().await;
    let route = json!({"channel": "slack", "url": receiver.url("/T0/wonderland")});
    server.put("/alert/route/chat", &route).await.expect(201);
    let tried = peyk(&server, &["alert", "test", "chat"]);
    assert_ne!(tried.code, 0);
    for word in ["forbidden_target", "`allowed_targets`"] {
        assert!(tried.err.contains(word), "{word}: {}", tried.err);
    }
    said(&server, "forbidden_target").await;
    let log = server.log();
    assert!(log.contains("allowed_targets") && !log.contains("wonderland"), "{log}");
    assert_eq!(delivery(&server, "chat").await["lastAttempt"]["errorKind"], "forbidden");
    assert!(receiver.hits().is_empty());
}

#[tokio::test]
async fn letters_of_alerts_are_counted() {
    let mail = MailServer::start(true).await;
    let mut settings = mail.settings();
    settings.push(("PEYK_ALERTS__EMAIL_TO", "ops@example.com".to_owned()));
    let pairs: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::with(&pairs).await;
    tried(&server, "email").await;
    mail.wait_for(1).await;
    until("a figure", || async {
        let sent = server.metric("peyk_mails_total{result=\"sent\"}").await;
        ((sent - 1.0).abs() < f64::EPSILON).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_start_is_no_alert_and_a_pause_is_told_in_one_line() {
    let told = Receiver::start().await;
    let mut server = Server::with(&[
        ("PEYK_ALERTS__INTERVAL", "1s"),
        ("PEYK_ALERTS__SENDING_PAUSED__HOLD", "0s"),
        ("PEYK_ALERTS__SLACK_URL", &told.url("/")),
    ])
    .await;
    for _ in 0..3 {
        assert_eq!(server.stop(), Some(0));
        server.start_again();
        server.get("/health").await.expect(200);
    }
    let incidents = server.get("/alert/incident").await.expect(200);
    assert_eq!(incidents["data"], json!([]));
    assert!(!server.log().contains("an incident of alerts changed"), "{}", server.log());

    let proxy = Raw::start(|number| {
        let status = if number < 3 { "405 No tunnels" } else { "200 OK" };
        vec![Step::send(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"))]
    })
    .await;
    assert_eq!(server.stop(), Some(0));
    server.set("PEYK_PROXY__URL", &proxy.url(""));
    server.start_again();
    server.app_with("a", &told.url("/hook"), json!({})).await;
    server.message("a", json!({})).await;
    said(&server, "sending goes on: the fault on this side is over").await;
    assert!(proxy.wait_for(4).await.len() >= 4);
    assert_eq!(server.log().matches("sending paused").count(), 1, "{}", server.log());
}
