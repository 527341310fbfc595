//! What cannot be delivered becomes a dead letter, and goes out when it is replayed.
//!
//! Never: another webhook-id for the same message, or a second replay by a second click.

use serde_json::json;

use crate::support::{Receiver, Reply, Server, until};

#[tokio::test]
async fn a_dead_letter_is_replayed_once() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!((&dead["reason"], &dead["attempts"]), (&json!("exhausted"), &json!(3)));
    assert_eq!((&dead["msgId"], &dead["lastStatusCode"]), (&json!(id), &json!(500)));
    assert_eq!(dead["idempotencyKey"], receiver.hits()[0].header("idempotency-key"));
    let path = format!("/app/a/dead-letter/{}", dead["id"].as_str().unwrap());
    let whole = server.get(&path).await.expect(200);
    assert_eq!(whole["payload"], json!({"n": 1}));
    assert_eq!(whole["attempts"].as_array().unwrap().len(), 3);
    let org = server.get("/dead-letter?reason=exhausted").await.expect(200);
    assert_eq!(org["data"], json!([dead]));
    let others = server.get("/dead-letter?reason=rejected").await.expect(200);
    assert_eq!(others["data"], json!([]));

    receiver.script(|_, _| Reply::status(200));
    let replayed = server.send("POST", &format!("/api/v1{path}/replay"), &[], "").await.expect(202);
    assert_eq!(replayed["msgId"], json!(id));
    let hits = receiver.wait_for(4).await;
    assert_eq!(hits[3].header("webhook-id"), id);
    assert_eq!(hits[3].header("webhook-attempt"), "4", "never restarts");
    assert_eq!(hits[3].header("idempotency-key"), hits[0].header("idempotency-key"));
    server.wait_attempts("a", &id, 4).await;
    assert!(server.dead_letters("a").await.is_empty());
    server.post(&format!("{path}/replay"), &json!({})).await.expect(409);
    server.delete(&path).await.expect(409);
    server.get(&path).await.expect(404);
}

#[tokio::test]
async fn an_edited_payload_is_a_new_message() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|number, _| Reply::status([400, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 1})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    assert_eq!(dead["reason"], "rejected");
    let path = format!("/api/v1/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    let replayed = server.send("POST", &path, &[], "{\"payload\":{\"n\" :2}}").await.expect(202);
    let edited = replayed["msgId"].as_str().unwrap();
    assert_ne!(edited, id);
    let hits = receiver.wait_for(2).await;
    assert_eq!((&hits[1].body[..], hits[1].header("webhook-id")), (&b"{\"n\" :2}"[..], edited));
    assert_ne!(hits[1].header("idempotency-key"), hits[0].header("idempotency-key"));
    let read = server.get(&format!("/app/a/msg/{edited}")).await.expect(200);
    assert_eq!(read["editedFrom"], json!(id));
    assert_eq!(read["editedBy"], "org_2PeykDefaultOrganisation000");
    assert_eq!(read["editedAt"], read["timestamp"]);
    let difference = &read["difference"];
    assert_eq!(difference["changes"], json!([{"kind": "changed", "path": "/n"}]));
    assert_eq!((&difference["before"]["bytes"], &difference["more"]), (&json!(7), &json!(0)));
    assert_eq!(difference["after"]["bytes"], 8);
    assert_ne!(difference["before"]["sha256"], difference["after"]["sha256"]);
    let first = server.get(&format!("/app/a/msg/{id}")).await.expect(200);
    assert!(first.get("editedBy").is_none() && first.get("difference").is_none(), "{first}");
    assert!(server.dead_letters("a").await.is_empty());
}

#[tokio::test]
async fn who_edited_is_told_of_a_dead_letter_too_and_survives_a_restart() {
    let mut server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(400)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let app = server.get("/app/a").await.expect(200)["id"].as_str().unwrap().to_owned();
    server.message("a", json!({"a": {"b": [1, 2]}, "secret": "hunter2"})).await;
    let original = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/api/v1/app/a/dead-letter/{}/replay", original["id"].as_str().unwrap());
    let bearer = format!("Bearer {}", server.made_token(&["--app", &app]));
    let headers = [("authorization", bearer.as_str())];
    let body = json!({"payload": {"a": {"b": [1, 3], "c": 0}}}).to_string();
    let edited = server.send("POST", &path, &headers, body).await.expect(202)["msgId"].clone();
    // It is refused like the one before.
    let dead = until("its own dead letter", || async {
        let found = server.dead_letters("a").await;
        found.into_iter().find(|letter| letter["msgId"] == edited)
    })
    .await;
    server.kill_and_restart();
    let path = format!("/app/a/dead-letter/{}", dead["id"].as_str().unwrap());
    let whole = server.get(&path).await.expect(200);
    assert_eq!((&whole["editedBy"], &whole["editedFrom"]), (&json!(app), &original["msgId"]));
    let changes = json!([
        {"kind": "changed", "path": "/a/b/1"},
        {"kind": "added", "path": "/a/c"},
        {"kind": "removed", "path": "/secret"},
    ]);
    assert_eq!(whole["difference"]["changes"], changes);
    assert!(!whole.to_string().contains("hunter2"), "{whole}");
}

#[tokio::test]
async fn a_dead_letter_can_be_deleted() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(404)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({})).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/app/a/dead-letter/{}", dead["id"].as_str().unwrap());
    server.app_with("b", &receiver.url("/"), json!({})).await;
    let foreign = path.replace("/a/", "/b/");
    server.get(&foreign).await.expect(404);
    server.delete(&foreign).await.expect(404);
    server.delete(&path).await.expect(204);
    assert!(server.dead_letters("a").await.is_empty());
}

#[tokio::test]
async fn id_07_each_resend_is_one_send() {
    let server = Server::start().await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({})).await;
    server.wait_attempts("a", &id, 1).await;
    for count in 2..=3 {
        let path = format!("/app/a/msg/{id}/endpoint/e/resend");
        assert_eq!(server.post(&path, &json!({})).await.expect(202), json!({}));
        let attempts = server.wait_attempts("a", &id, count).await;
        assert_eq!(attempts[count - 1]["triggerType"], 1);
    }
    server.delete(&format!("/app/a/msg/{id}/content")).await.expect(204);
    let gone = server.post(&format!("/app/a/msg/{id}/endpoint/e/resend"), &json!({})).await;
    assert_eq!(gone.expect(400)["code"], "missing_payload");
    let read = server.get(&format!("/app/a/msg/{id}")).await.expect(200);
    assert_eq!(read["payload"], json!({"expired": true}));
    assert_eq!(receiver.hits().len(), 3);
}

#[tokio::test]
async fn what_waits_for_deleted_content_is_dead_at_once_and_never_sent() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.force("a", "open").await;
    let gone = server.message("a", json!({"n": 1})).await;
    let stays = server.message("a", json!({"n": 2})).await;
    server.delete(&format!("/app/a/msg/{gone}/content")).await.expect(204);
    let dead = server.dead_letters("a").await.remove(0);
    assert_eq!((&dead["msgId"], &dead["reason"]), (&json!(gone), &json!("payload_gone")));
    let path = format!("/app/a/dead-letter/{}", dead["id"].as_str().unwrap());
    let replayed = server.post(&format!("{path}/replay"), &json!({})).await;
    assert_eq!(replayed.expect(400)["code"], "missing_payload");
    server.force("a", "closed").await;
    server.wait_attempts("a", &stays, 1).await;
    server.wait_idle("a").await;
    assert_eq!(receiver.hits().iter().map(|hit| hit.n()).collect::<Vec<_>>(), [2]);
    assert!(server.metric("peyk_dead_letters_total{reason=\"payload_gone\"}").await > 0.0);
}
