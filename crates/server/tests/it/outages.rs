//! After an outage dead letters go back by themselves: without anybody's help, over a kill, and not
//! while the receiver fails.
//!
//! Never: a replay asked for by a test.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Server, until};

/// One failure is final, and the breaker is quick.
const QUICK: [(&str, &str); 5] = [
    ("PEYK_ATTEMPT__DEADLINE", "5s"),
    ("PEYK_RETRY__ATTEMPTS_MAX", "1"),
    ("PEYK_BREAKER__OPEN_FOR", "20ms"),
    ("PEYK_BREAKER__OPEN_FOR_MAX", "40ms"),
    ("PEYK_REPLAY__RATE_PER_S", "20"),
];

/// A server whose receiver failed until `count` letters were dead.
async fn failed(count: usize, fields: Value) -> (Server, Receiver) {
    let server = Server::with(&QUICK).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), fields).await;
    for n in 0..count {
        server.message("a", json!({"n": n})).await;
    }
    server.wait_dead("a", count).await;
    (server, receiver)
}

async fn tasks(server: &Server) -> Vec<Value> {
    let list = server.get("/background-task?order=ascending").await.expect(200);
    list["data"].as_array().unwrap().clone()
}

async fn wait_task(server: &Server, status: &str) -> Value {
    until(status, || async {
        let found = tasks(server).await.pop()?;
        (found["status"] == status).then_some(found)
    })
    .await
}

/// How often each `n` was answered 200 from request `first` on.
fn taken(receiver: &Receiver, first: usize) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for hit in receiver.hits().iter().skip(first) {
        *counts.entry(hit.n()).or_default() += 1;
    }
    counts
}

async fn wait_none_dead(server: &Server) {
    until("no dead letter", || async { server.dead_letters("a").await.is_empty().then_some(()) })
        .await;
}

#[tokio::test]
async fn rp_04_dead_letters_of_an_outage_arrive_without_anybodys_help() {
    let (server, receiver) = failed(12, json!({})).await;
    let dead = server.dead_letters("a").await;
    let id = dead[0]["msgId"].as_str().unwrap();
    let path = format!("/app/a/msg/{id}/endpoint/e/explain");
    let said = server.get(&path).await.expect(200);
    assert!(said["sentence"].as_str().unwrap().contains("by itself"), "{said}");
    receiver.script(|_, _| Reply::status(200));
    let first = receiver.hits().len();
    server.message("a", json!({"n": 12})).await;
    wait_none_dead(&server).await;
    server.wait_idle("a").await;
    assert_eq!(taken(&receiver, first), (0..13).map(|n| (n, 1)).collect(), "each once");
    let task = wait_task(&server, "finished").await;
    assert_eq!(
        (&task["task"], &task["data"]["automatic"]),
        (&json!("endpoint.recover"), &json!(true))
    );
    assert_eq!((&task["data"]["done"], &task["data"]["failed"]), (&json!(12), &json!(0)));
    assert!(task["data"]["outageSince"].is_string(), "{task}");
    let rows = server.attempts("a", id).await;
    assert_eq!(rows.last().unwrap()["triggerType"], 1, "not by the schedule");
}

#[tokio::test]
async fn a_kill_amid_it_loses_nothing() {
    let (mut server, receiver) = failed(40, json!({})).await;
    receiver.script(|_, _| Reply::status(200));
    let first = receiver.hits().len();
    server.message("a", json!({"n": 40})).await;
    for count in [5, 15, 25] {
        receiver.wait_for(first + count).await;
        server.kill_and_restart();
    }
    wait_none_dead(&server).await;
    server.wait_idle("a").await;
    let found = taken(&receiver, first);
    assert_eq!(found.len(), 41);
    // What was on its way when the process died may come again: at most a window's worth each time.
    let twice: usize = found.values().map(|count| count - 1).sum();
    assert!(twice <= 3 * 20, "{found:?}");
    wait_task(&server, "finished").await;
}

#[tokio::test]
async fn a_relapse_stops_it() {
    let (server, receiver) = failed(45, json!({})).await;
    receiver.script(|_, _| Reply::status(200));
    server.message("a", json!({"n": 45})).await;
    wait_task(&server, "running").await;
    receiver.script(|_, _| Reply::status(500));
    let stopped = wait_task(&server, "failed").await;
    assert_eq!(stopped["data"]["cancelled"], true);
    assert!(stopped["data"]["error"].as_str().unwrap().contains("failed again"), "{stopped}");
    receiver.script(|_, _| Reply::status(200));
    server.message("a", json!({"n": 46})).await;
    wait_none_dead(&server).await;
    wait_task(&server, "finished").await;
}

#[tokio::test]
async fn an_endpoint_may_say_no() {
    let (server, receiver) = failed(6, json!({"autoReplay": false})).await;
    let read = server.get("/app/a/endpoint/e").await.expect(200);
    assert_eq!(read["autoReplay"], false);
    receiver.script(|_, _| Reply::status(200));
    server.message("a", json!({"n": 6})).await;
    server.wait_breaker("a", "closed").await;
    server.wait_idle("a").await;
    assert_eq!((server.dead_letters("a").await.len(), tasks(&server).await.len()), (6, 0));
    let refused =
        server.patch("/app/a/endpoint/e", &json!({"autoReplay": "yes"})).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "autoReplay"]));
    let null = server.patch("/app/a/endpoint/e", &json!({"autoReplay": null})).await.expect(200);
    assert_eq!(null["autoReplay"], Value::Null);
}
