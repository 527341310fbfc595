//! What `Ledger` promises.
//!
//! The cases about what is kept of an attempt and of a lane stand in `ledger/kept.rs`.
//! Never: a case that another trait's suite has.

mod kept;
mod manual;

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, DeliveryState, Pending};
use domain::endpoint::Disabled;
use resilience::Term;

use super::world::World;
use super::{Case, cases, samples};
use crate::dead_letters::Replayed;
use crate::history::DeliveryRow;
use crate::ledger::{Follow, Record, RecordNews, Recorded};

/// The suite, without the cases of `KEPT` and `MANUAL`.
pub const CASES: &[Case] = cases![
    delivered_ends_the_row,
    a_retry_moves_the_row,
    dead_makes_a_dead_letter,
    what_was_never_sent_leaves_no_attempt,
    sends_without_an_attempt_are_counted,
    cancelled_ends_the_row,
    a_repeated_record_changes_nothing,
    a_late_failure_is_kept_and_changes_nothing,
    a_late_success_delivers_what_was_cancelled,
    a_late_success_delivers_what_was_replayed,
    a_late_result_moves_no_lane_and_disables_nothing,
    five_hundred_results_are_answered_in_order,
    two_results_of_one_delivery_in_one_call_are_two_steps,
    records_survive_a_restart,
    disabling_is_a_directory_change,
];

pub use kept::CASES as KEPT;
pub use manual::CASES as MANUAL;

async fn delivery(world: &World, row: &Pending) -> DeliveryRow {
    let rows = world.stores.history.deliveries(row.message).await.unwrap();
    rows.into_iter().find(|found| found.endpoint == row.endpoint).unwrap()
}

async fn delivered_ends_the_row(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let other = world.one(&app).await;
    world.deliver(row).await;
    assert_eq!(world.rows(row.endpoint).await, [other]);
    let state = DeliveryState::Delivered;
    let expected = DeliveryRow { endpoint: row.endpoint, state, due_at: None, sends: 1 };
    assert_eq!(delivery(&world, &row).await, expected);
    assert_eq!(world.attempts(row.message).await.len(), 1);
}

async fn a_retry_moves_the_row(world: World) {
    let app = world.app(1).await;
    let mut row = world.one(&app).await;
    for used in 1..=3 {
        world.tick();
        let due_at = world.now().plus(Duration::from_micros(1_500_001));
        let attempt = samples::timed_out(&row, world.now());
        let record = world.result(row, Some(attempt), samples::retry(due_at, used));
        assert_eq!(world.record(record).await, Recorded::Applied);
        let last_delay = Duration::from_millis(2_500);
        let moved = Pending { due_at, sends: used, budget_used: used, last_delay, ..row };
        assert_eq!(world.rows(row.endpoint).await, [moved]);
        let attempts = world.attempts(row.message).await;
        assert_eq!(attempts.last().unwrap().next, Some((due_at, Term::Backoff)));
        row = moved;
    }
    let (state, due_at) = (DeliveryState::Pending, Some(row.due_at));
    let expected = DeliveryRow { endpoint: row.endpoint, state, due_at, sends: 3 };
    assert_eq!(delivery(&world, &row).await, expected);
}

async fn dead_makes_a_dead_letter(world: World) {
    let app = world.app(1).await;
    for reason in DeadReason::ALL {
        let row = world.one(&app).await;
        world.tick();
        let follow = Follow::Dead { reason, error: Some(format!("because of {}", reason.name())) };
        let attempt = samples::answered(&row, 404, world.now());
        let record = world.result(row, Some(attempt), follow);
        assert_eq!(world.record(record).await, Recorded::Applied);
        assert_eq!(world.rows(row.endpoint).await, []);
        let state = DeliveryState::Dead(reason);
        let expected = DeliveryRow { endpoint: row.endpoint, state, due_at: None, sends: 1 };
        assert_eq!(delivery(&world, &row).await, expected);
        let letter = world.stores.dead_letters.dead_letter(row.message, row.endpoint).await;
        let letter = letter.unwrap().unwrap();
        assert_eq!((letter.reason, letter.dead_at), (reason, world.now()));
        assert_eq!(letter.last_error, Some(format!("because of {}", reason.name())));
    }
}

async fn what_was_never_sent_leaves_no_attempt(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let follow = Follow::Dead { reason: DeadReason::Expired, error: None };
    assert_eq!(world.record(world.result(row, None, follow)).await, Recorded::Applied);
    assert_eq!(world.attempts(row.message).await, []);
    let found = delivery(&world, &row).await;
    assert_eq!((found.state, found.sends), (DeliveryState::Dead(DeadReason::Expired), 0));
}

async fn sends_without_an_attempt_are_counted(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let pending = Pending { sends: row.sends + 4, ..row };
    let follow = Follow::Dead { reason: DeadReason::Poisonous, error: None };
    let (attempt, lane, disable) = (None, None, None);
    let record = Record {
        pending,
        attempt,
        random: [9; 12],
        follow,
        lane,
        disable,
        run: None,
        news: RecordNews::default(),
    };
    assert_eq!(world.stores.ledger.record(vec![record]).await, Ok(vec![Recorded::Applied]));
    let dead_letters = &world.stores.dead_letters;
    let letter = dead_letters.dead_letter(row.message, row.endpoint).await.unwrap().unwrap();
    assert_eq!((letter.sends, letter.first_attempt_at), (4, None));
    let replayed = dead_letters.replay(row.message, row.endpoint).await;
    assert_eq!(replayed, Ok(Replayed::Pending));
    assert_eq!(world.rows(row.endpoint).await[0].sends, 4, "the next one is the fifth");
}

async fn cancelled_ends_the_row(world: World) {
    let app = world.app(1).await;
    for reason in CancelReason::ALL {
        let row = world.one(&app).await;
        let record = world.result(row, None, Follow::Cancelled(reason));
        assert_eq!(world.record(record).await, Recorded::Applied);
        assert_eq!(world.rows(row.endpoint).await, []);
        assert_eq!(delivery(&world, &row).await.state, DeliveryState::Cancelled(reason));
    }
}

async fn a_repeated_record_changes_nothing(world: World) {
    let app = world.app(1).await;
    let due_at = world.now().plus(Duration::from_secs(60));
    let follows = [
        (200, Follow::Delivered),
        (503, samples::retry(due_at, 1)),
        (404, samples::dead()),
        (500, Follow::Cancelled(CancelReason::EndpointDeleted)),
    ];
    for (status, follow) in follows {
        let row = world.one(&app).await;
        world.tick();
        let attempt = samples::answered(&row, status, world.now());
        let record = world.result(row, Some(attempt), follow);
        assert_eq!(world.record(record.clone()).await, Recorded::Applied);
        let attempts = world.attempts(row.message).await;
        let (rows, found) = (world.rows(row.endpoint).await, delivery(&world, &row).await);
        for _ in 0..2 {
            world.tick();
            assert_eq!(world.record(record.clone()).await, Recorded::Late, "{status}");
            assert_eq!(world.attempts(row.message).await, attempts, "{status}");
            assert_eq!(world.rows(row.endpoint).await, rows, "{status}");
            assert_eq!(delivery(&world, &row).await, found, "{status}");
        }
    }
}

/// A row that was cancelled while it was in flight.
async fn cancelled(world: &World, app: &AppSnapshot) -> Pending {
    let row = world.one(app).await;
    let record = world.result(row, None, Follow::Cancelled(CancelReason::EndpointDeleted));
    assert_eq!(world.record(record).await, Recorded::Applied);
    world.tick();
    row
}

async fn a_late_failure_is_kept_and_changes_nothing(world: World) {
    let app = world.app(1).await;
    let row = cancelled(&world, &app).await;
    let attempt = samples::answered(&row, 500, world.now());
    let due_at = world.now().plus(Duration::from_secs(9));
    let late = world.result(row, Some(attempt.clone()), samples::retry(due_at, 1));
    for _ in 0..2 {
        assert_eq!(world.record(late.clone()).await, Recorded::Late);
        let attempts = world.attempts(row.message).await;
        assert_eq!((attempts.len(), &attempts[0].attempt), (1, &attempt), "kept once");
        assert_eq!(attempts[0].next, None, "nothing followed");
        let cancelled = DeliveryState::Cancelled(CancelReason::EndpointDeleted);
        assert_eq!(delivery(&world, &row).await.state, cancelled);
        assert_eq!(world.rows(row.endpoint).await, []);
    }
}

async fn a_late_success_delivers_what_was_cancelled(world: World) {
    let app = world.app(1).await;
    let row = cancelled(&world, &app).await;
    let attempt = samples::answered(&row, 204, world.now());
    let late = world.result(row, Some(attempt), Follow::Delivered);
    for _ in 0..2 {
        assert_eq!(world.record(late.clone()).await, Recorded::Late);
        assert_eq!(delivery(&world, &row).await.state, DeliveryState::Delivered);
        assert_eq!(world.attempts(row.message).await.len(), 1);
    }
}

async fn a_late_success_delivers_what_was_replayed(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.tick();
    let follow = Follow::Dead { reason: DeadReason::Expired, error: None };
    assert_eq!(world.record(world.result(row, None, follow)).await, Recorded::Applied);
    world.tick();
    let replayed = world.stores.dead_letters.replay(row.message, row.endpoint).await.unwrap();
    assert_eq!(replayed, Replayed::Pending);
    world.tick();
    let attempt = samples::answered(&row, 200, world.now());
    let late = world.result(row, Some(attempt), Follow::Delivered);
    assert_eq!(world.record(late).await, Recorded::Late);
    assert_eq!(delivery(&world, &row).await.state, DeliveryState::Delivered);
    assert_eq!(world.rows(row.endpoint).await, [], "it is not sent again");
}

async fn a_late_result_moves_no_lane_and_disables_nothing(world: World) {
    let app = world.app(1).await;
    let row = cancelled(&world, &app).await;
    world.told.take_changed();
    let attempt = samples::answered(&row, 410, world.now());
    let late = Record {
        lane: Some(samples::lane(row.endpoint)),
        disable: Some(Disabled::Gone),
        ..world.result(row, Some(attempt), samples::dead())
    };
    assert_eq!(world.record(late).await, Recorded::Late);
    assert_eq!(world.stores.queue.lane_states().await.unwrap(), []);
    let now = world.snapshot(app.app.key).await;
    assert_eq!((now.app.version, now.endpoints[0].spec.disabled), (app.app.version, None));
    assert_eq!(world.told.take_changed(), []);
}

async fn five_hundred_results_are_answered_in_order(world: World) {
    let app = world.app(2).await;
    let posts: Vec<_> = (0..250).map(|_| world.stores.inbox.accept(world.message(&app))).collect();
    for post in posts {
        post.await.unwrap();
    }
    let mut rows = world.rows(app.endpoints[0].key).await;
    rows.extend(world.rows(app.endpoints[1].key).await);
    assert_eq!(rows.len(), 500);
    world.tick();
    for row in rows.iter().step_by(3) {
        world.deliver(*row).await;
    }
    let records: Vec<_> = rows
        .iter()
        .map(|row| {
            let attempt = samples::answered(row, 200, world.now());
            world.result(*row, Some(attempt), Follow::Delivered)
        })
        .collect();
    let expected: Vec<_> =
        (0..500).map(|at| if at % 3 == 0 { Recorded::Late } else { Recorded::Applied }).collect();
    assert_eq!(world.stores.ledger.record(records).await.unwrap(), expected);
    assert_eq!(world.rows(app.endpoints[0].key).await, []);
    assert_eq!(world.rows(app.endpoints[1].key).await, []);
    assert_eq!(world.stores.ledger.record(Vec::new()).await.unwrap(), []);
}

async fn two_results_of_one_delivery_in_one_call_are_two_steps(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let due_at = world.now().plus(Duration::from_secs(1));
    let first = samples::timed_out(&row, world.now());
    let last_delay = Duration::from_millis(2_500);
    let moved = Pending { due_at, sends: 1, budget_used: 1, last_delay, ..row };
    let second = samples::answered(&moved, 200, due_at);
    let records = vec![
        world.result(row, Some(first), samples::retry(due_at, 1)),
        world.result(moved, Some(second), Follow::Delivered),
    ];
    let recorded = world.stores.ledger.record(records).await.unwrap();
    assert_eq!(recorded, [Recorded::Applied, Recorded::Applied]);
    assert_eq!(delivery(&world, &row).await.state, DeliveryState::Delivered);
    let numbers: Vec<_> =
        world.attempts(row.message).await.iter().map(|row| row.attempt.number).collect();
    assert_eq!(numbers, [1, 2]);
}

async fn records_survive_a_restart(mut world: World) {
    let app = world.app(1).await;
    let delivered = world.one(&app).await;
    world.deliver(delivered).await;
    let dead = world.one(&app).await;
    world.bury(dead).await;
    let before = (delivery(&world, &delivered).await, delivery(&world, &dead).await);
    let attempts = world.attempts(dead.message).await;
    world.reopen();
    assert_eq!((delivery(&world, &delivered).await, delivery(&world, &dead).await), before);
    assert_eq!(world.attempts(dead.message).await, attempts);
    assert_eq!(world.rows(dead.endpoint).await, []);
}

async fn disabling_is_a_directory_change(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let rows = [world.one(&app).await, world.one(&app).await];
    world.told.take_changed();
    let gone = |row: Pending| {
        let attempt = samples::answered(&row, 410, world.now());
        let follow = Follow::Dead { reason: DeadReason::Gone, error: None };
        let disable = Some(Disabled::Gone);
        Record { disable, ..world.result(row, Some(attempt), follow) }
    };
    assert_eq!(world.record(gone(rows[0])).await, Recorded::Applied);
    assert_eq!(world.told.take_changed(), [(app.app.key, Some(endpoint))]);
    let now = world.snapshot(app.app.key).await;
    assert_eq!(now.endpoints[0].spec.disabled, Some(Disabled::Gone));
    assert!(now.app.version > app.app.version);
    assert_eq!(now.endpoints[0].version, now.app.version);
    assert_eq!(world.record(gone(rows[1])).await, Recorded::Applied);
    let now = world.snapshot(app.app.key).await;
    assert_eq!(now.endpoints[0].spec.disabled, Some(Disabled::Gone));
}
