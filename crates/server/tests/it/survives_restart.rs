//! What was acknowledged survives: a kill, a stop, a start.
//!
//! Never: an acknowledged message lost.

use serde_json::json;

use crate::support::{Receiver, Reply, Server};

async fn keyed(server: &Server) -> String {
    let body = json!({"eventType": "t", "payload": {"keyed": true}}).to_string();
    let headers = [("idempotency-key", "k")];
    let made = server.send("POST", "/api/v1/app/a/msg", &headers, body).await.expect(202);
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn id_08_nothing_acknowledged_is_lost_by_a_kill() {
    let mut server = Server::with(&[("PEYK_RETRY__ATTEMPTS_MAX", "100")]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    let policy = json!({"breaker": {"openFor": "50ms", "openForMax": "100ms"}});
    server.app_with("a", &receiver.url("/"), policy).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(server.message("a", json!({"n": n})).await);
    }
    let first = keyed(&server).await;
    receiver.wait_for(1).await;
    server.kill_and_restart();
    receiver.script(|_, _| Reply::status(200));
    assert_eq!(keyed(&server).await, first, "the key is remembered");
    ids.push(first);
    for id in &ids {
        crate::support::until("a delivery", || async {
            let attempts = server.attempts("a", id).await;
            attempts.iter().any(|attempt| attempt["status"] == 0).then_some(())
        })
        .await;
    }
    let read = server.get("/app/a/endpoint/e").await.expect(200);
    assert_eq!(read["breaker"]["openFor"], "50ms");
}

#[tokio::test]
async fn a_stop_is_clean_and_says_so() {
    let (mut server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    receiver.wait_for(1).await;
    assert_eq!(server.stop(), Some(0));
    server.start_again();
    assert_eq!(server.wait_attempts("a", &id, 1).await.len(), 1);
    assert_eq!(receiver.hits().len(), 1, "a result is committed before the end");
}
