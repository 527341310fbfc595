//! While a breaker is open nothing is sent; when its wait is over one probe is, and it decides.
//!
//! Never: two probes at once, a breaker that nobody asks again, a result from before it opened that
//! moves it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Gate, Raw, Receiver, Reply, Server, Step, until};

/// Retries at once and for ever, so that only the breaker holds anything back.
const PATIENT: [(&str, &str); 3] = [
    ("PEYK_RETRY__ATTEMPTS_MAX", "1000"),
    ("PEYK_RETRY__BASE", "20ms"),
    ("PEYK_ATTEMPT__DEADLINE", "30s"),
];

fn breaker(failures: u32, open_for: &str, open_for_max: &str) -> Value {
    json!({"breaker": {"failures": failures, "openFor": open_for, "openForMax": open_for_max}})
}

/// Something else happens so often: time passes, and the dispatcher has had its turns.
async fn meanwhile(server: &Server, neighbour: &Receiver, count: usize) {
    let before = neighbour.hits().len();
    server.messages("neighbour", count).await;
    neighbour.wait_for(before + count).await;
}

#[tokio::test]
async fn cb_01_cb_07_never_more_than_one_probe_while_five_hundred_wait() {
    // Wide enough that it is not the window that holds all but one back.
    let wide = [("PEYK_WINDOW__START", "64"), ("PEYK_WINDOW__MAX", "512")];
    let server = Server::with(&[&PATIENT[..], &wide].concat()).await;
    let (receiver, neighbour) = (Receiver::start().await, Receiver::start().await);
    receiver.script(|_, _| Reply::status(500));
    server.app_with("neighbour", &neighbour.url("/"), json!({})).await;
    server.app_with("a", &receiver.url("/"), breaker(2, "200ms", "200ms")).await;
    let mut ids = server.messages("a", 2).await;
    server.wait_breaker("a", "open").await;
    let gate = Gate::shut();
    let held = gate.clone();
    receiver.script(move |_, _| Reply::status(500).held(&held));
    ids.extend(server.messages("a", 500).await);
    until("what is in flight from before", || async { (receiver.open() <= 1).then_some(()) }).await;
    receiver.most_at_once();
    for _ in 0..3 {
        until("a probe", || async { (receiver.open() == 1).then_some(()) }).await;
        let hits = receiver.hits().len();
        meanwhile(&server, &neighbour, 100).await;
        assert_eq!(server.breaker("a").await["state"], "halfOpen");
        assert_eq!((receiver.open(), receiver.hits().len()), (1, hits), "one probe is out");
        gate.allow(1);
        receiver.wait_for(hits + 1).await;
    }
    assert_eq!(receiver.most_at_once(), 1);
    receiver.script(|_, _| Reply::status(200));
    gate.open();
    // One success is enough.
    server.wait_breaker("a", "closed").await;
    server.wait_idle("a").await;
    assert!(server.dead_letters("a").await.is_empty());
    assert_eq!(server.breaker("a").await["consecutiveFailures"], 0);
}

#[tokio::test]
async fn cb_02_a_probe_that_is_lost_with_the_process_is_followed_by_another() {
    let mut server = Server::with(&PATIENT).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), breaker(2, "300ms", "300ms")).await;
    let ids = server.messages("a", 5).await;
    server.wait_breaker("a", "open").await;
    let gate = Gate::shut();
    let held = gate.clone();
    receiver.script(move |_, _| Reply::status(200).held(&held));
    let before = receiver.hits().len();
    receiver.wait_for(before + 1).await;
    server.kill_and_restart();
    // What was open is open after the start, and asked again.
    assert_ne!(server.breaker("a").await["state"], "closed");
    receiver.wait_for(before + 2).await;
    gate.open();
    server.wait_breaker("a", "closed").await;
    server.wait_delivered("a", &ids).await;
}

#[tokio::test]
async fn cb_02_a_probe_that_times_out_is_followed_by_another() {
    let settings = [("PEYK_ATTEMPT__DEADLINE", "5s")];
    let server = Server::with(&[&PATIENT[..2], &settings].concat()).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), breaker(2, "50ms", "50ms")).await;
    let ids = server.messages("a", 2).await;
    server.wait_breaker("a", "open").await;
    let (never, gate) = (Gate::shut(), Gate::shut());
    let held = never.clone();
    receiver.script(move |_, _| Reply::status(200).held(&held));
    until("a probe that hangs", || async { (receiver.open() == 1).then_some(()) }).await;
    gate.open();
    receiver.script(move |_, _| Reply::status(200).held(&gate));
    server.wait_breaker("a", "closed").await;
    server.wait_delivered("a", &ids).await;
}

#[tokio::test]
async fn cb_03_a_refused_probe_is_followed_by_another() {
    let server = Server::with(&PATIENT).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/"), breaker(2, "200ms", "200ms")).await;
    server.messages("a", 5).await;
    server.wait_breaker("a", "open").await;
    let before = receiver.hits().len();
    receiver.script(move |number, _| Reply::status(if number <= before { 404 } else { 200 }));
    server.wait_breaker("a", "closed").await;
    server.wait_idle("a").await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["lastStatusCode"]), (&json!("rejected"), &json!(404)));
}

#[tokio::test]
async fn cb_05_failures_that_land_together_open_it_once() {
    let server = Server::with(&[&PATIENT[..], &[("PEYK_WINDOW__START", "8")]].concat()).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let raw = Raw::start(move |number| match number {
        0..8 => vec![Step::Wait(held.clone()), Step::Close],
        _ => vec![Step::send("HTTP/1.1 204 No Content\r\n\r\n")],
    })
    .await;
    server.app_with("a", &raw.url("/"), breaker(5, "300ms", "300ms")).await;
    let ids = server.messages("a", 8).await;
    raw.wait_for(8).await;
    gate.open();
    server.wait_breaker("a", "closed").await;
    server.wait_delivered("a", &ids).await;
    let rows = server.attempts("a", &ids[0]).await;
    assert_eq!((&rows[0]["errorKind"], &rows[1]["status"]), (&json!("reset"), &json!(0)));
}

#[tokio::test]
async fn cb_06_results_from_before_the_break_do_not_decide_the_trial() {
    let server = Server::with(&[&PATIENT[..], &[("PEYK_WINDOW__START", "8")]].concat()).await;
    let gate = Gate::shut();
    let (held, trip) = (gate.clone(), Gate::shut());
    let fast = trip.clone();
    let receiver = Receiver::scripted(move |_, hit| match hit.n() {
        0..3 => Reply::status(200).held(&held),
        _ => Reply::status(503).held(&fast),
    })
    .await;
    server.app_with("a", &receiver.url("/"), breaker(2, "200ms", "200ms")).await;
    let mut slow = Vec::new();
    for n in 0..3 {
        slow.push(server.message("a", json!({"n": n})).await);
    }
    receiver.wait_for(3).await;
    for n in 3..5 {
        server.message("a", json!({"n": n})).await;
    }
    receiver.wait_for(5).await;
    trip.open();
    server.wait_breaker("a", "open").await;
    // The slow ones say that it was well before; that settles them and nothing else.
    gate.open();
    server.wait_delivered("a", &slow).await;
    let hits = receiver.hits().len();
    receiver.wait_for(hits + 3).await;
    assert_ne!(server.breaker("a").await["state"], "closed");
    // They have not begun the count anew either: it is that of all failures there were.
    server.force("a", "open").await;
    until("an end of the last probe", || async {
        let failures = receiver.hits().iter().filter(|hit| hit.n() >= 3).count();
        (server.breaker("a").await["consecutiveFailures"] == failures).then_some(())
    })
    .await;
    server.force("a", "auto").await;
    receiver.script(|_, _| Reply::status(200));
    server.wait_breaker("a", "closed").await;
    server.wait_idle("a").await;
    assert_eq!(receiver.hits().iter().filter(|hit| hit.n() < 3).count(), 3, "each was sent once");
}

#[tokio::test]
async fn cb_10_each_failed_probe_begins_a_wait_of_its_own() {
    let server = Server::with(&[&PATIENT[..], &[("PEYK_WINDOW__START", "1")]].concat()).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/"), breaker(2, "200ms", "800ms")).await;
    server.messages("a", 20).await;
    // The two that open it, and five probes.
    let hits = receiver.wait_for(7).await;
    let waits: Vec<_> = hits.windows(2).map(|pair| pair[1].at.since(pair[0].at)).skip(1).collect();
    for (wait, least) in waits.iter().zip([200, 200, 400, 400, 400]) {
        assert!(*wait >= Duration::from_millis(least), "{waits:?}");
    }
    assert_eq!(receiver.most_at_once(), 1);
}

#[tokio::test]
async fn cb_13_refusals_in_between_hide_no_outage() {
    let settings =
        [("PEYK_RETRY__BASE", "1h"), ("PEYK_WINDOW__START", "1"), ("PEYK_WINDOW__MAX", "1")];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, hit| {
        Reply::status(if hit.n().is_multiple_of(2) { 400 } else { 503 })
    })
    .await;
    server.app_with("a", &receiver.url("/"), breaker(3, "1h", "1h")).await;
    for n in 0..12 {
        server.message("a", json!({"n": n})).await;
    }
    let open = server.wait_breaker("a", "open").await;
    assert_eq!(open["consecutiveFailures"], 3);
    let hits: Vec<_> = receiver.hits().iter().map(|hit| hit.n()).collect();
    assert_eq!(hits, [0, 1, 2, 3, 4, 5], "the third failure opened it");
    assert_eq!(server.wait_dead("a", 3).await.len(), 3);
}

#[tokio::test]
async fn forced_states_hold_until_they_are_given_back() {
    let mut server = Server::with(&PATIENT).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), breaker(2, "1h", "1h")).await;
    server.force("a", "closed").await;
    server.messages("a", 3).await;
    // Failures go on, and it stays closed, also after a kill.
    receiver.wait_for(20).await;
    server.kill_and_restart();
    let closed = server.breaker("a").await;
    assert_eq!((&closed["state"], &closed["forced"]), (&json!("closed"), &json!(true)));
    let hits = receiver.hits().len();
    receiver.wait_for(hits + 10).await;
    server.force("a", "open").await;
    until("an end of what is in flight", || async { (receiver.open() == 0).then_some(()) }).await;
    server.kill_and_restart();
    let open = server.breaker("a").await;
    assert_eq!((&open["state"], &open["forced"]), (&json!("open"), &json!(true)));
    assert!(open["openUntil"].is_null());
    receiver.script(|_, _| Reply::status(200));
    let before = receiver.hits().len();
    assert_eq!(server.breaker("a").await["waiting"], 3);
    assert_eq!(receiver.hits().len(), before, "nothing is sent while it is forced open");
    server.force("a", "auto").await;
    server.wait_idle("a").await;
    server.post("/app/a/endpoint/e/breaker", &json!({"state": "halfOpen"})).await.expect(422);
}
