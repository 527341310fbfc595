//! How figures are kept: in pieces, over restarts, and longer than what they were counted from.
//!
//! Never: a bound that only one backend has.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::classify::Class;
use domain::figures::Figures;
use resilience::Timestamp;

use super::{deliver_many, ever, figures, roll_up};
use crate::conformance::world::World;
use crate::conformance::{Case, cases, samples};
use crate::counts::{Of, Steps};
use crate::ledger::Follow;
use crate::prune::{Cursor, Retention, days};

/// The cases.
pub const CASES: &[Case] = cases![
    pieces_and_restarts_between_them_change_nothing_that_is_seen,
    what_is_recorded_between_two_pieces_is_counted_once,
    rows_that_go_before_they_are_rolled_up_are_counted,
    minutes_become_hours_and_hours_go,
    two_who_roll_up_at_once_count_everything_once,
];

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A message to each of many endpoints, each sent once: at least two pieces.
async fn fill(world: &World) -> Vec<Of> {
    let app = world.app(300).await;
    deliver_many(world, &app, 1).await;
    vec![
        Of::All,
        Of::App(app.app.key),
        Of::Endpoint(app.endpoints[0].key),
        Of::Endpoint(app.endpoints[299].key),
    ]
}

async fn all_of(world: &World, of: &[Of]) -> Vec<Figures> {
    let mut found = Vec::new();
    for of in of {
        found.push(figures(world, *of).await);
    }
    found
}

async fn pieces_and_restarts_between_them_change_nothing_that_is_seen(mut world: World) {
    let of = fill(&world).await;
    let before = all_of(&world, &of).await;
    assert_eq!((before[0].sends().count, before[2].sends().count), (300, 1));
    for _ in 0..1_000 {
        let rolled = world.stores.counts.roll_up().await.unwrap();
        assert!(rolled.rows <= 500, "a piece of {} rows", rolled.rows);
        assert_eq!(all_of(&world, &of).await, before);
        world.reopen();
        assert_eq!(all_of(&world, &of).await, before, "after a restart");
        if !rolled.more {
            return;
        }
    }
    panic!("rolling up does not end");
}

async fn what_is_recorded_between_two_pieces_is_counted_once(world: World) {
    let of = fill(&world).await;
    let app = world.app(1).await;
    let mut sends = 300;
    for _ in 0..1_000 {
        let more = world.stores.counts.roll_up().await.unwrap().more;
        world.deliver(world.one(&app).await).await;
        sends += 1;
        assert_eq!(figures(&world, of[0]).await.sends().count, sends);
        if !more || sends > 320 {
            break;
        }
    }
    roll_up(&world).await;
    assert_eq!(figures(&world, of[0]).await.sends().count, sends);
}

async fn two_who_roll_up_at_once_count_everything_once(world: World) {
    let of = fill(&world).await;
    let before = all_of(&world, &of).await;
    for _ in 0..1_000 {
        let counts = &world.stores.counts;
        let (one, other) = tokio::join!(counts.roll_up(), counts.roll_up());
        assert_eq!(all_of(&world, &of).await, before);
        if !one.unwrap().more && !other.unwrap().more {
            return;
        }
    }
    panic!("rolling up does not end");
}

async fn rows_that_go_before_they_are_rolled_up_are_counted(world: World) {
    let app = world.app(1).await;
    deliver_many(&world, &app, 20).await;
    let row = world.one(&app).await;
    let gone = Follow::Dead { reason: domain::dead_letter::DeadReason::Exhausted, error: None };
    let attempt = samples::answered(&row, 500, world.now());
    world.record(world.result(row, Some(attempt), gone)).await;
    let before = figures(&world, Of::All).await;
    world.clock.advance(200 * DAY);
    let keep = Retention { payload: days(1), dead_letters: days(1), messages: days(1) };
    let (mut from, mut messages) = (Cursor::default(), 0);
    for _ in 0..1_000 {
        let pruned = world.stores.prune.prune(world.now(), keep, from).await.unwrap();
        messages += pruned.counts.messages;
        from = pruned.reached;
        if !pruned.more {
            break;
        }
    }
    assert_eq!(messages, 21);
    assert_eq!(figures(&world, Of::All).await, before);
    roll_up(&world).await;
    assert_eq!(figures(&world, Of::All).await, before);
    assert_eq!((before.sent(Class::Success).count, before.all_dead()), (20, 1));
}

async fn minutes_become_hours_and_hours_go(world: World) {
    let app = world.app(300).await;
    deliver_many(&world, &app, 1).await;
    for _ in 0..3 {
        world.clock.advance(Duration::from_secs(60));
        deliver_many(&world, &app, 1).await;
    }
    roll_up(&world).await;
    let (before, begin) = (figures(&world, Of::All).await, world.now());
    let minute = Steps { step: Duration::from_secs(60), ..ever() };
    let of = Of::Endpoint(app.endpoints[7].key);
    let minutes = async || world.stores.counts.read(of, minute).await.unwrap();
    assert_eq!(minutes().await.len(), 4);
    thin(&world, begin.plus(89 * DAY)).await;
    assert_eq!(minutes().await.len(), 4, "not old enough");
    thin(&world, begin.plus(92 * DAY)).await;
    let hours = minutes().await;
    let hour = Steps { step: Duration::from_secs(3_600), ..minute };
    assert!(hours.len() <= 2 && hours.iter().all(|step| hour.step_of(step.at) == step.at));
    assert_eq!(figures(&world, Of::All).await, before);
    let mut sum = BTreeMap::<Timestamp, u64>::new();
    for step in hours {
        *sum.entry(step.at).or_default() += step.figures.sends().count;
    }
    assert_eq!(sum.values().sum::<u64>(), 4);
    thin(&world, begin.plus(729 * DAY)).await;
    assert_eq!(figures(&world, Of::All).await, before);
    thin(&world, begin.plus(732 * DAY)).await;
    assert!(figures(&world, Of::All).await.is_empty());
}

async fn thin(world: &World, now: Timestamp) {
    for _ in 0..10_000 {
        let thinned = world.stores.counts.thin(now).await.unwrap();
        assert!(thinned.rows <= 500);
        if !thinned.more {
            return;
        }
    }
    panic!("thinning does not end");
}
