//! `peyk copy`: an installation moves from an SQLite file into PostgreSQL and goes on there.
//!
//! Never: a row lost or changed, a file that was written to, a database filled by half.

use std::process::Output;

use serde_json::{Value, json};
use testparts::Postgres;

use crate::support::server::{Answer, command};
use crate::support::{Receiver, Reply, Server, until};

const MAIN_KEY: &str = "the main key of the integration tests, which is long enough";
/// The trace that a caller is in.
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// What is read before and after.
const READS: [&str; 14] = [
    "/app",
    "/app/a",
    "/app/a/endpoint",
    "/app/a/endpoint/e/headers",
    "/app/a/endpoint/e/secret",
    "/app/a/endpoint/held/breaker",
    "/app/a/msg?with_content=true",
    "/app/a/attempt/endpoint/e",
    "/app/a/attempt/endpoint/held",
    "/app/a/dead-letter",
    "/app/gone/endpoint",
    "/event-type?with_content=true",
    "/background-task",
    "/dead-letter",
];

async fn reads(server: &Server) -> Vec<(u16, Value)> {
    let mut all = Vec::new();
    for path in READS {
        let Answer { status, body, .. } = server.get(path).await;
        let mut value: Value = serde_json::from_slice(&body).unwrap();
        if let Some(object) = value.as_object_mut() {
            object.remove("asOf");
        }
        all.push((status, value));
    }
    all
}

async fn keyed(server: &Server) -> Value {
    let body = json!({"eventType": "t", "payload": {"keyed": 1.0}, "eventId": "k"}).to_string();
    let headers = [("idempotency-key", "k"), ("traceparent", PARENT)];
    server.send("POST", "/api/v1/app/a/msg", &headers, body).await.expect(202)["id"].clone()
}

fn copy(server: &Server, to: &str) -> Output {
    let from = format!("sqlite://{}", server.dir().join("data/peyk.db").display());
    server.command(&["copy", "--from", &from, "--to", to]).output().unwrap()
}

#[track_caller]
fn refused(output: &Output, status: i32, rule: &str) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(said.contains(rule) && said.trim_end().lines().count() == 1, "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

/// Something of everything: delivered, dead and waiting messages, a key, a deleted application.
async fn fill(server: &Server, receiver: &Receiver) {
    let fields = json!({"description": "a \u{202E}b \u{1F4E6}", "headers": {"x-a": "1"}, "channels": ["c"],
        "contactEmail": "owner@example.com", "metadata": {"k": "v"}, "breaker": {"failures": 100}});
    server.app_with("a", &receiver.url("/"), fields).await;
    let held = json!({"url": receiver.url("/held"), "uid": "held"});
    server.post("/app/a/endpoint", &held).await.expect(201);
    let path = "/app/a/endpoint/held/breaker";
    server.post(path, &json!({"state": "open"})).await.expect(200);
    server.app_with("gone", &receiver.url("/"), json!({})).await;
    server.delete("/app/gone").await.expect(204);
    let kind = json!({"name": "t", "description": "d", "schemas": {"1": {"type": "object"}}});
    server.post("/event-type", &kind).await.expect(201);
    for sick in [false, true] {
        let message = json!({"eventType": "t", "channels": ["c"], "tags": ["x"],
            "payload": {"sick": sick, "n": 1.50}});
        server.post("/app/a/msg", &message).await.expect(202);
    }
    server.wait_dead("a", 1).await;
}

fn sick(hit: &crate::support::receiver::Hit) -> bool {
    hit.body.windows(11).any(|part| part == b"\"sick\":true")
}

#[tokio::test]
async fn a_killed_installation_moves_and_goes_on_where_it_was() {
    let settings = [("PEYK_MAIN_KEY", MAIN_KEY), ("PEYK_RETRY__ATTEMPTS_MAX", "2")];
    let mut server = Server::with(&settings).await;
    let receiver =
        Receiver::scripted(|_, hit| Reply::status(if sick(hit) { 500 } else { 200 })).await;
    fill(&server, &receiver).await;
    let first = keyed(&server).await;
    // The last delivery is recorded before the lists are read.
    until("all but what is held", || async {
        let rows = server.get("/app/a/attempt/endpoint/e").await.expect(200);
        (rows["data"].as_array().unwrap().len() >= 3).then_some(())
    })
    .await;
    let before = reads(&server).await;
    let url = Postgres::shared().fresh_database();
    refused(&copy(&server, &url), 1, "another peyk uses the database");
    server.kill();
    let output = copy(&server, &url);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\nmessage 3\n") && said.contains("\npending 3\n"), "{said}");
    refused(&copy(&server, &url), 1, "holds a Peyk already");
    server.set("PEYK_DATABASE_URL", &url);
    server.start_again();
    for (path, (was, is)) in READS.iter().zip(before.iter().zip(&reads(&server).await)) {
        assert_eq!(is, was, "{path}");
    }
    assert_eq!(keyed(&server).await, first, "the key is remembered");
    let keys = || -> Vec<_> {
        let hits = receiver.hits();
        let sick = hits.iter().filter(|hit| hit.path == "/" && sick(hit));
        sick.map(|hit| hit.header("idempotency-key").to_owned()).collect()
    };
    let sent = keys();
    receiver.script(|_, _| Reply::status(200));
    server.post("/app/a/endpoint/held/breaker", &json!({"state": "auto"})).await.expect(200);
    let dead = server.dead_letters("a").await.remove(0);
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    let again = until("what was dead and what was held", || async {
        let held = receiver.hits().iter().filter(|hit| hit.path == "/held").count();
        (keys().len() > sent.len() && held == 3).then(keys)
    });
    assert_eq!(again.await, vec![sent[0].clone(); 3], "the key of a delivery stays");
    let hits = receiver.hits();
    let traced: Vec<_> = hits.iter().filter_map(|hit| hit.headers.get("traceparent")).collect();
    assert_eq!(traced, [PARENT], "its caller's trace goes on");
    let made = server.post("/app", &json!({"name": "new"})).await.expect(201);
    assert!(made["id"].as_str().unwrap().starts_with("app_"));
}

#[tokio::test]
async fn who_edited_a_payload_moves_too() {
    let mut server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(400)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    let edited = server.post(&path, &json!({"payload": {"n": 2}})).await.expect(202);
    let path = format!("/app/a/msg/{}", edited["msgId"].as_str().unwrap());
    let before = server.get(&path).await.expect(200);
    assert!(before["editedBy"].is_string());
    server.kill();
    let url = Postgres::shared().fresh_database();
    let output = copy(&server, &url);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.set("PEYK_DATABASE_URL", &url);
    server.start_again();
    assert_eq!(server.get(&path).await.expect(200), before);
}

#[tokio::test]
async fn what_cannot_be_copied_is_refused_and_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("foreign"), "not a database, but long enough to have a header".repeat(9))
        .unwrap();
    std::fs::write(path("empty"), "").unwrap();
    let url = Postgres::shared().fresh_database();
    let nowhere = "postgres://nobody:hunter2@127.0.0.1:1/none";
    let run = |from: &str, to: &str| {
        command(dir.path(), &["copy", "--from", from, "--to", to]).output().unwrap()
    };
    let file = |name: &str| format!("sqlite://{}", path(name));
    refused(&run("peyk.db", &url), 2, "--from must be sqlite://<path>");
    refused(&run(&file("empty"), "mysql://h/d"), 2, "--to must be postgres://");
    refused(&run(&file("none"), &url), 1, "there is no file");
    refused(&run(&file("empty"), &url), 1, "the file is empty");
    refused(&run(&file("foreign"), &url), 1, "is not a database of Peyk");
    assert!(!std::path::Path::new(&path("none")).exists());
    let made = command(dir.path(), &["migrate"]).output().unwrap();
    assert!(made.status.success());
    refused(&run(&file("data/peyk.db"), nowhere), 1, "cannot connect");
    assert!(run(&file("data/peyk.db"), &url).status.success());
}
