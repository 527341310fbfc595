//! The same server with everything in PostgreSQL: what it does with it, and what it does when the
//! database goes away, only reads, or cannot be reached.
//!
//! Never: an acknowledged message lost, or a 202 for what is not committed.

use serde_json::json;
use testparts::Postgres;

use crate::support::server::command;
use crate::support::{Receiver, Reply, Server, until};

async fn server(url: &str) -> Server {
    Server::with(&[("PEYK_DATABASE_URL", url), ("PEYK_RETRY__ATTEMPTS_MAX", "3")]).await
}

#[tokio::test]
async fn a_message_is_delivered_retried_buried_and_replayed() {
    let mut server = server(&Postgres::shared().fresh_database()).await;
    let receiver = Receiver::scripted(|_, hit| {
        Reply::status(if hit.body.starts_with(b"{\"sick\"") { 500 } else { 200 })
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({"breaker": {"failures": 100}})).await;
    let well = server.message("a", json!({"n": 1})).await;
    server.wait_delivered("a", std::slice::from_ref(&well)).await;
    let sick = server.message("a", json!({"sick": true})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(3)));
    server.kill_and_restart();
    receiver.script(|_, _| Reply::status(200));
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    let rows = server.wait_attempts("a", &sick, 4).await;
    assert_eq!(rows[3]["status"], 0);
    assert!(server.dead_letters("a").await.is_empty());
    let list = server.get("/app/a/msg").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn db_04_nothing_acknowledged_is_lost_when_the_database_restarts() {
    let mut postgres = Postgres::start();
    let server = server(&postgres.fresh_database()).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let mut acknowledged = server.messages("a", 20).await;
    postgres.kill();
    let message = json!({"eventType": "t", "payload": {}});
    let refused = server.post("/app/a/msg", &message).await;
    assert_eq!(refused.expect(503)["code"], "storage_unavailable");
    assert_eq!(server.get("/health").await.status, 503);
    postgres.restart();
    let again = until("an acknowledgement", || async {
        let answer = server.post("/app/a/msg", &message).await;
        (answer.status == 202).then(|| answer.json()["id"].as_str().unwrap().to_owned())
    });
    acknowledged.push(again.await);
    server.wait_delivered("a", &acknowledged).await;
    server.wait_idle("a").await;
}

#[tokio::test]
async fn db_04_a_database_that_only_reads_is_answered_503() {
    let postgres = Postgres::start();
    let url = postgres.fresh_database();
    let server = server(&url).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let name = url.rsplit('/').next().unwrap();
    let set = |what: &str| {
        let admin = postgres.url("postgres");
        postgres.sql(&admin, &format!("ALTER DATABASE {name} {what}"));
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'peyk'";
        postgres.sql(&admin, end);
    };
    set("SET default_transaction_read_only = on");
    let message = json!({"eventType": "t", "payload": {}});
    for _ in 0..3 {
        let refused = server.post("/app/a/msg", &message).await;
        assert_eq!(refused.expect(503)["code"], "storage_unavailable");
    }
    set("RESET default_transaction_read_only");
    until("an acknowledgement", || async {
        (server.post("/app/a/msg", &message).await.status == 202).then_some(())
    })
    .await;
    receiver.wait_for(1).await;
}

#[tokio::test]
async fn a_database_out_of_reach_ends_a_start_in_one_line() {
    let url = Postgres::shared().fresh_database();
    let dir = tempfile::tempdir().unwrap();
    let migrated = command(dir.path(), &["migrate"]).env("PEYK_DATABASE_URL", &url).output();
    assert!(migrated.unwrap().status.success());
    let nowhere = "postgres://nobody:hunter2@127.0.0.1:1/none";
    Postgres::shared().sql(&url, "INSERT INTO peyk.schema_version (version) VALUES (9999)");
    for (url, expected) in [(url.as_str(), "newer version"), (nowhere, "cannot connect")] {
        let mut second = command(dir.path(), &["serve"]);
        let output = second.env("PEYK_DATABASE_URL", url).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(said.contains(expected) && !said.contains("hunter2"), "{said}");
    }
}
