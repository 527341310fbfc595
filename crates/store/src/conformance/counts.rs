//! What `Counts` promises of what is counted; how figures are kept stands in `counts/kept.rs`.
//!
//! Never: a figure that was not counted by hand; or a case that waits.

mod kept;

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::attempt::{Failure, FailureKind, Outcome};
use domain::classify::Class;
use domain::dead_letter::DeadReason;
use domain::delivery::Pending;
use domain::figures::Figures;
use domain::idempotency::IngestKey;
use domain::ids::{EndpointKey, PublicId};
use resilience::Timestamp;

use super::world::{ORG, World};
use super::{Case, cases, samples};
use crate::counts::{Of, StepFigures, Steps};
use crate::dead_letters::Replayed;
use crate::history::Resent;
use crate::ledger::{Follow, Record, Recorded};

pub use kept::CASES as KEPT;

/// The suite, without the cases of `KEPT`.
pub const CASES: &[Case] = cases![
    every_send_counts_once_in_its_minute_by_its_class,
    a_result_that_is_recorded_again_counts_no_more,
    late_and_manual_sends_count_too,
    a_burial_counts_though_it_is_replayed_before_it_is_counted,
    messages_count_once_and_by_application,
    whose_figures_are_asked_for_is_whose_they_are,
    steps_begin_at_multiples_and_add_up,
    the_last_minutes_are_those_of_the_server,
    a_clock_that_was_set_back_leaves_out_nothing,
];

/// The whole time.
pub(super) const fn ever() -> Steps {
    Steps {
        from: Timestamp::from_secs(1_700_000_000),
        until: Timestamp::from_secs(1_900_000_000),
        step: Duration::from_secs(400 * 24 * 3_600),
    }
}

/// Figures of the whole time.
pub(super) async fn figures(world: &World, of: Of) -> Figures {
    let mut sum = Figures::default();
    for step in world.stores.counts.read(of, ever()).await.unwrap() {
        sum.add_all(&step.figures);
    }
    sum
}

/// Rolls up until nothing is left; how many pieces that took.
pub(super) async fn roll_up(world: &World) -> usize {
    for pieces in 0..10_000 {
        if !world.stores.counts.roll_up().await.unwrap().more {
            return pieces;
        }
    }
    panic!("rolling up does not end");
}

/// What is seen before and after rolling up, which must be the same.
async fn seen(world: &World, of: Of) -> Figures {
    let before = figures(world, of).await;
    roll_up(world).await;
    assert_eq!(figures(world, of).await, before, "rolled up");
    before
}

/// Records that `row` was answered so and is tried again.
pub(super) async fn retry(world: &World, row: Pending, status: u16) -> Pending {
    let attempt = samples::answered(&row, status, world.now());
    let due_at = world.now().plus(Duration::from_secs(1));
    let record = world.result(row, Some(attempt), samples::retry(due_at, 1));
    assert_eq!(world.record(record).await, Recorded::Applied);
    world.row(row.message, row.endpoint).await.unwrap()
}

async fn every_send_counts_once_in_its_minute_by_its_class(world: World) {
    let app = world.app(1).await;
    let to = Of::Endpoint(app.endpoints[0].key);
    let begin = world.now();
    let mut row = world.one(&app).await;
    for status in [500, 429, 408, 410, 404] {
        row = retry(&world, row, status).await;
    }
    for kind in [FailureKind::Timeout, FailureKind::Forbidden, FailureKind::Internal] {
        let failure = Failure { kind, text: String::new() };
        let attempt = samples::attempt(&row, world.now(), Outcome::Failed(failure));
        let due_at = world.now().plus(Duration::from_secs(1));
        world.record(world.result(row, Some(attempt), samples::retry(due_at, 1))).await;
        row = world.row(row.message, row.endpoint).await.unwrap();
    }
    world.clock.advance(Duration::from_secs(60));
    world.deliver(row).await;
    let found = seen(&world, to).await;
    let classes = Class::ALL.map(|class| (class, found.sent(class).count));
    let expected = [
        (Class::Success, 1),
        (Class::Throttled, 1),
        (Class::Transient, 3),
        (Class::Gone, 1),
        (Class::Rejected, 1),
        (Class::Forbidden, 1),
        (Class::Internal, 1),
    ];
    assert_eq!(classes, expected);
    assert_eq!(found.sends().numbers, [1, 1, 1, 1, 1, 4, 0, 0]);
    assert_eq!(found.sends().took.iter().sum::<u64>(), 9);
    let minute = Duration::from_secs(60);
    let steps = Steps { from: begin, until: world.now().plus(minute), step: minute };
    let found: Vec<(Timestamp, u64)> = world
        .stores
        .counts
        .read(to, steps)
        .await
        .unwrap()
        .iter()
        .map(|step| (step.at, step.figures.sends().count))
        .collect();
    let at = steps.step_of(begin);
    assert_eq!(found, [(at, 8), (at.plus(minute), 1)]);
}

async fn a_result_that_is_recorded_again_counts_no_more(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    let attempt = samples::answered(&row, 200, world.now());
    let record = world.result(row, Some(attempt), Follow::Delivered);
    for _ in 0..3 {
        world.record(record.clone()).await;
    }
    assert_eq!(seen(&world, Of::All).await.sent(Class::Success).count, 1);
    world.record(record).await;
    assert_eq!(seen(&world, Of::All).await.sends().count, 1, "after it was rolled up too");
}

async fn late_and_manual_sends_count_too(world: World) {
    let app = world.app(1).await;
    let (row, to) = (world.one(&app).await, app.endpoints[0].key);
    let sent = samples::answered(&row, 200, world.now());
    world.bury(row).await;
    roll_up(&world).await;
    world.clock.advance(Duration::from_secs(300));
    // Its row is gone: it is late.
    let late = world.result(row, Some(sent), Follow::Delivered);
    assert_eq!(world.record(late).await, Recorded::Late);
    assert_eq!(seen(&world, Of::Endpoint(to)).await.sends().count, 2);
    let resent = world.stores.history.resend(row.message, to).await.unwrap();
    assert_eq!(resent, Resent::Pending);
    let manual = world.row(row.message, to).await.unwrap();
    world.deliver(manual).await;
    let found = seen(&world, Of::Endpoint(to)).await;
    assert_eq!((found.sent(Class::Success).count, found.sent(Class::Rejected).count), (2, 1));
}

async fn a_burial_counts_though_it_is_replayed_before_it_is_counted(world: World) {
    let app = world.app(1).await;
    let (row, to) = (world.one(&app).await, app.endpoints[0].key);
    world.bury(row).await;
    let letters = &world.stores.dead_letters;
    assert_eq!(letters.replay(row.message, to).await.unwrap(), Replayed::Pending);
    assert_eq!(figures(&world, Of::All).await.all_dead(), 1);
    let again = world.row(row.message, to).await.unwrap();
    world.bury(again).await;
    let found = seen(&world, Of::Endpoint(to)).await;
    assert_eq!((found.dead(DeadReason::Rejected), found.all_dead()), (2, 2));
    // What was never sent counts as well.
    let row = world.one(&app).await;
    let expired = Follow::Dead { reason: DeadReason::Expired, error: None };
    world.record(world.result(row, None, expired)).await;
    assert!(letters.delete(row.message, to).await.unwrap());
    let found = seen(&world, Of::All).await;
    assert_eq!((found.dead(DeadReason::Expired), found.all_dead()), (1, 3));
}

async fn messages_count_once_and_by_application(world: World) {
    let (one, other) = (world.app(2).await, world.app(0).await);
    let mut new = world.message(&one);
    new.key = Some(IngestKey { scope: [7; 16], body: [7; 16] });
    let again = new.clone();
    world.post(new).await;
    world.stores.inbox.accept(again).await.unwrap();
    world.post(world.message(&other)).await;
    let mut stale = world.message(&one);
    stale.app_version += 1;
    world.stores.inbox.accept(stale).await.unwrap();
    for (of, count) in [
        (Of::All, 2),
        (Of::Org(ORG), 2),
        (Of::Org(PublicId::from_bytes([9; 20])), 0),
        (Of::App(one.app.key), 1),
        (Of::App(other.app.key), 1),
        (Of::Endpoint(one.endpoints[0].key), 0),
    ] {
        assert_eq!(seen(&world, of).await.accepted(), count, "{of:?}");
    }
}

async fn whose_figures_are_asked_for_is_whose_they_are(world: World) {
    let (one, other) = (world.app(2).await, world.app(1).await);
    world.deliver(world.one(&one).await).await;
    for app in [&one, &other] {
        let row = world.one(app).await;
        world.bury(row).await;
    }
    roll_up(&world).await;
    world.deliver(world.one(&other).await).await;
    let counts = async |of| {
        let found = figures(&world, of).await;
        (found.sends().count, found.all_dead())
    };
    assert_eq!(counts(Of::All).await, (4, 2));
    assert_eq!(counts(Of::Org(ORG)).await, (4, 2));
    assert_eq!(counts(Of::App(one.app.key)).await, (2, 1));
    assert_eq!(counts(Of::App(other.app.key)).await, (2, 1));
    assert_eq!(counts(Of::Endpoint(one.endpoints[1].key)).await, (0, 0));
    assert_eq!(counts(Of::Endpoint(EndpointKey(i64::MAX))).await, (0, 0));
    // A deleted endpoint's figures are still those of its application.
    let to = one.endpoints[0].key;
    world.stores.directory.delete_endpoint(to).await.unwrap();
    assert_eq!(counts(Of::App(one.app.key)).await, (2, 1));
    assert_eq!(counts(Of::Endpoint(to)).await, (2, 1));
}

async fn steps_begin_at_multiples_and_add_up(world: World) {
    let app = world.app(1).await;
    for _ in 0..5 {
        world.deliver(world.one(&app).await).await;
        world.clock.advance(Duration::from_secs(25 * 60));
        roll_up(&world).await;
    }
    let hour = Duration::from_secs(3_600);
    let steps = Steps { step: hour, ..ever() };
    let hours = world.stores.counts.read(Of::All, steps).await.unwrap();
    assert!(hours.iter().all(|step| steps.step_of(step.at) == step.at), "{hours:?}");
    assert!(hours.is_sorted_by_key(|step| step.at));
    assert_eq!(sends(&hours), 5);
    let half = Steps { from: hours[1].at, until: hours[1].at.plus(hour), step: hour };
    let found = world.stores.counts.read(Of::All, half).await.unwrap();
    assert_eq!(found, hours[1..2]);
}

fn sends(steps: &[StepFigures]) -> u64 {
    steps.iter().map(|step| step.figures.sends().count).sum()
}

async fn the_last_minutes_are_those_of_the_server(world: World) {
    let app = world.app(1).await;
    let recent = async |minutes| {
        let found = world.stores.counts.recent(world.now(), minutes).await.unwrap();
        (found.accepted(), found.sent(Class::Success).count, found.all_dead())
    };
    world.deliver(world.one(&app).await).await;
    world.clock.advance(Duration::from_secs(10 * 60));
    let row = world.one(&app).await;
    world.bury(row).await;
    for _ in 0..2 {
        assert_eq!(recent(0).await, (1, 0, 1));
        assert_eq!(recent(9).await, (1, 0, 1));
        assert_eq!(recent(10).await, (2, 1, 1));
        roll_up(&world).await;
    }
}

async fn a_clock_that_was_set_back_leaves_out_nothing(world: World) {
    let app = world.app(1).await;
    world.deliver(world.one(&app).await).await;
    roll_up(&world).await;
    world.clock.set(Timestamp::from_micros(world.now().as_micros() - 3_600_000_000));
    world.deliver(world.one(&app).await).await;
    let found = seen(&world, Of::All).await;
    assert_eq!((found.accepted(), found.sends().count), (2, 2));
}

/// So many messages to every endpoint of `app`, each delivered.
pub(super) async fn deliver_many(world: &World, app: &AppSnapshot, count: usize) {
    world.told.take_fresh();
    let posts: Vec<_> = (0..count).map(|_| world.stores.inbox.accept(world.message(app))).collect();
    for post in posts {
        post.await.unwrap();
    }
    let records: Vec<Record> = (world.told.take_fresh().into_iter())
        .map(|fresh| {
            let attempt = samples::answered(&fresh.pending, 200, world.now());
            world.result(fresh.pending, Some(attempt), Follow::Delivered)
        })
        .collect();
    for piece in records.chunks(500) {
        world.stores.ledger.record(piece.to_vec()).await.unwrap();
    }
}
