//! What `Prune` promises; what waits for a payload that goes stands in `prune/withdrawn.rs`.
//!
//! Never: a case that waits; time is as old as a case says.

mod withdrawn;

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::dead_letter::DeadReason;
use domain::delivery::{DeliveryState, Pending};
use domain::idempotency::IngestKey;
use domain::ids::{EndpointKey, MessageKey};
use domain::limits::PRUNE_ROWS_MAX;

use super::world::{ORG, World, all};
use super::{Case, cases, samples};
use crate::dead_letters::{DeadFilter, Replayed};
use crate::history::{AttemptFilter, MessageFilter, Resent};
use crate::ledger::{Follow, Recorded};
use crate::page::{Direction, PageOf};
use crate::prune::{Counts, Cursor, Retention, days};

/// The suite, without the cases of `WITHDRAWN`.
pub const CASES: &[Case] = cases![
    what_is_young_stays,
    a_message_goes_with_all_that_belongs_to_it,
    its_event_id_and_its_key_are_free_again,
    what_is_pending_or_dead_keeps_message_and_payload,
    a_message_that_is_needed_no_more_goes_with_the_next_look,
    a_dead_letter_leaves_the_lists_and_stays_dead,
    a_replayed_letter_is_kept_from_its_next_death_on,
    a_dead_letter_that_goes_frees_its_message,
    payloads_may_go_before_their_messages,
    a_late_result_of_a_message_that_is_gone_leaves_nothing,
    pieces_are_small_and_go_from_the_oldest_on,
    lists_hold_exactly_what_is_left,
    a_restart_between_two_pieces_changes_nothing,
    what_comes_after_all_is_gone_is_listed_though_the_clock_was_set_back,
];

pub use withdrawn::CASES as WITHDRAWN;

/// Prunes until nothing is left to do.
async fn prune(world: &World, keep: Retention) -> Counts {
    let (mut counts, mut from) = (Counts::default(), Cursor::default());
    for _ in 0..10_000 {
        let pruned = world.stores.prune.prune(world.now(), keep, from).await.unwrap();
        from = pruned.reached;
        add(&mut counts, &pruned.counts);
        if !pruned.more {
            return counts;
        }
    }
    panic!("pruning does not end");
}

fn add(counts: &mut Counts, more: &Counts) {
    counts.payloads += more.payloads;
    counts.dead_letters += more.dead_letters;
    counts.messages += more.messages;
    counts.attempts += more.attempts;
}

/// A message to the first endpoint that was delivered.
async fn delivered(world: &World, app: &AppSnapshot) -> MessageKey {
    let row = world.one(app).await;
    world.deliver(row).await;
    row.message
}

/// Messages of the application, oldest first.
async fn listed(world: &World, app: &AppSnapshot, direction: Direction) -> Vec<MessageKey> {
    let page = PageOf { beyond: None, direction, limit: 1_000 };
    let history = &world.stores.history;
    let rows = history.messages(app.app.key, MessageFilter::default(), page, false).await;
    rows.unwrap().rows.iter().map(|message| message.key).collect()
}

/// Messages of the attempts to an endpoint, oldest first.
async fn attempted(world: &World, endpoint: EndpointKey, direction: Direction) -> Vec<MessageKey> {
    let page = PageOf { beyond: None, direction, limit: 1_000 };
    let rows = world.stores.history.attempts_to(endpoint, AttemptFilter::default(), page).await;
    rows.unwrap().rows.iter().map(|row| row.message).collect()
}

async fn letters(world: &World) -> Vec<(MessageKey, DeadReason)> {
    let found = world.stores.dead_letters.list(ORG, DeadFilter::default(), all()).await.unwrap();
    found.rows.iter().map(|letter| (letter.message, letter.reason)).collect()
}

async fn replay(world: &World, row: &Pending) -> Replayed {
    world.stores.dead_letters.replay(row.message, row.endpoint).await.unwrap()
}

async fn what_is_young_stays(world: World) {
    let app = world.app(1).await;
    let message = delivered(&world, &app).await;
    let dead = world.one(&app).await;
    world.bury(dead).await;
    let begun = world.now();
    let keep = Retention::default();
    assert_eq!(prune(&world, keep).await, Counts::default());
    world.clock.set(begun.plus(days(30)).minus(Duration::from_secs(1)));
    assert_eq!(prune(&world, keep).await, Counts::default());
    assert_eq!(letters(&world).await.len(), 1);
    world.clock.set(begun.plus(days(90)).minus(Duration::from_secs(1)));
    assert_eq!(prune(&world, keep).await, Counts { dead_letters: 1, ..Counts::default() });
    assert_eq!(listed(&world, &app, Direction::Ascending).await, [message, dead.message]);
    assert!(world.stores.queue.envelope(message).await.unwrap().is_some());
}

async fn a_message_goes_with_all_that_belongs_to_it(world: World) {
    let app = world.app(2).await;
    let message = world.post(world.message(&app)).await;
    let (first, second) = (app.endpoints[0].key, app.endpoints[1].key);
    let row = world.row(message, first).await.unwrap();
    let attempt = samples::answered(&row, 503, world.now());
    world.record(world.result(row, Some(attempt), samples::retry(world.now(), 1))).await;
    let row = world.row(message, first).await.unwrap();
    world.deliver(row).await;
    let row = world.row(message, second).await.unwrap();
    world.bury(row).await;
    assert!(world.stores.dead_letters.delete(message, second).await.unwrap());
    world.clock.advance(days(91));
    let young = delivered(&world, &app).await;
    let counts = prune(&world, Retention::default()).await;
    assert_eq!(counts, Counts { messages: 1, attempts: 3, ..Counts::default() });
    assert_eq!(listed(&world, &app, Direction::Descending).await, [young]);
    assert_eq!(attempted(&world, first, Direction::Ascending).await, [young]);
    assert_eq!(attempted(&world, second, Direction::Ascending).await, []);
    assert_eq!(world.attempts(message).await, []);
    assert_eq!(world.state(message, first).await, None);
    assert_eq!(world.state(message, second).await, None);
    assert!(world.stores.queue.envelope(message).await.unwrap().is_none());
    let resent = world.stores.history.resend(message, first).await.unwrap();
    assert_eq!(resent, Resent::Missing);
}

async fn its_event_id_and_its_key_are_free_again(world: World) {
    let app = world.app(1).await;
    let mut new = world.message(&app);
    new.spec.event_id = Some("event".to_owned());
    new.key = Some(IngestKey { scope: [7; 16], body: [1; 16] });
    let message = world.post(new.clone()).await;
    let row = world.row(message, app.endpoints[0].key).await.unwrap();
    world.deliver(row).await;
    world.clock.advance(days(91));
    assert_eq!(prune(&world, Retention::default()).await.messages, 1);
    assert_ne!(world.post(new).await, message);
}

async fn what_is_pending_or_dead_keeps_message_and_payload(world: World) {
    let app = world.app(2).await;
    let fresh = world.post(world.message(&app)).await;
    let row = world.row(fresh, app.endpoints[0].key).await.unwrap();
    world.deliver(row).await;
    let moved = world.one(&app).await;
    let attempt = samples::answered(&moved, 503, world.now());
    let later = world.now().plus(days(100));
    world.record(world.result(moved, Some(attempt), samples::retry(later, 1))).await;
    let manual = delivered(&world, &app).await;
    world.clock.advance(days(80));
    let dead = world.one(&app).await;
    world.clock.advance(days(11));
    let resent = world.stores.history.resend(manual, app.endpoints[0].key).await;
    assert_eq!(resent.unwrap(), Resent::Pending);
    world.bury(dead).await;
    let short = Retention { payload: days(5), messages: days(10), ..Retention::default() };
    for keep in [Retention::default(), short] {
        assert_eq!(prune(&world, keep).await, Counts::default());
    }
    let kept = [fresh, moved.message, manual, dead.message];
    assert_eq!(listed(&world, &app, Direction::Ascending).await, kept);
    for message in kept {
        assert!(world.stores.queue.envelope(message).await.unwrap().is_some());
    }
    assert_eq!(replay(&world, &dead).await, Replayed::Pending);
}

async fn a_message_that_is_needed_no_more_goes_with_the_next_look(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    delivered(&world, &app).await;
    world.clock.advance(days(91));
    let first = prune(&world, Retention::default()).await;
    assert_eq!((first.messages, first.attempts), (1, 1), "the younger one");
    world.deliver(row).await;
    let second = prune(&world, Retention::default()).await;
    assert_eq!((second.messages, second.attempts), (1, 1));
    assert_eq!(listed(&world, &app, Direction::Ascending).await, []);
    assert_eq!(attempted(&world, row.endpoint, Direction::Ascending).await, []);
}

async fn a_dead_letter_leaves_the_lists_and_stays_dead(world: World) {
    let app = world.app(1).await;
    let old = world.one(&app).await;
    world.bury(old).await;
    world.clock.advance(days(29));
    let young = world.one(&app).await;
    world.bury(young).await;
    world.clock.advance(days(2));
    let counts = prune(&world, Retention::default()).await;
    assert_eq!(counts, Counts { dead_letters: 1, ..Counts::default() });
    assert_eq!(letters(&world).await, [(young.message, DeadReason::Rejected)]);
    let state = world.state(old.message, old.endpoint).await;
    assert_eq!(state, Some(DeliveryState::Dead(DeadReason::Rejected)));
    assert_eq!(replay(&world, &old).await, Replayed::NotDead);
    assert_eq!(world.attempts(old.message).await.len(), 1);
    assert_eq!(replay(&world, &young).await, Replayed::Pending);
}

async fn a_replayed_letter_is_kept_from_its_next_death_on(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.bury(row).await;
    world.clock.advance(days(20));
    assert_eq!(replay(&world, &row).await, Replayed::Pending);
    let row = world.row(row.message, row.endpoint).await.unwrap();
    world.bury(row).await;
    world.clock.advance(days(29));
    assert_eq!(prune(&world, Retention::default()).await, Counts::default());
    world.clock.advance(days(2));
    assert_eq!(prune(&world, Retention::default()).await.dead_letters, 1);
}

async fn a_dead_letter_that_goes_frees_its_message(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.clock.advance(days(70));
    world.bury(row).await;
    world.clock.advance(days(25));
    assert_eq!(prune(&world, Retention::default()).await, Counts::default());
    world.clock.advance(days(6));
    let counts = prune(&world, Retention::default()).await;
    let expected = Counts { dead_letters: 1, messages: 1, attempts: 1, ..Counts::default() };
    assert_eq!(counts, expected);
    assert_eq!(world.state(row.message, row.endpoint).await, None);
}

async fn payloads_may_go_before_their_messages(world: World) {
    let app = world.app(1).await;
    let old = delivered(&world, &app).await;
    let waits = world.one(&app).await;
    world.clock.advance(days(8));
    let young = delivered(&world, &app).await;
    let keep = Retention { payload: days(7), ..Retention::default() };
    assert_eq!(prune(&world, keep).await, Counts { payloads: 1, ..Counts::default() });
    assert_eq!(prune(&world, keep).await, Counts::default(), "once");
    let found = world.read(app.app.key, old).await;
    assert!(found.payload_gone && found.spec.payload.is_empty());
    assert!(!world.read(app.app.key, waits.message).await.payload_gone, "it is pending");
    assert!(!world.read(app.app.key, young).await.payload_gone);
    let resent = world.stores.history.resend(old, waits.endpoint).await.unwrap();
    assert_eq!(resent, Resent::PayloadGone);
    world.deliver(waits).await;
    assert_eq!(prune(&world, keep).await.payloads, 1, "now it is not");
    assert_eq!(world.told.take_withdrawn(), []);
}

async fn a_late_result_of_a_message_that_is_gone_leaves_nothing(world: World) {
    let app = world.app(1).await;
    let row = world.one(&app).await;
    world.deliver(row).await;
    world.clock.advance(days(91));
    assert_eq!(prune(&world, Retention::default()).await.messages, 1);
    let attempt = samples::answered(&row, 200, world.now());
    let late = world.result(row, Some(attempt), Follow::Delivered);
    assert_eq!(world.record(late).await, Recorded::Late);
    assert_eq!(world.attempts(row.message).await, []);
    assert_eq!(attempted(&world, row.endpoint, Direction::Ascending).await, []);
    assert_eq!(world.state(row.message, row.endpoint).await, None);
}

async fn pieces_are_small_and_go_from_the_oldest_on(world: World) {
    let app = world.app(1).await;
    let mut made = Vec::new();
    for _ in 0..600 {
        made.push(delivered(&world, &app).await);
    }
    world.clock.advance(days(91));
    let (mut from, mut gone, mut pieces) = (Cursor::default(), 0, 0);
    loop {
        let pruned = world.stores.prune.prune(world.now(), Retention::default(), from).await;
        let pruned = pruned.unwrap();
        assert!(
            pruned.counts.messages <= PRUNE_ROWS_MAX && pruned.reached.messages >= from.messages
        );
        from = pruned.reached;
        gone += pruned.counts.messages;
        assert_eq!(listed(&world, &app, Direction::Ascending).await, made[gone..]);
        if !pruned.more {
            break;
        }
        pieces += usize::from(pruned.counts.messages > 0);
    }
    assert!(gone == 600 && pieces > 1, "{gone} in {pieces}");
}

async fn lists_hold_exactly_what_is_left(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let (mut kept, mut retried) = (Vec::new(), Vec::new());
    for number in 0..230 {
        let row = world.one(&app).await;
        match number % 9 {
            4 => kept.push(row.message),
            7 => retried.push(row),
            _ => world.deliver(row).await,
        }
    }
    // Attempts that are younger than those of many younger messages.
    for row in retried {
        world.deliver(row).await;
    }
    world.clock.advance(days(91));
    let young = delivered(&world, &app).await;
    assert_eq!(prune(&world, Retention::default()).await.messages, 230 - kept.len());
    let expected = [kept.clone(), vec![young]].concat();
    assert_eq!(listed(&world, &app, Direction::Ascending).await, expected);
    let newest: Vec<_> = expected.iter().rev().copied().collect();
    assert_eq!(listed(&world, &app, Direction::Descending).await, newest);
    assert_eq!(attempted(&world, endpoint, Direction::Descending).await, [young]);
    for message in &kept {
        let row = world.row(*message, endpoint).await.unwrap();
        world.deliver(row).await;
    }
    assert_eq!(prune(&world, Retention::default()).await.messages, kept.len());
    assert_eq!(listed(&world, &app, Direction::Ascending).await, [young]);
    assert_eq!(attempted(&world, endpoint, Direction::Ascending).await, [young]);
}

async fn a_restart_between_two_pieces_changes_nothing(mut world: World) {
    let app = world.app(1).await;
    for _ in 0..300 {
        delivered(&world, &app).await;
    }
    world.clock.advance(days(91));
    let from = Cursor::default();
    let mut gone = Counts::default();
    while gone.messages == 0 {
        let piece = world.stores.prune.prune(world.now(), Retention::default(), from).await;
        add(&mut gone, &piece.unwrap().counts);
    }
    world.reopen();
    add(&mut gone, &prune(&world, Retention::default()).await);
    assert_eq!(gone, Counts { messages: 300, attempts: 300, ..Counts::default() });
    assert_eq!(listed(&world, &app, Direction::Ascending).await, []);
}

async fn what_comes_after_all_is_gone_is_listed_though_the_clock_was_set_back(mut world: World) {
    let app = world.app(1).await;
    let begun = world.now();
    let old = delivered(&world, &app).await;
    world.clock.advance(days(91));
    assert_eq!(prune(&world, Retention::default()).await.messages, 1);
    world.clock.set(begun.minus(Duration::from_secs(600)));
    world.reopen();
    let new = delivered(&world, &app).await;
    assert!(new > old, "keys only grow");
    assert_eq!(listed(&world, &app, Direction::Ascending).await, [new]);
    assert_eq!(attempted(&world, app.endpoints[0].key, Direction::Ascending).await, [new]);
}
