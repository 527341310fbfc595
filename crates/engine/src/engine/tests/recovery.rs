//! Dead letters of an outage go back by themselves: which, how fast, after a crash, and not while
//! the endpoint fails.
//!
//! Never: a wait that a test does not let pass itself.

use std::sync::atomic::AtomicU16;

use domain::delivery::DeliveryState;
use domain::endpoint::{Disabled, EndpointSpec};
use store::directory::EndpointChange;
use store::recoveries::Recoveries as _;
use store::tasks::{Letters, RELAPSED, TaskFilter, Tasks as _, Work};

use super::rig::{Life, Rig};
use super::*;
use crate::parts::ByHand;

/// Longer than the breaker waits here.
const SOON: Duration = Duration::from_secs(6);
const SECOND: Duration = Duration::from_secs(1);

async fn rig(spec: EndpointSpec) -> (Rig, Arc<AtomicU16>) {
    let dial = Arc::new(AtomicU16::new(500));
    let answers = Arc::clone(&dial);
    let script = move |_: &_| Script::status(answers.load(Ordering::SeqCst));
    let mut rig = Rig::new(spec, script).await;
    (rig.settings.breaker.open_for, rig.settings.breaker.open_for_max) = (SOON / 6, SOON / 3);
    rig.settings.retry.attempts_max = 1;
    rig.settings.attempt_deadline = SOON / 2;
    rig.settings.replay_rate_per_s = 2;
    (rig, dial)
}

/// Messages that are dead.
fn dead(rig: &Rig) -> Vec<MessageKey> {
    let all = rig.store.all_deliveries().into_iter();
    all.filter(|(_, row)| matches!(row.state, DeliveryState::Dead(_))).map(|it| it.0).collect()
}

/// Fails until so many are dead; a success could find out that it is well again.
async fn fail(rig: &Rig, life: &Life, count: usize) -> Vec<MessageKey> {
    let posted = rig.posts(life, count).await;
    while dead(rig).len() < count {
        rig.pass(SOON).await;
    }
    posted
}

/// Tasks there were, oldest first: status, and why they ended.
async fn tasks(rig: &Rig) -> Vec<(TaskStatus, Option<String>)> {
    let org = PublicId::parse(Kind::Organisation, ORG).unwrap();
    let page = PageOf { beyond: None, direction: Direction::Ascending, limit: 100 };
    let found = rig.store.tasks(org, TaskFilter::default(), page).await.unwrap();
    found.rows.into_iter().map(|task| (task.status, task.error)).collect()
}

async fn owed(rig: &Rig) -> Option<bool> {
    let found = rig.store.recovery(rig.endpoint).await.unwrap();
    found.map(|recovery| recovery.ready)
}

async fn change(rig: &Rig, life: &Life, change: EndpointChange) {
    rig.store.change_endpoint(rig.endpoint, change).await.unwrap();
    life.engine.settled().await;
}

fn switched(disabled: Option<Disabled>) -> EndpointChange {
    EndpointChange { disabled: Some(disabled), ..EndpointChange::default() }
}

#[tokio::test(start_paused = true)]
async fn rp_02_what_an_outage_killed_goes_back_once_it_is_over_and_nothing_else() {
    let (rig, dial) = rig(samples::endpoint()).await;
    let life = rig.start().await;
    dial.store(404, Ordering::SeqCst);
    let refused = rig.posts(&life, 1).await;
    rig.pass(SECOND).await;
    dial.store(500, Ordering::SeqCst);
    let before = rig.posts(&life, 1).await;
    rig.pass(SECOND).await;
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 1).await;
    rig.pass(SECOND).await;
    assert_eq!(dead(&rig), [&refused[..], &before].concat());
    dial.store(500, Ordering::SeqCst);
    let posted = rig.posts(&life, 12).await;
    while dead(&rig).len() < 14 {
        rig.pass(SOON).await;
    }
    assert_eq!((owed(&rig).await, tasks(&rig).await), (Some(false), vec![]));
    rig.sent();
    dial.store(200, Ordering::SeqCst);
    let probe = rig.posts(&life, 1).await;
    rig.pass(SOON / 3 + SECOND).await;
    let pace = rig.sent().len();
    assert!((2..=9).contains(&pace), "two a second and the probe, not {pace}");
    rig.pass(SOON * 2).await;
    assert_eq!(dead(&rig), [&refused[..], &before].concat(), "what died otherwise stays");
    let mut again = rig.sent();
    again.sort_unstable();
    assert_eq!(pace + again.len(), posted.len() + probe.len(), "each once");
    assert_eq!(tasks(&rig).await, [(TaskStatus::Finished, None)]);
    assert_eq!((owed(&rig).await, rig.waiting().await), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_any_two_letters_loses_none_and_repeats_none() {
    let (mut rig, dial) = rig(samples::endpoint()).await;
    let mut life = rig.start().await;
    fail(&rig, &life, 20).await;
    rig.kill(life);
    life = rig.start().await;
    rig.sent();
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 1).await;
    let mut restarts = 0;
    while !dead(&rig).is_empty() {
        rig.pass(SECOND).await;
        rig.kill(life);
        life = rig.start().await;
        restarts += 1;
        assert!(restarts < 40, "it does not go on after a restart");
    }
    rig.pass(SOON).await;
    let mut sent = rig.sent();
    sent.sort_unstable();
    assert_eq!(sent, (0..21).collect::<Vec<_>>(), "{restarts} restarts");
    assert!(restarts > 5, "they came in between");
    assert_eq!(tasks(&rig).await, [(TaskStatus::Finished, None)]);
}

#[tokio::test(start_paused = true)]
async fn a_relapse_stops_it_and_the_next_recovery_takes_all_that_is_left() {
    let (rig, dial) = rig(samples::endpoint()).await;
    let life = rig.start().await;
    fail(&rig, &life, 20).await;
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 1).await;
    while tasks(&rig).await.is_empty() {
        rig.pass(SECOND).await;
    }
    rig.pass(SECOND * 2).await;
    dial.store(500, Ordering::SeqCst);
    let failed = rig.posts(&life, 6).await.len();
    rig.pass(SOON * 2).await;
    let stopped = (TaskStatus::Stopped, Some(RELAPSED.to_owned()));
    assert_eq!((tasks(&rig).await, owed(&rig).await), (vec![stopped.clone()], Some(false)));
    let left = dead(&rig).len();
    assert!(left > failed + 5, "{left}: it stopped in between");
    rig.pass(SOON * 4).await;
    rig.sent();
    rig.pass(SOON * 4).await;
    assert!(rig.sent().is_empty(), "nothing is put back while it fails");
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 1).await;
    rig.pass(SOON * 6).await;
    assert_eq!((dead(&rig), owed(&rig).await, rig.waiting().await), (vec![], None, 0));
    assert_eq!(tasks(&rig).await, [stopped, (TaskStatus::Finished, None)]);
}

#[tokio::test(start_paused = true)]
async fn it_begins_when_a_suspension_ends_and_stops_when_one_begins() {
    let (rig, dial) = rig(samples::endpoint()).await;
    let life = rig.start().await;
    fail(&rig, &life, 10).await;
    life.engine.order(rig.endpoint, ByHand::Suspended).await.unwrap();
    dial.store(200, Ordering::SeqCst);
    rig.pass(SOON).await;
    assert_eq!((dead(&rig).len(), tasks(&rig).await), (10, vec![]));
    life.engine.force(rig.endpoint, None).await.unwrap();
    rig.pass(SECOND).await;
    life.engine.order(rig.endpoint, ByHand::Suspended).await.unwrap();
    rig.pass(SOON).await;
    let left = dead(&rig).len();
    assert!(left > 2 && left < 10, "{left}");
    assert_eq!(tasks(&rig).await[0].0, TaskStatus::Stopped);
    life.engine.force(rig.endpoint, None).await.unwrap();
    rig.pass(SOON * 2).await;
    assert_eq!((dead(&rig).len(), owed(&rig).await), (0, None));
}

#[tokio::test(start_paused = true)]
async fn rp_05_a_disabled_endpoint_gets_nothing_until_it_is_enabled() {
    let (rig, dial) = rig(samples::endpoint()).await;
    let life = rig.start().await;
    fail(&rig, &life, 10).await;
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 1).await;
    while tasks(&rig).await.is_empty() {
        rig.pass(SECOND).await;
    }
    change(&rig, &life, switched(Some(Disabled::ByOwner))).await;
    rig.pass(SECOND).await;
    rig.sent();
    rig.pass(SOON * 2).await;
    assert!(rig.sent().is_empty());
    let (status, why) = tasks(&rig).await.remove(0);
    assert!(status == TaskStatus::Stopped && why.unwrap().contains("disabled"));
    assert!(!dead(&rig).is_empty() && owed(&rig).await == Some(true));
    change(&rig, &life, switched(None)).await;
    rig.pass(SOON * 2).await;
    assert_eq!((dead(&rig).len(), owed(&rig).await), (0, None));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_want_it_is_left_alone() {
    for (own, server) in [(Some(false), true), (None, false)] {
        let spec = EndpointSpec { auto_replay: own, ..samples::endpoint() };
        let (mut rig, dial) = rig(spec).await;
        rig.settings.replay_automatic = server;
        let life = rig.start().await;
        fail(&rig, &life, 10).await;
        dial.store(200, Ordering::SeqCst);
        rig.posts(&life, 1).await;
        rig.pass(SOON * 3).await;
        assert_eq!((dead(&rig).len(), tasks(&rig).await.len()), (10, 0));
        assert_eq!(owed(&rig).await, None, "it is not kept for later");
    }
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_what_somebody_asked_for_and_looks_again() {
    let (rig, dial) = rig(samples::endpoint()).await;
    let life = rig.start().await;
    let letters = fail(&rig, &life, 10).await;
    let ids = vec![(rig.endpoint, letters[0]), (rig.endpoint, letters[1])];
    let endpoint = rig.store.endpoint(rig.endpoint).await.unwrap().unwrap();
    let spec = TaskSpec {
        org: PublicId::parse(Kind::Organisation, ORG).unwrap(),
        app: endpoint.app,
        endpoint: Some(rig.endpoint),
        work: Work::DeadLetters(Letters { ids, ..Letters::default() }),
        rate_per_s: Some(1),
        total: None,
    };
    dial.store(200, Ordering::SeqCst);
    life.engine.start_task(spec, [9; 12], None).await.unwrap();
    rig.pass(SOON * 4).await;
    let finished = (TaskStatus::Finished, None);
    assert_eq!(tasks(&rig).await, [finished.clone(), finished], "one after the other");
    assert_eq!((dead(&rig).len(), owed(&rig).await), (0, None));
}

#[tokio::test(start_paused = true)]
async fn who_cancels_it_is_heard() {
    let (rig, dial) = rig(samples::endpoint()).await;
    let life = rig.start().await;
    fail(&rig, &life, 20).await;
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 1).await;
    while tasks(&rig).await.is_empty() {
        rig.pass(SECOND).await;
    }
    let running = rig.store.running(10).await.unwrap().remove(0);
    life.engine.cancel_task(running.id, None).await.unwrap().expect("it runs");
    rig.pass(SECOND).await;
    let left = dead(&rig).len();
    rig.pass(SOON * 2).await;
    assert_eq!((dead(&rig).len(), tasks(&rig).await.len()), (left, 1), "it begins not again");
    assert!(left > 10);
}
