//! Much at once: recover, replay-missing, bulk-replay, replay of many dead letters, the end of all
//! payloads; and the tasks that do it.
//!
//! Never: a delivery that is put back twice, whatever dies in between.

use std::collections::HashMap;
use std::time::Duration;

use resilience::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Server, until};

/// Every failure is final at once, and holds nothing back.
const FINAL: [(&str, &str); 2] =
    [("PEYK_RETRY__ATTEMPTS_MAX", "1"), ("PEYK_BREAKER__ENABLED", "false")];

async fn wait_ended(server: &Server, task: &Value) -> Value {
    let path = format!("/background-task/{}", task["id"].as_str().unwrap());
    until("the end of a task", || async {
        let task = server.get(&path).await.expect(200);
        (task["status"] != "running").then_some(task)
    })
    .await
}

/// Starts a task, and waits until it has ended.
async fn whole(server: &Server, path: &str, body: Value) -> Value {
    let task = server.post(path, &body).await.expect(202);
    assert_eq!(task["status"], "running");
    let ended = wait_ended(server, &task).await;
    assert_eq!((&ended["id"], &ended["status"]), (&task["id"], &json!("finished")), "{ended}");
    ended
}

/// So many days and seconds ago, as text.
fn ago(days: u64, secs: u64) -> String {
    let at = SystemClock.now().minus(Duration::from_secs(days * 86_400 + secs));
    jiff::Timestamp::from_microsecond(at.as_micros()).unwrap().to_string()
}

/// Attempts that somebody asked for, by message.
async fn by_hand(server: &Server, app: &str) -> HashMap<String, usize> {
    let (mut counts, mut iterator) = (HashMap::new(), String::new());
    loop {
        let path = format!("/app/{app}/attempt/endpoint/e?limit=250{iterator}");
        let page = server.get(&path).await.expect(200);
        for row in page["data"].as_array().unwrap() {
            if row["triggerType"] == 1 {
                *counts.entry(row["msgId"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
        if page["done"] == true {
            return counts;
        }
        iterator = format!("&iterator={}", page["iterator"].as_str().unwrap());
    }
}

#[tokio::test]
async fn test_recovery_expected_retry_counts() {
    let server = Server::with(&FINAL).await;
    let receiver =
        Receiver::scripted(|number, _| Reply::status(if number < 1 { 200 } else { 500 })).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let delivered = server.message("a", json!({"n": 0})).await;
    server.wait_attempts("a", &delivered, 1).await;
    let mut failed = vec![server.message("a", json!({"n": 1})).await];
    failed.push(server.message("a", json!({"n": 2})).await);
    server.wait_dead("a", 2).await;
    receiver.script(|_, _| Reply::status(200));
    let since = json!({"since": ago(0, 60)});
    let task = whole(&server, "/app/a/endpoint/e/recover", since.clone()).await;
    assert_eq!(task["task"], "endpoint.recover");
    assert_eq!((&task["data"]["messagesSent"], &task["data"]["total"]), (&json!(2), &json!(2)));
    for id in &failed {
        let rows = server.wait_attempts("a", id, 2).await;
        assert_eq!((&rows[1]["triggerType"], &rows[1]["status"]), (&json!(1), &json!(0)));
    }
    let hits = receiver.wait_for(5).await;
    assert_eq!(hits[3].header("webhook-id"), failed[0], "the same ids, oldest first");
    assert!(server.dead_letters("a").await.is_empty());
    let again = whole(&server, "/app/a/endpoint/e/recover", since).await;
    assert_eq!(again["data"]["done"], 0, "nothing failed that did not succeed");
    assert_eq!(server.attempts("a", &delivered).await.len(), 1);
}

#[tokio::test]
async fn test_recovery_should_fail_if_start_time_too_old() {
    let server = Server::start().await;
    server.app_with("a", "http://127.0.0.1:9/", json!({})).await;
    let path = "/app/a/endpoint/e/recover";
    for since in [ago(21, 0), ago(14, 360)] {
        let refused = server.post(path, &json!({"since": since})).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "since"]), "{refused}");
    }
    whole(&server, path, json!({"since": ago(14, 120)})).await;
    for (body, field) in [
        (json!({}), "since"),
        (json!({"since": "now"}), "since"),
        (json!({"since": ago(1, 0), "until": ago(2, 0)}), "until"),
        (json!({"since": ago(1, 0), "until": 5}), "until"),
    ] {
        let refused = server.post(path, &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{body}");
    }
    server.post("/app/a/endpoint/none/recover", &json!({"since": ago(1, 0)})).await.expect(404);
    server.patch("/app/a/endpoint/e", &json!({"disabled": true})).await.expect(200);
    let refused = server.post(path, &json!({"since": ago(1, 0)})).await.expect(400);
    assert_eq!(refused["code"], "endpoint_disabled");
}

#[tokio::test]
async fn an_endpoint_gets_what_it_never_got() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let early = [server.message("a", json!({"n": 0})).await, server.message("a", json!({})).await];
    let other = json!({"eventType": "other.event", "payload": {}});
    server.post("/app/a/msg", &other).await.expect(202);
    server.post("/event-type", &json!({"name": "test.event", "description": ""})).await.expect(201);
    let endpoint = json!({"uid": "e", "url": receiver.url("/"), "eventTypes": ["test.event"]});
    server.post("/app/a/endpoint", &endpoint).await.expect(201);
    let late = server.message("a", json!({})).await;
    server.wait_attempts("a", &late, 1).await;
    let path = "/app/a/endpoint/e/replay-missing";
    let task = whole(&server, path, json!({"since": ago(1, 0)})).await;
    assert_eq!((&task["task"], &task["data"]["done"]), (&json!("endpoint.replay"), &json!(2)));
    for id in &early {
        let rows = server.wait_attempts("a", id, 1).await;
        assert_eq!((&rows[0]["triggerType"], &rows[0]["number"]), (&json!(1), &json!(1)));
    }
    let again = whole(&server, path, json!({"since": ago(1, 0)})).await;
    assert_eq!(again["data"]["done"], 0);
    assert_eq!(receiver.hits().len(), 3);
}

#[tokio::test]
async fn a_bulk_replay_sends_again_what_was_sent() {
    let server = Server::with(&FINAL).await;
    let receiver =
        Receiver::scripted(|_, hit| Reply::status(if hit.n() == 1 { 500 } else { 200 })).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let ids = server.messages("a", 3).await;
    server.wait_dead("a", 1).await;
    for id in &ids {
        server.wait_attempts("a", id, 1).await;
    }
    let path = "/app/a/endpoint/e/bulk-replay";
    receiver.script(|_, _| Reply::status(200));
    let failed = json!({"since": ago(1, 0), "status": 2, "statusCodeClass": 500});
    let task = whole(&server, path, failed).await;
    let said = (&task["task"], &task["data"]["messagesSent"]);
    assert_eq!(said, (&json!("endpoint.bulk-replay"), &json!(1)));
    assert_eq!(receiver.wait_for(4).await[3].n(), 1);
    server.wait_attempts("a", &ids[1], 2).await;
    let task = whole(&server, path, json!({"since": ago(1, 0)})).await;
    assert_eq!(task["data"]["done"], 3, "delivered ones too");
    for id in &ids {
        let rows = server.wait_attempts("a", id, 2).await;
        assert_eq!(rows.last().unwrap()["triggerType"], 1);
    }
    let none = json!({"since": ago(1, 0), "eventTypes": ["no.such"], "channel": "c", "tag": "t"});
    assert_eq!(whole(&server, path, none).await["data"]["done"], 0);
    for (body, field) in [
        (json!({"since": ago(1, 0), "status": 9}), "status"),
        (json!({"since": ago(1, 0), "statusCodeClass": 404}), "statusCodeClass"),
        (json!({"since": ago(1, 0), "eventTypes": ["a b"]}), "eventTypes"),
    ] {
        let refused = server.post(path, &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"][1], json!(field), "{body}");
    }
}

#[tokio::test]
async fn many_dead_letters_are_counted_and_replayed() {
    let server = Server::with(&FINAL).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 5).await;
    let dead = server.wait_dead("a", 5).await;
    let path = "/app/a/dead-letter/replay";
    let ids = json!([dead[0]["id"], dead[1]["id"]]);
    for (body, count) in [
        (json!({"dryRun": true}), 5),
        (json!({"dryRun": true, "endpointId": "e", "reason": "exhausted"}), 5),
        (json!({"dryRun": true, "reason": "rejected"}), 0),
        (json!({"dryRun": true, "eventTypes": ["no.such"]}), 0),
        (json!({"dryRun": true, "since": "2999-01-01T00:00:00Z"}), 0),
        (json!({"dryRun": true, "until": ago(1, 0)}), 0),
        (json!({"dryRun": true, "ids": ids}), 2),
    ] {
        assert_eq!(server.post(path, &body).await.expect(200), json!({"count": count}), "{body}");
    }
    for body in [
        json!({"ids": ["dl_x"]}),
        json!({"ids": []}),
        json!({"ratePerS": 0}),
        json!({"reason": "bad mood"}),
        json!({"dryRun": "yes"}),
    ] {
        server.post(path, &body).await.expect(422);
    }
    server.post(path, &json!({"endpointId": "none"})).await.expect(404);
    receiver.script(|_, _| Reply::status(200));
    let task = whole(&server, path, json!({"ids": ids})).await;
    assert_eq!(task["data"], json!({"total": 2, "done": 2, "failed": 0, "messagesSent": 2}));
    let task = server.send("POST", &format!("/api/v1{path}"), &[], "").await.expect(202);
    assert_eq!(wait_ended(&server, &task).await["data"]["done"], 3);
    assert!(server.dead_letters("a").await.is_empty());
    let counts = by_hand(&server, "a").await;
    let hits = receiver.wait_for(10).await;
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(hits.len(), 10);
}

#[tokio::test]
async fn one_task_at_a_time_works_on_the_same_deliveries_and_can_be_stopped() {
    let server = Server::with(&FINAL).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 4).await;
    server.wait_dead("a", 4).await;
    // Nothing of it is sent, and so no more than a second's worth goes out.
    server.force("a", "open").await;
    let slowly = json!({"ratePerS": 1});
    let task = server.post("/app/a/dead-letter/replay", &slowly).await.expect(202);
    let id = task["id"].as_str().unwrap();
    let since = json!({"since": ago(1, 0)});
    for path in ["recover", "replay-missing", "bulk-replay"] {
        let refused = server.post(&format!("/app/a/endpoint/e/{path}"), &since).await.expect(409);
        assert_eq!(refused["code"], "conflict");
        assert!(refused["detail"].as_str().unwrap().contains(id), "{refused}");
    }
    let path = format!("/background-task/{id}");
    let stopped = server.post(&format!("{path}/cancel"), &json!({})).await.expect(200);
    assert_eq!(
        (&stopped["status"], &stopped["data"]["cancelled"]),
        (&json!("failed"), &json!(true))
    );
    assert_eq!(server.get(&path).await.expect(200)["status"], "failed");
    server.post(&format!("{path}/cancel"), &json!({})).await.expect(409);
    server.force("a", "closed").await;
    receiver.script(|_, _| Reply::status(200));
    server.wait_idle("a").await;
    let left = server.dead_letters("a").await.len();
    assert!(left >= 3, "what was not put out stays: {left}");
    let others = whole(&server, "/app/a/endpoint/e/recover", since).await;
    assert_eq!(others["data"]["done"], left);
}

#[tokio::test]
async fn tasks_are_listed_and_each_sees_its_own() {
    let server = Server::start().await;
    let own = server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    server.post("/app", &json!({"name": "b", "uid": "b"})).await.expect(201);
    let first = whole(&server, "/app/a/msg/expunge-all-contents", json!({})).await;
    let second = whole(&server, "/app/b/msg/expunge-all-contents/", json!({})).await;
    assert_eq!(first["task"], "application.purge_content");
    assert_eq!(server.get("/background-task").await.expect(200)["data"], json!([second, first]));
    let page = server.get("/background-task?limit=1&order=ascending").await.expect(200);
    assert_eq!((&page["data"], &page["done"]), (&json!([first]), &json!(false)));
    let next = format!(
        "/background-task/?order=ascending&iterator={}",
        page["iterator"].as_str().unwrap()
    );
    assert_eq!(server.get(&next).await.expect(200)["data"], json!([second]));
    for (query, count) in [
        ("status=finished", 2),
        ("status=running", 0),
        ("task=application.purge_content", 2),
        ("task=endpoint.recover&status=finished", 0),
    ] {
        let list = server.get(&format!("/background-task?{query}")).await.expect(200);
        assert_eq!(list["data"].as_array().unwrap().len(), count, "{query}");
    }
    server.get("/background-task?status=odd").await.expect(422);
    server.get("/background-task?iterator=app_x").await.expect(422);
    server.get("/background-task/qtask_x").await.expect(404);

    let token = server.made_token(&["--app", own["id"].as_str().unwrap()]);
    let other = server.made_token(&["--org", "org_00000000000SvixManagement00"]);
    let (token, other) = (format!("Bearer {token}"), format!("Bearer {other}"));
    let [first, second] = [first, second].map(|task| task["id"].as_str().unwrap().to_owned());
    for (bearer, method, path, status) in [
        (&token, "GET", format!("/background-task/{first}"), 200),
        (&token, "GET", format!("/background-task/{second}"), 404),
        (&token, "POST", format!("/background-task/{second}/cancel"), 404),
        (&token, "POST", "/app/a/msg/expunge-all-contents".to_owned(), 403),
        (&token, "POST", "/app/b/dead-letter/replay".to_owned(), 404),
        (&token, "POST", "/app/a/dead-letter/replay".to_owned(), 202),
        (&other, "GET", format!("/background-task/{first}"), 404),
        (&other, "POST", format!("/background-task/{first}/cancel"), 404),
        (&other, "POST", "/app/a/msg/expunge-all-contents".to_owned(), 404),
    ] {
        let headers = [("authorization", bearer.as_str())];
        let answer = server.send(method, &format!("/api/v1{path}"), &headers, "").await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    let headers = [("authorization", token.as_str())];
    let list = server.send("GET", "/api/v1/background-task", &headers, "").await.expect(200);
    let seen: Vec<_> = list["data"].as_array().unwrap().iter().map(|task| &task["task"]).collect();
    assert_eq!(seen, ["endpoint.bulk-replay", "application.purge_content"], "of its application");
}

#[tokio::test]
async fn all_payloads_of_an_application_go() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.app_with("b", &receiver.url("/"), json!({})).await;
    let sent = server.message("a", json!({"n": 1})).await;
    server.wait_attempts("a", &sent, 1).await;
    server.force("a", "open").await;
    let waits = server.message("a", json!({"n": 2})).await;
    let kept = server.message("b", json!({"n": 3})).await;
    let task = whole(&server, "/app/a/msg/expunge-all-contents", json!({})).await;
    assert_eq!(task["data"], json!({"total": 2, "done": 2, "failed": 0, "messagesPurged": 2}));
    for id in [&sent, &waits] {
        let read = server.get(&format!("/app/a/msg/{id}")).await.expect(200);
        assert_eq!(read["payload"], json!({"expired": true}));
    }
    assert_eq!(server.dead_letters("a").await[0]["reason"], "payload_gone");
    let read = server.get(&format!("/app/b/msg/{kept}")).await.expect(200);
    assert_eq!(read["payload"], json!({"n": 3}));
}

#[tokio::test]
async fn a_task_that_was_asked_for_twice_under_one_key_runs_once() {
    let server = Server::start().await;
    server.app_with("a", "http://127.0.0.1:9/", json!({})).await;
    let key = [("idempotency-key", "auto_1")];
    let body = json!({"since": ago(1, 0)}).to_string();
    let path = "/api/v1/app/a/endpoint/e/recover";
    let first = server.send("POST", path, &key, body.clone()).await.expect(202);
    wait_ended(&server, &first).await;
    assert_eq!(server.send("POST", path, &key, body).await.expect(202), first);
    let list = server.get("/background-task").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_bulk_replay_repeats_nothing() {
    let mut server = Server::with(&FINAL).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let ids = server.messages("a", 2_000).await;
    receiver.wait_for(2_000).await;
    server.wait_idle("a").await;
    receiver.script(|_, _| Reply::status(200));
    let body = json!({"endpointId": "e", "ratePerS": 500});
    let task = server.post("/app/a/dead-letter/replay", &body).await.expect(202);
    assert_eq!(task["data"]["total"], 2_000);
    for arrived in [2_600, 3_200] {
        receiver.wait_for(arrived).await;
        server.kill_and_restart();
    }
    let ended = wait_ended(&server, &task).await;
    assert_eq!((&ended["status"], &ended["data"]["done"]), (&json!("finished"), &json!(2_000)));
    server.wait_idle("a").await;
    let counts = by_hand(&server, "a").await;
    assert!(ids.iter().all(|id| counts.get(id) == Some(&1)), "each replayed once");
    assert_eq!(counts.len(), 2_000);
    assert!(server.dead_letters("a").await.is_empty());
}
