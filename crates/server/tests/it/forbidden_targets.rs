//! What may not be dialled is not dialled, however it is named and whichever path leads to it.
//!
//! Never: one packet to it.

use serde_json::{Value, json};

use crate::support::{Raw, Receiver, Reply, Server, Step, until};

/// A receiver that nothing may reach.
async fn canary() -> Raw {
    Raw::start(|_| vec![Step::send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await
}

#[tokio::test]
async fn ss_01_no_redirect_leads_to_the_canary() {
    let canary = canary().await;
    let near = canary.url("/latest/meta-data");
    let locations = [
        near.clone(),
        near.replace("http:", ""),
        format!("http://127.0.0.1:{}/", canary.address().port()),
        "http://169.254.169.254/latest".to_owned(),
        "//10.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
        "/elsewhere".to_owned(),
    ];
    let count = locations.len();
    let receiver = Receiver::scripted(move |_, hit| {
        let (status, place) = hit.path[1..].split_once('/').unwrap();
        let location = &locations[place.parse::<usize>().unwrap()];
        Reply::status(status.parse().unwrap()).header("location", location)
    })
    .await;
    // Even where the canary's address is allowed, and where 3xx is tried again.
    for retry_on in ["transient", "all"] {
        let server = Server::with(&[("PEYK_RETRY__RETRY_ON", retry_on)]).await;
        server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
        for status in [301, 302, 303, 307, 308] {
            for place in 0..count {
                let url = receiver.url(&format!("/{status}/{place}"));
                server.post("/app/a/endpoint", &json!({"url": url})).await.expect(201);
            }
        }
        let id = server.message("a", json!({})).await;
        let sent = count * 5;
        until("dead letters", || async {
            let list = server.get("/app/a/dead-letter?limit=250").await.expect(200);
            (list["data"].as_array().unwrap().len() == sent).then_some(())
        })
        .await;
        let rows = server.get(&format!("/app/a/attempt/msg/{id}?limit=250")).await.expect(200);
        for row in rows["data"].as_array().unwrap() {
            assert!((301..=308).contains(&row["responseStatusCode"].as_u64().unwrap()));
            let origin = row["redirectOrigin"].as_str().unwrap_or("");
            assert!(!origin.contains("meta-data") && !origin.contains("passwd"), "{origin}");
        }
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn ss_01_a_redirect_is_not_followed_by_a_resend_or_a_replay() {
    let canary = canary().await;
    let location = canary.url("/");
    let receiver =
        Receiver::scripted(move |_, _| Reply::status(307).header("location", &*location)).await;
    let server = Server::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let letter = server.wait_dead("a", 1).await.remove(0);
    assert_eq!(letter["lastStatusCode"], 307);
    resend(&server, "a", &id).await;
    receiver.wait_for(2).await;
    server.wait_attempts("a", &id, 2).await;
    let path = format!("/app/a/dead-letter/{}/replay", letter["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    receiver.wait_for(3).await;
    server.wait_dead("a", 1).await;
    assert_eq!(canary.connections(), 0);
}

/// One more send of a message to endpoint `e`.
async fn resend(server: &Server, app: &str, message: &str) {
    let path = format!("/app/{app}/msg/{message}/endpoint/e/resend");
    until("a resend", || async {
        let answer = server.post(&path, &json!({})).await;
        (answer.status != 409).then_some(answer)
    })
    .await
    .expect(202);
}

/// Each is posted as a URL; whether it is refused at once or at the dial, nothing is dialled.
async fn forbidden(hosts: &[&str]) {
    let canary = canary().await;
    let port = canary.address().port();
    let server = Server::with(&[("PEYK_ALLOWED_TARGETS", "")]).await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let mut made = 0;
    for host in hosts {
        let url = format!("http://{host}:{port}/");
        let answer = server.post("/app/a/endpoint", &json!({"url": url})).await;
        match answer.status {
            201 => made += 1,
            status => assert_eq!(status, 422, "{host}: {}", answer.text()),
        }
    }
    let id = server.message("a", json!({})).await;
    let letters = server.wait_dead("a", made).await;
    assert!(letters.iter().all(|letter| letter["reason"] == "forbidden_target"), "{letters:?}");
    let rows = server.attempts("a", &id).await;
    assert_eq!(rows.len(), made);
    for row in rows {
        assert_eq!(
            (&row["errorKind"], &row["responseStatusCode"]),
            (&json!("forbidden"), &json!(0))
        );
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn ss_04_transition_prefixes_are_forbidden() {
    forbidden(&[
        "[2002:7f00:1::]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[::ffff:127.0.0.1]",
        "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
        "[fec0::1]",
        "[fc00::1]",
        "[ff02::1]",
        "[100::1]",
        "100.64.0.1",
        "192.0.0.1",
        "198.18.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ])
    .await;
}

#[tokio::test]
async fn ss_05_every_spelling_of_loopback_is_forbidden() {
    forbidden(&[
        "127.0.0.1",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0x7f.1",
        "127.0.0.1.",
        "0",
        "%31%32%37.0.0.1",
    ])
    .await;
}

#[tokio::test]
async fn ss_06_unspecified_and_link_local_are_forbidden() {
    forbidden(&["0.0.0.0", "[::]", "[fe80::1]", "169.254.169.254", "[::ffff:0:0]"]).await;
}

#[tokio::test]
async fn ss_08_every_path_that_dials_asks_the_guard() {
    // Made while it was allowed, as by an older version: what is stored is judged at the dial.
    let mut server = Server::start().await;
    let receiver =
        Receiver::scripted(|_, hit| Reply::status(if hit.path == "/retried" { 503 } else { 400 }))
            .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let retried = json!({"retryPolicy": {"base": "300ms", "attemptsMax": 5}});
    server.app_with("b", &receiver.url("/retried"), retried).await;
    let id = server.message("a", json!({"n": 1})).await;
    let edited = server.message("a", json!({"n": 2})).await;
    let letters = server.wait_dead("a", 2).await;
    let pending = server.message("b", json!({"n": 3})).await;
    server.wait_attempts("b", &pending, 1).await;
    server.kill();
    server.set("PEYK_ALLOWED_TARGETS", "");
    let before = receiver.hits().len();
    server.start_again();

    // A retry, a new message, a resend, a replay, a replay with another payload.
    let dead = server.wait_dead("b", 1).await.remove(0);
    assert_eq!(dead["reason"], "forbidden_target");
    let fresh = server.message("a", json!({"n": 4})).await;
    refused(&server, "a", &fresh, 1).await;
    resend(&server, "a", &id).await;
    refused(&server, "a", &id, 2).await;
    let letter = |message: &str| {
        let found = letters.iter().find(|letter| letter["msgId"] == message).unwrap();
        format!("/app/a/dead-letter/{}/replay", found["id"].as_str().unwrap())
    };
    server.post(&letter(&id), &json!({})).await.expect(202);
    refused(&server, "a", &id, 3).await;
    let replayed = server.post(&letter(&edited), &json!({"payload": {"n": 5}})).await.expect(202);
    refused(&server, "a", replayed["msgId"].as_str().unwrap(), 1).await;
    // A changed URL of the same receiver.
    server.patch("/app/a/endpoint/e", &json!({"url": receiver.url("/other")})).await.expect(200);
    let last = server.message("a", json!({"n": 6})).await;
    refused(&server, "a", &last, 1).await;
    assert_eq!(receiver.hits().len(), before, "nothing was dialled");
}

/// Waits for the attempt with this number, which must have been refused by the guard.
async fn refused(server: &Server, app: &str, message: &str, number: usize) {
    let rows = server.wait_attempts(app, message, number).await;
    assert_eq!(rows[number - 1]["errorKind"], "forbidden", "{rows:?}");
}

#[tokio::test]
async fn ss_09_an_exact_rule_opens_one_address_and_port_and_the_refusal_names_the_policy() {
    let (receiver, canary) = (Receiver::start().await, canary().await);
    let server = Server::with(&[("PEYK_ALLOWED_TARGETS", &receiver.rule())]).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    server.wait_delivered("a", &[id]).await;
    server.app_with("b", &canary.url("/"), json!({})).await;
    let id = server.message("b", json!({})).await;
    let row: Value = server.wait_attempts("b", &id, 1).await.remove(0);
    let said = row["error"].as_str().unwrap();
    assert!(said.contains("allowed_targets"), "{said}");
    assert!(!said.contains("127.0.0.1"), "{said}");
    assert_eq!(server.wait_dead("b", 1).await[0]["reason"], "forbidden_target");
    assert_eq!(canary.connections(), 0);
}
