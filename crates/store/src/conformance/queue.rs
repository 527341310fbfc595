//! What `Queue` promises.
//!
//! Never: a case that another trait's suite has.

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::ids::{EndpointKey, MessageKey};
use domain::message::ContentType;
use domain::until::Until;
use resilience::Timestamp;

use super::world::World;
use super::{Case, cases, samples};
use crate::ledger::Recorded;
use crate::queue::DueRows;

/// The suite.
pub const CASES: &[Case] = cases![
    an_empty_store_has_no_work,
    endpoints_come_in_order_with_their_earliest_due_time,
    endpoints_are_paged_without_a_gap,
    an_endpoint_without_rows_is_passed_over,
    rows_come_by_due_time_then_message,
    rows_that_are_not_due_are_left_out,
    the_limit_cuts_and_next_due_says_what_was_cut,
    rows_survive_a_restart,
    reading_changes_nothing,
    an_envelope_is_what_was_posted,
    an_expunged_payload_has_no_envelope,
    depth_follows_within_a_second,
];

/// Moves a fresh row to `due_at`.
async fn put_off(world: &World, app: &AppSnapshot, due_at: Timestamp) -> MessageKey {
    let row = world.one(app).await;
    let attempt = samples::answered(&row, 503, world.now());
    let record = world.result(row, Some(attempt), samples::retry(due_at, 1));
    assert_eq!(world.record(record).await, Recorded::Applied);
    row.message
}

async fn an_empty_store_has_no_work(world: World) {
    let queue = &world.stores.queue;
    assert_eq!(queue.endpoints(None, 10).await.unwrap(), []);
    assert_eq!(
        queue.due(EndpointKey(1), Timestamp::MAX.into(), 10).await.unwrap(),
        DueRows::default()
    );
    assert!(queue.envelope(MessageKey(1)).await.unwrap().is_none());
    assert_eq!(queue.lane_states().await.unwrap(), []);
    assert_eq!(queue.depth().await.unwrap(), (0, None));
}

async fn endpoints_come_in_order_with_their_earliest_due_time(world: World) {
    let app = world.app(3).await;
    let begun = world.now();
    world.post(world.message(&app)).await;
    world.tick();
    world.post(world.message(&app)).await;
    let first = world.rows(app.endpoints[1].key).await[0];
    world.deliver(first).await;
    let key = |at: usize| app.endpoints[at].key;
    assert_eq!(
        world.stores.queue.endpoints(None, 10).await.unwrap(),
        [(key(0), begun), (key(1), world.now()), (key(2), begun)],
    );
}

async fn endpoints_are_paged_without_a_gap(world: World) {
    let app = world.app(7).await;
    for _ in 0..3 {
        world.post(world.message(&app)).await;
        world.tick();
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.stores.queue.endpoints(after, 3).await.unwrap();
        assert!(page.len() <= 3);
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        found.extend(page.into_iter().map(|(endpoint, _)| endpoint));
        assert!(found.len() <= 1_000, "the walk does not advance");
    }
    assert_eq!(found, app.endpoints.iter().map(|to| to.key).collect::<Vec<_>>());
    let beyond = EndpointKey(app.endpoints[6].key.0 + 1_000);
    assert_eq!(world.stores.queue.endpoints(Some(beyond), 3).await.unwrap(), []);
}

async fn an_endpoint_without_rows_is_passed_over(world: World) {
    let app = world.app(3).await;
    let mut new = world.message(&app);
    new.targets.remove(1);
    world.post(new).await;
    for row in world.rows(app.endpoints[0].key).await {
        world.deliver(row).await;
    }
    let found = world.stores.queue.endpoints(None, 10).await.unwrap();
    assert_eq!(found, [(app.endpoints[2].key, world.now())]);
}

async fn rows_come_by_due_time_then_message(world: World) {
    let app = world.app(1).await;
    let now = world.now();
    let late = put_off(&world, &app, now.plus(Duration::from_secs(9))).await;
    let early = put_off(&world, &app, now.plus(Duration::from_micros(1))).await;
    let (first, second) = (world.one(&app).await.message, world.one(&app).await.message);
    let (later, latest) = (
        put_off(&world, &app, now.plus(Duration::from_secs(9))).await,
        put_off(&world, &app, now.plus(Duration::from_secs(10))).await,
    );
    let rows = world.rows(app.endpoints[0].key).await;
    let messages: Vec<_> = rows.iter().map(|row| row.message).collect();
    assert_eq!(messages, [first, second, early, late, later, latest]);
}

async fn rows_that_are_not_due_are_left_out(world: World) {
    let app = world.app(1).await;
    let (endpoint, now) = (app.endpoints[0].key, world.now());
    let until = now.plus(Duration::from_secs(5));
    let just = put_off(&world, &app, until).await;
    put_off(&world, &app, until.plus(Duration::from_micros(1))).await;
    let fresh = world.one(&app).await.message;
    let found = world.stores.queue.due(endpoint, until.into(), 10).await.unwrap();
    let messages: Vec<_> = found.rows.iter().map(|row| row.message).collect();
    assert_eq!(messages, [fresh, just], "due at or before the asked time");
    assert_eq!(found.next_due, Some(until.plus(Duration::from_micros(1))));
    let before = now.minus(Duration::from_micros(1));
    let found = world.stores.queue.due(endpoint, before.into(), 10).await.unwrap();
    assert_eq!(found, DueRows { rows: Vec::new(), next_due: Some(now) });
    // By a clock that was set back: what was never sent does not wait for it.
    let back = Until::of(now.minus(Duration::from_secs(600)), until);
    let found = world.stores.queue.due(endpoint, back, 10).await.unwrap();
    let messages: Vec<_> = found.rows.iter().map(|row| row.message).collect();
    assert_eq!((messages, found.next_due), (vec![fresh], Some(until)));
}

async fn the_limit_cuts_and_next_due_says_what_was_cut(world: World) {
    let app = world.app(2).await;
    let (endpoint, begun) = (app.endpoints[0].key, world.now());
    for _ in 0..5 {
        world.post(world.message(&app)).await;
        world.tick();
    }
    let found = world.stores.queue.due(endpoint, world.now().into(), 3).await.unwrap();
    assert_eq!(found.rows.len(), 3);
    assert_eq!(found.next_due, Some(begun.plus(Duration::from_secs(3))));
    let found = world.stores.queue.due(endpoint, world.now().into(), 5).await.unwrap();
    assert_eq!((found.rows.len(), found.next_due), (5, None), "not the next endpoint's");
    let found = world.stores.queue.due(endpoint, world.now().into(), 0).await.unwrap();
    assert_eq!(found, DueRows { rows: Vec::new(), next_due: Some(begun) });
}

async fn rows_survive_a_restart(mut world: World) {
    let app = world.app(1).await;
    put_off(&world, &app, world.now().plus(Duration::from_micros(12_345_678))).await;
    world.one(&app).await;
    let before = world.rows(app.endpoints[0].key).await;
    assert_eq!((before.len(), before[1].last_delay), (2, Duration::from_millis(2_500)));
    world.reopen();
    assert_eq!(world.rows(app.endpoints[0].key).await, before);
}

async fn reading_changes_nothing(world: World) {
    let app = world.app(1).await;
    world.one(&app).await;
    let endpoint = app.endpoints[0].key;
    let first = world.stores.queue.due(endpoint, world.now().into(), 10).await.unwrap();
    let second = world.stores.queue.due(endpoint, world.now().into(), 10).await.unwrap();
    assert_eq!((first.rows.len(), &first), (1, &second));
}

async fn an_envelope_is_what_was_posted(world: World) {
    let app = world.app(1).await;
    let new = world.message(&app);
    let plain = world.post(new.clone()).await;
    let found = world.stores.queue.envelope(plain).await.unwrap().unwrap();
    assert_eq!((found.id.key(), found.id.random()), (plain.0, new.random));
    assert_eq!((&found.payload, &found.content_type), (&new.spec.payload, &ContentType::Json));
    let mut new = world.message(&app);
    new.spec = samples::full_message();
    let full = world.post(new.clone()).await;
    let found = world.stores.queue.envelope(full).await.unwrap().unwrap();
    assert_eq!((&found.payload, &found.content_type), (&new.spec.payload, &new.spec.content_type));
}

async fn an_expunged_payload_has_no_envelope(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.stores.history.expunge(row.message).await.unwrap();
    assert!(world.stores.queue.envelope(row.message).await.unwrap().is_none());
    assert_eq!(world.rows(row.endpoint).await, []);
}

async fn depth_follows_within_a_second(world: World) {
    let app = world.app(2).await;
    put_off(&world, &app, world.now().plus(Duration::from_secs(9))).await;
    let row = world.one(&app).await;
    world.post(world.message(&app)).await;
    world.deliver(row).await;
    world.clock.advance(Duration::from_secs(2));
    let due = world.now().minus(Duration::from_secs(2));
    while world.stores.queue.depth().await.unwrap() != (3, Some(due)) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
