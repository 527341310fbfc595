//! What was acknowledged survives: a kill, a stop, a start.
//!
//! Never: an acknowledged message lost.

use futures_util::future::join_all;
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

/// Posts a message under this key; its id, or nothing if the server went away.
async fn post(server: &Server, key: &str, n: u32) -> Option<String> {
    let body = json!({"eventType": "t", "payload": {"n": n}}).to_string();
    let headers = [("idempotency-key", key)];
    let made = server.try_send("POST", "/api/v1/app/a/msg", &headers, body).await?;
    Some(made.expect(202)["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn id_02_a_crash_while_a_key_is_taken_locks_nothing() {
    let (mut server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let mut count = 0;
    for round in 0..10 {
        let keys: Vec<String> = (0..10).map(|n| format!("k{round}.{n}")).collect();
        let victim = server.id().to_string();
        let posts = keys.iter().map(|key| post(&server, key, round));
        let kill = async {
            drop(std::process::Command::new("kill").args(["-KILL", &victim]).output());
        };
        // The kill comes before, amid and after the claims of these keys.
        let (before, ()) = futures_util::future::join(join_all(posts), kill).await;
        server.kill_and_restart();
        for (key, before) in keys.iter().zip(before) {
            let again = post(&server, key, round).await.unwrap();
            assert!(before.is_none_or(|before| before == again), "{key}");
            count += 1;
        }
    }
    // Whatever was claimed before a crash, each key made one message.
    server.wait_idle("a").await;
    let list = server.get("/app/a/msg?limit=250").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), count);
}

#[tokio::test]
async fn id_02_a_caller_that_hangs_up_locks_nothing() {
    use std::io::Write as _;
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let body = json!({"eventType": "t", "payload": {"n": 1}}).to_string();
    for n in 0..20 {
        let head = format!(
            "POST /api/v1/app/a/msg HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             idempotency-key: k{n}\r\ncontent-length: {}\r\n\r\n{body}",
            server.token,
            body.len()
        );
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        // Whole, or all but its last byte.
        stream.write_all(&head.as_bytes()[..head.len() - n % 2]).unwrap();
        drop(stream);
        assert!(post(&server, &format!("k{n}"), 1).await.is_some());
    }
    server.wait_idle("a").await;
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!((list["data"].as_array().unwrap().len(), receiver.hits().len()), (20, 20));
}

#[tokio::test]
async fn id_08_a_key_is_known_after_every_kind_of_restart() {
    let (mut server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let first = post(&server, "k", 1).await.unwrap();
    server.wait_delivered("a", std::slice::from_ref(&first)).await;
    for round in 0..4 {
        if round % 2 == 0 {
            server.kill_and_restart();
        } else {
            assert_eq!(server.stop(), Some(0));
            server.start_again();
        }
        assert_eq!(post(&server, "k", 1).await.unwrap(), first);
        let other = json!({"eventType": "t", "payload": {"n": 2}}).to_string();
        let headers = [("idempotency-key", "k")];
        server.send("POST", "/api/v1/app/a/msg", &headers, other).await.expect(422);
    }
    server.wait_idle("a").await;
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!((list["data"].as_array().unwrap().len(), receiver.hits().len()), (1, 1));
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
