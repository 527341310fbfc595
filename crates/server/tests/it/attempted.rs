//! What went where: messages of an endpoint, endpoints of a message, how each delivery stands, and
//! answers that are expunged.
//!
//! Never: a delivery that is called sent and was not, or sending and never will be.

use serde_json::{Value, json};

use crate::pages::{ids, walk};
use crate::support::{Receiver, Reply, Server, until};

const SENT_TO: &str = "/app/a/endpoint/e/msg";

async fn list(server: &Server, query: &str) -> Vec<Value> {
    let page = server.get(&format!("{SENT_TO}?{query}")).await.expect(200);
    page["data"].as_array().unwrap().clone()
}

async fn posted(server: &Server, message: Value) -> String {
    let made = server.post("/app/a/msg", &message).await.expect(202);
    made["id"].as_str().unwrap().to_owned()
}

/// Waits until so many messages have this status at endpoint `e`.
async fn wait_status(server: &Server, status: u8, count: usize) -> Vec<Value> {
    until("a status", || async move {
        let rows = list(server, &format!("status={status}&expanded_statuses=true")).await;
        (rows.len() == count).then_some(rows)
    })
    .await
}

/// Ports `test_list_attempted_messages`.
#[tokio::test]
async fn test_list_attempted_messages() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let other = json!({"url": receiver.url("/other"), "uid": "other", "eventTypes": null});
    server.post("/app/a/endpoint", &other).await.expect(201);
    server.put("/event-type/t.only", &json!({"description": ""})).await.expect(201);
    let only = json!({"eventTypes": ["t.only"]});
    server.patch("/app/a/endpoint/other", &only).await.expect(200);
    let mut made = Vec::new();
    for (event_type, fields) in [
        ("t.a", json!({"channels": ["c1"]})),
        ("t.b", json!({"tags": ["blue"]})),
        ("t.only", json!({"channels": ["c2"], "eventId": "third"})),
    ] {
        let mut message = fields;
        message["eventType"] = event_type.into();
        message["payload"] = json!({"n": made.len()});
        made.push(posted(&server, message).await);
    }
    wait_status(&server, 0, 3).await;
    let path = server.get("/app/a/endpoint/e").await.expect(200)["id"].as_str().unwrap().to_owned();
    for name in ["e", &path] {
        let page = server.get(&format!("/app/a/endpoint/{name}/msg/")).await.expect(200);
        assert_eq!(ids(&page), [&*made[2], &made[1], &made[0]], "newest first");
        assert_eq!(page["done"], true);
        let first = &page["data"][0];
        assert_eq!((&first["eventId"], &first["payload"]), (&json!("third"), &json!({"n": 2})));
        assert_eq!((&first["status"], &first["statusText"]), (&json!(0), &json!("success")));
        assert!(first.get("nextAttempt").is_none());
    }
    let only = server.get("/app/a/endpoint/other/msg").await.expect(200);
    assert_eq!(ids(&only), [&*made[2]], "not what went elsewhere");
    for (query, expected) in [
        ("channel=c1", &made[..1]),
        ("tag=blue", &made[1..2]),
        ("event_types=t.b", &made[1..2]),
        ("event_types[]=t.only", &made[2..]),
        ("status=2", &[]),
        ("before=2000-01-01T00:00:00Z", &[]),
        ("after=2000-01-01T00:00:00Z&limit=1", &made[..1]),
    ] {
        let rows = list(&server, query).await;
        assert_eq!(
            rows.iter().filter_map(|row| row["id"].as_str()).collect::<Vec<_>>(),
            expected,
            "{query}"
        );
    }
    let lean = list(&server, "with_content=false").await;
    assert!(lean.iter().all(|row| row["payload"] == json!({})));
    let bad = server.get(&format!("{SENT_TO}?iterator=ep_1")).await.expect(422);
    assert_eq!(bad["detail"][0]["loc"], json!(["query", "iterator"]));
}

/// Ports `test_list_attempted_messages_sending` and
/// `test_list_attempted_messages_success_are_not_sending`.
#[tokio::test]
async fn test_list_attempted_messages_sending() {
    let server = Server::with(&[("PEYK_RETRY__BASE", "1h")]).await;
    let receiver = Receiver::scripted(|_, hit| match hit.n() {
        0 => Reply::status(500),
        _ => Reply::status(200),
    })
    .await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let failing = server.message("a", json!({"n": 0})).await;
    let good = server.message("a", json!({"n": 1})).await;
    let sending = wait_status(&server, 3, 1).await.remove(0);
    assert_eq!((&sending["id"], &sending["statusText"]), (&json!(failing), &json!("sending")));
    let retry = server.attempts("a", &failing).await.remove(0);
    assert_eq!(sending["nextAttempt"], retry["nextAttemptAt"]);
    assert_eq!(wait_status(&server, 0, 1).await[0]["id"], json!(good));
    assert_eq!(list(&server, "status=2").await, Vec::<Value>::new());
    // Nobody will send it while the endpoint is off.
    server.patch("/app/a/endpoint/e", &json!({"disabled": true})).await.expect(200);
    assert!(list(&server, "status=3").await[0].get("nextAttempt").is_none());
    let waits = server.message("a", json!({"n": 2})).await;
    let untried = list(&server, "status=1").await.remove(0);
    assert_eq!((&untried["id"], &untried["statusText"]), (&json!(waits), &json!("pending")));
}

/// Ports `test_list_attempted_messages_failed`.
#[tokio::test]
async fn test_list_attempted_messages_failed() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let patient = json!({"retryPolicy": {"base": "1h", "attemptsMax": 2}});
    server.app_with("a", &receiver.url("/"), patient).await;
    let id = server.message("a", json!({"n": 0})).await;
    wait_status(&server, 3, 1).await;
    for status in [0, 1, 2, 4] {
        assert_eq!(list(&server, &format!("status={status}")).await, Vec::<Value>::new());
    }
    let hasty = json!({"retryPolicy": {"attemptsMax": 1}});
    server.patch("/app/a/endpoint/e", &hasty).await.expect(200);
    let last = server.message("a", json!({"n": 1})).await;
    let failed = wait_status(&server, 2, 1).await.remove(0);
    assert_eq!((&failed["id"], &failed["statusText"]), (&json!(last), &json!("fail")));
    assert!(failed.get("nextAttempt").is_none());
    assert_eq!(list(&server, "status=3").await[0]["id"], json!(id));
    server.get(&format!("{SENT_TO}?status=5")).await.expect(422);
}

/// Ports `test_pagination_forward_and_back`, for attempted messages.
#[tokio::test]
async fn pg_01_attempted_messages_are_walked_there_and_back() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let mut made = server.messages("a", 28).await;
    made.sort_unstable_by(|a, b| b.cmp(a));
    for limit in [1, 10, 28] {
        assert_eq!(walk(&server, SENT_TO, limit).await, made, "{limit}");
    }
}

/// Ports `test_list_attempted_destinations`.
#[tokio::test]
async fn test_list_attempted_destinations() {
    let server = Server::with(&[("PEYK_RETRY__BASE", "1h")]).await;
    let receiver = Receiver::scripted(|_, hit| match hit.path.as_str() {
        "/bad" => Reply::status(503),
        _ => Reply::status(200),
    })
    .await;
    server.post("/app", &json!({"name": "a", "uid": "a"})).await.expect(201);
    let mut made = Vec::new();
    for (at, path) in ["/0", "/bad", "/2", "/3", "/off"].into_iter().enumerate() {
        let disabled = path == "/off";
        let endpoint =
            json!({"url": receiver.url(path), "uid": format!("e{at}"), "disabled": disabled});
        let endpoint = server.post("/app/a/endpoint", &endpoint).await.expect(201);
        made.push(endpoint["id"].as_str().unwrap().to_owned());
    }
    let id = server.message("a", json!({"n": 0})).await;
    server.wait_attempts("a", &id, 4).await;
    // Two are deleted: one that got it, one that did not.
    server.delete("/app/a/endpoint/e0").await.expect(204);
    server.delete("/app/a/endpoint/e4").await.expect(204);
    let path = format!("/app/a/msg/{id}/endpoint");
    let page = server.get(&format!("{path}?expanded_statuses=true")).await.expect(200);
    assert_eq!(ids(&page), made, "in order of their ids, deleted ones too");
    assert_eq!(page["done"], true);
    let shown = page["data"].as_array().unwrap();
    let told: Vec<_> = shown.iter().map(|row| row["statusText"].as_str().unwrap()).collect();
    assert_eq!(told, ["success", "sending", "success", "success", "canceled"]);
    assert_eq!((&shown[1]["status"], &shown[1]["uid"]), (&json!(3), &json!("e1")));
    assert!(shown[1]["nextAttempt"].is_string() && shown[1]["url"].is_string());
    let page = server.get(&path).await.expect(200);
    assert_eq!(page["data"][4]["statusText"], "fail", "for those who do not know `canceled`");
    let first = server.get(&format!("{path}/?limit=2")).await.expect(200);
    assert_eq!((ids(&first), &first["done"]), (made[..2].to_vec(), &json!(false)));
    for limit in [1, 2, 5] {
        assert_eq!(walk(&server, &path, limit).await, made, "{limit}");
    }
    server.get(&format!("{path}?iterator=msg_1")).await.expect(422);
    server.get("/app/a/msg/none/endpoint").await.expect(404);
}

/// Ports `test_expunge_attempt_response_body`.
#[tokio::test]
async fn test_expunge_attempt_response_body() {
    let mut server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(200)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let id = server.message("a", json!({"n": 0})).await;
    let attempt = server.wait_attempts("a", &id, 1).await.remove(0);
    assert_eq!(attempt["response"], "said 200");
    let path = format!("/app/a/msg/{id}/attempt/{}", attempt["id"].as_str().unwrap());
    let token = server.made_token(&["--app", &app_id(&server).await]);
    let headers = [("authorization", &*format!("Bearer {token}"))];
    let refused = server.send("DELETE", &format!("/api/v1{path}/content"), &headers, "").await;
    assert_eq!(refused.expect(403)["code"], "insufficient access");
    server.delete(&format!("/app/a/msg/{id}/attempt/atmpt_1/content")).await.expect(404);
    let gone = server.delete(&format!("{path}/content/")).await;
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    server.kill_and_restart();
    let read = server.get(&path).await.expect(200);
    assert_eq!((&read["response"], &read["responseStatusCode"]), (&json!("EXPUNGED"), &json!(200)));
    let older = server.get(&format!("/app/a/msg/{id}/endpoint/e/attempt")).await.expect(200);
    assert_eq!(older["data"], json!([read]), "the older path");
    server.get(&format!("/app/a/msg/{id}/endpoint/none/attempt")).await.expect(404);
}

async fn app_id(server: &Server) -> String {
    server.get("/app/a").await.expect(200)["id"].as_str().unwrap().to_owned()
}
