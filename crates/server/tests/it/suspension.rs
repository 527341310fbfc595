//! An endpoint that fails for long is suspended, resumes by itself, and its owner is told of both
//! once: by an event, and by e-mail.
//!
//! Never: a mail that says what a tenant or a receiver wants it to say in a header.

use serde_json::{Value, json};

use crate::support::mail_server::{MailServer, Mood};
use crate::support::{Receiver, Reply, Server, until};

const QUICK: [(&str, &str); 6] = [
    ("PEYK_SUSPEND_AFTER", "2s"),
    ("PEYK_SUSPEND_WARN_AFTER", "1s"),
    ("PEYK_SUSPEND_PROBE_EVERY", "1s"),
    ("PEYK_RETRY__ATTEMPTS_MAX", "1000"),
    ("PEYK_BREAKER__OPEN_FOR", "100ms"),
    ("PEYK_BREAKER__OPEN_FOR_MAX", "200ms"),
];
const BREAKER: &str = "/app/a/endpoint/e/breaker";

async fn start(mail: Option<&MailServer>, more: &[(&'static str, &str)]) -> Server {
    let mut settings: Vec<(&str, String)> =
        QUICK.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    settings.extend(mail.map(MailServer::settings).unwrap_or_default());
    settings.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let pairs: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Server::with(&pairs).await
}

fn contact() -> Value {
    json!({"contactEmail": "owner@customer.example"})
}

/// A receiver that is down and says so in its own words.
async fn down() -> Receiver {
    let said = "<b>down</b>\r\nBcc: x@evil.example\r\n\r\npassword=hunter2 try later";
    Receiver::scripted(move |_, _| Reply { body: said.into(), ..Reply::status(503) }).await
}

#[tokio::test]
async fn ep_06_owner_and_organisation_are_told_once_and_it_heals_itself() {
    let mail = MailServer::start(true).await;
    let server = start(Some(&mail), &[]).await;
    let (receiver, told) = (down().await, Receiver::start().await);
    let wanted = json!(["endpoint.failing", "endpoint.suspended", "endpoint.resumed"]);
    let endpoint = json!({"url": told.url("/"), "eventTypes": wanted, "ordered": true});
    server.post("/operational-webhook/endpoint", &endpoint).await.expect(201);
    server.app_with("a", &receiver.url("/hook?token=tr0ub4dor"), contact()).await;
    let made = server.get("/app/a/endpoint/e").await.expect(200);
    assert_eq!(made["contactEmail"], "owner@customer.example");
    for n in 0..5 {
        server.message("a", json!({"n": n})).await;
    }
    let suspended = server.wait_breaker("a", "suspended").await;
    assert!(suspended["openUntil"].is_string() && suspended["waiting"] == 5, "{suspended}");

    let mails = mail.wait_for(2).await;
    let id = made["id"].as_str().unwrap();
    let subjects: Vec<_> = mails.iter().map(|mail| mail.header("Subject")).collect();
    let subject = |what: &str| format!("Webhook endpoint {id} {what}");
    assert_eq!(subjects, [subject("is failing"), subject("was suspended")]);
    let found = &mails[1];
    assert!(found.encrypted && found.known, "STARTTLS and the password");
    assert_eq!(found.to, ["owner@customer.example"]);
    assert_eq!(found.header("To"), "owner@customer.example");
    assert_eq!(found.header("From"), "peyk@sender.example");
    assert_eq!(found.header("Auto-Submitted"), "auto-generated");
    assert!(found.header("Content-Type").starts_with("text/plain"));
    assert!(!found.text.split_once("\r\n\r\n").unwrap().0.contains("Bcc"), "{}", found.text);
    let body = found.body();
    let origin = receiver.url("");
    for said in
        [id, &origin, "status 503: <b>down</b> Bcc: x@evil.example", "Waiting: 5", "/breaker"]
    {
        assert!(body.contains(said), "{said}: {body}");
    }
    for secret in ["hunter2", "tr0ub4dor"] {
        assert!(!body.contains(secret), "{body}");
    }

    receiver.script(|_, _| Reply::status(200));
    let resumed = mail.wait_for(3).await;
    assert_eq!(resumed[2].header("Subject"), subject("works again"));
    server.wait_breaker("a", "closed").await;
    server.wait_idle("a").await;
    let events = told.wait_for(3).await;
    let types: Vec<Value> = events
        .iter()
        .map(|hit| serde_json::from_slice::<Value>(&hit.body).unwrap()["type"].clone())
        .collect();
    assert_eq!((json!(types), mail.mails().len()), (wanted, 3), "each once");
}

#[tokio::test]
async fn it_is_suspended_across_a_restart_and_told_no_second_time() {
    let mail = MailServer::start(false).await;
    let mut server = start(Some(&mail), &[("PEYK_SUSPEND_PROBE_EVERY", "1h")]).await;
    let receiver = down().await;
    server.app_with("a", &receiver.url("/"), contact()).await;
    server.message("a", json!({})).await;
    let before = server.wait_breaker("a", "suspended").await;
    mail.wait_for(2).await;
    // A letter whose answer is not recorded yet would come again.
    until("the record of both", || async {
        (server.metric("peyk_mails_total{result=\"sent\"}").await >= 2.0).then_some(())
    })
    .await;
    server.kill_and_restart();
    let after = server.breaker("a").await;
    assert_eq!((&after["state"], &after["since"]), (&json!("suspended"), &before["since"]));
    assert_eq!(after["openUntil"], before["openUntil"]);
    receiver.script(|_, _| Reply::status(200));
    let hits = receiver.hits().len();
    server.post(BREAKER, &json!({"state": "auto"})).await.expect(200);
    receiver.wait_for(hits + 1).await;
    let mails = mail.wait_for(3).await;
    assert!(mails[2].header("Subject").ends_with("works again"));
    assert!(mails[1].body().contains("was suspended at"), "{}", mails[1].body());
}

#[tokio::test]
async fn a_letter_whose_answer_was_lost_comes_again_as_the_same() {
    let mail = MailServer::start(false).await;
    mail.mood(Mood::Forgetful);
    let server =
        start(Some(&mail), &[("PEYK_SUSPEND_AFTER", "1h"), ("PEYK_SUSPEND_WARN_AFTER", "0s")])
            .await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), contact()).await;
    server.post(BREAKER, &json!({"state": "suspended"})).await.expect(200);
    mail.wait_for(1).await;
    // Deliveries do not wait for mails.
    server.post("/app", &json!({"name": "B", "uid": "b"})).await.expect(201);
    let other = json!({"url": receiver.url("/b")});
    server.post("/app/b/endpoint", &other).await.expect(201);
    server.message("b", json!({})).await;
    receiver.wait_for(1).await;
    mail.mood(Mood::Well);
    let mails = mail.wait_for(2).await;
    for name in ["Message-ID", "Date", "Subject"] {
        assert_eq!(mails[0].header(name), mails[1].header(name));
    }
    assert!(mails[0].header("Message-ID").ends_with("@sender.example>"));
    assert!(mails[1].body().contains("by an operator"));
}

#[tokio::test]
async fn an_address_that_is_refused_is_given_up() {
    let mail = MailServer::start(false).await;
    mail.mood(Mood::Refusing);
    let server = start(Some(&mail), &[]).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), contact()).await;
    server.post(BREAKER, &json!({"state": "suspended"})).await.expect(200);
    until("a letter that is given up", || async {
        let given_up = server.metric(r#"peyk_mails_total{result="given_up"}"#).await;
        (given_up > 0.0).then_some(())
    })
    .await;
    assert!(!server.log().contains("owner@customer"), "nor is it logged: {}", server.log());
}

#[tokio::test]
async fn without_a_mail_server_nothing_is_kept() {
    let mut server = start(None, &[]).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), contact()).await;
    server.post(BREAKER, &json!({"state": "suspended"})).await.expect(200);
    let mail = MailServer::start(false).await;
    server.kill();
    for (name, value) in mail.settings() {
        server.set(name, &value);
    }
    server.start_again();
    server.post(BREAKER, &json!({"state": "auto"})).await.expect(200);
    let mails = mail.wait_for(1).await;
    assert!(mails[0].header("Subject").ends_with("works again"), "and nothing of before");
}

#[tokio::test]
async fn an_operator_suspends_and_an_application_only_resumes() {
    let server = start(None, &[("PEYK_SUSPEND_PROBE_EVERY", "1h")]).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let app = server.get("/app/a").await.expect(200)["id"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {}", server.made_token(&["--app", &app]));
    let by_app = async |state: &str| {
        let headers = [("authorization", bearer.as_str())];
        let body = json!({"state": state}).to_string();
        server.send("POST", &format!("/api/v1{BREAKER}"), &headers, body).await
    };
    by_app("suspended").await.expect(403);
    let done = server.post(BREAKER, &json!({"state": "suspended"})).await.expect(200);
    assert_eq!((&done["state"], &done["forced"]), (&json!("suspended"), &json!(false)));
    server.message("a", json!({})).await;
    assert_eq!(server.breaker("a").await["waiting"], 1);
    let open = server.post(BREAKER, &json!({"state": "open"})).await.expect(200);
    assert_eq!(open["state"], "open", "a forced state wins");
    assert!(receiver.hits().is_empty());
    by_app("auto").await.expect(200);
    receiver.wait_for(1).await;
    assert_eq!(server.breaker("a").await["state"], "closed");
}

#[tokio::test]
async fn an_address_is_checked_kept_and_cleared() {
    let server = Server::start().await;
    server.app_with("a", "https://h.example/", contact()).await;
    let path = "/app/a/endpoint/e";
    for wrong in
        ["Owner <a@b.example>", "a@b.example\r\nBcc: c@d.example", "a@b@c", "", "a b@c.example"]
    {
        let answer = server.patch(path, &json!({"contactEmail": wrong})).await.expect(422);
        assert_eq!(answer["detail"][0]["loc"], json!(["body", "contactEmail"]), "{answer}");
    }
    assert_eq!(server.get(path).await.expect(200)["contactEmail"], "owner@customer.example");
    let other = server.patch(path, &json!({"contactEmail": "b@c.example"})).await.expect(200);
    assert_eq!(other["contactEmail"], "b@c.example");
    let put = json!({"url": "https://h.example/", "uid": "e"});
    assert!(server.put(path, &put).await.expect(200)["contactEmail"].is_null());
}
