//! What `DeadLetters` promises of replays.
//!
//! Never: a case about lists alone.

use std::time::Duration;

use domain::delivery::{CancelReason, DeliveryState, Pending, Trigger};
use domain::ids::MessageKey;

use super::super::world::World;
use super::super::{Case, cases, samples};
use super::{letter, list, messages, replay};
use crate::dead_letters::{DeadFilter, Edited, Replayed};
use crate::inbox::{Accepted, NewMessage};
use crate::ledger::{Follow, Recorded};

/// The suite.
pub const CASES: &[Case] = cases![
    replay_restarts_budget_and_age_and_keeps_the_rest,
    the_send_that_was_asked_for_is_told_from_its_retries,
    a_second_replay_changes_nothing,
    rp_02_only_the_dead_are_replayed,
    replay_needs_the_payload_and_the_endpoint,
    a_replayed_letter_can_die_again,
    an_edited_replay_supersedes,
    an_edited_replay_that_is_not_accepted_leaves_the_letter,
];

async fn replay_restarts_budget_and_age_and_keeps_the_rest(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.tick();
    world.bury(row).await;
    let attempts = world.attempts(row.message).await;
    world.tick();
    world.told.take_fresh();
    assert_eq!(replay(&world, &row).await, Replayed::Pending);
    let now = world.now();
    let expected = Pending {
        due_at: now,
        age_from: now,
        sends: 1,
        budget_used: 0,
        last_delay: Duration::ZERO,
        trigger: Trigger::Replay,
        ..row
    };
    assert_eq!(world.rows(row.endpoint).await, [expected]);
    let told: Vec<_> = world.told.take_fresh().iter().map(|fresh| fresh.pending).collect();
    assert_eq!(told, [expected], "before the answer");
    let state = world.state(row.message, row.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Pending));
    assert_eq!(letter(&world, &row).await, None);
    assert_eq!(list(&world, DeadFilter::default()).await, []);
    assert_eq!(world.attempts(row.message).await, attempts, "history stays");
    world.tick();
    world.deliver(expected).await;
    let numbers: Vec<_> =
        world.attempts(row.message).await.iter().map(|row| row.attempt.number).collect();
    assert_eq!(numbers, [1, 2]);
}

async fn the_send_that_was_asked_for_is_told_from_its_retries(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    world.tick();
    assert_eq!(replay(&world, &row).await, Replayed::Pending);
    let replayed = world.row(row.message, row.endpoint).await.unwrap();
    let attempt = samples::answered(&replayed, 503, world.now());
    let follow = samples::retry(world.now(), 1);
    let record = world.result(replayed, Some(attempt), follow);
    assert_eq!(world.record(record).await, Recorded::Applied);
    let again = world.row(row.message, row.endpoint).await.unwrap();
    assert_eq!((again.trigger, again.sends, again.budget_used), (Trigger::Scheduled, 2, 1));
    world.deliver(again).await;
    let attempts = world.attempts(row.message).await;
    let mut made: Vec<_> =
        attempts.iter().map(|row| (row.attempt.number, row.attempt.trigger)).collect();
    made.sort_unstable_by_key(|(number, _)| *number);
    let expected = [(1, Trigger::Scheduled), (2, Trigger::Replay), (3, Trigger::Scheduled)];
    assert_eq!(made, expected);
}

async fn a_second_replay_changes_nothing(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.tick();
    world.bury(row).await;
    let replays = [0, 1].map(|_| world.stores.dead_letters.replay(row.message, row.endpoint));
    let mut outcomes = Vec::new();
    for replay in replays {
        outcomes.push(replay.await.unwrap());
    }
    assert_eq!(outcomes, [Replayed::Pending, Replayed::NotDead]);
    world.tick();
    assert_eq!(replay(&world, &row).await, Replayed::NotDead);
    assert_eq!(world.rows(row.endpoint).await.len(), 1);
}

async fn rp_02_only_the_dead_are_replayed(world: World) {
    let app = world.app(1).await;
    let delivered = world.one(&app).await;
    world.deliver(delivered).await;
    let cancelled = world.one(&app).await;
    let follow = Follow::Cancelled(CancelReason::EndpointDeleted);
    world.record(world.result(cancelled, None, follow)).await;
    let pending = world.one(&app).await;
    let never = Pending { message: MessageKey(1), ..pending };
    world.told.take_fresh();
    for row in [delivered, cancelled, pending, never] {
        assert_eq!(replay(&world, &row).await, Replayed::NotDead);
        let deleted = world.stores.dead_letters.delete(row.message, row.endpoint).await;
        assert!(!deleted.unwrap());
    }
    assert_eq!(world.rows(pending.endpoint).await, [pending]);
    assert!(world.told.take_fresh().is_empty());
}

async fn replay_needs_the_payload_and_the_endpoint(world: World) {
    let app = world.app(2).await;
    let message = world.post(world.message(&app)).await;
    let (first, second) = (app.endpoints[0].key, app.endpoints[1].key);
    for endpoint in [first, second] {
        let row = world.row(message, endpoint).await.unwrap();
        world.bury(row).await;
    }
    let letters = &world.stores.dead_letters;
    world.stores.directory.delete_endpoint(first).await.unwrap();
    assert_eq!(letters.replay(message, first).await.unwrap(), Replayed::NoEndpoint);
    world.stores.history.expunge(message).await.unwrap();
    assert_eq!(letters.replay(message, second).await.unwrap(), Replayed::PayloadGone);
    let left = messages(&world, DeadFilter::default()).await;
    assert_eq!(left, [message, message], "they stay");
    assert_eq!((world.rows(first).await, world.rows(second).await), (vec![], vec![]));
}

async fn a_replayed_letter_can_die_again(world: World) {
    let app = world.app(1).await;
    let mut row = world.one(&app).await;
    let mut places = Vec::new();
    for sends in 1..=3 {
        world.tick();
        world.bury(row).await;
        let found = letter(&world, &row).await.unwrap();
        assert_eq!((found.sends, found.dead_at), (sends, world.now()));
        places.push(found.place);
        world.tick();
        assert_eq!(replay(&world, &row).await, Replayed::Pending);
        row = world.row(row.message, row.endpoint).await.unwrap();
        assert_eq!((row.sends, row.age_from), (sends, world.now()));
    }
    assert!(places.is_sorted_by(|a, b| a < b), "a place grows with the time of death");
}

async fn an_edited_replay_supersedes(world: World) {
    let app = world.app(2).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    world.tick();
    world.told.take_fresh();
    let original = world.read(app.app.key, row.message).await.id;
    let mut edited = world.message(&app);
    edited.targets.truncate(1);
    edited.edited_from = Some(original);
    let letters = &world.stores.dead_letters;
    let replay = async |message| {
        let edited = Edited { message, edit: samples::edit() };
        letters.replay_edited(row.message, row.endpoint, edited).await.unwrap()
    };
    let accepted = replay(edited.clone()).await;
    let Some(Accepted::New { key, .. }) = accepted else { panic!("{accepted:?}") };
    let told = world.told.take_fresh();
    let told: Vec<_> = told.iter().map(|new| (new.pending.message, new.pending.trigger)).collect();
    assert_eq!(told, [(key, Trigger::Asked)]);
    assert_eq!(world.read(app.app.key, key).await.edited_from, Some(original));
    assert_eq!(letters.edit(key).await.unwrap(), Some(samples::edit()));
    assert_eq!(letters.edit(row.message).await.unwrap(), None, "nobody edited that one");
    let superseded = Some(DeliveryState::Cancelled(CancelReason::Superseded));
    assert_eq!(world.state(row.message, row.endpoint).await, superseded);
    assert_eq!(letter(&world, &row).await, None);
    assert_eq!(list(&world, DeadFilter::default()).await, []);
    assert_eq!(replay(NewMessage { random: world.random(), ..edited }).await, None);
    assert_eq!(world.rows(row.endpoint).await.len(), 1);
    assert_eq!(world.attempts(row.message).await.len(), 1, "history stays");
}

async fn an_edited_replay_that_is_not_accepted_leaves_the_letter(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    let stale = NewMessage { app_version: app.app.version - 1, ..world.message(&app) };
    let letters = &world.stores.dead_letters;
    let edited = |message| Edited { message, edit: samples::edit() };
    let refused = letters.replay_edited(row.message, row.endpoint, edited(stale)).await.unwrap();
    assert_eq!(refused, Some(Accepted::Stale));
    assert_eq!(messages(&world, DeadFilter::default()).await, [row.message]);
    assert_eq!(world.rows(row.endpoint).await, []);
    let pending = world.one(&app).await;
    let edited = edited(world.message(&app));
    let refused = letters.replay_edited(pending.message, pending.endpoint, edited).await.unwrap();
    assert_eq!(refused, None, "a pending one is not replayed");
    assert_eq!(world.rows(row.endpoint).await, [pending]);
}
