//! What holds a lane beside its breaker: it shows, it ends when its cause does, and no next attempt
//! is promised before it.
//!
//! Never: the wait until a hold ends by itself.

use std::time::Duration;

use resilience::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Server, time, until};

/// A run of refusals is counted by single sends.
const ONE: [(&str, &str); 2] = [("PEYK_WINDOW__START", "1"), ("PEYK_WINDOW__MAX", "1")];

async fn wait_hold(server: &Server, reason: &str) -> Value {
    until("a hold", || async move {
        let breaker = server.breaker("a").await;
        (breaker["hold"]["reason"] == reason).then(|| breaker["hold"].clone())
    })
    .await
}

/// The messages that wait for endpoint `e`.
async fn waiting(server: &Server) -> Vec<Value> {
    let page = server.get("/app/a/endpoint/e/msg?limit=250").await.expect(200);
    let waits = |row: &&Value| row["status"] == 1 || row["status"] == 3;
    page["data"].as_array().unwrap().iter().filter(waits).cloned().collect()
}

fn ahead(secs: u64) -> Timestamp {
    SystemClock.now().plus(Duration::from_secs(secs))
}

/// An endpoint that refuses, until its lane is held; 25 messages, of which 20 are dead.
async fn refused(server: &Server, receiver: &Receiver) {
    receiver.script(|_, _| Reply::status(401));
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 25).await;
    let hold = wait_hold(server, "refusals").await;
    let held = time(&hold["until"]);
    assert!(held > ahead(20) && held <= ahead(30), "{hold}");
    assert_eq!(server.breaker("a").await["state"], "closed");
    server.wait_dead("a", 20).await;
    let waits = waiting(server).await;
    assert_eq!(waits.len(), 5);
    for message in waits {
        assert!(time(&message["nextAttempt"]) >= held, "{message}");
    }
    until("the metric", || async {
        let held = server.metric("peyk_holds{reason=\"refusals\"}").await;
        (held == 1.0).then_some(())
    })
    .await;
    receiver.script(|_, _| Reply::status(200));
}

#[tokio::test]
async fn what_a_run_of_refusals_buried_is_found_and_put_back_by_its_id() {
    let (server, receiver) = (Server::with(&ONE).await, Receiver::start().await);
    server.app_with("b", &receiver.url("/"), json!({})).await;
    receiver.script(|number, _| Reply::status(if number == 0 { 404 } else { 200 }));
    refused(&server, &receiver).await;
    let hold = server.breaker("a").await["hold"].clone();
    let run = hold["runId"].as_str().unwrap();
    let path = format!("/app/a/dead-letter?limit=250&run_id={run}");
    let rows = server.get(&path).await.expect(200)["data"].clone();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() == 20 && rows.iter().all(|row| row["runId"] == run), "{rows:?}");
    let many = "/app/a/dead-letter/replay";
    let dry = |body: Value| async move {
        let mut body = body;
        body["dryRun"] = true.into();
        body
    };
    for (body, count) in [
        (json!({"runId": run}), 20),
        (json!({"runId": run, "reasons": ["gone", "rejected"]}), 20),
        (json!({"runId": run, "reasons": ["gone"]}), 0),
        (json!({"ids": [rows[0]["id"]], "reason": "gone"}), 0),
        (json!({"ids": [rows[0]["id"]], "runId": run}), 1),
    ] {
        let counted = server.post(many, &dry(body.clone()).await).await.expect(200);
        assert_eq!(counted, json!({"count": count}), "{body}");
    }
    let of_b = server.post("/app/b/dead-letter/replay", &json!({"runId": run})).await;
    of_b.expect(404);
    for (body, field) in [
        (json!({"runId": "run_x"}), "runId"),
        (json!({"reasons": []}), "reasons"),
        (json!({"eventTypes": []}), "eventTypes"),
        (json!({"reason": "gone", "reasons": ["rejected"]}), "reason"),
        (json!({"reasons": ["no"]}), "reasons"),
    ] {
        let refused = server.post(many, &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{body}");
    }
    server.get("/app/a/dead-letter?run_id=dl_x").await.expect(422);
    server.post("/app/a/endpoint/e/breaker", &json!({"state": "auto"})).await.expect(200);
    server.post(many, &json!({"runId": run, "ratePerS": 1_000})).await.expect(202);
    until("no dead letter", || async { server.dead_letters("a").await.is_empty().then_some(()) })
        .await;
}

async fn is_over(server: &Server) {
    server.wait_idle("a").await;
    assert!(server.breaker("a").await["hold"].is_null());
}

#[tokio::test]
async fn a_hold_after_refusals_ends_when_their_cause_is_changed() {
    for change in ["url", "headers", "secret", "enabled", "closed", "auto"] {
        let (server, receiver) = (Server::with(&ONE).await, Receiver::start().await);
        refused(&server, &receiver).await;
        let e = "/app/a/endpoint/e";
        match change {
            "url" => {
                server.patch(e, &json!({"url": receiver.url("/new")})).await.expect(200);
            }
            "headers" => {
                let headers = json!({"headers": {"x-key": "new"}});
                server.patch(&format!("{e}/headers"), &headers).await.expect(204);
            }
            "secret" => {
                server.post(&format!("{e}/secret/rotate"), &json!({})).await.expect(200);
            }
            "enabled" => {
                for disabled in [true, false] {
                    server.patch(e, &json!({"disabled": disabled})).await.expect(200);
                }
            }
            forced => server.force("a", forced).await,
        }
        is_over(&server).await;
        assert_eq!(server.dead_letters("a").await.len(), 20, "{change}");
    }
}

#[tokio::test]
async fn a_replay_or_a_resend_by_hand_finds_out_whether_it_still_refuses() {
    let (server, receiver) = (Server::with(&ONE).await, Receiver::start().await);
    refused(&server, &receiver).await;
    let dead = server.dead_letters("a").await;
    let path = format!("/app/a/dead-letter/{}/replay", dead[7]["id"].as_str().unwrap());
    let before = receiver.hits().len();
    server.post(&path, &json!({})).await.expect(202);
    is_over(&server).await;
    let first = receiver.hits()[before].clone();
    assert_eq!(first.header("webhook-id"), dead[7]["msgId"], "that one went first");

    let (server, receiver) = (Server::with(&ONE).await, Receiver::start().await);
    refused(&server, &receiver).await;
    let dead = server.dead_letters("a").await;
    let path = format!("/app/a/msg/{}/endpoint/e/resend", dead[7]["msgId"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    is_over(&server).await;
}

#[tokio::test]
async fn a_hold_of_the_receiver_shows_and_no_next_attempt_is_before_it() {
    let mut server = Server::with(&ONE).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(429).header("retry-after", "300")).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.messages("a", 3).await.remove(0);
    let hold = wait_hold(&server, "retry_after").await;
    let held = time(&hold["until"]);
    assert!(held > ahead(200) && held <= ahead(300), "{hold}");
    for restarted in [false, true] {
        if restarted {
            assert_eq!(server.stop(), Some(0));
            server.start_again();
        }
        let waits = waiting(&server).await;
        assert_eq!(waits.len(), 3);
        for message in waits {
            assert!(time(&message["nextAttempt"]) >= held, "{message}");
        }
        let to = server.get(&format!("/app/a/msg/{id}/endpoint")).await.expect(200);
        assert!(time(&to["data"][0]["nextAttempt"]) >= held);
    }
    // A change of the endpoint does not end what the receiver asked for.
    server.patch("/app/a/endpoint/e", &json!({"url": receiver.url("/new")})).await.expect(200);
    assert_eq!(server.breaker("a").await["hold"]["reason"], "retry_after");
}

#[tokio::test]
async fn an_open_breaker_moves_the_next_attempt_and_a_forced_one_leaves_it_out() {
    let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    let breaker = json!({"breaker": {"failures": 2, "openFor": "5m", "openForMax": "5m"}});
    server.app_with("a", &receiver.url("/"), breaker).await;
    server.messages("a", 3).await;
    let open = time(&server.wait_breaker("a", "open").await["openUntil"]);
    let waits = waiting(&server).await;
    assert!(waits.len() == 3 && open > ahead(200));
    for message in waits {
        assert!(time(&message["nextAttempt"]) >= open, "{message}");
    }
    server.force("a", "open").await;
    until("nothing in the future", || async {
        let waits = waiting(&server).await;
        waits.iter().all(|message| message.get("nextAttempt").is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_gap_in_strict_order_shows_until_it_is_closed() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    receiver.script(|_, hit| Reply::status(if hit.n() == 0 { 400 } else { 200 }));
    server.app_with("a", &receiver.url("/"), json!({"ordered": "strict"})).await;
    for n in 0..2 {
        server.message("a", json!({"n": n})).await;
    }
    assert_eq!(wait_hold(&server, "gap").await, json!({"reason": "gap", "until": null}));
    let waits = waiting(&server).await;
    assert!(waits.len() == 1 && waits[0].get("nextAttempt").is_none(), "{waits:?}");
    until("the metric", || async {
        (server.metric("peyk_holds{reason=\"gap\"}").await == 1.0).then_some(())
    })
    .await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/app/a/dead-letter/{}", dead["id"].as_str().unwrap());
    server.delete(&path).await.expect(204);
    is_over(&server).await;
}
