//! An organisation is told what happens to its endpoints and deliveries, by ordinary messages.
//!
//! Never: an event that is lost or told twice, or one about those who are told.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webhook::{Secret, WebhookVerifier};

use crate::support::receiver::Hit;
use crate::support::server::Answer;
use crate::support::{Receiver, Reply, Server, time, until};

const ORG: &str = "org_2PeykDefaultOrganisation000";
const MANAGEMENT: &str = "org_00000000000SvixManagement00";
const TOLD: &str = "/operational-webhook/endpoint";
/// Nothing but the policy holds a retry back.
const NO_BREAKER: [(&str, &str); 1] = [("PEYK_BREAKER__ENABLED", "false")];

/// Asks with the token of another organisation.
async fn by(server: &Server, org: &str, (method, path): (&str, &str), body: Value) -> Answer {
    let bearer = format!("Bearer {}", server.made_token(&["--org", org]));
    let headers = [("authorization", bearer.as_str())];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(method, &format!("/api/v1{path}"), &headers, body).await
}

/// A receiver that is told in order of everything that happens in the organisation.
async fn told(server: &Server) -> Receiver {
    let receiver = Receiver::start().await;
    let endpoint = json!({"url": receiver.url("/"), "uid": "told", "ordered": true});
    server.post(TOLD, &endpoint).await.expect(201);
    receiver
}

fn event(hit: &Hit) -> Value {
    serde_json::from_slice(&hit.body).unwrap()
}

/// Waits for so many events; their types and data.
async fn events(receiver: &Receiver, count: usize) -> Vec<(String, Value)> {
    let hits = receiver.wait_for(count).await;
    assert_eq!(hits.len(), count, "{:?}", hits.iter().map(event).collect::<Vec<_>>());
    let events = hits.iter().map(event);
    events.map(|it| (it["type"].as_str().unwrap().to_owned(), it["data"].clone())).collect()
}

fn types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn test_endpoint_create_update_and_delete() {
    let server = Server::start().await;
    let receiver = Receiver::start().await;
    // As those set it up who know the management organisation.
    let app = json!({"name": "told", "uid": ORG});
    by(&server, MANAGEMENT, ("POST", "/app"), app).await.expect(201);
    let path = format!("/app/{ORG}/endpoint");
    let endpoint = json!({"url": receiver.url("/"), "ordered": true});
    by(&server, MANAGEMENT, ("POST", &path), endpoint).await.expect(201);

    let app = server.post("/app", &json!({"name": "A", "uid": "a"})).await.expect(201);
    let made = json!({"url": "https://h.example", "uid": "e"});
    let made = server.post("/app/a/endpoint", &made).await.expect(201);
    let data = json!({
        "appId": app["id"], "appUid": "a", "endpointId": made["id"], "endpointUid": "e",
    });
    assert_eq!(events(&receiver, 1).await, [("endpoint.created".to_owned(), data.clone())]);
    let put = json!({"url": "https://h.example/2", "uid": "e"});
    server.put("/app/a/endpoint/e", &put).await.expect(200);
    server.patch("/app/a/endpoint/e", &json!({"description": "x"})).await.expect(200);
    server.post("/app/a/endpoint/e/secret/rotate", &json!({})).await.expect(200);
    server.delete("/app/a/endpoint/e").await.expect(204);
    let all = events(&receiver, 5).await;
    let updated = "endpoint.updated";
    assert_eq!(types(&all), ["endpoint.created", updated, updated, updated, "endpoint.deleted"]);
    assert!(all.iter().all(|(_, found)| *found == data), "{all:?}");

    // Without names of their own, and deleted with their application.
    let app = server.post("/app", &json!({"name": "B"})).await.expect(201);
    let app_id = app["id"].as_str().unwrap();
    let path = format!("/app/{app_id}/endpoint");
    let made = server.post(&path, &json!({"url": "https://h.example"})).await.expect(201);
    server.delete(&format!("/app/{app_id}")).await.expect(204);
    let all = events(&receiver, 7).await;
    assert_eq!(types(&all[5..]), ["endpoint.created", "endpoint.deleted"]);
    let data = json!({
        "appId": app_id, "appUid": null, "endpointId": made["id"], "endpointUid": null,
    });
    assert!(all[5..].iter().all(|(_, found)| *found == data), "{all:?}");
}

#[tokio::test]
async fn test_message_attempt_operational_webhooks() {
    let server = Server::with(&NO_BREAKER).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    server.app_with("a", &receiver.url("/"), json!({"retryPolicy": {"attemptsMax": 5}})).await;
    let told = told(&server).await;
    let post = json!({"eventType": "t", "payload": {}, "eventId": "event-1"});
    let message = server.post("/app/a/msg", &post).await.expect(202);
    let id = message["id"].as_str().unwrap();
    let all = events(&told, 2).await;
    assert_eq!(types(&all), ["message.attempt.failing", "message.attempt.exhausted"]);
    let attempts = server.attempts("a", id).await;
    assert_eq!(attempts.len(), 5);
    let app = server.get("/app/a").await.expect(200);
    let endpoint = server.get("/app/a/endpoint/e").await.expect(200);
    for ((_, data), last) in all.iter().zip(&attempts[3..]) {
        let expected = json!({
            "appId": app["id"], "appUid": "a", "endpointId": endpoint["id"],
            "msgId": id, "msgEventId": "event-1",
            "lastAttempt": {
                "id": last["id"], "responseStatusCode": 500, "timestamp": last["timestamp"],
            },
        });
        assert_eq!(*data, expected);
    }

    // Put back, and taken at last.
    receiver.script(|_, _| Reply::status(200));
    let letter = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/app/a/dead-letter/{}/replay", letter["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    let all = events(&told, 3).await;
    assert_eq!(all[2].0, "message.attempt.recovered");
    assert_eq!(all[2].1["lastAttempt"]["responseStatusCode"], 200);
    assert_eq!((&all[2].1["msgId"], &all[2].1["msgEventId"]), (&json!(id), &json!("event-1")));
}

#[tokio::test]
async fn a_delivery_that_arrives_after_four_failures_recovered() {
    let server = Server::with(&NO_BREAKER).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({"retryPolicy": {"attemptsMax": 9}})).await;
    let told = told(&server).await;
    for failures in [0, 3, 4] {
        let seen = receiver.hits().len();
        let ok = move |number| if number < seen + failures { 503 } else { 200 };
        receiver.script(move |number, _| Reply::status(ok(number)));
        let id = server.message("a", json!({})).await;
        server.wait_delivered("a", std::slice::from_ref(&id)).await;
        if failures < 4 {
            continue;
        }
        let all = events(&told, 2).await;
        assert_eq!(types(&all), ["message.attempt.failing", "message.attempt.recovered"]);
        assert!(all.iter().all(|(_, data)| data["msgId"] == id), "nothing of the others: {all:?}");
    }
}

#[tokio::test]
async fn test_operational_webhooks_event_types_exist() {
    let mut server = Server::start().await;
    let names = [
        "endpoint.breaker.closed",
        "endpoint.breaker.opened",
        "endpoint.created",
        "endpoint.deleted",
        "endpoint.disabled",
        "endpoint.failing",
        "endpoint.refusals.ended",
        "endpoint.refusals.held",
        "endpoint.resumed",
        "endpoint.suspended",
        "endpoint.updated",
        "message.attempt.exhausted",
        "message.attempt.failing",
        "message.attempt.recovered",
    ];
    for _ in 0..2 {
        let found = by(&server, MANAGEMENT, ("GET", "/event-type"), Value::Null).await.expect(200);
        let rows = found["data"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row["name"].clone()).collect::<Vec<_>>(), names);
        assert_eq!(server.get("/event-type").await.expect(200)["data"], json!([]));
        server.kill_and_restart();
    }
}

#[tokio::test]
async fn an_organisation_manages_who_is_told() {
    let server = Server::start().await;
    let empty = json!({"data": [], "iterator": null, "prevIterator": null, "done": true});
    let none = server.get(TOLD).await.expect(200);
    assert_eq!((&none["data"], &none["done"]), (&empty["data"], &empty["done"]));
    server.get(&format!("{TOLD}/none")).await.expect(404);
    let receiver = Receiver::start().await;
    let wanted = json!({
        "url": receiver.url("/"), "uid": "told", "filterTypes": ["endpoint.deleted"],
        "headers": {"X-From": "peyk"}, "ordered": true,
    });
    let key = [("idempotency-key", "k")];
    let path = format!("/api/v1{TOLD}");
    let made = server.send("POST", &path, &key, wanted.to_string()).await.expect(201);
    let again = server.send("POST", &path, &key, wanted.to_string()).await.expect(201);
    assert_eq!((&again, &made["filterTypes"]), (&made, &json!(["endpoint.deleted"])));
    let unknown = json!({"url": receiver.url("/"), "filterTypes": ["user.created"]});
    let refused = server.post(TOLD, &unknown).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "eventTypes"]));
    let one = format!("{TOLD}/told");
    assert_eq!(server.get(TOLD).await.expect(200)["data"], json!([made]));
    assert_eq!(server.get(&one).await.expect(200), made);

    server.app_with("a", "https://h.example", json!({})).await;
    server.delete("/app/a/endpoint/e").await.expect(204);
    let secret = server.get(&format!("{one}/secret")).await.expect(200);
    let hit = receiver.wait_for(1).await.remove(0);
    assert_eq!(
        (event(&hit)["type"].as_str(), hit.header("x-from")),
        (Some("endpoint.deleted"), "peyk")
    );
    let secret = Secret::parse(secret["key"].as_str().unwrap()).unwrap();
    let lines = hit.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let at = hit.header("webhook-timestamp").parse().unwrap();
    let verifier = WebhookVerifier::standard().key(&secret).build().unwrap();
    assert!(verifier.verify(lines, &hit.body, at).is_ok());

    server.post(&format!("{one}/secret/rotate"), &json!({})).await.expect(200);
    let headers = json!({"headers": {"X-Other": "1"}});
    server.put(&format!("{one}/headers"), &headers).await.expect(204);
    let shown = server.get(&format!("{one}/headers")).await.expect(200);
    assert_eq!(shown, json!({"headers": {"X-Other": "1"}, "sensitive": []}));
    server
        .patch(&format!("{one}/headers"), &json!({"headers": {"X-Other": null}}))
        .await
        .expect(204);
    let put = json!({"url": receiver.url("/put"), "uid": "told", "ordered": true});
    assert_eq!(server.put(&one, &put).await.expect(200)["filterTypes"], json!(null));
    server.patch(&one, &json!({"description": "d"})).await.expect(200);
    server.app_with("b", "https://h.example", json!({})).await;
    let hit = receiver.wait_for(2).await.remove(1);
    assert_eq!(
        (event(&hit)["type"].as_str(), hit.path.as_str()),
        (Some("endpoint.created"), "/put")
    );
    server.delete(&one).await.expect(204);
    server.get(&one).await.expect(404);
}

#[tokio::test]
async fn only_the_organisation_itself_is_told_and_manages_that() {
    let server = Server::start().await;
    let told = told(&server).await;
    let other = "org_2PeykAnother0rganisation000";
    let none = by(&server, other, ("GET", TOLD), Value::Null).await.expect(200);
    assert_eq!(none["data"], json!([]));
    let one = format!("{TOLD}/told");
    by(&server, other, ("GET", &one), Value::Null).await.expect(404);
    by(&server, other, ("DELETE", &one), Value::Null).await.expect(404);
    by(&server, other, ("POST", "/app"), json!({"name": "x", "uid": "x"})).await.expect(201);
    let elsewhere = json!({"url": "https://h.example"});
    by(&server, other, ("POST", "/app/x/endpoint"), elsewhere).await.expect(201);
    server.app_with("a", "https://h.example", json!({})).await;
    let app = server.get("/app/a").await.expect(200);
    let all = events(&told, 1).await;
    assert_eq!((&all[0].0[..], &all[0].1["appId"]), ("endpoint.created", &app["id"]));

    let token = server.made_token(&["--app", app["id"].as_str().unwrap()]);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    for (method, path) in [("GET", TOLD), ("POST", TOLD), ("GET", &one), ("DELETE", &one)] {
        let body = r#"{"url": "https://h.example"}"#;
        let answer = server.send(method, &format!("/api/v1{path}"), &headers, body).await;
        assert_eq!(answer.status, 403, "{method} {path}");
    }
    by(&server, MANAGEMENT, ("GET", TOLD), Value::Null).await.expect(404);
    by(&server, MANAGEMENT, ("POST", TOLD), json!({"url": "https://h.example"})).await.expect(404);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_told_to_be_disabled_once() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(410)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let told = told(&server).await;
    let id = server.message("a", json!({})).await;
    let all = events(&told, 2).await;
    assert_eq!(types(&all), ["message.attempt.exhausted", "endpoint.disabled"]);
    let endpoint = server.get("/app/a/endpoint/e").await.expect(200);
    let app = server.get("/app/a").await.expect(200);
    let attempt = server.attempts("a", &id).await.remove(0);
    let expected = json!({
        "appId": app["id"], "appUid": "a", "endpointId": endpoint["id"], "endpointUid": "e",
        "failSince": attempt["timestamp"], "trigger": "automatic",
        "lastAttempt": {
            "id": attempt["id"], "responseStatusCode": 410, "timestamp": attempt["timestamp"],
        },
    });
    assert_eq!(all[1].1, expected);
    assert_eq!(endpoint["disabled"], true);
}

#[tokio::test]
async fn a_breaker_is_told_to_open_and_to_close() {
    let settings = [("PEYK_RETRY__ATTEMPTS_MAX", "1000"), ("PEYK_RETRY__BASE", "20ms")];
    let server = Server::with(&settings).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let quick = json!({"breaker": {"failures": 2, "openFor": "50ms", "openForMax": "50ms"}});
    server.app_with("a", &receiver.url("/"), quick).await;
    let told = Receiver::start().await;
    let filter = ["endpoint.breaker.opened", "endpoint.breaker.closed"];
    let endpoint = json!({"url": told.url("/"), "ordered": true, "eventTypes": filter});
    server.post(TOLD, &endpoint).await.expect(201);
    let ids = server.messages("a", 2).await;
    let opened = events(&told, 1).await.remove(0);
    assert_eq!(opened.0, "endpoint.breaker.opened");
    // Probes that fail are no news.
    let seen = receiver.hits().len();
    receiver.wait_for(seen + 3).await;
    receiver.script(|_, _| Reply::status(200));
    server.wait_delivered("a", &ids).await;
    let all = events(&told, 2).await;
    assert_eq!(all[1].0, "endpoint.breaker.closed");
    let (endpoint, app) =
        (server.get("/app/a/endpoint/e").await.expect(200), server.get("/app/a").await.expect(200));
    let mut data = json!({
        "appId": app["id"], "appUid": "a", "endpointId": endpoint["id"], "endpointUid": "e",
    });
    assert_eq!(all[1].1, data);
    time(&all[0].1["openUntil"]);
    data["openUntil"] = all[0].1["openUntil"].clone();
    assert_eq!(all[0].1, data);
}

#[tokio::test]
async fn a_run_of_refusals_is_told_to_hold_and_to_end() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(400)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let told = Receiver::start().await;
    let filter = ["endpoint.refusals.held", "endpoint.refusals.ended"];
    let endpoint = json!({"url": told.url("/"), "ordered": true, "eventTypes": filter});
    server.post(TOLD, &endpoint).await.expect(201);
    server.messages("a", 30).await;
    let (name, held) = events(&told, 1).await.remove(0);
    assert_eq!(name, "endpoint.refusals.held");
    let breaker = server.breaker("a").await;
    assert_eq!(held["runId"], breaker["hold"]["runId"]);
    time(&held["refusedSince"]);
    let (endpoint, app) =
        (server.get("/app/a/endpoint/e").await.expect(200), server.get("/app/a").await.expect(200));
    for (name, value) in [("appId", &app["id"]), ("endpointId", &endpoint["id"])] {
        assert_eq!(held[name], *value);
    }
    assert_eq!((&held["appUid"], &held["endpointUid"]), (&json!("a"), &json!("e")));
    // What it made is found by the id that was told.
    let run = held["runId"].as_str().unwrap();
    let letters = server.get(&format!("/app/a/dead-letter?run_id={run}&limit=250")).await;
    let letters = letters.expect(200)["data"].as_array().unwrap().len();
    assert!((20..=30).contains(&letters), "{letters}");

    receiver.script(|_, _| Reply::status(200));
    server.post("/app/a/endpoint/e/breaker", &json!({"state": "auto"})).await.expect(200);
    let all = events(&told, 2).await;
    assert_eq!(all[1], ("endpoint.refusals.ended".to_owned(), held.clone()));
    server.wait_idle("a").await;
    assert_eq!(told.hits().len(), 2);
}

#[tokio::test]
async fn those_who_are_told_are_no_news_themselves() {
    let five = [("PEYK_RETRY__ATTEMPTS_MAX", "5")];
    let server = Server::with(&[&NO_BREAKER[..], &five].concat()).await;
    let told = told(&server).await;
    // It could be told of itself only by this one.
    let itself = json!({"name": "itself", "uid": MANAGEMENT});
    by(&server, MANAGEMENT, ("POST", "/app"), itself).await.expect(201);
    let path = format!("/app/{MANAGEMENT}/endpoint");
    let all = json!({"url": told.url("/itself")});
    by(&server, MANAGEMENT, ("POST", &path), all).await.expect(201);
    told.script(|_, _| Reply::status(500));
    server.app_with("a", "https://h.example", json!({})).await;
    until("a dead letter", || async {
        let path = format!("/app/{ORG}/dead-letter");
        let found = by(&server, MANAGEMENT, ("GET", &path), Value::Null).await.expect(200);
        (found["data"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    told.script(|_, _| Reply::status(200));
    server.patch(&format!("{TOLD}/told"), &json!({"description": "changed"})).await.expect(200);
    server.delete("/app/a/endpoint/e").await.expect(204);
    let hits = until("the next event", || async {
        let hits = told.hits();
        hits.iter().any(|hit| event(hit)["type"] == "endpoint.deleted").then_some(hits)
    })
    .await;
    let names: BTreeSet<_> =
        hits.iter().map(|hit| event(hit)["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["endpoint.created", "endpoint.deleted"].map(str::to_owned).into());
    assert!(hits.iter().all(|hit| hit.path == "/"), "nothing went to the other");
}

#[tokio::test]
async fn du_07_an_event_is_neither_lost_nor_told_twice_by_a_kill() {
    let mut server = Server::start().await;
    let told = Receiver::start().await;
    server.post(TOLD, &json!({"url": told.url("/")})).await.expect(201);
    server.post("/app", &json!({"name": "A", "uid": "a"})).await.expect(201);
    let (mut made, new) = (BTreeSet::new(), json!({"url": "https://h.example"}));
    for _ in 0..15 {
        // The answer says that the endpoint is stored; its notice is then, whatever became of it.
        let posts = (0..4).map(|_| server.post("/app/a/endpoint", &new));
        let answers = futures_util::future::join_all(posts).await;
        server.kill_and_restart();
        for answer in answers {
            made.insert(answer.expect(201)["id"].as_str().unwrap().to_owned());
        }
    }
    let told_of = |hits: &[Hit]| -> BTreeSet<_> {
        let data = hits.iter().map(|hit| event(hit)["data"]["endpointId"].clone());
        data.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let hits = until("all events", || async {
        let hits = told.hits();
        (told_of(&hits) == made).then_some(hits)
    })
    .await;
    // A send may be made again, of the same message.
    let messages: BTreeSet<_> = hits.iter().map(|hit| hit.header("webhook-id")).collect();
    assert_eq!(messages.len(), made.len());
    let path = format!("/app/{ORG}/msg?limit=250");
    let stored = by(&server, MANAGEMENT, ("GET", &path), Value::Null).await.expect(200);
    assert_eq!(stored["data"].as_array().unwrap().len(), made.len());
}
