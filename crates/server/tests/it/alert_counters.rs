//! Rules over counters, through the binary: they fire and are over, on a webhook and by letter.
//!
//! What a rule counts is in windows of minutes; that it is over is reached by another threshold,
//! which is evaluated at once.
//! Never: a wait for a window to pass.

use serde_json::{Value, json};

use crate::support::mail_server::MailServer;
use crate::support::{Receiver, Reply, Server, until};

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Everything the same but for the rule: `sick` is what its messages are answered.
struct Watched {
    server: Server,
    told: Receiver,
    mail: MailServer,
    sick: Receiver,
}

impl Watched {
    async fn start(more: &[(&str, &str)]) -> Self {
        let (mail, told) = (MailServer::start(true).await, Receiver::start().await);
        let sick = Receiver::scripted(|_, _| Reply::status(503)).await;
        let mut settings = mail.settings();
        settings.push(("PEYK_ALERTS__EMAIL_TO", "ops@example.com".to_owned()));
        settings.push(("PEYK_ALERTS__WEBHOOK_URL", told.url("/")));
        settings.push(("PEYK_ALERTS__WEBHOOK_SECRET", SECRET.to_owned()));
        settings.push(("PEYK_PUBLIC_URL", "https://peyk.example".to_owned()));
        settings.push(("PEYK_ALERTS__INTERVAL", "1s".to_owned()));
        settings.push(("PEYK_BREAKER__ENABLED", "false".to_owned()));
        let pairs: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let server = Server::with(&[&pairs[..], more].concat()).await;
        server.app_with("a", &sick.url("/"), json!({})).await;
        Self { server, told, mail, sick }
    }

    /// What was told of this rule, in order.
    fn told(&self, rule: &str) -> Vec<Value> {
        let events = self.told.hits().into_iter();
        let events = events.map(|hit| serde_json::from_slice::<Value>(&hit.body).unwrap());
        events.filter(|event| event["data"]["rule"] == rule).collect()
    }

    async fn wait_told(&self, rule: &str, count: usize) -> Vec<Value> {
        until("a notification", || async {
            let told = self.told(rule);
            (told.len() >= count).then_some(told)
        })
        .await
    }

    async fn wait_letter(&self, subject: &str) {
        until("a letter", || async {
            let mails = self.mail.mails();
            mails.iter().any(|mail| mail.header("Subject").contains(subject)).then_some(())
        })
        .await;
    }

    /// The rule fires on both routes; it is over once it is compared with more.
    async fn fires_and_is_over(&self, rule: &str, more: Value) -> Value {
        let fired = self.wait_told(rule, 1).await.remove(0);
        assert_eq!(fired["type"], "alert.firing", "{fired}");
        let title = fired["data"]["title"].as_str().unwrap();
        self.wait_letter(&format!("[firing] {title}")).await;
        self.server.patch(&format!("/alert/rule/{rule}"), &more).await.expect(200);
        let over = self.wait_told(rule, 2).await.remove(1);
        assert_eq!(over["type"], "alert.resolved", "{over}");
        assert_eq!(over["data"]["incidentId"], fired["data"]["incidentId"]);
        self.wait_letter("[resolved] ").await;
        let id = fired["data"]["incidentId"].as_str().unwrap();
        let link = format!("https://peyk.example/api/v1/alert/incident/{id}");
        assert_eq!(fired["data"]["facts"]["link"], link);
        assert!(self.mail.mails().iter().all(|mail| mail.body().contains(&link)));
        let incident = self.server.get(&format!("/alert/incident/{id}")).await.expect(200);
        assert_eq!(incident["status"], "resolved");
        fired
    }
}

#[tokio::test]
async fn dead_letters_in_a_window_fire_and_are_over() {
    let above = [
        ("PEYK_ALERTS__DEAD_LETTERS__ABOVE", "4"),
        ("PEYK_ALERTS__FAILURE_RATIO__SEVERITY", "off"),
    ];
    let watched = Watched::start(&above).await;
    watched.server.messages("a", 4).await;
    watched.server.wait_dead("a", 4).await;
    // What receivers refuse does not count unless it is named.
    watched.sick.script(|_, _| Reply::status(400));
    watched.server.messages("a", 3).await;
    watched.server.wait_dead("a", 7).await;
    let rule = watched.server.get("/alert/rule/dead_letters").await.expect(200);
    assert_eq!((&rule["above"], &rule["window"]), (&json!(4), &json!("5m")));
    // As many as there may be: an evaluation later nothing is told.
    watched
        .server
        .patch("/alert/rule/dead_letters", &json!({"clearAfter": "0s"}))
        .await
        .expect(200);
    watched.sick.script(|_, _| Reply::status(503));
    assert_eq!(watched.told("dead_letters"), Vec::<Value>::new());
    watched.server.messages("a", 1).await;
    let fired = watched.fires_and_is_over("dead_letters", json!({"above": 100})).await;
    assert_eq!(fired["data"]["severity"], "critical");
    assert_eq!(fired["data"]["facts"]["value"], "5", "{fired}");
}

#[tokio::test]
async fn a_ratio_of_failures_fires_and_is_over() {
    let watched = Watched::start(&[("PEYK_ALERTS__DEAD_LETTERS__SEVERITY", "off")]).await;
    let few = json!({"above": 50, "countMin": 10, "clearAfter": "0s", "hold": "0s"});
    watched.server.patch("/alert/rule/failure_ratio", &few).await.expect(200);
    watched.sick.script(|number, _| Reply::status(if number % 3 == 0 { 200 } else { 503 }));
    watched.server.messages("a", 20).await;
    let fired = watched.fires_and_is_over("failure_ratio", json!({"above": 99})).await;
    assert_eq!(fired["data"]["severity"], "high");
}
