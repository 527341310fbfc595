//! A breaker opens on failures, shows where it stands, and can be forced.
//!
//! Never: a send while it is open.

use serde_json::json;

use crate::support::{Receiver, Reply, Server, until};

#[tokio::test]
async fn it_opens_probes_and_closes() {
    let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let policy = json!({"breaker": {"failures": 2, "openFor": "100ms", "openForMax": "200ms"}});
    server.app_with("a", &receiver.url("/"), policy).await;
    for n in 0..4 {
        server.message("a", json!({"n": n})).await;
    }
    let path = "/app/a/endpoint/e/breaker";
    until("an open breaker", || async {
        let breaker = server.get(path).await.expect(200);
        (breaker["state"] == "open" && breaker["openUntil"].is_string()).then_some(())
    })
    .await;
    receiver.script(|_, _| Reply::status(200));
    until("a closed breaker", || async {
        let breaker = server.get(path).await.expect(200);
        (breaker["state"] == "closed" && breaker["waiting"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_moves_is_probed_at_once() {
    let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let (sick, well) =
        (Receiver::scripted(|_, _| Reply::status(500)).await, Receiver::start().await);
    let policy = json!({
        "breaker": {"failures": 1, "openFor": "1h", "openForMax": "1h"},
        "retryPolicy": {"strategy": "fixed", "base": "100ms"},
    });
    server.app_with("a", &sick.url("/"), policy).await;
    server.message("a", json!({})).await;
    let path = "/app/a/endpoint/e/breaker";
    until("an open breaker", || async {
        (server.get(path).await.expect(200)["state"] == "open").then_some(())
    })
    .await;
    server.patch("/app/a/endpoint/e", &json!({"url": well.url("/")})).await.expect(200);
    well.wait_for(1).await;
    until("a closed breaker", || async {
        (server.get(path).await.expect(200)["state"] == "closed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_restart_does_not_bring_the_wait_back_that_a_change_has_ended() {
    let mut server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let (sick, well) =
        (Receiver::scripted(|_, _| Reply::status(500)).await, Receiver::start().await);
    // What waits is not due for long: nothing goes as a probe before something new comes.
    let policy = json!({
        "breaker": {"failures": 1, "openFor": "1h", "openForMax": "1h"},
        "retryPolicy": {"strategy": "fixed", "base": "1h", "cap": "1h"},
    });
    server.app_with("a", &sick.url("/"), policy).await;
    server.message("a", json!({"n": 1})).await;
    let path = "/app/a/endpoint/e/breaker";
    let is = |state: &'static str| {
        let server = &server;
        until(state, move || async move {
            (server.get(path).await.expect(200)["state"] == state).then_some(())
        })
    };
    is("open").await;
    server.patch("/app/a/endpoint/e", &json!({"url": well.url("/")})).await.expect(200);
    is("halfOpen").await;
    assert_eq!(server.stop(), Some(0));
    server.start_again();
    server.message("a", json!({"n": 2})).await;
    well.wait_for(1).await;
}

#[tokio::test]
async fn it_can_be_forced() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let path = "/app/a/endpoint/e/breaker";
    let forced = server.post(path, &json!({"state": "open"})).await.expect(200);
    assert_eq!((&forced["state"], &forced["forced"]), (&json!("open"), &json!(true)));
    assert!(forced["openUntil"].is_null(), "nobody knows");
    server.message("a", json!({})).await;
    let waiting = server.get(path).await.expect(200);
    assert_eq!((&waiting["waiting"], receiver.hits().len()), (&json!(1), 0));
    let auto = server.post(path, &json!({"state": "auto"})).await.expect(200);
    assert_eq!((&auto["state"], &auto["forced"]), (&json!("closed"), &json!(false)));
    receiver.wait_for(1).await;
}

#[tokio::test]
async fn a_break_that_ended_while_forced_closed_does_not_come_back() {
    let server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let policy = json!({"breaker": {"failures": 1, "openFor": "1h", "openForMax": "1h"}});
    server.app_with("a", &receiver.url("/"), policy).await;
    let path = "/app/a/endpoint/e/breaker";
    server.message("a", json!({"n": 1})).await;
    until("an open breaker", || async {
        (server.get(path).await.expect(200)["state"] == "open").then_some(())
    })
    .await;
    receiver.script(|_, _| Reply::status(200));
    let forced = server.post(path, &json!({"state": "closed"})).await.expect(200);
    assert_eq!((&forced["state"], &forced["openUntil"]), (&json!("closed"), &json!(null)));
    server.message("a", json!({"n": 2})).await;
    until("a delivery", || async {
        (server.get(path).await.expect(200)["consecutiveFailures"] == 0).then_some(())
    })
    .await;
    let auto = server.post(path, &json!({"state": "auto"})).await.expect(200);
    assert_eq!((&auto["state"], &auto["openUntil"]), (&json!("closed"), &json!(null)));
}
