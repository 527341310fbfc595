//! What `DeadLetters` promises of lists; replays stand in `dead_letters/replays.rs`.
//!
//! Never: a case that another trait's suite has.

mod replays;

use std::collections::BTreeSet;
use std::time::Duration;

use domain::dead_letter::{DeadLetter, DeadReason};
use domain::delivery::Pending;
use domain::ids::{MessageKey, PublicId};

use super::world::{ORG, World, all};
use super::{Case, cases, samples};
use crate::dead_letters::{DeadFilter, Replayed};
use crate::inbox::NewMessage;
use crate::ledger::{Follow, Record, Recorded};
use crate::page::{Direction, Looked, PageOf};

/// The suite, without the cases of `REPLAYS`.
pub const CASES: &[Case] = cases![
    a_dead_letter_knows_everything,
    a_letter_that_was_never_sent_says_so,
    lists_belong_to_the_organisation,
    each_filter_leaves_out_the_others,
    a_run_of_refusals_is_found_by_its_beginning,
    filters_by_time_include_after_and_exclude_before,
    pg_01_letters_of_one_moment_are_each_listed_once,
    a_follower_of_the_list_misses_nothing,
    a_deleted_letter_is_in_no_list,
    letters_survive_a_restart,
];

pub use replays::CASES as REPLAYS;

async fn list(world: &World, filter: DeadFilter) -> Vec<DeadLetter> {
    world.stores.dead_letters.list(ORG, filter, all()).await.unwrap().rows
}

async fn messages(world: &World, filter: DeadFilter) -> Vec<MessageKey> {
    list(world, filter).await.into_iter().map(|letter| letter.message).collect()
}

async fn letter(world: &World, row: &Pending) -> Option<DeadLetter> {
    world.stores.dead_letters.dead_letter(row.message, row.endpoint).await.unwrap()
}

async fn replay(world: &World, row: &Pending) -> Replayed {
    world.stores.dead_letters.replay(row.message, row.endpoint).await.unwrap()
}

async fn a_dead_letter_knows_everything(world: World) {
    let app = world.app(1).await;
    let new = NewMessage { spec: samples::full_message(), ..world.message(&app) };
    let message = world.post(new.clone()).await;
    let endpoint = &app.endpoints[0];
    world.tick();
    let row = world.row(message, endpoint.key).await.unwrap();
    let (begun, due_at) = (world.now(), world.now().plus(Duration::from_secs(1)));
    let attempt = samples::timed_out(&row, begun);
    world.record(world.result(row, Some(attempt), samples::retry(due_at, 1))).await;
    world.tick();
    let row = world.row(message, endpoint.key).await.unwrap();
    let attempt = samples::answered(&row, 404, world.now());
    let record = world.result(row, Some(attempt), samples::dead());
    let ended = world.now();
    world.tick();
    world.record(record).await;
    let found = letter(&world, &row).await.unwrap();
    let expected = DeadLetter {
        message,
        message_id: PublicId::new(message.0, new.random),
        endpoint: endpoint.key,
        endpoint_id: endpoint.id,
        event_id: new.spec.event_id,
        event_type: new.spec.event_type,
        url: endpoint.spec.target.as_str().to_owned(),
        reason: DeadReason::Rejected,
        sends: 2,
        last_status: 404,
        last_error: Some("answered 404".to_owned()),
        first_attempt_at: Some(begun),
        last_attempt_at: Some(ended),
        dead_at: world.now(),
        place: found.place,
        run: None,
    };
    assert_eq!(found, expected);
    assert_eq!(list(&world, DeadFilter::default()).await, [expected]);
}

async fn a_letter_that_was_never_sent_says_so(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let follow = Follow::Dead { reason: DeadReason::Expired, error: None };
    world.record(world.result(row, None, follow)).await;
    let found = letter(&world, &row).await.unwrap();
    assert_eq!((found.reason, found.sends, found.last_status), (DeadReason::Expired, 0, 0));
    assert_eq!((found.first_attempt_at, found.last_attempt_at), (None, None));
    let other = world.one(&app).await;
    assert_eq!(letter(&world, &other).await, None, "a pending one is none");
}

async fn lists_belong_to_the_organisation(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    let other = PublicId::from_bytes([2; 20]);
    let found = world.stores.dead_letters.list(other, DeadFilter::default(), all()).await.unwrap();
    assert_eq!(found, Looked::nothing());
    assert_eq!(messages(&world, DeadFilter::default()).await, [row.message]);
}

async fn each_filter_leaves_out_the_others(world: World) {
    let (app, other) = (world.app(2).await, world.app(1).await);
    let (first, elsewhere) = (world.one(&app).await, world.one(&other).await);
    let mut new = world.message(&app);
    new.targets.remove(0);
    new.spec = samples::full_message();
    let second = world.post(new).await;
    let second = world.row(second, app.endpoints[1].key).await.unwrap();
    world.bury(first).await;
    let gone = Follow::Dead { reason: DeadReason::Gone, error: None };
    world.record(world.result(second, None, gone)).await;
    world.bury(elsewhere).await;
    let none = DeadFilter::default;
    assert_eq!(messages(&world, none()).await.len(), 3);
    let of_app = DeadFilter { app: Some(app.app.key), ..none() };
    assert_eq!(messages(&world, of_app).await, [first.message, second.message]);
    let of_other = DeadFilter { app: Some(other.app.key), ..none() };
    assert_eq!(messages(&world, of_other.clone()).await, [elsewhere.message]);
    let to_second = DeadFilter { endpoint: Some(second.endpoint), ..none() };
    assert_eq!(messages(&world, to_second).await, [second.message]);
    let for_reason = DeadFilter { reasons: vec![DeadReason::Gone], ..none() };
    assert_eq!(messages(&world, for_reason).await, [second.message]);
    let of_type = |names: &[&str]| {
        let event_types = names.iter().map(|name| (*name).to_owned()).collect();
        DeadFilter { event_types, ..none() }
    };
    assert_eq!(messages(&world, of_type(&["user.deleted"])).await, [second.message]);
    let both = of_type(&["user.deleted", "user.created", "nothing"]);
    assert_eq!(messages(&world, both).await.len(), 3);
    let nothing = DeadFilter { reasons: vec![DeadReason::Gone], ..of_other };
    assert_eq!(messages(&world, nothing).await, []);
}

async fn a_run_of_refusals_is_found_by_its_beginning(world: World) {
    let app = world.app(2).await;
    let run = world.now().plus(Duration::from_micros(1));
    let mut of_run = Vec::new();
    for run in [Some(run), None, Some(world.now()), Some(run)] {
        let row = world.one(&app).await;
        world.tick();
        let attempt = Some(samples::answered(&row, 404, world.now()));
        let record = Record { run, ..world.result(row, attempt, samples::dead()) };
        world.record(record).await;
        of_run.push((row.message, run));
    }
    let endpoint = Some(app.endpoints[0].key);
    let filter = DeadFilter { endpoint, run: Some(run), ..DeadFilter::default() };
    let expected = [of_run[0].0, of_run[3].0];
    assert_eq!(messages(&world, filter.clone()).await, expected);
    assert_eq!(world.stores.dead_letters.count(ORG, filter.clone()).await.unwrap(), 2);
    let found = world.stores.dead_letters.dead_letter(expected[1], app.endpoints[0].key).await;
    assert_eq!(found.unwrap().unwrap().run, Some(run));
    let elsewhere = DeadFilter { endpoint: Some(app.endpoints[1].key), ..filter };
    assert_eq!(messages(&world, elsewhere).await, []);
}

async fn filters_by_time_include_after_and_exclude_before(world: World) {
    let app = world.app(1).await;
    let begun = world.now();
    let mut buried = Vec::new();
    for _ in 0..4 {
        let row = world.one(&app).await;
        world.bury(row).await;
        buried.push(row.message);
        world.tick();
    }
    let at = |secs| Some(begun.plus(Duration::from_secs(secs)));
    let found = async |after, before| {
        messages(&world, DeadFilter { before, after, ..DeadFilter::default() }).await
    };
    assert_eq!(found(at(1), None).await, buried[1..]);
    assert_eq!(found(None, at(1)).await, buried[..1]);
    assert_eq!(found(at(1), at(3)).await, buried[1..3]);
    assert_eq!(found(at(9), None).await, []);
}

async fn pg_01_letters_of_one_moment_are_each_listed_once(world: World) {
    let app = world.app(1).await;
    let mut rows = Vec::new();
    for _ in 0..25 {
        rows.push(world.one(&app).await);
    }
    let records = rows.iter().map(|row| {
        let attempt = samples::answered(row, 404, world.now());
        world.result(*row, Some(attempt), samples::dead())
    });
    world.stores.ledger.record(records.collect()).await.unwrap();
    for direction in [Direction::Descending, Direction::Ascending] {
        let (mut found, mut beyond, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = PageOf { beyond, direction, limit: 10 };
            let page = world.stores.dead_letters.list(ORG, DeadFilter::default(), page).await;
            let page = page.unwrap().rows;
            let Some(last) = page.last() else { break };
            (beyond, pages) = (Some(last.place), pages + 1);
            found.extend(page.iter().map(|letter| letter.message));
            assert!(found.len() <= 1_000, "the walk does not advance");
        }
        let mut expected: Vec<_> = rows.iter().map(|row| row.message).collect();
        if direction == Direction::Descending {
            expected.reverse();
        }
        assert_eq!((found, pages), (expected, 3), "{direction:?}");
    }
}

async fn a_follower_of_the_list_misses_nothing(world: World) {
    let app = world.app(1).await;
    let (mut seen, mut expected, mut beyond) = (BTreeSet::new(), BTreeSet::new(), None);
    for _ in 0..5 {
        for _ in 0..7 {
            let row = world.one(&app).await;
            world.bury(row).await;
            expected.insert(row.message);
        }
        let page = PageOf { beyond, direction: Direction::Ascending, limit: 100 };
        let page = world.stores.dead_letters.list(ORG, DeadFilter::default(), page).await;
        let page = page.unwrap().rows;
        beyond = page.last().map(|last| last.place);
        for letter in page {
            assert!(seen.insert(letter.message), "never twice");
        }
    }
    assert_eq!(seen, expected);
}

async fn a_deleted_letter_is_in_no_list(world: World) {
    let app = world.app(1).await;
    let (row, other) = (world.one(&app).await, world.one(&app).await);
    world.bury(row).await;
    world.bury(other).await;
    let letters = &world.stores.dead_letters;
    assert!(letters.delete(row.message, row.endpoint).await.unwrap());
    assert_eq!(messages(&world, DeadFilter::default()).await, [other.message]);
    assert_eq!(letter(&world, &row).await, None);
    assert_eq!(world.attempts(row.message).await.len(), 1, "history stays");
    assert!(!letters.delete(row.message, row.endpoint).await.unwrap());
    assert_eq!(replay(&world, &row).await, Replayed::NotDead);
    assert_eq!(world.rows(row.endpoint).await, []);
}

async fn letters_survive_a_restart(mut world: World) {
    let app = world.app(1).await;
    let (row, replayed) = (world.one(&app).await, world.one(&app).await);
    world.bury(row).await;
    world.bury(replayed).await;
    world.tick();
    assert_eq!(replay(&world, &replayed).await, Replayed::Pending);
    let before = (list(&world, DeadFilter::default()).await, world.rows(row.endpoint).await);
    assert_eq!((before.0.len(), before.1.len()), (1, 1));
    world.reopen();
    let after = (list(&world, DeadFilter::default()).await, world.rows(row.endpoint).await);
    assert_eq!(after, before);
    let again = world.one(&app).await;
    world.bury(again).await;
    let places: Vec<_> =
        list(&world, DeadFilter::default()).await.iter().map(|letter| letter.place).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "and places go on growing");
    let recorded = world.record(world.result(row, None, Follow::Delivered)).await;
    assert_eq!(recorded, Recorded::Late);
}
