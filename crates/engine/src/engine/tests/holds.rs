//! A hold after refusals: what ends it, what is let through, and how it shows.
//!
//! Never: the wait until its own probe.

use domain::dead_letter::DeadReason;
use domain::delivery::DeliveryState;
use domain::endpoint::{EndpointSpec, Ordering as Order};
use std::sync::atomic::AtomicU16;
use store::dead_letters::DeadLetters as _;
use store::directory::EndpointChange;
use store::queue::Queue as _;

use super::rig::{Life, Rig};
use super::*;
use crate::admit::{Held, HeldBy};
use crate::parts::NextSend;

/// Shorter than the shortest hold.
const SOON: Duration = Duration::from_secs(3);

/// What the receiver answers, from now on.
type Dial = Arc<AtomicU16>;

async fn rig(spec: EndpointSpec, status: u16) -> (Rig, Dial) {
    let dial = Arc::new(AtomicU16::new(status));
    let answers = Arc::clone(&dial);
    let rig = Rig::new(spec, move |_| Script::status(answers.load(Ordering::SeqCst))).await;
    (rig, dial)
}

async fn held(rig: &Rig, life: &Life) -> Option<Held> {
    life.engine.breaker(rig.endpoint).await.unwrap().hold
}

/// Refusals until the lane is held, and something that waits behind them.
async fn refused(rig: &Rig, life: &Life) -> Vec<MessageKey> {
    let posted = rig.posts(life, 60).await;
    rig.pass(SOON / 3).await;
    let until = NOW.plus(Duration::from_secs(30));
    let Some(Held { by: HeldBy::Refusals, until: Some(at), .. }) = held(rig, life).await else {
        panic!("not held");
    };
    assert!(at >= until && at <= until.plus(SOON), "{at:?}");
    let next = life.engine.next_sends(vec![rig.endpoint]).await.unwrap();
    assert_eq!(next, [NextSend::NotBefore(at)]);
    assert!(rig.waiting().await > 0, "not all of them were buried");
    rig.sent();
    posted
}

async fn change(rig: &Rig, life: &Life, change: EndpointChange) {
    rig.store.change_endpoint(rig.endpoint, change).await.unwrap();
    life.engine.settled().await;
}

fn with(change: impl FnOnce(&mut EndpointSpec)) -> EndpointChange {
    let mut spec = samples::endpoint();
    change(&mut spec);
    EndpointChange { spec: Some(spec), ..EndpointChange::default() }
}

fn disabled(disabled: bool) -> EndpointChange {
    let why = disabled.then_some(domain::endpoint::Disabled::ByOwner);
    EndpointChange { disabled: Some(why), ..EndpointChange::default() }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_was_refused_ends_the_hold() {
    let secrets = EndpointChange {
        secrets: Some(vec![samples::secret(9), samples::secret(2)]),
        ..EndpointChange::default()
    };
    let changes = [
        vec![with(|spec| spec.target = samples::target("https://other.example/"))],
        vec![with(|spec| spec.headers = vec![("authorization".to_owned(), "new".to_owned())])],
        vec![secrets],
        vec![disabled(true), disabled(false)],
    ];
    for all in changes {
        let (rig, dial) = rig(samples::endpoint(), 401).await;
        let life = rig.start().await;
        refused(&rig, &life).await;
        dial.store(200, Ordering::SeqCst);
        for one in all {
            change(&rig, &life, one).await;
        }
        rig.pass(SOON).await;
        assert_eq!((held(&rig, &life).await, rig.waiting().await), (None, 0));
        let kept = rig.store.lane_states().await.unwrap();
        assert!(kept.iter().all(|lane| lane.rejected_until.is_none()), "nor after a restart");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_anything_else_does_not() {
    let (rig, _dial) = rig(samples::endpoint(), 401).await;
    let life = rig.start().await;
    refused(&rig, &life).await;
    change(&rig, &life, with(|spec| spec.description = "another".to_owned())).await;
    rig.pass(SOON).await;
    assert_eq!(rig.sent(), [0; 0]);
    assert!(held(&rig, &life).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_change_before_anything_was_read_ends_what_a_restart_remembers() {
    let (mut rig, dial) = rig(samples::endpoint(), 401).await;
    let life = rig.start().await;
    refused(&rig, &life).await;
    rig.kill(life);
    let life = rig.start().await;
    assert!(held(&rig, &life).await.is_some(), "it outlives the process");
    dial.store(200, Ordering::SeqCst);
    let new = with(|spec| spec.target = samples::target("https://other.example/"));
    change(&rig, &life, new).await;
    rig.pass(SOON).await;
    assert_eq!((held(&rig, &life).await, rig.waiting().await), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_forces_the_breaker_ends_it() {
    for forced in [Some(Forced::Closed), None] {
        let (rig, dial) = rig(samples::endpoint(), 401).await;
        let life = rig.start().await;
        refused(&rig, &life).await;
        dial.store(200, Ordering::SeqCst);
        life.engine.force(rig.endpoint, forced).await.unwrap();
        rig.pass(SOON).await;
        assert_eq!((held(&rig, &life).await, rig.waiting().await), (None, 0), "{forced:?}");
    }
}

/// A delivery that died while the run of refusals lasted.
async fn buried(rig: &Rig, posted: &[MessageKey]) -> MessageKey {
    for message in posted {
        let rows = rig.store.deliveries(*message).await.unwrap();
        if rows[0].state == DeliveryState::Dead(DeadReason::Rejected) {
            return *message;
        }
    }
    panic!("none is dead");
}

#[tokio::test(start_paused = true)]
async fn a_replay_by_hand_is_let_through_alone_and_decides() {
    let (rig, dial) = rig(samples::endpoint(), 401).await;
    let life = rig.start().await;
    let posted = refused(&rig, &life).await;
    let replayed = buried(&rig, &posted).await;
    let number = posted.iter().position(|one| *one == replayed).unwrap();
    for well in [false, true] {
        rig.store.replay(replayed, rig.endpoint).await.unwrap();
        dial.store(if well { 200 } else { 401 }, Ordering::SeqCst);
        rig.pass(SOON).await;
        assert_eq!(rig.sent(), [0; 0], "of itself it waits as the others do");
        life.engine.let_one(rig.endpoint, replayed);
        rig.pass(SOON).await;
        if well {
            assert_eq!(rig.sent().first(), Some(&number));
            assert_eq!((held(&rig, &life).await, rig.waiting().await), (None, 0));
        } else {
            assert_eq!(rig.sent(), [number], "that one and no other");
            assert!(held(&rig, &life).await.is_some(), "it was refused again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resend_that_is_answered_2xx_ends_it() {
    let (rig, dial) = rig(samples::endpoint(), 401).await;
    let life = rig.start().await;
    let posted = refused(&rig, &life).await;
    let dead = buried(&rig, &posted).await;
    rig.store.resend(dead, rig.endpoint).await.unwrap();
    rig.pass(SOON).await;
    assert_eq!(rig.sent().len(), 1);
    assert!(held(&rig, &life).await.is_some(), "one that is refused does not");
    dial.store(200, Ordering::SeqCst);
    rig.store.resend(dead, rig.endpoint).await.unwrap();
    rig.pass(SOON).await;
    assert_eq!((held(&rig, &life).await, rig.waiting().await), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_gap_and_a_waiting_head_show() {
    for (order, status, by) in
        [(Order::Strict, 400, HeldBy::Gap), (Order::Ordered, 500, HeldBy::Head)]
    {
        let (rig, _dial) =
            rig(EndpointSpec { ordering: order, ..samples::endpoint() }, status).await;
        let life = rig.start().await;
        rig.posts(&life, 2).await;
        rig.pass(Duration::from_millis(200)).await;
        let shown = held(&rig, &life).await.expect("held");
        let next = life.engine.next_sends(vec![rig.endpoint]).await.unwrap();
        let expected = shown.until.map_or(NextSend::Unknown, NextSend::NotBefore);
        assert_eq!((shown.by, next), (by, vec![expected]));
        assert_eq!(shown.until.is_some(), by == HeldBy::Head);
    }
}
