//! Health checks over the store: how often it is asked, and what a yes does.
//!
//! Never: a wait that a test does not let pass itself.

use std::sync::atomic::AtomicU16;

use domain::endpoint::EndpointSpec;

use super::rig::{Life, Rig};
use super::*;
use crate::parts::ByHand;

const OPEN_FOR: Duration = Duration::from_secs(30);

async fn rig() -> (Rig, Arc<AtomicU16>) {
    let dial = Arc::new(AtomicU16::new(500));
    let answers = Arc::clone(&dial);
    let script = move |_: &_| Script::status(answers.load(Ordering::SeqCst));
    let health_check = Some(samples::target("https://example.com/health"));
    let mut rig = Rig::new(EndpointSpec { health_check, ..samples::endpoint() }, script).await;
    rig.settings.breaker.open_for = OPEN_FOR;
    rig.settings.breaker.open_for_max = OPEN_FOR * 20;
    rig.settings.retry.attempts_max = 1_000;
    rig.settings.suspending.after = None;
    (rig, dial)
}

async fn until(rig: &Rig, life: &Life) -> Timestamp {
    life.engine.breaker(rig.endpoint).await.unwrap().open_until.expect("open")
}

/// Lets it fail until it waits for minutes.
async fn failed(rig: &Rig, life: &Life) -> Timestamp {
    rig.posts(life, 8).await;
    loop {
        rig.pass(Duration::from_secs(1)).await;
        let view = life.engine.breaker(rig.endpoint).await.unwrap();
        if let Some(until) = view.open_until.filter(|until| *until > view.as_of.plus(OPEN_FOR * 9))
        {
            rig.sent();
            rig.transport.asked();
            return until;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_no_changes_nothing_and_it_is_asked_at_the_pace_of_the_open_time() {
    let (rig, _dial) = rig().await;
    let life = rig.start().await;
    let before = failed(&rig, &life).await;
    rig.pass(OPEN_FOR * 6).await;
    let asked = rig.transport.asked();
    assert!((5..=6).contains(&asked), "{asked}");
    assert_eq!((rig.sent(), until(&rig, &life).await), (vec![], before));
}

#[tokio::test(start_paused = true)]
async fn a_yes_lets_one_probe_go_and_only_its_delivery_closes() {
    let (rig, dial) = rig().await;
    let life = rig.start().await;
    let before = failed(&rig, &life).await;
    rig.transport.say_well(true);
    rig.pass(OPEN_FOR + Duration::from_secs(1)).await;
    let after = until(&rig, &life).await;
    assert_eq!(rig.sent().len(), 1, "one probe, long before its time");
    assert!(after > before, "which failed: the open time grew as by any other");
    dial.store(200, Ordering::SeqCst);
    rig.pass(OPEN_FOR + Duration::from_secs(3)).await;
    assert_eq!((rig.sent().len(), rig.waiting().await), (8, 0));
    rig.transport.asked();
    rig.pass(OPEN_FOR * 4).await;
    assert_eq!(rig.transport.asked(), 0, "nobody asks who is well");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_endpoint_is_asked_too_and_a_forced_one_is_not() {
    let (rig, dial) = rig().await;
    let life = rig.start().await;
    life.engine.order(rig.endpoint, ByHand::Suspended).await.unwrap();
    dial.store(200, Ordering::SeqCst);
    rig.posts(&life, 3).await;
    rig.pass(OPEN_FOR * 2).await;
    assert!(rig.transport.asked() > 0 && rig.sent().is_empty());
    life.engine.order(rig.endpoint, ByHand::Forced(Some(Forced::Open))).await.unwrap();
    rig.pass(OPEN_FOR * 4).await;
    assert_eq!((rig.transport.asked(), rig.sent().len()), (0, 0));
    life.engine.order(rig.endpoint, ByHand::Suspended).await.unwrap();
    rig.transport.say_well(true);
    rig.pass(OPEN_FOR * 2).await;
    assert_eq!((rig.sent().len(), rig.waiting().await), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_after_a_restart_and_never_more_often_than_every_ten_seconds() {
    let (mut rig, _dial) = rig().await;
    rig.settings.breaker.open_for = Duration::from_secs(1);
    let mut life = rig.start().await;
    failed(&rig, &life).await;
    rig.pass(Duration::from_secs(50)).await;
    let asked = rig.transport.asked();
    assert!((4..=5).contains(&asked), "{asked}");
    rig.kill(life);
    life = rig.start().await;
    rig.pass(Duration::from_secs(50)).await;
    assert!((4..=6).contains(&rig.transport.asked()));
    drop(life);
}
