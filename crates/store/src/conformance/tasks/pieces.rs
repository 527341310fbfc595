//! What `Tasks` promises of what a piece does.
//!
//! Never: a case about tasks alone.

use domain::dead_letter::DeadReason;
use domain::delivery::{DeliveryState, Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey};

use super::super::world::World;
use super::super::{Case, cases, samples};
use super::{read, spec, start};
use crate::dead_letters::Replayed;
use crate::ledger::{Follow, Recorded};
use crate::tasks::{Act, During, END, Moved, Piece, Tally, Task, WHOLE_APP, Work};

/// The suite.
pub const CASES: &[Case] = cases![
    dead_letters_are_put_back_once,
    a_letter_that_died_since_stays_dead,
    what_is_missing_is_sent_once,
    an_extra_send_is_added,
    what_has_no_payload_fails,
    payloads_go_with_what_waits_for_them,
    a_piece_that_does_not_fit_is_done_in_part,
    what_waits_is_told_from_what_does_not,
];

fn recover() -> Work {
    Work::Recover(During::default())
}

/// Does `acts` in one piece that ends with the task's work for the endpoint.
async fn advance(
    world: &World,
    task: &Task,
    endpoint: EndpointKey,
    acts: &[(MessageKey, Act)],
) -> Moved {
    let acts = acts.iter().map(|(message, act)| (message.0, *message, *act)).collect();
    let piece = Piece { endpoint, from: 0, acts, reached: END };
    world.stores.tasks.advance(task.id, piece).await.unwrap()
}

fn all_of(waiting: &[MessageKey]) -> Moved {
    Moved::On { reached: END, waiting: waiting.to_vec() }
}

async fn tally(world: &World, task: &Task) -> (u64, u64) {
    let Tally { done, failed } = read(world, task).await.unwrap().tally;
    (done, failed)
}

async fn dead_letters_are_put_back_once(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let (row, replayed, waits) =
        (world.one(&app).await, world.one(&app).await, world.one(&app).await);
    world.bury(row).await;
    world.bury(replayed).await;
    let task = start(&world, spec(&app, Some(endpoint), recover())).await;
    let replay = world.stores.dead_letters.replay(replayed.message, endpoint).await.unwrap();
    assert_eq!(replay, Replayed::Pending);
    world.told.take_fresh();
    world.tick();
    let acts = [row, replayed, waits].map(|row| (row.message, Act::Replay));
    assert_eq!(advance(&world, &task, endpoint, &acts).await, all_of(&[row.message]));
    let now = world.now();
    let expected = Pending {
        due_at: now,
        age_from: now,
        sends: 1,
        budget_used: 0,
        trigger: Trigger::Replay,
        ..row
    };
    let told: Vec<_> = world.told.take_fresh().iter().map(|fresh| fresh.pending).collect();
    assert_eq!(told, [expected], "before the answer");
    assert_eq!(tally(&world, &task).await, (1, 0));
    assert_eq!(advance(&world, &task, endpoint, &acts).await, Moved::Stopped, "a second time");
    assert_eq!(world.rows(endpoint).await.len(), 3);
}

async fn a_letter_that_died_since_stays_dead(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let row = world.one(&app).await;
    world.bury(row).await;
    let task = start(&world, spec(&app, Some(endpoint), recover())).await;
    world.stores.dead_letters.replay(row.message, endpoint).await.unwrap();
    let again = world.row(row.message, endpoint).await.unwrap();
    world.bury(again).await;
    let moved = advance(&world, &task, endpoint, &[(row.message, Act::Replay)]).await;
    assert_eq!(moved, all_of(&[]));
    assert_eq!(tally(&world, &task).await, (0, 0));
    assert_eq!(world.rows(endpoint).await, []);
}

async fn what_is_missing_is_sent_once(world: World) {
    let app = world.app(1).await;
    let mut lone = world.message(&app);
    lone.targets.clear();
    let missed = world.post(lone).await;
    let endpoint = app.endpoints[0].key;
    let (waits, delivered, buried) =
        (world.one(&app).await, world.one(&app).await, world.one(&app).await);
    world.deliver(delivered).await;
    world.bury(buried).await;
    let other = world.app(1).await;
    let foreign = world.one(&other).await;
    let task = start(&world, spec(&app, Some(endpoint), Work::Missing(During::default()))).await;
    world.tick();
    let messages =
        [missed, missed, waits.message, delivered.message, buried.message, foreign.message];
    let acts = messages.map(|message| (message, Act::Send));
    assert_eq!(advance(&world, &task, endpoint, &acts).await, all_of(&[missed]));
    assert_eq!(tally(&world, &task).await, (1, 0));
    let row = world.row(missed, endpoint).await.unwrap();
    assert_eq!((row.sends, row.trigger, row.age_from), (0, Trigger::Asked, world.now()));
    assert_eq!(world.rows(endpoint).await.len(), 2);
    assert_eq!(world.state(missed, endpoint).await, Some(DeliveryState::Pending));
    world.deliver(row).await;
    assert_eq!(world.state(missed, endpoint).await, Some(DeliveryState::Delivered));
}

async fn an_extra_send_is_added(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let row = world.one(&app).await;
    world.deliver(row).await;
    let task = start(&world, spec(&app, Some(endpoint), recover())).await;
    let moved = advance(&world, &task, endpoint, &[(row.message, Act::Resend)]).await;
    assert_eq!(moved, all_of(&[row.message]));
    let extra = world.row(row.message, endpoint).await.unwrap();
    assert_eq!((extra.trigger, extra.sends), (Trigger::Manual, 1));
    let failed = samples::answered(&extra, 500, world.now());
    let record = world.result(extra, Some(failed), Follow::Unchanged);
    assert_eq!(world.record(record).await, Recorded::Applied);
    assert_eq!(world.state(row.message, endpoint).await, Some(DeliveryState::Delivered));
}

async fn what_has_no_payload_fails(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let (buried, delivered) = (world.one(&app).await, world.one(&app).await);
    world.bury(buried).await;
    world.deliver(delivered).await;
    let mut lone = world.message(&app);
    lone.targets.clear();
    let missed = world.post(lone).await;
    for message in [buried.message, delivered.message, missed] {
        world.stores.history.expunge(message).await.unwrap();
    }
    let task = start(&world, spec(&app, Some(endpoint), recover())).await;
    let acts = [
        (buried.message, Act::Replay),
        (delivered.message, Act::Resend),
        (missed, Act::Send),
        (missed, Act::Purge),
    ];
    assert_eq!(advance(&world, &task, endpoint, &acts).await, all_of(&[]));
    assert_eq!(tally(&world, &task).await, (0, 3));
    assert_eq!(world.rows(endpoint).await, []);
}

async fn payloads_go_with_what_waits_for_them(world: World) {
    let app = world.app(2).await;
    let message = world.post(world.message(&app)).await;
    let endpoint = app.endpoints[0].key;
    let task = start(&world, spec(&app, None, Work::Purge)).await;
    world.told.take_withdrawn();
    let moved = advance(&world, &task, WHOLE_APP, &[(message, Act::Purge)]).await;
    assert_eq!(moved, all_of(&[]));
    assert_eq!(tally(&world, &task).await, (1, 0));
    assert_eq!(world.told.take_withdrawn().len(), 2);
    assert!(world.read(app.app.key, message).await.payload_gone);
    assert!(world.stores.queue.envelope(message).await.unwrap().is_none());
    let state = world.state(message, endpoint).await;
    assert_eq!(state, Some(DeliveryState::Dead(DeadReason::PayloadGone)));
}

async fn a_piece_that_does_not_fit_is_done_in_part(world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let mut letters = Vec::new();
    for _ in 0..300 {
        let row = world.one(&app).await;
        world.bury(row).await;
        letters.push((row.message, Act::Replay));
    }
    let task = start(&world, spec(&app, Some(endpoint), recover())).await;
    let mut from = 0;
    while from != END {
        let rest = letters.iter().filter(|(message, _)| message.0 > from);
        let acts = rest.map(|(message, act)| (message.0, *message, *act)).collect();
        let piece = Piece { endpoint, from, acts, reached: END };
        match world.stores.tasks.advance(task.id, piece).await.unwrap() {
            Moved::On { reached, waiting } => {
                assert!(reached > from && !waiting.is_empty());
                from = reached;
            }
            Moved::Stopped => panic!("it runs"),
        }
    }
    assert_eq!(tally(&world, &task).await, (300, 0));
    assert_eq!(world.rows(endpoint).await.len(), 300);
}

async fn what_waits_is_told_from_what_does_not(world: World) {
    let app = world.app(2).await;
    let endpoint = app.endpoints[0].key;
    let (buried, delivered) = (world.one(&app).await, world.one(&app).await);
    world.bury(buried).await;
    world.deliver(delivered).await;
    let both = vec![buried.message, delivered.message];
    let ask = |endpoint| world.stores.tasks.waiting_of(endpoint, both.clone());
    assert_eq!(ask(endpoint).await.unwrap(), []);
    world.stores.dead_letters.replay(buried.message, endpoint).await.unwrap();
    world.stores.history.resend(delivered.message, endpoint).await.unwrap();
    assert_eq!(ask(endpoint).await.unwrap(), both);
    assert_eq!(ask(app.endpoints[1].key).await.unwrap(), [], "another endpoint's");
    let row = world.row(buried.message, endpoint).await.unwrap();
    let failed = samples::answered(&row, 503, world.now());
    let follow = samples::retry(world.now(), 1);
    world.record(world.result(row, Some(failed), follow)).await;
    assert_eq!(ask(endpoint).await.unwrap(), both, "a retry waits too");
}
