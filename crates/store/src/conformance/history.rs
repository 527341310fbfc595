//! What `History` promises; lists of attempts stand in `history/attempts.rs`, what
//! went to one endpoint in `history/sent.rs`.
//!
//! Never: a case that another trait's suite has.

mod attempts;
mod looks;
mod sent;

use std::time::Duration;

use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, DeliveryState, Pending, Trigger};
use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use domain::message::Message;
use resilience::Timestamp;

use looks::{a_look_that_finds_nothing_ends_and_says_where, payloads_fill_a_page};

use super::world::{World, all};
use super::{Case, cases, samples};
use crate::StoreError;
use crate::directory::IdOrUid;
use crate::history::{MessageFilter, Resent};
use crate::ledger::{Follow, Recorded};
use crate::page::{Direction, Looked, PageOf};

/// The suite, without the cases of `ATTEMPTS` and `SENT`.
pub const CASES: &[Case] = cases![
    a_message_is_found_by_id_and_by_event_id,
    messages_are_listed_newest_first,
    payloads_are_read_only_when_asked_for,
    payloads_fill_a_page,
    a_look_that_finds_nothing_ends_and_says_where,
    each_message_filter_leaves_out_the_others,
    message_times_include_after_and_exclude_before,
    pg_01_pg_05_messages_of_one_moment_are_each_listed_once,
    pg_02_messages_a_microsecond_apart_are_each_listed_once,
    pg_04_filtered_pages_come_in_one_order,
    rows_that_arrive_while_paging_are_neither_skipped_nor_repeated,
    a_committed_message_is_listed_at_once,
    deliveries_tell_every_state,
    waiting_is_counted_up_to_the_bound,
    a_resend_is_one_manual_row_due_now,
    each_resend_is_a_row_of_its_own,
    a_resend_needs_message_endpoint_and_payload,
    an_expunged_message_keeps_everything_but_its_payload,
];

pub use attempts::CASES as ATTEMPTS;
pub use sent::CASES as SENT;

/// Walks a list of messages page by page, and back again from its end; both ways must find the
/// same.
async fn walk(world: &World, app: AppKey, filter: &MessageFilter, limit: usize) -> Vec<MessageKey> {
    let mut ways = Vec::new();
    for direction in [Direction::Descending, Direction::Ascending] {
        let (mut found, mut beyond, mut calls) = (Vec::new(), None, 0);
        loop {
            let page = PageOf { beyond, direction, limit };
            let page =
                world.stores.history.messages(app, filter.clone(), page, false).await.unwrap().rows;
            assert!(page.len() <= limit);
            calls += 1;
            let Some(last) = page.last() else { break };
            beyond = Some(last.key);
            found.extend(page.iter().map(|message| message.key));
            assert!(found.len() <= 1_000, "the walk does not advance");
        }
        assert_eq!(calls, found.len().div_ceil(limit) + 1, "full pages until the last");
        ways.push(found);
    }
    let mut back = ways.pop().unwrap();
    back.reverse();
    let forth = ways.pop().unwrap();
    assert_eq!(forth, back, "the same in both directions");
    forth
}

fn reversed(mut keys: Vec<MessageKey>) -> Vec<MessageKey> {
    keys.reverse();
    keys
}

async fn a_message_is_found_by_id_and_by_event_id(world: World) {
    let (app, other) = (world.app(1).await, world.app(1).await);
    let mut new = world.message(&app);
    new.spec = samples::full_message();
    let key = world.post(new.clone()).await;
    let expected = world.read(app.app.key, key).await;
    let found = async |app: AppKey, which| {
        let found = world.stores.history.message(app, which).await.unwrap();
        found.map(|found| Message::clone(&found))
    };
    let by_id = || IdOrUid::Id(PublicId::new(key.0, new.random));
    let by_uid = |uid: &str| IdOrUid::Uid(uid.to_owned());
    assert_eq!(found(app.app.key, by_id()).await, Some(expected.clone()));
    assert_eq!(found(app.app.key, by_uid("event-1")).await, Some(expected));
    assert_eq!(found(app.app.key, by_uid("event-2")).await, None);
    assert_eq!(found(other.app.key, by_id()).await, None, "another application's");
    assert_eq!(found(other.app.key, by_uid("event-1")).await, None);
    let wrong = IdOrUid::Id(PublicId::new(key.0, [0; 12]));
    assert_eq!(found(app.app.key, wrong).await, None, "the random part is compared");
    let beyond = IdOrUid::Id(PublicId::new(u64::MAX, [0; 12]));
    assert_eq!(found(app.app.key, beyond).await, None);
}

async fn messages_are_listed_newest_first(world: World) {
    let (app, other) = (world.app(1).await, world.app(1).await);
    let mut posted = Vec::new();
    for _ in 0..5 {
        posted.push(world.post(world.message(&app)).await);
        world.post(world.message(&other)).await;
        world.tick();
    }
    assert_eq!(walk(&world, app.app.key, &MessageFilter::default(), 2).await, reversed(posted));
    let page = PageOf { beyond: None, direction: Direction::Descending, limit: 0 };
    let none =
        world.stores.history.messages(app.app.key, MessageFilter::default(), page, true).await;
    assert_eq!(none.unwrap(), Looked::nothing());
}

async fn payloads_are_read_only_when_asked_for(world: World) {
    let app = world.app(1).await;
    world.post(world.message(&app)).await;
    let list = async |payloads| {
        let filter = MessageFilter::default();
        let found = world.stores.history.messages(app.app.key, filter, all(), payloads).await;
        found.unwrap().rows.pop().unwrap()
    };
    let (with, without) = (list(true).await, list(false).await);
    assert_eq!(with.spec, samples::message());
    assert!(without.spec.payload.is_empty());
    assert_eq!((with.payload_gone, without.payload_gone), (false, false));
    assert_eq!(
        (with.key, with.id, with.accepted_at),
        (without.key, without.id, without.accepted_at)
    );
}

async fn each_message_filter_leaves_out_the_others(world: World) {
    let app = world.app(0).await;
    let post = async |event_type: &str, channels: &[&str]| {
        let mut new = world.message(&app);
        new.spec.event_type = event_type.to_owned();
        new.spec.channels = channels.iter().map(|channel| (*channel).to_owned()).collect();
        world.post(new).await
    };
    let (a, b, c) =
        (post("a", &[]).await, post("b", &["eu"]).await, post("c", &["us", "eu"]).await);
    let found = async |types: &[&str], channel: Option<&str>| {
        let event_types = types.iter().map(|name| (*name).to_owned()).collect();
        let channel = channel.map(str::to_owned);
        let filter = MessageFilter { event_types, channel, ..MessageFilter::default() };
        reversed(walk(&world, app.app.key, &filter, 10).await)
    };
    assert_eq!(found(&[], None).await, [a, b, c]);
    assert_eq!(found(&["a", "c", "d"], None).await, [a, c]);
    assert_eq!(found(&[], Some("eu")).await, [b, c]);
    assert_eq!(found(&[], Some("us")).await, [c]);
    assert_eq!(found(&[], Some("e")).await, []);
    assert_eq!(found(&["b"], Some("us")).await, []);
}

async fn message_times_include_after_and_exclude_before(world: World) {
    let app = world.app(0).await;
    let begun = world.now();
    let mut posted = Vec::new();
    for _ in 0..5 {
        posted.push(world.post(world.message(&app)).await);
        world.clock.advance(Duration::from_millis(4));
    }
    let at = |ticks: u64| Some(begun.plus(Duration::from_millis(4 * ticks)));
    let found = async |after, before| {
        let filter = MessageFilter { before, after, ..MessageFilter::default() };
        reversed(walk(&world, app.app.key, &filter, 2).await)
    };
    assert_eq!(found(at(2), None).await, posted[2..]);
    assert_eq!(found(None, at(2)).await, posted[..2]);
    assert_eq!(found(at(1), at(4)).await, posted[1..4]);
    assert_eq!(found(at(9), None).await, []);
    let far = Some(Timestamp::MAX);
    assert_eq!(found(Some(Timestamp::EPOCH), far).await, posted);
}

async fn pg_01_pg_05_messages_of_one_moment_are_each_listed_once(world: World) {
    let app = world.app(1).await;
    let posted = reversed(world.post_many(&app, 25).await);
    assert_eq!(posted.len(), 25);
    for limit in [1, 5, 10, 25, 250] {
        let found = walk(&world, app.app.key, &MessageFilter::default(), limit).await;
        assert_eq!(found, posted, "{limit} a page");
    }
}

async fn pg_02_messages_a_microsecond_apart_are_each_listed_once(world: World) {
    let app = world.app(0).await;
    let mut posted = Vec::new();
    for _ in 0..12 {
        posted.push(world.post(world.message(&app)).await);
        world.clock.advance(Duration::from_micros(1));
    }
    let found = walk(&world, app.app.key, &MessageFilter::default(), 1).await;
    assert_eq!(found, reversed(posted));
}

async fn pg_04_filtered_pages_come_in_one_order(world: World) {
    let app = world.app(0).await;
    let (mut posted, begun) = (Vec::new(), world.now());
    for at in 0..30_u64 {
        // The clock steps back now and then: keys and times do not agree.
        world.clock.set(begun.plus(Duration::from_secs(at * 7 % 30)));
        let mut new = world.message(&app);
        new.spec.event_type = if at % 3 == 0 { "a".to_owned() } else { "b".to_owned() };
        posted.push((at % 3 == 0, world.post(new).await));
    }
    let filter = MessageFilter { event_types: vec!["a".to_owned()], ..MessageFilter::default() };
    let wanted = posted.iter().filter(|(wanted, _)| *wanted).map(|(_, key)| *key).collect();
    assert_eq!(walk(&world, app.app.key, &filter, 3).await, reversed(wanted));
}

async fn rows_that_arrive_while_paging_are_neither_skipped_nor_repeated(world: World) {
    let app = world.app(1).await;
    let old = reversed(world.post_many(&app, 10).await);
    let (mut found, mut beyond) = (Vec::new(), None);
    loop {
        let page = PageOf { beyond, direction: Direction::Descending, limit: 3 };
        let filter = MessageFilter::default();
        let page = world.stores.history.messages(app.app.key, filter, page, false).await;
        let page = page.unwrap().rows;
        let Some(last) = page.last() else { break };
        beyond = Some(last.key);
        found.extend(page.iter().map(|message| message.key));
        assert!(found.len() <= 1_000, "the walk does not advance");
        world.post_many(&app, 5).await;
    }
    assert_eq!(found, old);
}

async fn a_committed_message_is_listed_at_once(mut world: World) {
    let app = world.app(1).await;
    let mut posted = Vec::new();
    for round in 0..3 {
        posted.extend(world.post_many(&app, 40).await);
        let found = walk(&world, app.app.key, &MessageFilter::default(), 50).await;
        assert_eq!(found, reversed(posted.clone()), "whether indexed yet or not");
        if round == 1 {
            world.reopen();
        }
        // Time for an index that is filled in arrears.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        let found = walk(&world, app.app.key, &MessageFilter::default(), 50).await;
        assert_eq!(found, reversed(posted.clone()), "round {round}");
    }
}

async fn deliveries_tell_every_state(world: World) {
    let app = world.app(4).await;
    let message = world.post(world.message(&app)).await;
    let mut rows = Vec::new();
    for endpoint in &app.endpoints {
        rows.push(world.row(message, endpoint.key).await.unwrap());
    }
    world.tick();
    world.deliver(rows[1]).await;
    world.bury(rows[2]).await;
    let cancel = Follow::Cancelled(CancelReason::EndpointDeleted);
    world.record(world.result(rows[3], None, cancel)).await;
    let found = world.stores.history.deliveries(message).await.unwrap();
    let states: Vec<_> = found.iter().map(|row| (row.endpoint, row.state, row.sends)).collect();
    let expected = [
        (rows[0].endpoint, DeliveryState::Pending, 0),
        (rows[1].endpoint, DeliveryState::Delivered, 1),
        (rows[2].endpoint, DeliveryState::Dead(DeadReason::Rejected), 1),
        (rows[3].endpoint, DeliveryState::Cancelled(CancelReason::EndpointDeleted), 0),
    ];
    assert_eq!(states, expected);
    let due: Vec<_> = found.iter().map(|row| row.due_at).collect();
    assert_eq!(due, [Some(rows[0].due_at), None, None, None], "only while it is pending");
    assert_eq!(world.stores.history.deliveries(MessageKey(1)).await.unwrap(), []);
}

async fn waiting_is_counted_up_to_the_bound(world: World) {
    let app = world.app(2).await;
    world.post_many(&app, 12).await;
    let waiting =
        async |bound| world.stores.history.waiting(app.endpoints[0].key, bound).await.unwrap();
    assert_eq!((waiting(100).await, waiting(12).await, waiting(5).await), (12, 12, 5));
    let nobody = EndpointKey(1 << 40);
    assert_eq!(world.stores.history.waiting(nobody, 5).await.unwrap(), 0);
}

async fn a_resend_is_one_manual_row_due_now(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.tick();
    world.deliver(row).await;
    world.tick();
    world.told.take_fresh();
    let resent = world.stores.history.resend(row.message, row.endpoint).await.unwrap();
    assert_eq!(resent, Resent::Pending);
    let rows = world.rows(row.endpoint).await;
    let expected = Pending {
        due_at: world.now(),
        age_from: rows[0].age_from,
        sends: 1,
        budget_used: 0,
        last_delay: Duration::ZERO,
        trigger: Trigger::Manual,
        ..row
    };
    assert_eq!(rows, [expected]);
    let told: Vec<_> = world.told.take_fresh().iter().map(|fresh| fresh.pending).collect();
    assert_eq!(told, [expected], "before the answer");
}

async fn each_resend_is_a_row_of_its_own(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    for _ in 0..3 {
        let resent = world.stores.history.resend(row.message, row.endpoint).await.unwrap();
        assert_eq!(resent, Resent::Pending, "within the same moment");
    }
    let rows = world.rows(row.endpoint).await;
    assert_eq!(rows.iter().filter(|row| row.trigger == Trigger::Manual).count(), 3);
    assert_eq!(rows.iter().filter(|found| **found == row).count(), 1, "the delivery's own stays");
    let told = world.told.take_fresh();
    let told: Vec<_> = told.iter().map(|fresh| fresh.pending.due_at).collect();
    let manual = rows.iter().filter(|row| row.trigger == Trigger::Manual);
    assert_eq!(told[1..], manual.map(|row| row.due_at).collect::<Vec<_>>());
    for manual in rows.into_iter().filter(|row| row.trigger == Trigger::Manual) {
        let attempt = samples::answered(&manual, 500, world.now());
        let record = world.result(manual, Some(attempt), Follow::Unchanged);
        assert_eq!(world.record(record).await, Recorded::Applied);
    }
    assert_eq!(world.attempts(row.message).await.len(), 3, "and each has an attempt");
}

async fn a_resend_needs_message_endpoint_and_payload(world: World) {
    let (app, other) = (world.app(2).await, world.app(1).await);
    let row = world.one(&app).await;
    let resend =
        async |message, endpoint| world.stores.history.resend(message, endpoint).await.unwrap();
    let unknown = EndpointKey(1 << 40);
    assert_eq!(resend(MessageKey(1), row.endpoint).await, Resent::Missing);
    assert_eq!(resend(row.message, unknown).await, Resent::Missing);
    assert_eq!(resend(row.message, other.endpoints[0].key).await, Resent::Missing);
    let unmatched = app.endpoints[1].key;
    assert_eq!(resend(row.message, unmatched).await, Resent::Pending, "filters are ignored");
    world.stores.directory.delete_endpoint(unmatched).await.unwrap();
    assert_eq!(resend(row.message, unmatched).await, Resent::Missing);
    world.stores.history.expunge(row.message).await.unwrap();
    assert_eq!(resend(row.message, row.endpoint).await, Resent::PayloadGone);
}

async fn an_expunged_message_keeps_everything_but_its_payload(mut world: World) {
    let app = world.app(1).await;
    let mut new = world.message(&app);
    new.spec = samples::full_message();
    let key = world.post(new).await;
    let mut expected = world.read(app.app.key, key).await;
    world.stores.history.expunge(key).await.unwrap();
    world.stores.history.expunge(key).await.unwrap();
    world.reopen();
    expected.spec.payload.clear();
    expected.payload_gone = true;
    assert_eq!(world.read(app.app.key, key).await, expected);
    let by_uid = IdOrUid::Uid("event-1".to_owned());
    let found = world.stores.history.message(app.app.key, by_uid).await.unwrap();
    assert_eq!(*found.unwrap(), expected);
    let missing = world.stores.history.expunge(MessageKey(1)).await;
    assert_eq!(missing.err(), Some(StoreError::Missing("message")));
}
