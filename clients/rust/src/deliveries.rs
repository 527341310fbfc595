//! Messages, what was tried for them, sending again, and what verifies.
//!
//! Never: sign anything.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use svix::Webhook;
use svix::api::{
    MessageAttemptListAttemptedMessagesOptions, MessageAttemptListByEndpointOptions,
    MessageCreateOptions, MessageGetOptions, MessageListOptions,
};
use svix::models::*;

use crate::bench::{Bench, refused, text};
use crate::receiver::{Hit, until};

pub async fn all(bench: &Bench) -> svix::Result<()> {
    messages(bench).await?;
    attempts(bench).await?;
    signatures(bench).await?;
    sending_again(bench).await?;
    contents(bench).await
}

fn paid(payload: Value) -> MessageIn {
    MessageIn::new(text("invoice.paid"), payload)
}

async fn endpoint(bench: &Bench, uid: &str) -> svix::Result<EndpointOut> {
    let mut wanted = EndpointIn::new(bench.receiver.url(&format!("/{uid}")));
    wanted.uid = Some(text(uid));
    bench.svix.endpoint().create(text("shop"), wanted, None).await
}

async fn messages(bench: &Bench) -> svix::Result<()> {
    let api = bench.svix.message();
    let mut shop = ApplicationIn::new(text("Shop"));
    shop.uid = Some(text("shop"));
    bench.svix.application().create(shop, None).await?;
    endpoint(bench, "ok").await?;
    let mut first = paid(json!({"n": 1}));
    first.event_id = Some(text("first"));
    first.tags = Some([text("vip")].into());
    let options = || MessageCreateOptions {
        with_content: Some(true),
        idempotency_key: Some(text("one-key")),
    };
    let made = api.create(text("shop"), first.clone(), Some(options())).await?;
    assert_eq!((&made.payload, &made.tags), (&first.payload, &first.tags));
    assert_eq!(api.create(text("shop"), first.clone(), Some(options())).await?.id, made.id);
    assert_eq!(refused(api.create(text("shop"), first, None).await), 409);
    let hit = bench.receiver.wait("/ok", 1).await.remove(0);
    assert_eq!((hit.json(), hit.header("webhook-id")), (json!({"n": 1}), made.id.clone()));

    let raw = MessageIn::new_raw_payload(text("invoice.paid"), text("<a/>"));
    let raw = raw.with_content_type(text("application/xml"));
    api.create(text("shop"), raw, None).await?;
    let hit = bench.receiver.wait("/ok", 2).await.remove(1);
    assert_eq!(
        (&hit.body[..], hit.header("content-type")),
        (&b"<a/>"[..], text("application/xml"))
    );
    let mut later = paid(json!({}));
    later.deliver_at = Some(Utc::now() + TimeDelta::milliseconds(1_200));
    api.create(text("shop"), later.clone(), None).await?;
    bench.receiver.wait("/ok", 3).await;
    assert!(later.deliver_at.is_some_and(|at| Utc::now() >= at), "not before its time");

    let tagged = MessageListOptions {
        tag: Some(text("vip")),
        with_content: Some(true),
        ..Default::default()
    };
    assert_eq!(api.list(text("shop"), Some(tagged)).await?.data.len(), 1);
    assert_eq!(api.get(text("shop"), text("first"), None).await?.payload, json!({}));
    let ask = MessagePrecheckIn::new(text("invoice.paid"));
    assert!(api.precheck(text("shop"), ask, None).await?.active);
    Ok(())
}

/// Waits until a message has so many attempts, and gives them, newest first.
async fn tried(bench: &Bench, message: &str, count: usize) -> Vec<MessageAttemptOut> {
    let api = bench.svix.message_attempt();
    until("attempts", async || {
        let found = api.list_by_msg(text("shop"), text(message), None).await.ok()?.data;
        (found.len() == count).then_some(found)
    })
    .await
}

async fn attempts(bench: &Bench) -> svix::Result<()> {
    let (api, shop, first) = (bench.svix.message_attempt(), || text("shop"), || text("first"));
    let only = tried(bench, "first", 1).await.remove(0);
    assert_eq!((only.status, only.response_status_code), (MessageStatus::Success, 200));
    assert_eq!(api.get(shop(), first(), only.id.clone(), None).await?.id, only.id);
    let options = || MessageAttemptListByEndpointOptions {
        status_code_class: Some(StatusCodeClass::Code2xx),
        ..Default::default()
    };
    let to_ok = until("three", async || {
        let found = api.list_by_endpoint(shop(), text("ok"), Some(options())).await.ok()?;
        (found.data.len() == 3).then_some(found)
    });
    to_ok.await;
    assert_eq!(api.list_attempted_messages(shop(), text("ok"), None).await?.data.len(), 3);
    let places = api.list_attempted_destinations(shop(), first(), None).await?.data;
    assert_eq!((places.len(), places[0].status), (1, MessageStatus::Success));
    api.resend(shop(), first(), text("ok"), None).await?;
    let newest = tried(bench, "first", 2).await.remove(0);
    assert_eq!(newest.trigger_type, MessageAttemptTriggerType::Manual);
    api.expunge_content(shop(), first(), only.id.clone()).await?;
    assert_eq!(tried(bench, "first", 2).await[1].response, "{}", "not asked for");

    let example = EventExampleIn::new(text("invoice.paid"));
    bench.svix.endpoint().send_example(shop(), text("ok"), example, None).await?;
    let hit = bench.receiver.wait("/ok", 5).await.remove(4);
    assert_eq!(hit.json(), json!({"of": "an invoice"}));
    let stats = until("five", async || {
        let found = bench.svix.endpoint().get_stats(shop(), text("ok"), None).await.ok()?;
        (found.success == 5).then_some(found)
    });
    assert_eq!(stats.await.fail, 0);
    Ok(())
}

/// Whether the client's own class takes a delivery, by each family of headers alone.
fn accepted(hit: &Hit, secret: &str) -> bool {
    let webhook = Webhook::new(secret).expect("a secret");
    let by = ["svix-", "webhook-"].map(|family| {
        let mut headers = hit.headers.clone();
        let other = if family == "svix-" { "webhook-" } else { "svix-" };
        for part in ["id", "timestamp", "signature"] {
            headers.remove(format!("{other}{part}"));
        }
        webhook.verify(&hit.body, &headers).is_ok()
    });
    assert_eq!(by[0], by[1], "both families");
    by[0]
}

async fn signatures(bench: &Bench) -> svix::Result<()> {
    let (api, e) = (bench.svix.endpoint(), || text("signed"));
    endpoint(bench, "signed").await?;
    let old = api.get_secret(text("shop"), e()).await?.key;
    let rotate = EndpointSecretRotateIn::new();
    let new = api.rotate_secret(text("shop"), e(), rotate, None).await?.key;
    bench.svix.message().create(text("shop"), paid(json!({"text": "é\n"})), None).await?;
    let mut hit = bench.receiver.wait("/signed", 1).await.remove(0);
    assert_eq!(hit.header("svix-signature").split(' ').count(), 2);
    assert!(accepted(&hit, &old) && accepted(&hit, &new));
    hit.body = [&hit.body[..], b" "].concat().into();
    assert!(!accepted(&hit, &old), "a changed body");
    api.delete(text("shop"), e()).await
}

/// Waits until a background task is over, and gives its data.
async fn finished(bench: &Bench, id: String) -> Value {
    let done = until("the end of a task", async || {
        let found = bench.svix.background_task().get(id.clone()).await.ok()?;
        (found.status != BackgroundTaskStatus::Running).then_some(found)
    });
    let done = done.await;
    assert_eq!(done.status, BackgroundTaskStatus::Finished);
    done.data
}

async fn sending_again(bench: &Bench) -> svix::Result<()> {
    let (api, shop) = (bench.svix.endpoint(), || text("shop"));
    let since = Utc::now();
    bench.receiver.set_down("/down", true);
    endpoint(bench, "down").await?;
    bench.svix.message().create(shop(), paid(json!({"n": 2})), None).await?;
    let options = || MessageAttemptListAttemptedMessagesOptions {
        status: Some(MessageStatus::Fail),
        ..Default::default()
    };
    until("a dead letter", async || {
        let attempts = bench.svix.message_attempt();
        let found = attempts.list_attempted_messages(shop(), text("down"), Some(options()));
        found.await.ok()?.data.pop()
    })
    .await;
    bench.receiver.set_down("/down", false);
    let task = api.recover(shop(), text("down"), RecoverIn::new(since), None).await?;
    assert_eq!(finished(bench, task.id).await["messagesSent"], 1);
    bench.receiver.wait("/down", 3).await;
    endpoint(bench, "late").await?;
    let task = api.replay_missing(shop(), text("late"), ReplayIn::new(since), None).await?;
    assert_eq!(finished(bench, task.id).await["messagesSent"], 1);
    bench.receiver.wait("/late", 1).await;
    until("its record", async || {
        let attempts = bench.svix.message_attempt();
        attempts.list_by_endpoint(shop(), text("late"), None).await.ok()?.data.pop()
    })
    .await;
    let task = api.bulk_replay(shop(), text("late"), BulkReplayIn::new(since), None).await?;
    assert_eq!(finished(bench, task.id).await["messagesSent"], 1);
    bench.receiver.wait("/late", 2).await;
    assert_eq!(bench.svix.background_task().list(None).await?.data.len(), 3);
    Ok(())
}

async fn contents(bench: &Bench) -> svix::Result<()> {
    let api = bench.svix.message();
    api.expunge_content(text("shop"), text("first")).await?;
    let whole = MessageGetOptions { with_content: Some(true) };
    let gone = api.get(text("shop"), text("first"), Some(whole)).await?;
    assert_eq!(gone.payload, json!({"expired": true}));
    let task = api.expunge_all_contents(text("shop"), None).await?;
    let purged = finished(bench, task.id).await["messagesPurged"].as_u64();
    assert!(purged.is_some_and(|count| count >= 4), "{purged:?}");
    let found = bench.svix.statistics().aggregate_event_types().await?;
    assert_eq!(found.task, BackgroundTaskType::EventTypeAggregate);
    Ok(())
}
