//! The process dies at any moment: what was acknowledged is sent all the same, under its own id.
//!
//! On one node there are no leases: what is in flight is memory of the process, and its row is
//! pending until a result is committed. What entries DU-04, DU-05 and DU-06 say of several workers
//! (a lease that runs out, a result of a worker that lost it, a start under another name) is shown
//! in `nodes`.
//! Never: a message lost after its 202, or given up because of an orderly restart.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use resilience::{Clock as _, SystemClock};
use serde_json::json;

use crate::support::{Gate, Receiver, Reply, Server, time, until};

/// How often each message arrived.
fn arrivals(receiver: &Receiver) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for hit in receiver.hits() {
        *counts.entry(hit.header("webhook-id").to_owned()).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn du_04_a_slow_batch_is_sent_once_however_long_it_takes() {
    let server = Server::with(&[("PEYK_ATTEMPT__DEADLINE", "30s")]).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let slow = Receiver::scripted(move |_, _| Reply::status(200).held(&held)).await;
    let neighbour = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &slow.url("/"), json!({})).await;
    // Its retries tell how time passes: several turns of the poll that looks for forgotten rows.
    let clock = json!({"retryPolicy": {"base": "800ms", "attemptsMax": 5}});
    server.app_with("clock", &neighbour.url("/"), clock).await;
    let ids = server.messages("a", 10).await;
    slow.wait_for(4).await;
    server.message("clock", json!({})).await;
    server.wait_dead("clock", 1).await;
    assert_eq!(slow.hits().len(), 4, "the window, and nothing of it again");
    gate.open();
    server.wait_delivered("a", &ids).await;
    let counts = arrivals(&slow);
    assert!(ids.iter().all(|id| counts[id] == 1), "{counts:?}");
}

#[tokio::test]
async fn du_05_a_late_failure_moves_no_finished_delivery() {
    let server = Server::with(&[("PEYK_ATTEMPT__DEADLINE", "30s")]).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let receiver = Receiver::scripted(move |number, _| match number {
        0 => Reply::status(200),
        _ => Reply::status(500).held(&held),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    // Delivered; an extra send of it fails later.
    let id = server.message("a", json!({})).await;
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    let path = format!("/app/a/msg/{id}/endpoint/e/resend");
    until("a resend", || async {
        let answer = server.post(&path, &json!({})).await;
        (answer.status == 202).then_some(())
    })
    .await;
    receiver.wait_for(2).await;
    server.post(&path, &json!({})).await.expect(409);
    gate.allow(1);
    let rows = server.wait_attempts("a", &id, 2).await;
    assert_eq!((&rows[1]["status"], &rows[1]["nextAttemptAt"]), (&json!(2), &json!(null)));

    // Cancelled with its endpoint; the send that was out fails later.
    let cancelled = server.message("a", json!({})).await;
    receiver.wait_for(3).await;
    server.delete("/app/a/endpoint/e").await.expect(204);
    gate.open();
    let rows = server.wait_attempts("a", &cancelled, 1).await;
    assert_eq!((&rows[0]["status"], &rows[0]["nextAttemptAt"]), (&json!(2), &json!(null)));
    assert!(server.dead_letters("a").await.is_empty());
    assert_eq!(server.metric("peyk_queue_depth").await, 0.0);
    assert_eq!(receiver.hits().len(), 3, "nothing follows from either");
}

#[tokio::test]
async fn du_05_a_late_success_of_a_cancelled_delivery_is_recorded() {
    let server = Server::with(&[("PEYK_ATTEMPT__DEADLINE", "30s")]).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let receiver = Receiver::scripted(move |_, _| Reply::status(200).held(&held)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    receiver.wait_for(1).await;
    server.delete("/app/a/endpoint/e").await.expect(204);
    gate.open();
    let rows = server.wait_attempts("a", &id, 1).await;
    assert_eq!((&rows[0]["status"], receiver.hits().len()), (&json!(0), 1));
}

#[tokio::test]
async fn du_06_fifty_sends_in_flight_are_made_again_after_a_kill() {
    let settings = [("PEYK_WINDOW__START", "50"), ("PEYK_ATTEMPT__DEADLINE", "30s")];
    let mut server = Server::with(&settings).await;
    let never = Gate::shut();
    let receiver = Receiver::scripted(move |_, _| Reply::status(200).held(&never)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let ids = server.messages("a", 50).await;
    receiver.wait_for(50).await;
    until("fifty in flight", || async {
        (server.metric("peyk_sends_in_flight").await == 50.0).then_some(())
    })
    .await;
    server.kill();
    receiver.script(|_, _| Reply::status(200));
    server.start_again();
    server.wait_delivered("a", &ids).await;
    let counts = arrivals(&receiver);
    assert!(ids.iter().all(|id| counts[id] == 2), "{counts:?}");
    until("nothing in flight", || async {
        (server.metric("peyk_sends_in_flight").await == 0.0).then_some(())
    })
    .await;
    // The figure that an alert is set on.
    let page = server.send("GET", "/metrics", &[], "").await.text();
    assert!(page.contains("peyk_queue_oldest_due_seconds"));
}

#[tokio::test]
async fn du_10_a_delivery_that_ends_the_process_is_given_up_and_the_others_arrive() {
    let mut server = Server::with(&[("PEYK_ATTEMPT__DEADLINE", "30s")]).await;
    let never = Gate::shut();
    let receiver = Receiver::scripted(move |_, hit| match hit.n() {
        50 => Reply::status(200).held(&never),
        _ => Reply::status(200),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.force("a", "open").await;
    let mut ids = server.messages("a", 101).await;
    let poison = ids.remove(50);
    server.force("a", "auto").await;
    let mut crashes = 0;
    // The process is ended as soon as the receiver has the poison, as if the send had done it.
    let dead = loop {
        let dead = until("the poison sent, or given up", || async {
            let sent = receiver.hits().iter().filter(|hit| hit.n() == 50).count();
            if sent > crashes {
                return Some(None);
            }
            server.dead_letters("a").await.pop().map(Some)
        })
        .await;
        if let Some(dead) = dead {
            break dead;
        }
        crashes += 1;
        assert!(crashes <= 12, "the number of crashes has a bound");
        server.kill_and_restart();
    };
    assert_eq!((&dead["reason"], &dead["msgId"]), (&json!("poisonous"), &json!(poison)));
    assert!(crashes >= 4, "one that is not suspected and three alone, not {crashes}");
    assert_eq!(dead["attempts"], crashes, "each of its sends is counted");
    server.wait_delivered("a", &ids).await;
    assert_eq!(arrivals(&receiver)[&poison], crashes, "given up without another send");
}

#[tokio::test]
async fn du_11_sigkill_during_graceful_shutdown_loses_nothing() {
    let settings = [("PEYK_WINDOW__START", "20"), ("PEYK_ATTEMPT__DEADLINE", "30s")];
    let mut server = Server::with(&settings).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    // The moment of the kill: so many answers after the shutdown has begun.
    for answered in [0, 0, 1, 5, 10, 19, 20] {
        let gate = Gate::shut();
        let held = gate.clone();
        receiver.script(move |_, _| Reply::status(200).held(&held));
        let before = receiver.hits().len();
        let ids = server.messages("a", 20).await;
        receiver.wait_for(before + 20).await;
        let stops = server.log().matches("stopping").count();
        server.terminate();
        until("a shutdown", || async {
            (server.log().matches("stopping").count() > stops).then_some(())
        })
        .await;
        gate.allow(answered);
        server.kill();
        receiver.script(|_, _| Reply::status(200));
        gate.open();
        server.start_again();
        server.wait_delivered("a", &ids).await;
        let counts = arrivals(&receiver);
        assert!(ids.iter().all(|id| counts[id] <= 2), "at most what was in flight: {counts:?}");
    }
}

#[tokio::test]
async fn du_12_restarts_in_the_middle_of_a_send_use_up_no_attempt() {
    let settings = [("PEYK_RETRY__ATTEMPTS_MAX", "1"), ("PEYK_ATTEMPT__DEADLINE", "30s")];
    let mut server = Server::with(&settings).await;
    let never = Gate::shut();
    let receiver = Receiver::scripted(move |number, _| match number {
        0..3 => Reply::status(200).held(&never),
        _ => Reply::status(200),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    for count in 1..=3 {
        receiver.wait_for(count).await;
        server.kill_and_restart();
    }
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    let hits = receiver.hits();
    assert!(hits.iter().all(|hit| hit.header("webhook-attempt") == "1"), "none was counted");
    assert!(hits.iter().all(|hit| hit.header("webhook-id") == id));
    assert!(server.dead_letters("a").await.is_empty());
}

#[tokio::test]
async fn du_13_a_retry_needs_nothing_to_remind_it_after_a_restart() {
    let mut server = Server::with(&[("PEYK_RETRY__BASE", "2s")]).await;
    let receiver = Receiver::scripted(|number, _| Reply::status([503, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    let first = server.wait_attempts("a", &id, 1).await.remove(0);
    server.kill_and_restart();
    // Nobody asks anything of it until then.
    let hits = receiver.wait_for(2).await;
    assert!(hits[1].at >= time(&first["nextAttemptAt"]), "not before its time");
    assert!(hits[1].at.since(hits[0].at) >= Duration::from_secs(2));
}

#[tokio::test]
async fn du_15_what_fell_due_while_it_was_down_goes_out_afterwards() {
    let settings = [
        ("PEYK_RETRY__BASE", "1s"),
        ("PEYK_RETRY__STRATEGY", "full_jitter"),
        ("PEYK_BREAKER__ENABLED", "false"),
    ];
    let mut server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({"retryPolicy": {"attemptsMax": 100}})).await;
    let ids = server.messages("a", 100).await;
    receiver.wait_for(100).await;
    let mut last = SystemClock.now();
    server.kill();
    receiver.script(|_, _| Reply::status(200));
    // Down until the longest of the first delays is over.
    last = last.plus(Duration::from_secs(1));
    until("the time", || async { (SystemClock.now() > last).then_some(()) }).await;
    receiver.most_at_once();
    // What it sent before it died has arrived by now.
    let before = arrivals(&receiver);
    server.start_again();
    server.wait_delivered("a", &ids).await;
    let counts = arrivals(&receiver);
    for id in &ids {
        assert_eq!(counts[id], before.get(id).unwrap_or(&0) + 1, "one send each");
    }
    assert!(receiver.most_at_once() <= 64, "no more at once than the window");
}

#[tokio::test]
async fn du_18_every_202_survives_a_kill_right_behind_it() {
    let mut server = Server::start().await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let mut ids = Vec::new();
    for round in 0..20 {
        let victim = server.id().to_string();
        let posts = (0..10).map(|n| {
            let (server, victim) = (&server, &victim);
            async move {
                let message = json!({"eventType": "t", "payload": {"n": round * 10 + n}});
                let path = "/api/v1/app/a/msg";
                let answer = server.try_send("POST", path, &[], message.to_string()).await?;
                // The first that is answered ends the process, at once.
                let killed = std::process::Command::new("kill").args(["-KILL", victim]).output();
                drop(killed);
                let id = answer.expect(202)["id"].as_str().unwrap().to_owned();
                Some(id)
            }
        });
        let acknowledged: Vec<String> = join_all(posts).await.into_iter().flatten().collect();
        assert!(!acknowledged.is_empty());
        ids.extend(acknowledged);
        server.kill_and_restart();
    }
    // So many kills may convict a delivery that was in flight alone at three of them: it is kept
    // as a dead letter, and sent when somebody says so.
    let settled = async |id: &String| {
        let rows = server.attempts("a", id).await;
        let letters = server.get("/app/a/dead-letter?reason=poisonous").await.expect(200);
        let dead = letters["data"].as_array().unwrap().iter().find(|dead| dead["msgId"] == *id);
        let dead = dead.map(|dead| dead["id"].as_str().unwrap().to_owned());
        let delivered = rows.iter().any(|row| row["status"] == 0);
        (delivered || dead.is_some()).then_some(dead)
    };
    for id in &ids {
        if let Some(dead) = until("a delivery or a dead letter", || settled(id)).await {
            let path = format!("/app/a/dead-letter/{dead}/replay");
            server.post(&path, &json!({})).await.expect(202);
        }
    }
    server.wait_delivered("a", &ids).await;
    let list = server.get("/app/a/msg?limit=250").await.expect(200);
    assert!(list["data"].as_array().unwrap().len() >= ids.len());
}

#[tokio::test]
async fn du_20_what_is_committed_is_sent_without_the_poll_that_repairs() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    for count in 1..=100 {
        // One alone: nothing comes after it that would wake anybody.
        server.message("a", json!({})).await;
        receiver.wait_for(count).await;
    }
    assert_eq!(server.metric("peyk_lane_repairs_total").await, 0.0);
}
