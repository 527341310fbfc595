//! Alerts: what an operator sets, what each channel is sent, who may see it.
//!
//! Never: a vendor; every channel is led to a receiver on this machine.

use serde_json::{Value, json};
use webhook::{Secret, WebhookVerifier};

use crate::support::mail_server::{MailServer, Mood};
use crate::support::receiver::Hit;
use crate::support::{Receiver, Reply, Server, until};

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const ROUTING_KEY: &str = "0123456789abcdef0123456789abcdef";
const OPSGENIE_KEY: &str = "a1b2c3d4-0000-1111-2222-333344445555";
/// An endpoint that fails is seen at once.
const QUICK: [(&str, &str); 5] = [
    ("PEYK_ALERTS__INTERVAL", "1s"),
    ("PEYK_RETRY__ATTEMPTS_MAX", "1000"),
    ("PEYK_RETRY__BASE", "20ms"),
    ("PEYK_BREAKER__OPEN_FOR", "100ms"),
    ("PEYK_BREAKER__OPEN_FOR_MAX", "200ms"),
];

fn body(hit: &Hit) -> Value {
    serde_json::from_slice(&hit.body).unwrap()
}

/// What came in under a path.
fn at<'a>(hits: &'a [Hit], path: &str) -> Vec<&'a Hit> {
    hits.iter().filter(|hit| hit.path.starts_with(path)).collect()
}

async fn route(server: &Server, name: &str, route: Value) -> Value {
    server.put(&format!("/alert/route/{name}"), &route).await.expect(201)
}

async fn answered(server: &Server, name: &str) -> Value {
    until("an answer on the route", || async {
        let route = server.get(&format!("/alert/route/{name}")).await.expect(200);
        (route["delivery"]["lastAttempt"]["statusCode"].as_u64() > Some(0)
            && route["delivery"]["waiting"] == 0)
            .then_some(route)
    })
    .await
}

#[tokio::test]
async fn each_channel_is_sent_a_trial_in_its_format() {
    let (server, receiver) = (Server::start().await, Receiver::start().await);
    let url = |path: &str| receiver.url(path);
    let routes = [
        ("pd", json!({"channel": "pagerduty", "url": url("/pd"), "routingKey": ROUTING_KEY})),
        ("og", json!({"channel": "opsgenie", "url": url("/og"), "apiKey": OPSGENIE_KEY})),
        ("chat", json!({"channel": "slack", "url": url("/slack/T0/wonderland")})),
        ("teams", json!({"channel": "teams", "url": url("/teams")})),
        ("hook", json!({"channel": "webhook", "url": url("/hook"), "secret": SECRET})),
    ];
    for (name, wanted) in routes {
        let made = route(&server, name, wanted).await;
        assert_eq!((&made["name"], &made["source"]), (&json!(name), &json!("api")));
        server.post(&format!("/alert/route/{name}/test"), &json!({})).await.expect(202);
    }
    let hits = receiver.wait_for(7).await;
    let events: Vec<_> = at(&hits, "/pd").into_iter().map(body).collect();
    assert_eq!(
        events.iter().map(|it| &it["event_action"]).collect::<Vec<_>>(),
        ["trigger", "resolve"]
    );
    assert_eq!(events[0]["dedup_key"], events[1]["dedup_key"]);
    assert_eq!(events[0]["routing_key"], ROUTING_KEY);
    let [alert, close] = at(&hits, "/og").try_into().unwrap();
    let alias = body(alert)["alias"].as_str().unwrap().to_owned();
    assert_eq!(close.path, format!("/og/{alias}/close?identifierType=alias"), "after the alert");
    for hit in [alert, close] {
        assert_eq!(hit.header("authorization"), format!("GenieKey {OPSGENIE_KEY}"));
    }
    assert_eq!(body(at(&hits, "/slack")[0])["blocks"][0]["type"], "header");
    assert_eq!(body(at(&hits, "/teams")[0])["attachments"][0]["content"]["type"], "AdaptiveCard");
    let signed = at(&hits, "/hook")[0];
    let secret = Secret::parse(SECRET).unwrap();
    let verifier = WebhookVerifier::standard().key(&secret).build().unwrap();
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers = names.map(|name| (name, signed.header(name)));
    let now = headers[1].1.parse().unwrap();
    verifier.verify(headers, &signed.body, now).unwrap();
    assert_eq!(body(signed)["type"], "alert.test");

    let mut shown = server.get("/alert/route").await.expect(200).to_string();
    for name in ["pd", "og", "chat", "teams", "hook"] {
        shown += &answered(&server, name).await.to_string();
    }
    for hidden in [ROUTING_KEY, OPSGENIE_KEY, "wonderland", SECRET] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
        assert!(!server.log().contains(hidden), "{hidden}");
    }
}

#[tokio::test]
async fn letters_go_through_the_mail_server_of_the_settings() {
    let mail = MailServer::start(true).await;
    let mut settings = mail.settings();
    settings.push(("PEYK_ALERTS__EMAIL_TO", "ops@example.com, boss@example.com".to_owned()));
    let pairs: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::with(&pairs).await;
    let shown = server.get("/alert/route/email").await.expect(200);
    assert_eq!(
        (&shown["source"], &shown["to"][1]),
        (&json!("settings"), &json!("boss@example.com"))
    );
    mail.mood(Mood::Forgetful);
    server.post("/alert/route/email/test", &json!({})).await.expect(202);
    mail.wait_for(1).await;
    // Nothing else waits for letters.
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.message("a", json!({})).await;
    receiver.wait_for(1).await;
    mail.mood(Mood::Well);
    server.post("/alert/route/email/test", &json!({})).await.expect(202);
    let mails = mail.wait_for(2).await;
    assert_eq!(mails[0].header("Message-ID"), mails[1].header("Message-ID"), "the same letter");
    assert_eq!(mails[1].to, ["ops@example.com", "boss@example.com"]);
    assert!(mails[1].header("Subject").starts_with("Peyk low: [test] "), "{}", mails[1].text);
    assert_eq!(mails[1].header("Auto-Submitted"), "auto-generated");
    assert!(mails[1].body().contains("A trial of this route"), "{}", mails[1].body());
}

#[tokio::test]
async fn a_failing_endpoint_is_told_acknowledged_and_told_to_be_well() {
    let (told, sick) =
        (Receiver::start().await, Receiver::scripted(|_, _| Reply::status(503)).await);
    let server = Server::with(&QUICK).await;
    route(&server, "hook", json!({"channel": "webhook", "url": told.url("/"), "secret": SECRET}))
        .await;
    let mut rule = json!({"condition": "endpoint_failing", "after": "1s", "severity": "high"});
    rule["clearAfter"] = json!("0s");
    server.put("/alert/rule/endpoint_failing", &rule).await.expect(200);
    server.app_with("a", &sick.url("/hook?token=tr0ub4dor"), json!({})).await;
    let name = "<b>Tenant</b> <!channel>";
    server.patch("/app/a", &json!({"name": name})).await.expect(200);
    server.messages("a", 8).await;
    let fired = body(&told.wait_for(1).await[0]);
    assert_eq!(fired["type"], "alert.firing", "{fired}");
    let data = &fired["data"];
    assert_eq!((&data["severity"], &data["rule"]), (&json!("high"), &json!("endpoint_failing")));
    let endpoint = &data["endpoints"][0];
    assert_eq!((&endpoint["appName"], &endpoint["uid"]), (&json!(name), &json!("e")));
    assert!(!fired.to_string().contains("tr0ub4dor"), "of a URL only its origin: {fired}");

    let listed = server.get("/alert/incident").await.expect(200);
    let incident = &listed["data"][0];
    assert_eq!((&incident["id"], &incident["status"]), (&data["incidentId"], &json!("firing")));
    let path = format!("/alert/incident/{}", incident["id"].as_str().unwrap());
    let seen = server.post(&format!("{path}/acknowledge"), &json!({})).await.expect(200);
    assert!(seen["acknowledgedAt"].is_string());
    server.post(&format!("{path}/acknowledge"), &json!({})).await.expect(200);
    assert_eq!(body(&told.wait_for(2).await[1])["type"], "alert.acknowledged");
    assert!((server.metric("peyk_alerts_firing").await - 1.0).abs() < f64::EPSILON);

    sick.script(|_, _| Reply::status(200));
    let over = body(&told.wait_for(3).await[2]);
    assert_eq!(
        (&over["type"], &over["data"]["incidentId"]),
        (&json!("alert.resolved"), &data["incidentId"])
    );
    let resolved = server.get(&path).await.expect(200);
    assert!(resolved["status"] == "resolved" && resolved["resolvedAt"].is_string(), "{resolved}");
    server.post(&format!("{path}/acknowledge"), &json!({})).await.expect(409);
    assert_eq!(told.hits().len(), 3, "each once");
}

#[tokio::test]
async fn a_silence_keeps_an_incident_from_being_told() {
    let (told, sick) =
        (Receiver::start().await, Receiver::scripted(|_, _| Reply::status(503)).await);
    let server = Server::with(&QUICK).await;
    let silence = json!({"rule": "endpoint_failing", "duration": "1h", "comment": "maintenance"});
    let made = server.post("/alert/silence", &silence).await.expect(201);
    route(&server, "hook", json!({"channel": "webhook", "url": told.url("/"), "secret": SECRET}))
        .await;
    let rule = json!({"condition": "endpoint_failing", "after": "1s"});
    server.put("/alert/rule/endpoint_failing", &rule).await.expect(200);
    server.app_with("a", &sick.url("/"), json!({})).await;
    server.messages("a", 8).await;
    until("an incident", || async {
        let all = server.get("/alert/incident").await.expect(200);
        (all["data"][0]["status"] == "firing").then_some(())
    })
    .await;
    assert!(told.hits().is_empty());
    let listed = server.get("/alert/silence").await.expect(200);
    assert_eq!(listed["data"][0], made);
    let id = made["id"].as_str().unwrap();
    server.delete(&format!("/alert/silence/{id}")).await.expect(204);
    server.delete(&format!("/alert/silence/{id}")).await.expect(404);
    assert_eq!(body(&told.wait_for(1).await[0])["type"], "alert.firing");
}

#[tokio::test]
async fn incidents_and_what_is_to_be_told_survive_a_kill() {
    let told = Receiver::scripted(|_, _| Reply::status(503)).await;
    let sick = Receiver::scripted(|_, _| Reply::status(503)).await;
    let mut server = Server::with(&QUICK).await;
    route(&server, "hook", json!({"channel": "webhook", "url": told.url("/"), "secret": SECRET}))
        .await;
    let rule = json!({"condition": "endpoint_failing", "after": "1s"});
    server.put("/alert/rule/endpoint_failing", &rule).await.expect(200);
    server.app_with("a", &sick.url("/"), json!({})).await;
    server.messages("a", 8).await;
    told.wait_for(1).await;
    server.kill_and_restart();
    told.script(|_, _| Reply::status(200));
    let route = answered(&server, "hook").await;
    assert_eq!(route["delivery"]["lastAttempt"]["statusCode"], 200);
    let hits = told.hits();
    let ids: std::collections::BTreeSet<_> =
        hits.iter().map(|hit| hit.header("webhook-id")).collect();
    assert_eq!(ids.len(), 1, "one notification, however often it was tried");
    let all = server.get("/alert/incident").await.expect(200);
    let all = all["data"].as_array().unwrap().iter();
    let statuses: Vec<_> = all
        .filter(|incident| incident["rule"] == "endpoint_failing")
        .map(|incident| &incident["status"])
        .collect();
    assert_eq!(statuses, ["firing"], "the same incident as before");
}

#[tokio::test]
async fn who_is_no_operator_sees_nothing_of_alerts() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example/", json!({})).await;
    let app = server.get("/app/a").await.expect(200)["id"].as_str().unwrap().to_owned();
    let other = server.made_token(&["--org", "org_00000000000SvixManagement00"]);
    for token in [other, server.made_token(&["--app", &app])] {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        for path in ["rule", "route", "silence", "incident", "rule/dead_letters"] {
            let answer = server.send("GET", &format!("/api/v1/alert/{path}"), &headers, "").await;
            answer.expect(403);
        }
        let body = json!({"channel": "slack", "url": "https://h.example/"}).to_string();
        server.send("PUT", "/api/v1/alert/route/x", &headers, body).await.expect(403);
    }
}

#[tokio::test]
async fn rules_of_the_settings_are_there_replaced_and_back() {
    let server = Server::with(&[
        ("PEYK_ALERTS__DEAD_LETTERS__ABOVE", "3"),
        ("PEYK_ALERTS__FAILURE_RATIO__SEVERITY", "off"),
    ])
    .await;
    let all = server.get("/alert/rule").await.expect(200);
    let names: Vec<_> = all["data"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    let conditions = [
        "dead_letters",
        "endpoint_failing",
        "failure_ratio",
        "nothing_delivered",
        "oldest_due",
        "sending_paused",
    ];
    assert_eq!(names, conditions);
    assert_eq!(
        (&all["data"][2]["enabled"], &all["data"][2]["severity"]),
        (&json!(false), &json!("high"))
    );
    let path = "/alert/rule/dead_letters";
    let rule = server.get(path).await.expect(200);
    assert_eq!(
        (&rule["above"], &rule["window"], &rule["source"]),
        (&json!(3), &json!("5m"), &json!("settings"))
    );
    assert!(!rule["reasons"].as_array().unwrap().contains(&json!("rejected")));
    let patched = server.patch(path, &json!({"above": 7, "title": "{value}!"})).await.expect(200);
    assert_eq!((&patched["above"], &patched["window"]), (&json!(7), &json!("5m")));
    let own =
        json!({"condition": "dead_letters", "reasons": ["rejected", "gone"], "severity": "low"});
    server.put("/alert/rule/refusals", &own).await.expect(201);
    assert_eq!(server.put("/alert/rule/refusals", &own).await.expect(200)["above"], 3);
    server.delete(path).await.expect(204);
    server.delete(path).await.expect(404);
    let back = server.get(path).await.expect(200);
    assert_eq!((&back["above"], &back["source"]), (&json!(3), &json!("settings")));
}

#[tokio::test]
async fn what_cannot_work_is_refused_by_field() {
    let server = Server::start().await;
    let url = "https://h.example/x";
    let rows = [
        ("rule/a", json!({}), "condition"),
        ("rule/a", json!({"condition": "weather"}), "condition"),
        ("rule/a", json!({"condition": "dead_letters", "window": "30s"}), "window"),
        ("rule/a", json!({"condition": "dead_letters", "reasons": []}), "reasons"),
        ("rule/a", json!({"condition": "dead_letters", "after": "5m"}), "after"),
        ("rule/a", json!({"condition": "failure_ratio", "above": 100}), "above"),
        ("rule/a", json!({"condition": "sending_paused", "severity": "bad"}), "severity"),
        ("rule/a", json!({"condition": "sending_paused", "routes": ["none"]}), "routes"),
        ("rule/a", json!({"condition": "sending_paused", "title": "{oops}"}), "title"),
        ("rule/a", json!({"condition": "sending_paused", "title": "{window}"}), "title"),
        ("rule/a", json!({"condition": "sending_paused", "runbookUrl": "wiki"}), "runbookUrl"),
        ("rule/a", json!({"condition": "sending_paused", "hold": "2d"}), "hold"),
        ("route/a", json!({}), "channel"),
        ("route/a", json!({"channel": "pigeon"}), "channel"),
        ("route/a", json!({"channel": "slack"}), "url"),
        ("route/a", json!({"channel": "slack", "url": "ftp://h.example/"}), "url"),
        ("route/a", json!({"channel": "pagerduty"}), "routingKey"),
        ("route/a", json!({"channel": "pagerduty", "routingKey": "short"}), "routingKey"),
        ("route/a", json!({"channel": "opsgenie", "apiKey": "a b"}), "apiKey"),
        (
            "route/a",
            json!({"channel": "opsgenie", "apiKey": "a", "url": "https://h.example/?a=b"}),
            "url",
        ),
        ("route/a", json!({"channel": "webhook", "url": url}), "secret"),
        ("route/a", json!({"channel": "webhook", "url": url, "secret": "hunter2"}), "secret"),
        ("route/a", json!({"channel": "slack", "url": url, "secret": SECRET}), "secret"),
        ("route/a", json!({"channel": "email", "to": ["a@example.com"]}), "channel"),
    ];
    for (path, body, field) in rows {
        let refused = server.put(&format!("/alert/{path}"), &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"][1], field, "{body}: {refused}");
        assert_eq!(refused["detail"].as_array().unwrap().len(), 1, "each once: {refused}");
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
    let silences = [
        (json!({}), "duration"),
        (json!({"duration": "0s"}), "duration"),
        (json!({"duration": "91d"}), "duration"),
        (json!({"until": "2020-01-01T00:00:00Z"}), "until"),
        (json!({"duration": "1h", "rule": "weather"}), "rule"),
        (json!({"duration": "1h", "endpointId": "e"}), "endpointId"),
    ];
    for (body, field) in silences {
        let refused = server.post("/alert/silence", &body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"][1], field, "{body}: {refused}");
    }
    server.put("/alert/rule/a%20b", &json!({"condition": "sending_paused"})).await.expect(422);
    for path in
        ["rule/none", "route/none", "incident/none", "incident/inc_1srOrx2ZWZBpBUvZwXKQmoEYga2"]
    {
        server.get(&format!("/alert/{path}")).await.expect(404);
    }
    route(&server, "ops", json!({"channel": "slack", "url": url})).await;
    // What a channel cannot be without is not cleared.
    let refused = server.patch("/alert/route/ops", &json!({"url": null})).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"][1], "url", "{refused}");
    let rule = json!({"condition": "sending_paused", "routes": ["ops"]});
    server.put("/alert/rule/mine", &rule).await.expect(201);
    server.delete("/alert/route/ops").await.expect(409);
    server.delete("/alert/rule/mine").await.expect(204);
    server.delete("/alert/route/ops").await.expect(204);
}
