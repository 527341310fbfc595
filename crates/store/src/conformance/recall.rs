//! What `Recall` promises, and what every change promises that is handed an answer to keep.
//!
//! Never: a case about what an answer says.

use std::sync::Arc;

use bytes::Bytes;
use domain::application::Application;
use domain::endpoint::Endpoint;
use domain::event_type::EventType;
use domain::idempotency::IngestKey;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::limits::IDEMPOTENCY_WINDOW;

use super::world::{ORG, World};
use super::{Case, cases, samples};
use crate::StoreError;
use crate::dead_letters::{Edited, Replayed};
use crate::directory::EndpointChange;
use crate::history::Resent;
use crate::inbox::Accepted;
use crate::prune::{Cursor, Retention};
use crate::recall::{Kept, Made, Remember, Told};
use crate::revocations::Expired;
use crate::tasks::{Started, Task, TaskSpec, TaskStatus, Work};

/// The suite of what is kept.
pub const CASES: &[Case] = cases![
    what_is_kept_comes_back_as_it_was,
    a_newer_answer_takes_the_place_of_an_older_one,
    an_answer_goes_when_its_time_is_over,
    many_answers_go_in_pieces,
];

/// The suite of the changes that keep an answer.
pub const CHANGES: &[Case] = cases![
    a_change_and_its_answer_are_one,
    a_change_that_fails_keeps_no_answer,
    an_answer_that_is_not_to_be_kept_is_not,
    changes_of_the_directory_keep_their_answers,
    sends_by_hand_keep_their_answers,
    tasks_and_revocations_keep_their_answers,
];

const fn key(number: u8) -> IngestKey {
    IngestKey { scope: [number; 16], body: [7; 16] }
}

fn told(body: &'static str, made: Made) -> Told {
    Told { status: 201, body: Bytes::from_static(body.as_bytes()), made }
}

/// Remembers under a key that the change came to this.
fn remember<T>(
    number: u8,
    tell: impl FnOnce(&T) -> String + Send + 'static,
) -> Option<Remember<T>> {
    let tell = move |made: &T| {
        let body = tell(made).into();
        Some(Told { status: 200, body, made: Made::Nothing })
    };
    Some(Remember { key: key(number), tell: Box::new(tell) })
}

async fn kept(world: &World, number: u8) -> Option<Kept> {
    world.stores.recall.recall([number; 16]).await.unwrap()
}

/// The body kept under a key.
async fn text(world: &World, number: u8) -> Option<String> {
    let found = kept(world, number).await?;
    assert_eq!(found.body, key(number).body);
    Some(String::from_utf8(found.told.body.to_vec()).unwrap())
}

async fn what_is_kept_comes_back_as_it_was(mut world: World) {
    let event_type = Made::EventType { org: ORG, name: "a.é".into(), created_at: world.now() };
    let all = [
        told("{\"a\":\"é\"}", Made::Nothing),
        told("", Made::Application(AppKey(i64::MAX))),
        told("x", Made::Endpoint(EndpointKey(3))),
        told("y", event_type),
    ];
    for (number, told) in (0..).zip(&all) {
        world.stores.recall.keep(key(number), told.clone()).await.unwrap();
    }
    let at = world.now();
    world.tick();
    world.reopen();
    for (number, told) in (0..).zip(all) {
        assert_eq!(kept(&world, number).await, Some(Kept { body: [7; 16], at, told }));
    }
    assert_eq!(kept(&world, 9).await, None);
}

async fn a_newer_answer_takes_the_place_of_an_older_one(world: World) {
    world.stores.recall.keep(key(1), told("old", Made::Nothing)).await.unwrap();
    world.tick();
    let other = IngestKey { body: [8; 16], ..key(1) };
    world.stores.recall.keep(other, told("new", Made::Nothing)).await.unwrap();
    let newest = Kept { body: [8; 16], at: world.now(), told: told("new", Made::Nothing) };
    assert_eq!(kept(&world, 1).await, Some(newest));
}

/// Prunes until there is no more to do; the number of answers of each piece.
async fn prune(world: &World) -> Vec<usize> {
    let (mut from, mut pieces) = (Cursor::default(), Vec::new());
    loop {
        let pruned = world.stores.prune.prune(world.now(), Retention::default(), from).await;
        let pruned = pruned.unwrap();
        if !pruned.more {
            return pieces;
        }
        from = pruned.reached;
        pieces.push(pruned.counts.answers);
    }
}

async fn an_answer_goes_when_its_time_is_over(world: World) {
    world.stores.recall.keep(key(1), told("old", Made::Nothing)).await.unwrap();
    world.stores.recall.keep(key(2), told("again", Made::Nothing)).await.unwrap();
    world.clock.advance(IDEMPOTENCY_WINDOW / 2);
    world.stores.recall.keep(key(2), told("again", Made::Nothing)).await.unwrap();
    world.stores.recall.keep(key(3), told("young", Made::Nothing)).await.unwrap();
    assert_eq!(prune(&world).await, []);
    world.clock.advance(IDEMPOTENCY_WINDOW / 2);
    assert_eq!(prune(&world).await, [1]);
    assert_eq!(text(&world, 1).await, None);
    assert_eq!(text(&world, 2).await.as_deref(), Some("again"));
    assert_eq!(text(&world, 3).await.as_deref(), Some("young"));
}

async fn many_answers_go_in_pieces(world: World) {
    let keys = (0..501_u32).map(|number| {
        let mut scope = [0; 16];
        scope[..4].copy_from_slice(&number.to_be_bytes());
        IngestKey { scope, body: [7; 16] }
    });
    let kept = keys.map(|key| world.stores.recall.keep(key, told("x", Made::Nothing)));
    for kept in kept.collect::<Vec<_>>() {
        kept.await.unwrap();
    }
    world.clock.advance(IDEMPOTENCY_WINDOW);
    let pieces = prune(&world).await;
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| *piece <= 500), "{pieces:?}");
    assert_eq!(pieces.iter().sum::<usize>(), 501);
}

async fn a_change_and_its_answer_are_one(mut world: World) {
    let spec = samples::app(Some("a"));
    let once = remember(1, |app: &Arc<Application>| format!("{:?} {:?}", app.id, app.created_at));
    let random = world.random();
    let app = world.stores.directory.create_app_once(ORG, spec, random, once).await.unwrap();
    let batches = world.told.take_batches();
    assert_eq!(batches.len(), 1, "one commit: {batches:?}");
    world.reopen();
    let expected = format!("{:?} {:?}", app.id, app.created_at);
    assert_eq!(text(&world, 1).await, Some(expected));
    assert_eq!(kept(&world, 1).await.unwrap().at, app.created_at);
}

async fn a_change_that_fails_keeps_no_answer(world: World) {
    let spec = samples::app(Some("a"));
    world.stores.directory.create_app(ORG, spec.clone(), world.random()).await.unwrap();
    let once = remember(1, |_: &Arc<Application>| "made".to_owned());
    let refused = world.stores.directory.create_app_once(ORG, spec, world.random(), once).await;
    assert_eq!(refused.map(drop), Err(StoreError::Conflict("uid")));
    assert_eq!(text(&world, 1).await, None);
}

async fn an_answer_that_is_not_to_be_kept_is_not(world: World) {
    let app = world.app(1).await;
    let (message, endpoint) = (world.post(world.message(&app)).await, app.endpoints[0].key);
    let once = Remember { key: key(1), tell: Box::new(|_: &Replayed| None) };
    let replayed = world.stores.dead_letters.replay_once((message, endpoint), Some(once)).await;
    assert_eq!(replayed, Ok(Replayed::NotDead));
    assert_eq!(text(&world, 1).await, None);
}

async fn changes_of_the_directory_keep_their_answers(world: World) {
    let app = world.app(0).await.app.key;
    let directory = &world.stores.directory;
    let once = remember(1, |made: &Arc<Endpoint>| made.spec.target.as_str().to_owned());
    let endpoint = directory.create_endpoint_once(world.to_create(app), once).await.unwrap();
    assert_eq!(text(&world, 1).await.as_deref(), Some(endpoint.spec.target.as_str()));

    let once = remember(2, |made: &Arc<Endpoint>| made.version.to_string());
    let change = EndpointChange { spec: Some(samples::endpoint()), ..EndpointChange::default() };
    let changed = directory.change_endpoint_once(endpoint.key, change, once).await.unwrap();
    assert_eq!(text(&world, 2).await, Some(changed.version.to_string()));

    let once = remember(3, |made: &EventType| made.name.clone());
    directory.create_event_type_once(ORG, samples::event_type("t"), once).await.unwrap();
    assert_eq!(text(&world, 3).await.as_deref(), Some("t"));
}

async fn sends_by_hand_keep_their_answers(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let row = world.one(&app).await;
    let once = remember(1, |made: &Resent| format!("{made:?}"));
    world.stores.history.resend_once((row.message, endpoint), once).await.unwrap();
    assert_eq!(text(&world, 1).await.as_deref(), Some("Pending"));

    world.bury(row).await;
    let once = remember(2, |made: &Replayed| format!("{made:?}"));
    world.stores.dead_letters.replay_once((row.message, endpoint), once).await.unwrap();
    assert_eq!(text(&world, 2).await.as_deref(), Some("Pending"));

    let row = world.one(&app).await;
    world.bury(row).await;
    let once = remember(3, |made: &Option<Accepted>| match made {
        Some(Accepted::New { id, .. }) => format!("{id:?}"),
        other => panic!("not accepted: {other:?}"),
    });
    let letters = &world.stores.dead_letters;
    let edited = Edited { message: world.message(&app), edit: samples::edit() };
    let made = letters.replay_edited_once((row.message, endpoint), edited, once).await.unwrap();
    let Some(Accepted::New { id, .. }) = made else { panic!("not accepted: {made:?}") };
    assert_eq!(text(&world, 3).await, Some(format!("{id:?}")));
}

async fn tasks_and_revocations_keep_their_answers(world: World) {
    let app = world.app(0).await.app.key;
    let (endpoint, rate_per_s, total) = (None, None, None);
    let spec = TaskSpec { org: ORG, app, endpoint, work: Work::Purge, rate_per_s, total };
    let once = remember(1, |made: &Started| match made {
        Started::New(task) => format!("{:?}", task.id),
        other => panic!("{other:?}"),
    });
    let started = world.stores.tasks.start_once(spec, world.random(), once).await.unwrap();
    let Started::New(task) = started else { panic!("not started: {started:?}") };
    assert_eq!(text(&world, 1).await, Some(format!("{:?}", task.id)));

    let once = remember(2, |ended: &Option<Box<Task>>| {
        format!("{:?}", ended.as_ref().map(|task| task.status))
    });
    let end = (TaskStatus::Cancelled, None);
    world.stores.tasks.end_once(task.id, end, once).await.unwrap();
    assert_eq!(text(&world, 2).await.as_deref(), Some("Some(Cancelled)"));

    let (app, session) = (PublicId::from_bytes([7; 20]), None);
    let expired = Expired { app, session, issued_before: world.now(), from: world.now() };
    let once = remember(3, |(): &()| "done".to_owned());
    world.stores.revocations.expire_once(vec![expired], once).await.unwrap();
    assert_eq!(text(&world, 3).await.as_deref(), Some("done"));
}
