//! Deliveries that wait: behind the head of an ordered endpoint, for a disabled endpoint, for a
//! send by hand.
//!
//! Never: another order than that of acceptance where order was asked for.

use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Server, until};

/// One send at a time.
const ONE: [(&str, &str); 2] = [("PEYK_WINDOW__START", "1"), ("PEYK_WINDOW__MAX", "1")];

/// The numbers in the order of their arrival.
fn numbers(receiver: &Receiver) -> Vec<u64> {
    receiver.hits().iter().map(|hit| hit.n()).collect()
}

/// Posts so many messages, one after the other.
async fn post(server: &Server, count: u64) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 1..=count {
        ids.push(server.message("a", json!({"n": n})).await);
    }
    ids
}

/// An endpoint where 2 fails twice and 3 is refused.
async fn stumbling() -> Receiver {
    Receiver::scripted(|_, hit| match (hit.n(), hit.header("webhook-attempt")) {
        (2, "1" | "2") => Reply::status(503),
        (3, "1") => Reply::status(400),
        _ => Reply::status(200),
    })
    .await
}

#[tokio::test]
async fn an_ordered_endpoint_keeps_its_order_over_failures() {
    let (server, receiver) = (Server::start().await, stumbling().await);
    server.app_with("a", &receiver.url("/"), json!({"ordered": true})).await;
    let ids = post(&server, 6).await;
    receiver.wait_for(8).await;
    server.wait_idle("a").await;
    assert_eq!(numbers(&receiver), [1, 2, 2, 2, 3, 4, 5, 6], "the dead one is passed over");
    assert_eq!(receiver.most_at_once(), 1);
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!(dead["msgId"], ids[2]);
    // A replay goes to the end.
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    receiver.wait_for(9).await;
    assert_eq!(numbers(&receiver)[8], 3);
}

#[tokio::test]
async fn an_ordered_endpoint_keeps_its_order_over_kills() {
    let mut server = Server::with(&[("PEYK_RETRY__BASE", "300ms")]).await;
    let receiver = stumbling().await;
    server.app_with("a", &receiver.url("/"), json!({"ordered": true})).await;
    let ids = post(&server, 6).await;
    for count in 1..=2 {
        server.wait_attempts("a", &ids[1], count).await;
        server.kill_and_restart();
    }
    server.wait_idle("a").await;
    let mut arrived = numbers(&receiver);
    assert_eq!(arrived.iter().filter(|n| **n == 2).count(), 3);
    arrived.dedup();
    assert_eq!(arrived, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn strict_order_is_blocked_by_what_is_dead() {
    let (server, receiver) = (Server::start().await, stumbling().await);
    server.app_with("a", &receiver.url("/"), json!({"ordered": "strict"})).await;
    post(&server, 4).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!(server.breaker("a").await["waiting"], 1);
    assert_eq!(numbers(&receiver), [1, 2, 2, 2, 3]);
    let path = format!("/app/a/dead-letter/{}", dead["id"].as_str().unwrap());
    server.delete(&path).await.expect(204);
    receiver.wait_for(6).await;
    server.wait_idle("a").await;
    assert_eq!(numbers(&receiver), [1, 2, 2, 2, 3, 4]);
}

#[tokio::test]
async fn a_disabled_endpoint_waits_and_sends_its_oldest_first() {
    let (mut server, receiver) = (Server::with(&ONE).await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({"disabled": true})).await;
    let ids = post(&server, 10).await;
    server.kill_and_restart();
    assert_eq!(server.breaker("a").await["waiting"], 10);
    assert!(receiver.hits().is_empty());
    for id in &ids {
        assert!(server.attempts("a", id).await.is_empty());
    }
    server.patch("/app/a/endpoint/e", &json!({"disabled": false})).await.expect(200);
    server.wait_delivered("a", &ids).await;
    assert_eq!(numbers(&receiver), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn an_endpoint_that_is_enabled_begins_with_one_send() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let gate = Gate::shut();
    let held = gate.clone();
    receiver.script(move |_, _| Reply::status(200).held(&held));
    server.app_with("a", &receiver.url("/"), json!({"disabled": true})).await;
    let ids = post(&server, 10).await;
    server.patch("/app/a/endpoint/e", &json!({"disabled": false})).await.expect(200);
    let first = receiver.wait_for(1).await.remove(0);
    assert_eq!(first.n(), 1);
    let waiting = server.breaker("a").await;
    assert_eq!((receiver.hits().len(), &waiting["waiting"]), (1, &json!(10)));
    gate.open();
    server.wait_delivered("a", &ids).await;
    assert_eq!(receiver.hits().len(), 10);
}

/// Asks for one more send; what it was answered once the last one is out of the way.
async fn resend(server: &Server, message: &str) -> Value {
    let path = format!("/app/a/msg/{message}/endpoint/e/resend");
    until("a resend", || async {
        let answer = server.post(&path, &json!({})).await;
        (answer.status != 409).then_some(answer)
    })
    .await
    .expect(202)
}

#[tokio::test]
async fn a_resend_passes_filters_breaker_and_hold() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    receiver.script(|_, _| Reply::status(503).header("retry-after", "3600"));
    server.app_with("a", &receiver.url("/"), json!({"channels": ["c"]})).await;
    let other = server.message("a", json!({"n": 1})).await;
    let message = json!({"eventType": "t", "payload": {"n": 2}, "channels": ["c"]});
    let held = server.post("/app/a/msg", &message).await.expect(202);
    receiver.wait_for(1).await;
    assert_eq!(receiver.hits()[0].n(), 2, "the other one is for no channel");
    server.force("a", "open").await;
    receiver.script(|_, _| Reply::status(200));
    for (count, id) in [&other, held["id"].as_str().unwrap()].into_iter().enumerate() {
        resend(&server, id).await;
        let hit = receiver.wait_for(count + 2).await.remove(count + 1);
        assert_eq!(hit.header("webhook-id"), id);
        server.wait_delivered("a", &[id.to_owned()]).await;
    }
    // Delivered by hand: the retry that waited is not made any more.
    server.force("a", "closed").await;
    server.wait_idle("a").await;
    let numbers: Vec<_> = receiver.hits().iter().map(|hit| hit.n()).collect();
    assert_eq!(numbers, [2, 1, 2]);
    assert_eq!(receiver.hits()[2].header("webhook-attempt"), "2", "it goes on counting");
}

#[tokio::test]
async fn a_resend_that_fails_leaves_everything_as_it_was() {
    let (server, receiver) = (Server::start().await, stumbling().await);
    receiver.script(|_, _| Reply::status(400));
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    resend(&server, &id).await;
    let rows = server.wait_attempts("a", &id, 2).await;
    assert_eq!((&rows[1]["triggerType"], &rows[1]["status"]), (&json!(1), &json!(2)));
    let still = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&still["id"], &still["reason"]), (&dead["id"], &json!("rejected")));
    receiver.script(|_, _| Reply::status(200));
    resend(&server, &id).await;
    server.wait_attempts("a", &id, 3).await;
    assert!(server.wait_dead("a", 0).await.is_empty(), "delivered by hand");
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(409);
    assert_eq!(receiver.hits().len(), 3);
}

#[tokio::test]
async fn a_resend_is_refused_while_a_send_is_out() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let gate = Gate::shut();
    let held = gate.clone();
    receiver.script(move |_, _| Reply::status(200).held(&held));
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    receiver.wait_for(1).await;
    let path = format!("/app/a/msg/{id}/endpoint/e/resend");
    assert_eq!(server.post(&path, &json!({})).await.expect(409)["code"], "in_flight");
    gate.open();
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    server.post("/app/a/msg/none/endpoint/e/resend", &json!({})).await.expect(404);
    server.post(&format!("/app/a/msg/{id}/endpoint/none/resend"), &json!({})).await.expect(404);
    assert_eq!(receiver.hits().len(), 1);
}
