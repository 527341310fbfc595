//! What `Inbox` promises; messages that name their time stand in `inbox/timed.rs`.
//!
//! Never: a case that another trait's suite has.

mod timed;
mod whole;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{Pending, Trigger};
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, MessageKey};
use domain::limits::IDEMPOTENCY_WINDOW;
use domain::message::Message;

use super::world::{World, all};
use super::{Case, cases, samples};
use crate::commits::BatchStats;
use crate::directory::IdOrUid;
use crate::inbox::{Accepted, NewMessage};

/// The suite, without the cases of `TIMED`.
pub const CASES: &[Case] = cases![
    a_message_is_kept_whole,
    each_field_is_kept_without_the_others,
    every_target_gets_a_row,
    a_message_to_nobody_is_accepted,
    a_large_fan_out_is_whole,
    a_repeated_key_gets_the_first_message,
    a_key_says_what_was_made_under_it,
    another_body_under_a_key_is_refused,
    id_05_equal_keys_in_one_batch_make_one_message,
    id_01_concurrent_posts_with_one_key_make_one_message,
    id_02_a_refused_post_leaves_no_key,
    id_08_a_key_survives_a_restart,
    a_key_lives_12_hours,
    an_event_id_is_taken_once_per_application,
    the_key_is_looked_at_before_anything_else,
    the_version_is_looked_at_before_the_event_id,
    a_stale_version_is_refused_and_leaves_nothing,
    a_deleted_application_accepts_nothing,
    a_probe_is_answered_and_tells_nobody,
    lanes_are_told_before_the_answer,
    batches_are_counted,
    keys_grow_in_commit_order,
    a_caller_that_goes_away_undoes_nothing,
    db_01_db_02_payloads_come_back_byte_for_byte,
];

pub use timed::CASES as TIMED;
use whole::{a_message_is_kept_whole, each_field_is_kept_without_the_others};

/// A key with this scope and body.
fn key(scope: u8, body: u8) -> IngestKey {
    IngestKey { scope: [scope; 16], body: [body; 16] }
}

fn keyed(new: NewMessage, key: IngestKey) -> NewMessage {
    NewMessage { key: Some(key), ..new }
}

async fn count(world: &World, app: AppKey) -> usize {
    world.stores.history.messages(app, Default::default(), all(), false).await.unwrap().rows.len()
}

fn repeated(accepted: Accepted) -> Message {
    match accepted {
        Accepted::Repeated(message) => *message,
        other => panic!("not repeated: {other:?}"),
    }
}

async fn every_target_gets_a_row(world: World) {
    let app = world.app(3).await;
    let mut new = world.message(&app);
    new.targets.remove(1);
    let message = world.post(new).await;
    let row = |at: usize| Pending {
        endpoint: app.endpoints[at].key,
        due_at: world.now(),
        message,
        age_from: world.now(),
        sends: 0,
        budget_used: 0,
        last_delay: Duration::ZERO,
        trigger: Trigger::Scheduled,
    };
    assert_eq!(world.rows(app.endpoints[0].key).await, [row(0)]);
    assert_eq!(world.rows(app.endpoints[1].key).await, []);
    assert_eq!(world.rows(app.endpoints[2].key).await, [row(2)]);
}

async fn a_message_to_nobody_is_accepted(world: World) {
    let app = world.app(0).await;
    let message = world.post(world.message(&app)).await;
    assert_eq!(world.read(app.app.key, message).await.spec, samples::message());
    assert_eq!(world.stores.history.deliveries(message).await.unwrap(), []);
    assert!(world.told.take_fresh().is_empty());
}

async fn a_large_fan_out_is_whole(mut world: World) {
    let app = world.app(1_201).await;
    let message = world.post(world.message(&app)).await;
    assert_eq!(world.told.take_fresh().len(), 1_201, "told before the answer");
    world.reopen();
    let rows = world.stores.history.deliveries(message).await.unwrap();
    let endpoints: Vec<_> = rows.iter().map(|row| row.endpoint).collect();
    assert_eq!(endpoints, app.endpoints.iter().map(|to| to.key).collect::<Vec<_>>());
}

async fn a_repeated_key_gets_the_first_message(world: World) {
    let app = world.app(1).await;
    let first = world.post(keyed(world.message(&app), key(1, 1))).await;
    world.tick();
    let again = world.stores.inbox.accept(keyed(world.message(&app), key(1, 1))).await.unwrap();
    assert_eq!(repeated(again), world.read(app.app.key, first).await);
    assert_eq!(count(&world, app.app.key).await, 1);
    assert_eq!(world.rows(app.endpoints[0].key).await.len(), 1);
    assert_eq!(world.told.take_fresh().len(), 1);
    world.post(keyed(world.message(&app), key(2, 1))).await;
}

async fn a_key_says_what_was_made_under_it(world: World) {
    let app = world.app(1).await;
    let inbox = &world.stores.inbox;
    assert_eq!(inbox.used(key(1, 1)).await.unwrap(), None);
    let first = world.post(keyed(world.message(&app), key(1, 1))).await;
    let used = inbox.used(key(1, 1)).await.unwrap();
    assert_eq!(repeated(used.unwrap()), world.read(app.app.key, first).await);
    assert_eq!(inbox.used(key(1, 2)).await.unwrap(), Some(Accepted::BodyDiffers));
    world.clock.advance(IDEMPOTENCY_WINDOW);
    assert_eq!(inbox.used(key(1, 1)).await.unwrap(), None);
}

async fn another_body_under_a_key_is_refused(world: World) {
    let app = world.app(1).await;
    world.post(keyed(world.message(&app), key(1, 1))).await;
    let other = world.stores.inbox.accept(keyed(world.message(&app), key(1, 2))).await.unwrap();
    assert_eq!(other, Accepted::BodyDiffers);
    assert_eq!(count(&world, app.app.key).await, 1);
    assert_eq!(world.rows(app.endpoints[0].key).await.len(), 1);
}

async fn id_05_equal_keys_in_one_batch_make_one_message(world: World) {
    let app = world.app(1).await;
    let body = |at: u8| if at.is_multiple_of(5) { 0 } else { at % 2 };
    let posts: Vec<_> = (0..20)
        .map(|at| world.stores.inbox.accept(keyed(world.message(&app), key(1, body(at)))))
        .collect();
    let mut first: Option<MessageKey> = None;
    for (at, post) in (0_u8..).zip(posts) {
        match post.await.unwrap() {
            Accepted::New { key, .. } => {
                assert!(at == 0 && first.is_none(), "post {at} is new");
                first = Some(key);
            }
            Accepted::Repeated(message) => {
                assert_eq!((body(at), Some(message.key)), (0, first));
            }
            Accepted::BodyDiffers => assert_eq!(body(at), 1),
            other => panic!("post {at}: {other:?}"),
        }
    }
    assert_eq!(count(&world, app.app.key).await, 1);
}

async fn id_01_concurrent_posts_with_one_key_make_one_message(world: World) {
    let app = world.app(1).await;
    let posts: Vec<_> = (0..200)
        .map(|_| {
            let inbox = Arc::clone(&world.stores.inbox);
            let new = keyed(world.message(&app), key(1, 1));
            tokio::spawn(async move { inbox.accept(new).await })
        })
        .collect();
    let (mut new, mut keys) = (0, BTreeSet::new());
    for post in posts {
        match post.await.unwrap().unwrap() {
            Accepted::New { key, .. } => {
                new += 1;
                keys.insert(key);
            }
            other => {
                keys.insert(repeated(other).key);
            }
        }
    }
    assert_eq!((new, keys.len()), (1, 1));
    assert_eq!(count(&world, app.app.key).await, 1);
}

async fn id_02_a_refused_post_leaves_no_key(world: World) {
    let app = world.app(1).await;
    let mut taken = world.message(&app);
    taken.spec.event_id = Some("event".to_owned());
    world.post(taken.clone()).await;
    let refused = world.stores.inbox.accept(keyed(taken, key(1, 1))).await.unwrap();
    assert_eq!(refused, Accepted::EventIdTaken);
    let stale = NewMessage { app_version: app.app.version - 1, ..world.message(&app) };
    let stale = world.stores.inbox.accept(keyed(stale, key(1, 2))).await.unwrap();
    assert_eq!(stale, Accepted::Stale);
    world.post(keyed(world.message(&app), key(1, 3))).await;
}

async fn id_08_a_key_survives_a_restart(mut world: World) {
    let app = world.app(1).await;
    let first = world.post(keyed(world.message(&app), key(1, 1))).await;
    world.reopen();
    let again = world.stores.inbox.accept(keyed(world.message(&app), key(1, 1))).await.unwrap();
    assert_eq!(repeated(again).key, first);
    let other = world.stores.inbox.accept(keyed(world.message(&app), key(1, 2))).await.unwrap();
    assert_eq!(other, Accepted::BodyDiffers);
}

async fn a_key_lives_12_hours(world: World) {
    let app = world.app(1).await;
    let first = world.post(keyed(world.message(&app), key(1, 1))).await;
    world.clock.advance(Duration::from_secs(12 * 3_600 - 1));
    let again = world.stores.inbox.accept(keyed(world.message(&app), key(1, 1))).await.unwrap();
    assert_eq!(repeated(again).key, first, "and a repetition does not make it live longer");
    world.clock.advance(Duration::from_secs(2));
    let second = world.post(keyed(world.message(&app), key(1, 2))).await;
    let again = world.stores.inbox.accept(keyed(world.message(&app), key(1, 2))).await.unwrap();
    assert_eq!(repeated(again).key, second);
}

async fn an_event_id_is_taken_once_per_application(mut world: World) {
    let (app, other) = (world.app(1).await, world.app(1).await);
    let with_id = |mut new: NewMessage| {
        new.spec.event_id = Some("event".to_owned());
        new
    };
    let first = world.post(with_id(world.message(&app))).await;
    let taken = world.stores.inbox.accept(with_id(world.message(&app))).await.unwrap();
    assert_eq!(taken, Accepted::EventIdTaken);
    assert_eq!(world.rows(app.endpoints[0].key).await.len(), 1);
    world.post(with_id(world.message(&other))).await;
    world.stores.history.expunge(first).await.unwrap();
    world.reopen();
    let taken = world.stores.inbox.accept(with_id(world.message(&app))).await.unwrap();
    assert_eq!(taken, Accepted::EventIdTaken, "as long as the message row exists");
}

async fn the_key_is_looked_at_before_anything_else(world: World) {
    let app = world.app(1).await;
    let mut new = keyed(world.message(&app), key(1, 1));
    new.spec.event_id = Some("event".to_owned());
    let first = world.post(new.clone()).await;
    let again = world.stores.inbox.accept(new.clone()).await.unwrap();
    assert_eq!(repeated(again).key, first, "a resend carries both");
    world.endpoint(app.app.key).await;
    let again = world.stores.inbox.accept(new.clone()).await.unwrap();
    assert_eq!(repeated(again).key, first, "the version does not matter");
    world.stores.directory.delete_app(app.app.key).await.unwrap();
    let again = world.stores.inbox.accept(new).await.unwrap();
    assert_eq!(repeated(again).key, first, "nor whether the application is still there");
}

async fn the_version_is_looked_at_before_the_event_id(world: World) {
    let app = world.app(1).await;
    let mut new = world.message(&app);
    new.spec.event_id = Some("event".to_owned());
    world.post(new.clone()).await;
    world.endpoint(app.app.key).await;
    let stale = world.stores.inbox.accept(new.clone()).await.unwrap();
    assert_eq!(stale, Accepted::Stale);
    new.app_version = world.snapshot(app.app.key).await.app.version;
    assert_eq!(world.stores.inbox.accept(new).await.unwrap(), Accepted::EventIdTaken);
}

async fn a_probe_is_answered_and_tells_nobody(world: World) {
    let app = world.app(1).await;
    world.told.take_fresh();
    for _ in 0..2 {
        assert_eq!(world.stores.inbox.probe().await, Ok(()));
    }
    assert_eq!(count(&world, app.app.key).await, 0);
    assert!(world.told.take_fresh().is_empty());
    assert_eq!(world.stores.queue.depth().await.unwrap(), (0, None));
}

async fn a_stale_version_is_refused_and_leaves_nothing(world: World) {
    let app = world.app(1).await;
    let mut new = world.message(&app);
    new.spec.event_id = Some("event".to_owned());
    let added = world.endpoint(app.app.key).await;
    assert_eq!(world.stores.inbox.accept(new.clone()).await.unwrap(), Accepted::Stale);
    assert_eq!(count(&world, app.app.key).await, 0);
    assert_eq!(world.rows(app.endpoints[0].key).await, []);
    assert!(world.told.take_fresh().is_empty());
    let now = world.snapshot(app.app.key).await;
    new.app_version = now.app.version;
    new.targets = now.endpoints;
    world.post(new).await;
    assert_eq!(world.rows(added.key).await.len(), 1);
}

async fn a_deleted_application_accepts_nothing(world: World) {
    let app = world.app(1).await;
    let new = world.message(&app);
    world.stores.directory.delete_app(app.app.key).await.unwrap();
    let refused = world.stores.inbox.accept(new.clone()).await.unwrap();
    assert_eq!(refused, Accepted::NoApplication);
    let never = NewMessage { app: AppKey(1 << 40), ..new };
    assert_eq!(world.stores.inbox.accept(never).await.unwrap(), Accepted::NoApplication);
    assert!(world.told.take_fresh().is_empty());
}

async fn lanes_are_told_before_the_answer(world: World) {
    let app = world.app(2).await;
    for _ in 0..50 {
        let new = world.message(&app);
        let accepted = world.stores.inbox.accept(new.clone()).await.unwrap();
        let fresh = world.told.take_fresh();
        let Accepted::New { key, id, .. } = accepted else { panic!("{accepted:?}") };
        assert_eq!(fresh.len(), 2, "one for each target");
        for (fresh, target) in fresh.iter().zip(&new.targets) {
            assert_eq!(Some(fresh.pending), world.row(key, target.key).await);
            let endpoint = fresh.endpoint.as_ref().unwrap();
            assert_eq!((endpoint.key, endpoint.version), (target.key, target.version));
            let envelope = fresh.envelope.as_ref().unwrap();
            assert_eq!((envelope.id, &envelope.payload), (id, &new.spec.payload));
            assert_eq!(envelope.content_type, new.spec.content_type);
            assert_eq!(envelope.trace, new.spec.trace);
        }
    }
}

async fn batches_are_counted(world: World) {
    let app = world.app(2).await;
    world.told.take_batches();
    world.post(world.message(&app)).await;
    let mut batches = Vec::new();
    // The lists that are filled in arrears may make batches of their own.
    while !batches.iter().any(|batch: &BatchStats| batch.committed && batch.rows >= 3) {
        tokio::time::sleep(Duration::from_millis(2)).await;
        batches.extend(world.told.take_batches());
    }
    assert_eq!(batches.iter().map(|batch| batch.operations).sum::<usize>(), 1, "{batches:?}");
}

async fn keys_grow_in_commit_order(world: World) {
    let app = world.app(1).await;
    let posts: Vec<_> = (0..100).map(|_| world.stores.inbox.accept(world.message(&app))).collect();
    for post in posts {
        assert!(matches!(post.await, Ok(Accepted::New { .. })));
    }
    world.clock.set(world.now().minus(Duration::from_secs(3_600)));
    let late = world.post(world.message(&app)).await;
    let told = world.told.take_fresh();
    let told: Vec<_> = told.iter().map(|fresh| fresh.pending.message).collect();
    assert!(told.is_sorted_by(|a, b| a < b), "though the clock steps back");
    assert_eq!((told.len(), told.last()), (101, Some(&late)));
}

async fn a_caller_that_goes_away_undoes_nothing(world: World) {
    let app = world.app(1).await;
    let mut new = world.message(&app);
    new.spec.event_id = Some("event".to_owned());
    drop(world.stores.inbox.accept(new));
    let which = || IdOrUid::Uid("event".to_owned());
    while world.stores.history.message(app.app.key, which()).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(world.rows(app.endpoints[0].key).await.len(), 1);
}

async fn db_01_db_02_payloads_come_back_byte_for_byte(mut world: World) {
    let app = world.app(1).await;
    let mut keys = Vec::new();
    for payload in samples::hard_bytes() {
        let mut new = world.message(&app);
        new.spec.payload = payload;
        keys.push(world.post(new).await);
    }
    world.reopen();
    for (key, payload) in keys.into_iter().zip(samples::hard_bytes()) {
        let envelope = world.stores.queue.envelope(key).await.unwrap();
        assert!(envelope.unwrap().payload == payload, "as it is sent");
        let message = world.read(app.app.key, key).await;
        assert!(message.spec.payload == payload && !message.payload_gone, "as it is read");
    }
}
