//! What `History` promises of what was sent to one endpoint, and of answers that are expunged.
//!
//! Never: a case about lists of attempts.

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::attempt::Outcome;
use domain::ids::{EndpointKey, MessageKey, PublicId};

use super::super::world::{World, all};
use super::super::{Case, cases, samples};
use crate::StoreError;
use crate::history::{AttemptCounts, EXPUNGED, MessageFilter, SentFilter, Standing};
use crate::ledger::Follow;
use crate::page::{Direction, PageOf};

/// The suite.
pub const CASES: &[Case] = cases![
    messages_to_an_endpoint_tell_where_each_stands,
    messages_to_an_endpoint_are_filtered,
    payloads_to_an_endpoint_are_read_only_when_asked_for,
    attempts_are_counted_by_when_they_were_recorded,
    more_attempts_than_a_piece_are_all_counted,
    an_expunged_answer_is_gone_for_good,
];

/// The keys of a list, walked page by page in both directions, newest first.
async fn walk(
    world: &World,
    app: &AppSnapshot,
    to: EndpointKey,
    filter: &SentFilter,
) -> Vec<MessageKey> {
    let mut ways = Vec::new();
    for direction in [Direction::Descending, Direction::Ascending] {
        let (mut found, mut beyond) = (Vec::new(), None);
        loop {
            let page = PageOf { beyond, direction, limit: 2 };
            let history = &world.stores.history;
            let look = history.messages_to(app.app.key, to, filter.clone(), page).await;
            let rows = look.unwrap().rows;
            let Some(last) = rows.last() else { break };
            beyond = Some(last.message.key);
            assert!(rows.iter().all(|row| row.delivery.endpoint == to));
            found.extend(rows.iter().map(|row| row.message.key));
            assert!(found.len() <= 1_000, "the walk does not advance");
        }
        ways.push(found);
    }
    let mut back = ways.remove(1);
    back.reverse();
    assert_eq!(ways[0], back, "the same in both directions");
    back
}

async fn messages_to_an_endpoint_tell_where_each_stands(world: World) {
    let app = world.app(2).await;
    let (to, other) = (app.endpoints[0].key, app.endpoints[1].key);
    let (untried, retried) = (world.one(&app).await, world.one(&app).await);
    let (dead, delivered) = (world.one(&app).await, world.one(&app).await);
    let mut elsewhere = world.message(&app);
    elsewhere.targets.remove(0);
    let elsewhere = world.post(elsewhere).await;
    let later = world.now().plus(Duration::from_secs(60));
    let attempt = samples::answered(&retried, 503, world.now());
    world.record(world.result(retried, Some(attempt), samples::retry(later, 1))).await;
    world.bury(dead).await;
    world.deliver(delivered).await;
    let list = world.stores.history.messages_to(app.app.key, to, SentFilter::default(), all());
    let told = list.await.unwrap().rows.into_iter().map(|row| {
        (row.message.key, row.delivery.standing(), row.delivery.due_at, row.delivery.sends)
    });
    let expected = [
        (untried.message, Standing::Untried, Some(untried.due_at), 0),
        (retried.message, Standing::Retried, Some(later), 1),
        (dead.message, Standing::Dead, None, 1),
        (delivered.message, Standing::Delivered, None, 1),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let newest = expected.map(|(key, ..)| key).into_iter().rev().collect::<Vec<_>>();
    assert_eq!(walk(&world, &app, to, &SentFilter::default()).await, newest);
    for (key, standing, ..) in expected {
        let filter = SentFilter { standings: vec![standing], ..SentFilter::default() };
        assert_eq!(walk(&world, &app, to, &filter).await, [key], "{standing:?}");
    }
    assert_eq!(walk(&world, &app, other, &SentFilter::default()).await, [elsewhere]);
}

async fn messages_to_an_endpoint_are_filtered(world: World) {
    let app = world.app(1).await;
    let to = app.endpoints[0].key;
    let mut full = world.message(&app);
    full.spec = samples::full_message();
    let (full, plain) = (world.post(full).await, world.one(&app).await.message);
    let found = async |message| {
        let filter = SentFilter { message, ..SentFilter::default() };
        walk(&world, &app, to, &filter).await
    };
    let none = MessageFilter::default;
    let of_type = MessageFilter { event_types: vec!["user.created".to_owned()], ..none() };
    assert_eq!(found(of_type).await, [plain]);
    assert_eq!(found(MessageFilter { channel: Some("us".to_owned()), ..none() }).await, [full]);
    assert_eq!(found(MessageFilter { tag: Some("blue".to_owned()), ..none() }).await, [full]);
    assert_eq!(found(MessageFilter { tag: Some("eu".to_owned()), ..none() }).await, []);
    assert_eq!(found(MessageFilter { before: Some(world.now()), ..none() }).await, []);
}

async fn payloads_to_an_endpoint_are_read_only_when_asked_for(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    for payloads in [false, true] {
        let filter = SentFilter { payloads, ..SentFilter::default() };
        let history = &world.stores.history;
        let found = history.messages_to(app.app.key, row.endpoint, filter, all()).await;
        let rows = found.unwrap().rows;
        assert_eq!(!rows[0].message.spec.payload.is_empty(), payloads);
    }
}

async fn attempts_are_counted_by_when_they_were_recorded(world: World) {
    let app = world.app(2).await;
    let to = app.endpoints[0].key;
    let mut times = Vec::new();
    for status in [200, 503, 204] {
        world.tick();
        times.push(world.now());
        let message = world.post(world.message(&app)).await;
        for endpoint in &app.endpoints {
            let row = world.row(message, endpoint.key).await.unwrap();
            let attempt = samples::answered(&row, status, world.now());
            let follow = if status == 503 { samples::dead() } else { Follow::Delivered };
            world.record(world.result(row, Some(attempt), follow)).await;
        }
    }
    let count =
        async |from, until| world.stores.history.count_attempts(to, from, until).await.unwrap();
    let counts = |delivered, failed| AttemptCounts { delivered, failed };
    assert_eq!(count(times[0], None).await, counts(2, 1));
    assert_eq!(count(times[1], None).await, counts(1, 1));
    assert_eq!(count(times[0], Some(times[2])).await, counts(1, 1), "`until` is not within");
    assert_eq!(count(times[1], Some(times[1])).await, counts(0, 0));
    let nobody = world.stores.history.count_attempts(EndpointKey(1 << 40), times[0], None);
    assert_eq!(nobody.await.unwrap(), counts(0, 0));
}

async fn more_attempts_than_a_piece_are_all_counted(world: World) {
    let app = world.app(1).await;
    let to = app.endpoints[0].key;
    world.post_many(&app, 1_100).await;
    let mut rows = world.stores.queue.due(to, world.now().into(), 2_000).await.unwrap().rows;
    assert_eq!(rows.len(), 1_100);
    while !rows.is_empty() {
        let piece = rows.split_off(rows.len().saturating_sub(500));
        let records = piece.into_iter().map(|row| {
            let attempt = samples::answered(&row, 200, world.now());
            world.result(row, Some(attempt), Follow::Delivered)
        });
        world.stores.ledger.record(records.collect()).await.unwrap();
    }
    let counted = world.stores.history.count_attempts(to, world.now(), None).await.unwrap();
    assert_eq!(counted, AttemptCounts { delivered: 1_100, failed: 0 });
}

async fn an_expunged_answer_is_gone_for_good(mut world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    let before = world.attempts(row.message).await.remove(0);
    let history = &world.stores.history;
    for (message, id) in [
        (MessageKey(row.message.0 + 1), before.id),
        (row.message, PublicId::new(before.id.key(), [0; 12])),
    ] {
        let missing = history.expunge_attempt(message, id).await;
        assert_eq!(missing, Err(StoreError::Missing("attempt")));
    }
    history.expunge_attempt(row.message, before.id).await.unwrap();
    world.reopen();
    let mut expected = before;
    let Outcome::Answered(answer) = &mut expected.attempt.outcome else { panic!("no answer") };
    answer.body = EXPUNGED.into();
    assert_eq!(world.attempts(row.message).await, [expected]);
}
