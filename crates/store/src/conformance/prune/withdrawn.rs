//! What `Prune` and `History::expunge` promise of deliveries that wait for a payload which goes.
//!
//! Never: a case about messages that go whole.

use std::time::Duration;

use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, DeliveryState, Pending};
use domain::ids::MessageKey;

use super::super::world::{World, all};
use super::super::{Case, cases, samples};
use super::{delivered, letters, prune, replay};
use crate::dead_letters::{DeadFilter, Replayed};
use crate::history::Resent;
use crate::ledger::{Follow, Recorded};
use crate::prune::{Counts, PAYLOAD_GONE, Retention, days};

/// The suite.
pub const CASES: &[Case] = cases![
    a_named_payload_goes_on_its_day_though_deliveries_wait,
    a_period_that_was_named_may_be_longer_than_the_setting,
    whatever_waits_dies_with_an_expunged_payload,
    what_is_more_than_a_piece_dies_in_several,
    a_send_that_was_out_is_late,
    a_success_that_was_out_still_delivers,
    a_dead_letter_without_its_payload_is_kept_its_time,
    what_waits_for_a_deleted_endpoint_is_left_to_be_cancelled,
];

const GONE: DeliveryState = DeliveryState::Dead(DeadReason::PayloadGone);

async fn named(world: &World, period: u16) -> (Pending, MessageKey) {
    let app = world.app(1).await;
    let mut new = world.message(&app);
    new.spec.retention_hours = Some(period * 24);
    let message = world.post(new).await;
    (world.row(message, app.endpoints[0].key).await.unwrap(), message)
}

async fn a_named_payload_goes_on_its_day_though_deliveries_wait(world: World) {
    let begun = world.now();
    let (row, message) = named(&world, 5).await;
    let (later, _) = named(&world, 6).await;
    world.clock.set(begun.plus(days(5)).minus(Duration::from_secs(1)));
    assert_eq!(prune(&world, Retention::default()).await, Counts::default());
    world.clock.advance(Duration::from_secs(2));
    let counts = prune(&world, Retention::default()).await;
    assert_eq!(counts, Counts { payloads: 1, ..Counts::default() });
    assert_eq!(world.told.take_withdrawn(), [row]);
    assert_eq!(world.rows(row.endpoint).await, []);
    assert_eq!(world.state(message, row.endpoint).await, Some(GONE));
    assert_eq!(letters(&world).await, [(message, DeadReason::PayloadGone)]);
    assert_eq!(replay(&world, &row).await, Replayed::PayloadGone);
    let resent = world.stores.history.resend(message, row.endpoint).await.unwrap();
    assert_eq!(resent, Resent::PayloadGone);
    assert!(world.stores.queue.envelope(message).await.unwrap().is_none());
    assert_eq!(world.rows(later.endpoint).await, [later]);
    assert_eq!(prune(&world, Retention::default()).await, Counts::default(), "once");
}

async fn a_period_that_was_named_may_be_longer_than_the_setting(world: World) {
    let (row, message) = named(&world, 30).await;
    world.deliver(row).await;
    world.clock.advance(days(29));
    let keep = Retention { payload: days(5), messages: days(10), ..Retention::default() };
    assert_eq!(prune(&world, keep).await, Counts::default());
    assert!(world.stores.queue.envelope(message).await.unwrap().is_some());
    world.clock.advance(days(2));
    let counts = prune(&world, keep).await;
    let expected = Counts { payloads: 1, messages: 1, attempts: 1, ..Counts::default() };
    assert_eq!(counts, expected);
}

async fn whatever_waits_dies_with_an_expunged_payload(world: World) {
    let app = world.app(3).await;
    let message = world.post(world.message(&app)).await;
    let row = async |at: usize| world.row(message, app.endpoints[at].key).await.unwrap();
    let (fresh, moved, done) = (row(0).await, row(1).await, row(2).await);
    let attempt = samples::answered(&moved, 503, world.now());
    let later = world.now().plus(Duration::from_secs(60));
    world.record(world.result(moved, Some(attempt), samples::retry(later, 1))).await;
    let moved = row(1).await;
    world.deliver(done).await;
    world.tick();
    let resent = world.stores.history.resend(message, done.endpoint).await.unwrap();
    assert_eq!(resent, Resent::Pending);
    let manual = row(2).await;
    let other = world.one(&app).await;
    world.stores.history.expunge(message).await.unwrap();
    assert_eq!(world.told.take_withdrawn(), [fresh, moved, manual]);
    assert_eq!(world.rows(fresh.endpoint).await, [other], "of this message only");
    assert_eq!(world.rows(moved.endpoint).await, []);
    assert_eq!(world.rows(done.endpoint).await, []);
    for (row, state) in [(fresh, GONE), (moved, GONE), (done, DeliveryState::Delivered)] {
        assert_eq!(world.state(message, row.endpoint).await, Some(state));
    }
    let letters = &world.stores.dead_letters;
    let found = letters.list(super::ORG, DeadFilter::default(), all()).await.unwrap().rows;
    let told = found.iter().map(|letter| (letter.endpoint, letter.sends, letter.dead_at));
    let now = world.now();
    assert_eq!(told.collect::<Vec<_>>(), [(fresh.endpoint, 0, now), (moved.endpoint, 1, now)]);
    assert!(found.iter().all(|letter| letter.last_error.as_deref() == Some(PAYLOAD_GONE)));
}

async fn what_is_more_than_a_piece_dies_in_several(world: World) {
    let app = world.app(1_100).await;
    let mut new = world.message(&app);
    new.spec.retention_hours = Some(5 * 24);
    let message = world.post(new).await;
    let expunged = world.post(world.message(&app)).await;
    world.stores.history.expunge(expunged).await.unwrap();
    assert_eq!(world.told.take_withdrawn().len(), 1_100);
    world.clock.advance(days(6));
    assert_eq!(prune(&world, Retention::default()).await.payloads, 1);
    assert_eq!(world.told.take_withdrawn().len(), 1_100);
    let rows = world.stores.history.deliveries(message).await.unwrap();
    assert_eq!(rows.iter().filter(|row| row.state == GONE).count(), 1_100);
    assert_eq!(world.stores.queue.endpoints(None, 10).await.unwrap(), []);
}

async fn a_send_that_was_out_is_late(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.stores.history.expunge(row.message).await.unwrap();
    let attempt = samples::answered(&row, 503, world.now());
    let retry = samples::retry(world.now().plus(Duration::from_secs(9)), 1);
    assert_eq!(world.record(world.result(row, Some(attempt), retry)).await, Recorded::Late);
    assert_eq!(world.state(row.message, row.endpoint).await, Some(GONE));
    assert_eq!(world.rows(row.endpoint).await, []);
    assert_eq!(world.attempts(row.message).await.len(), 1, "it was made");
    assert_eq!(letters(&world).await.len(), 1);
}

async fn a_success_that_was_out_still_delivers(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.stores.history.expunge(row.message).await.unwrap();
    let attempt = samples::answered(&row, 200, world.now());
    let done = world.result(row, Some(attempt), Follow::Delivered);
    assert_eq!(world.record(done).await, Recorded::Late);
    let state = world.state(row.message, row.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
    assert_eq!(letters(&world).await, []);
}

async fn a_dead_letter_without_its_payload_is_kept_its_time(world: World) {
    let (row, message) = named(&world, 5).await;
    world.bury(row).await;
    world.clock.advance(days(6));
    assert_eq!(prune(&world, Retention::default()).await.payloads, 1);
    assert_eq!(world.told.take_withdrawn(), [], "it did not wait");
    assert_eq!(letters(&world).await, [(message, DeadReason::Rejected)]);
    assert_eq!(replay(&world, &row).await, Replayed::PayloadGone);
    world.clock.advance(days(25));
    assert_eq!(prune(&world, Retention::default()).await.dead_letters, 1);
}

async fn what_waits_for_a_deleted_endpoint_is_left_to_be_cancelled(world: World) {
    let app = world.app(1).await;
    delivered(&world, &app).await;
    let row = world.one(&app).await;
    world.stores.directory.delete_endpoint(row.endpoint).await.unwrap();
    world.stores.history.expunge(row.message).await.unwrap();
    assert_eq!(world.told.take_withdrawn(), []);
    assert_eq!(world.rows(row.endpoint).await, [row]);
    let follow = Follow::Cancelled(CancelReason::EndpointDeleted);
    assert_eq!(world.record(world.result(row, None, follow)).await, Recorded::Applied);
}
