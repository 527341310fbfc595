//! What `Inbox` promises of messages that name their time of delivery.
//!
//! Never: a case about messages that do not.

use std::time::Duration;

use domain::delivery::{DeliveryState, Pending};
use domain::limits::{DELIVER_AT_LATE_MAX, DELIVER_AT_MAX};
use domain::message::MessageSpec;
use resilience::Timestamp;

use super::super::world::{World, all};
use super::super::{Case, cases, samples};
use super::{key, keyed};
use crate::inbox::{Accepted, NewMessage};
use crate::prune::{Cursor, Retention};

/// The suite.
pub const CASES: &[Case] = cases![
    a_named_time_is_when_it_is_due_and_its_age_begins,
    a_time_that_is_not_near_is_refused_and_leaves_nothing,
    a_repeat_after_the_named_time_gets_the_first_message,
    what_waits_for_its_time_dies_with_its_payload,
];

fn timed(new: NewMessage, at: Timestamp) -> NewMessage {
    NewMessage { spec: MessageSpec { deliver_at: Some(at), ..samples::message() }, ..new }
}

async fn a_named_time_is_when_it_is_due_and_its_age_begins(mut world: World) {
    let app = world.app(2).await;
    let at = world.now().plus(Duration::from_secs(600));
    let message = world.post(timed(world.message(&app), at)).await;
    assert_eq!(world.told.take_fresh().len(), 2, "the lanes learn when");
    world.reopen();
    for endpoint in &app.endpoints {
        let row = world.row(message, endpoint.key).await.unwrap();
        assert_eq!((row.due_at, row.age_from, row.sends), (at, at, 0));
        let due = world.stores.queue.due(endpoint.key, world.now().into(), 10).await.unwrap();
        assert_eq!((due.rows, due.next_due), (Vec::new(), Some(at)));
    }
    let rows = world.stores.history.deliveries(message).await.unwrap();
    let told = rows.iter().map(|row| (row.state, row.due_at)).collect::<Vec<_>>();
    assert_eq!(told, [(DeliveryState::Pending, Some(at)); 2]);
    // What is late by less than a minute goes at once.
    let now = world.now();
    let late = now.minus(DELIVER_AT_LATE_MAX);
    let message = world.post(timed(world.message(&app), late)).await;
    let row = world.row(message, app.endpoints[0].key).await.unwrap();
    let expected = Pending { due_at: now, age_from: now, ..row };
    assert_eq!(row, expected);
    assert_eq!(world.state(message, row.endpoint).await, Some(DeliveryState::Pending));
}

async fn a_time_that_is_not_near_is_refused_and_leaves_nothing(world: World) {
    let app = world.app(1).await;
    let moment = Duration::from_micros(1);
    for at in [
        world.now().plus(DELIVER_AT_MAX).plus(moment),
        world.now().minus(DELIVER_AT_LATE_MAX).minus(moment),
    ] {
        let refused = world.stores.inbox.accept(timed(world.message(&app), at)).await;
        assert_eq!(refused, Ok(Accepted::DeliverAtOutside));
    }
    let mut gone = timed(world.message(&app), world.now().plus(Duration::from_secs(7_200)));
    gone.spec.retention_hours = Some(1);
    let refused = world.stores.inbox.accept(gone).await;
    assert_eq!(refused, Ok(Accepted::DeliverAtOutside), "its payload would be gone");
    let list = world.stores.history.messages(app.app.key, Default::default(), all(), false);
    assert_eq!(list.await.unwrap().rows, []);
}

async fn a_repeat_after_the_named_time_gets_the_first_message(world: World) {
    let app = world.app(1).await;
    let at = world.now().plus(Duration::from_secs(60));
    let new = keyed(timed(world.message(&app), at), key(1, 1));
    let first = world.post(new.clone()).await;
    world.clock.advance(Duration::from_secs(3_600));
    match world.stores.inbox.accept(new).await.unwrap() {
        Accepted::Repeated(message) => assert_eq!(message.key, first),
        other => panic!("not repeated: {other:?}"),
    }
}

async fn what_waits_for_its_time_dies_with_its_payload(world: World) {
    let app = world.app(1).await;
    let mut new = timed(world.message(&app), world.now().plus(Duration::from_secs(1_800)));
    new.spec.retention_hours = Some(1);
    let message = world.post(new).await;
    let row = world.row(message, app.endpoints[0].key).await.unwrap();
    let prune = async || {
        let now = world.now();
        let piece = world.stores.prune.prune(now, Retention::default(), Cursor::default());
        piece.await.unwrap().counts.payloads
    };
    world.clock.advance(Duration::from_secs(3_599));
    assert_eq!(prune().await, 0);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(prune().await, 1);
    assert_eq!(world.told.take_withdrawn(), [row]);
}
