//! Suspension over the store: written with what made it so and with its notice, told once, and the
//! same after a restart in each state.
//!
//! Never: a wait that a test does not let pass itself.

use std::sync::atomic::AtomicU16;

use domain::endpoint::EndpointSpec;
use domain::notice::News;
use store::directory::EndpointChange;
use store::notices::Notices as _;
use store::queue::Queue as _;

use super::rig::{Life, Rig};
use super::*;
use crate::parts::{ByHand, NextSend};
use crate::settings::Suspending;

const AFTER: Duration = Duration::from_secs(120);
const EVERY: Duration = Duration::from_secs(20);
/// Longer than the breaker waits here.
const SOON: Duration = Duration::from_secs(12);

async fn rig() -> (Rig, Arc<AtomicU16>) {
    let dial = Arc::new(AtomicU16::new(500));
    let answers = Arc::clone(&dial);
    let script = move |_: &_| Script::status(answers.load(Ordering::SeqCst));
    let contact_email = samples::full_endpoint().contact_email;
    let spec = EndpointSpec { contact_email, ..samples::endpoint() };
    let mut rig = Rig::new(spec, script).await;
    rig.settings.suspending =
        Suspending { after: Some(AFTER), warn_after: Some(AFTER / 2), probe_every: EVERY };
    (rig.settings.breaker.open_for, rig.settings.breaker.open_for_max) = (SOON / 4, SOON / 2);
    (rig.settings.retry.base, rig.settings.retry.cap) = (SOON / 12, SOON / 12);
    rig.settings.retry.attempts_max = 1_000;
    (rig, dial)
}

async fn state(rig: &Rig, life: &Life) -> &'static str {
    life.engine.breaker(rig.endpoint).await.unwrap().state
}

/// What its owner is written, so far.
async fn mailed(rig: &Rig) -> Vec<&'static str> {
    let mails = rig.store.mails(0, 1_000).await.unwrap();
    mails.iter().map(|mail| mail.news.name()).collect()
}

/// Lets it fail until it is suspended.
async fn suspended(rig: &Rig, life: &Life) {
    rig.posts(life, 12).await;
    rig.pass(AFTER + SOON).await;
    assert_eq!(state(rig, life).await, "suspended");
    assert_eq!(mailed(rig).await, ["endpoint.failing", "endpoint.suspended"]);
}

#[tokio::test(start_paused = true)]
async fn ep_06_the_owner_is_warned_and_told_with_what_made_it_so() {
    let (rig, dial) = rig().await;
    let life = rig.start().await;
    rig.posts(&life, 12).await;
    rig.pass(AFTER / 2 - SOON).await;
    assert_eq!(mailed(&rig).await, [""; 0]);
    rig.pass(SOON + SOON).await;
    assert_eq!(mailed(&rig).await, ["endpoint.failing"]);
    rig.pass(AFTER / 2 - SOON - SOON / 6).await;
    assert_ne!(state(&rig, &life).await, "suspended", "not before the time is over");
    rig.pass(SOON).await;
    let mails = rig.store.mails(0, 9).await.unwrap();
    let lane = rig.store.lane_states().await.unwrap().remove(0);
    let on = lane.suspended.expect("suspended");
    let failing_since = lane.breaker.failing_since.expect("failing");
    assert!(on.since >= failing_since.plus(AFTER) && on.since < failing_since.plus(AFTER + SOON));
    let news = News::EndpointSuspended { failing_since: Some(failing_since) };
    assert_eq!((mails.len(), mails[1].news), (2, news));
    rig.sent();
    let waiting = rig.waiting().await;
    assert_eq!(waiting, 12);

    for _ in 0..5 {
        rig.pass(EVERY).await;
        assert_eq!(rig.sent().len(), 1, "one probe each time");
    }
    assert_eq!((rig.waiting().await, mailed(&rig).await.len()), (12, 2), "told once");
    dial.store(200, Ordering::SeqCst);
    rig.pass(EVERY + SOON).await;
    assert_eq!((state(&rig, &life).await, rig.waiting().await), ("closed", 0));
    assert_eq!(mailed(&rig).await, ["endpoint.failing", "endpoint.suspended", "endpoint.resumed"]);
    life.end().await;
}

#[tokio::test(start_paused = true)]
async fn ob_02_many_failures_and_restarts_are_one_incident() {
    let (mut rig, dial) = rig().await;
    let mut life = rig.start().await;
    rig.posts(&life, 200).await;
    let mut seen = Vec::new();
    for piece in 0..24 {
        rig.pass(EVERY / 2).await;
        seen.push(state(&rig, &life).await);
        if piece % 2 == 0 {
            rig.kill(life);
            life = rig.start().await;
        } else if piece % 3 == 0 {
            life.end().await;
            life = rig.start().await;
        }
    }
    assert!(seen.ends_with(&["suspended"; 6]), "{seen:?}");
    assert_eq!(mailed(&rig).await, ["endpoint.failing", "endpoint.suspended"]);
    dial.store(200, Ordering::SeqCst);
    rig.pass(EVERY * 2).await;
    rig.kill(life);
    let life = rig.start().await;
    rig.pass(SOON).await;
    assert_eq!((state(&rig, &life).await, rig.waiting().await), ("closed", 0));
    assert_eq!(mailed(&rig).await, ["endpoint.failing", "endpoint.suspended", "endpoint.resumed"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_commit_leaves_neither_state_nor_notice() {
    let (mut rig, _dial) = rig().await;
    let life = rig.start().await;
    rig.posts(&life, 12).await;
    rig.pass(AFTER - EVERY).await;
    rig.store.fail_next(u32::MAX);
    rig.pass(EVERY + SOON).await;
    rig.kill(life);
    let lanes = rig.store.lane_states().await.unwrap();
    assert_eq!((lanes[0].suspended, mailed(&rig).await.len()), (None, 1));
    let life = rig.start().await;
    rig.pass(SOON).await;
    assert_eq!(state(&rig, &life).await, "suspended");
    assert_eq!(mailed(&rig).await, ["endpoint.failing", "endpoint.suspended"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_shows_when_it_is_tried_again() {
    let (rig, _dial) = rig().await;
    let life = rig.start().await;
    suspended(&rig, &life).await;
    let view = life.engine.breaker(rig.endpoint).await.unwrap();
    let until = view.open_until.expect("a time");
    assert!(until > view.as_of && until <= view.as_of.plus(EVERY), "{view:?}");
    let next = life.engine.next_sends(vec![rig.endpoint]).await.unwrap();
    assert_eq!(next, [NextSend::NotBefore(until)]);
}

#[tokio::test(start_paused = true)]
async fn somebody_suspends_and_resumes_it() {
    let (mut rig, dial) = rig().await;
    dial.store(200, Ordering::SeqCst);
    let life = rig.start().await;
    life.engine.order(rig.endpoint, ByHand::Suspended).await.unwrap();
    rig.posts(&life, 3).await;
    rig.pass(EVERY - SOON / 6).await;
    assert_eq!((rig.sent(), state(&rig, &life).await), (Vec::new(), "suspended"));
    rig.kill(life);
    let life = rig.start().await;
    assert_eq!(state(&rig, &life).await, "suspended", "before its endpoint is read too");
    life.engine.force(rig.endpoint, None).await.unwrap();
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!((rig.sent().len(), state(&rig, &life).await), (3, "closed"));
    let mails = rig.store.mails(0, 9).await.unwrap();
    let news: Vec<_> = mails.iter().map(|mail| mail.news).collect();
    let by_hand = News::EndpointSuspended { failing_since: None };
    assert_eq!(news, [by_hand, News::EndpointResumed]);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_stored_is_not_in_force() {
    let (rig, _dial) = rig().await;
    let life = rig.start().await;
    life.engine.force(rig.endpoint, None).await.unwrap();
    rig.store.fail_next(1);
    assert!(life.engine.order(rig.endpoint, ByHand::Suspended).await.is_err());
    assert_eq!((state(&rig, &life).await, mailed(&rig).await.len()), ("closed", 0));
}

#[tokio::test(start_paused = true)]
async fn another_url_is_probed_at_once() {
    for restart in [false, true] {
        let (mut rig, dial) = rig().await;
        let mut life = rig.start().await;
        suspended(&rig, &life).await;
        if restart {
            rig.kill(life);
            life = rig.start().await;
        }
        dial.store(200, Ordering::SeqCst);
        let spec = EndpointSpec {
            contact_email: samples::full_endpoint().contact_email,
            ..samples::endpoint_to("https://other.example/")
        };
        let change = EndpointChange { spec: Some(spec), ..EndpointChange::default() };
        rig.store.change_endpoint(rig.endpoint, change).await.unwrap();
        life.engine.settled().await;
        rig.pass(Duration::from_secs(2)).await;
        assert_eq!((state(&rig, &life).await, rig.waiting().await), ("closed", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resend_that_arrives_resumes_it() {
    let (rig, dial) = rig().await;
    let life = rig.start().await;
    suspended(&rig, &life).await;
    let message = rig.store.all_messages()[0].key;
    rig.store.resend(message, rig.endpoint).await.unwrap();
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(state(&rig, &life).await, "suspended", "one that fails does not");
    dial.store(200, Ordering::SeqCst);
    rig.store.resend(message, rig.endpoint).await.unwrap();
    rig.pass(Duration::from_secs(2)).await;
    assert_eq!((state(&rig, &life).await, rig.waiting().await), ("closed", 0));
    assert_eq!(mailed(&rig).await.last(), Some(&"endpoint.resumed"));
}
