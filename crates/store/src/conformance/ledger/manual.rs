//! What `Ledger` does with the result of a manual send, which has a row of its own beside the
//! delivery's.
//!
//! Never: a case about scheduled sends alone.

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::attempt::Attempt;
use domain::delivery::{CancelReason, DeliveryState, Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey};

use super::super::world::World;
use super::super::{Case, cases, samples};
use crate::history::Resent;
use crate::ledger::{Follow, Recorded};

/// The suite.
pub const CASES: &[Case] = cases![
    a_manual_success_delivers_what_was_pending,
    a_manual_success_delivers_what_was_dead,
    a_manual_failure_leaves_what_was_pending,
    a_manual_failure_leaves_what_was_dead,
    a_manual_failure_leaves_what_was_delivered,
    a_scheduled_result_leaves_the_manual_row,
    a_repeated_manual_result_changes_nothing,
    an_attempt_beside_a_manual_one_is_not_lost,
    a_cancelled_manual_row_cancels_only_itself,
];

async fn resend(world: &World, message: MessageKey, endpoint: EndpointKey) -> Pending {
    world.tick();
    assert_eq!(world.stores.history.resend(message, endpoint).await.unwrap(), Resent::Pending);
    let rows = world.rows(endpoint).await;
    let manual = |row: &Pending| row.message == message && row.trigger == Trigger::Manual;
    rows.into_iter().find(manual).unwrap()
}

/// A delivery whose next send is far off, and the row of a manual one beside it.
async fn far_off(world: &World, app: &AppSnapshot) -> (Pending, Pending) {
    let row = world.one(app).await;
    let due_at = world.now().plus(Duration::from_secs(3_600));
    let record =
        world.result(row, Some(samples::timed_out(&row, world.now())), samples::retry(due_at, 1));
    assert_eq!(world.record(record).await, Recorded::Applied);
    let scheduled = world.row(row.message, row.endpoint).await.unwrap();
    (scheduled, resend(world, row.message, row.endpoint).await)
}

async fn settle(world: &World, row: Pending, status: u16) {
    let follow = if status == 200 { Follow::Delivered } else { Follow::Unchanged };
    let attempt = samples::answered(&row, status, world.now());
    assert_eq!(world.record(world.result(row, Some(attempt), follow)).await, Recorded::Applied);
}

async fn a_manual_success_delivers_what_was_pending(world: World) {
    let app = world.app(1).await;
    let (scheduled, manual) = far_off(&world, &app).await;
    settle(&world, manual, 200).await;
    assert_eq!(world.rows(manual.endpoint).await, [], "nothing is sent again");
    let state = world.state(manual.message, manual.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
    world.tick();
    let attempt = samples::answered(&scheduled, 500, world.now());
    let late = world.result(scheduled, Some(attempt), samples::dead());
    assert_eq!(world.record(late).await, Recorded::Late, "it was in flight meanwhile");
    let state = world.state(manual.message, manual.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
}

async fn a_manual_success_delivers_what_was_dead(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    let manual = resend(&world, row.message, row.endpoint).await;
    assert_eq!(manual.sends, 1, "its number is the next");
    settle(&world, manual, 200).await;
    let state = world.state(row.message, row.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
    let letter = world.stores.dead_letters.dead_letter(row.message, row.endpoint).await.unwrap();
    assert_eq!(letter, None);
}

async fn a_manual_failure_leaves_what_was_pending(world: World) {
    let app = world.app(1).await;
    let (scheduled, manual) = far_off(&world, &app).await;
    settle(&world, manual, 500).await;
    let left = world.row(manual.message, manual.endpoint).await.unwrap();
    assert_eq!((left.due_at, left.trigger), (scheduled.due_at, Trigger::Scheduled));
    assert_eq!((left.budget_used, left.age_from), (scheduled.budget_used, scheduled.age_from));
    let state = world.state(manual.message, manual.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Pending));
    assert_eq!(world.attempts(manual.message).await.len(), 2);
}

async fn a_manual_failure_leaves_what_was_dead(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    let before = world.state(row.message, row.endpoint).await;
    let manual = resend(&world, row.message, row.endpoint).await;
    settle(&world, manual, 500).await;
    assert_eq!(world.state(row.message, row.endpoint).await, before);
    assert_eq!(world.rows(row.endpoint).await, []);
    let letter = world.stores.dead_letters.dead_letter(row.message, row.endpoint).await.unwrap();
    assert_eq!(letter.map(|letter| letter.last_status), Some(500));
}

async fn a_manual_failure_leaves_what_was_delivered(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.deliver(row).await;
    let manual = resend(&world, row.message, row.endpoint).await;
    settle(&world, manual, 500).await;
    let state = world.state(row.message, row.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
    assert_eq!(world.rows(row.endpoint).await, []);
    let statuses: Vec<_> =
        world.attempts(row.message).await.iter().map(|row| row.attempt.status()).collect();
    assert_eq!(statuses, [200, 500]);
}

async fn a_scheduled_result_leaves_the_manual_row(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let manual = resend(&world, row.message, row.endpoint).await;
    world.deliver(row).await;
    let state = world.state(row.message, row.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
    let left = world.rows(row.endpoint).await;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].trigger, left[0].due_at), (Trigger::Manual, manual.due_at));
}

async fn a_repeated_manual_result_changes_nothing(world: World) {
    let app = world.app(1).await;
    let (_, manual) = far_off(&world, &app).await;
    let attempt = samples::answered(&manual, 500, world.now());
    let record = world.result(manual, Some(attempt), Follow::Unchanged);
    assert_eq!(world.record(record.clone()).await, Recorded::Applied);
    let (rows, attempts) =
        (world.rows(manual.endpoint).await, world.attempts(manual.message).await);
    assert_eq!(world.record(record).await, Recorded::Late);
    assert_eq!(world.rows(manual.endpoint).await, rows);
    assert_eq!(world.attempts(manual.message).await, attempts);
}

async fn an_attempt_beside_a_manual_one_is_not_lost(world: World) {
    let app = world.app(1).await;
    let (scheduled, manual) = far_off(&world, &app).await;
    let failed: Attempt = samples::answered(&manual, 500, world.now());
    world.record(world.result(manual, Some(failed), Follow::Unchanged)).await;
    world.tick();
    // In flight since before the manual result: it carries the same number.
    let attempt = samples::answered(&scheduled, 200, world.now());
    let record = world.result(scheduled, Some(attempt), Follow::Delivered);
    assert_eq!(world.record(record).await, Recorded::Applied);
    let state = world.state(manual.message, manual.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
    let found = world.attempts(manual.message).await;
    let statuses: Vec<_> = found.iter().map(|row| row.attempt.status()).collect();
    assert_eq!(statuses, [0, 500, 200]);
    let numbers: Vec<_> = found.iter().map(|row| row.attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

async fn a_cancelled_manual_row_cancels_only_itself(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.deliver(row).await;
    let manual = resend(&world, row.message, row.endpoint).await;
    let record = world.result(manual, None, Follow::Cancelled(CancelReason::EndpointDeleted));
    assert_eq!(world.record(record).await, Recorded::Applied);
    assert_eq!(world.rows(row.endpoint).await, []);
    let state = world.state(row.message, row.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Delivered));
}
