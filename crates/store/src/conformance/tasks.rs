//! What `Tasks` promises of tasks themselves.
//!
//! Never: a case about what a piece does to deliveries.

mod pieces;

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::dead_letter::DeadReason;
use domain::ids::{EndpointKey, PublicId};
use domain::limits::TASK_DAYS;

use super::world::{ORG, World, all};
use super::{Case, cases};
use crate::dead_letters::DeadFilter;
use crate::page::Looked;
use crate::prune::days;
use crate::tasks::{
    During, END, Letters, Moved, Piece, Started, Tally, Task, TaskFilter, TaskKind, TaskSpec,
    TaskStatus, WHOLE_APP, Work,
};

pub use pieces::CASES as PIECES;

/// The suite.
pub const CASES: &[Case] = cases![
    a_task_is_there_with_all_that_was_asked_and_after_a_restart,
    only_one_runs_on_the_same_deliveries,
    a_task_ends_once,
    a_piece_moves_the_task_and_no_piece_comes_twice,
    tasks_are_listed_by_age_and_filtered,
    what_ended_long_ago_goes,
    what_comes_later_has_a_larger_key,
    dead_letters_are_counted_as_they_are_listed,
];

fn spec(app: &AppSnapshot, endpoint: Option<EndpointKey>, work: Work) -> TaskSpec {
    let app = app.app.key;
    TaskSpec { org: ORG, app, endpoint, work, rate_per_s: None, total: None }
}

async fn start(world: &World, spec: TaskSpec) -> Task {
    match world.stores.tasks.start(spec, world.random()).await.unwrap() {
        Started::New(task) => *task,
        other => panic!("{other:?}"),
    }
}

async fn read(world: &World, task: &Task) -> Option<Task> {
    world.stores.tasks.task(ORG, task.id).await.unwrap().map(|task| *task)
}

async fn end(world: &World, task: &Task, status: TaskStatus) -> Option<Task> {
    world.stores.tasks.end(task.id, status, None).await.unwrap().map(|task| *task)
}

async fn list(world: &World, filter: TaskFilter) -> Vec<PublicId> {
    let found = world.stores.tasks.tasks(ORG, filter, all()).await.unwrap();
    found.rows.iter().map(|task| task.id).collect()
}

async fn running(world: &World) -> Vec<PublicId> {
    world.stores.tasks.running(10).await.unwrap().iter().map(|task| task.id).collect()
}

async fn a_task_is_there_with_all_that_was_asked_and_after_a_restart(mut world: World) {
    let app = world.app(1).await;
    let endpoint = app.endpoints[0].key;
    let letters = Letters {
        reasons: vec![DeadReason::Exhausted],
        event_types: vec!["user.created".into()],
        during: During { since: Some(world.now()), until: None },
        ids: vec![(endpoint, domain::ids::MessageKey(7))],
        run: Some(world.now()),
    };
    let asked = TaskSpec {
        rate_per_s: Some(50),
        total: Some(9),
        ..spec(&app, Some(endpoint), Work::DeadLetters(letters))
    };
    let task = start(&world, asked.clone()).await;
    assert_eq!((&task.spec, task.status), (&asked, TaskStatus::Running));
    assert_eq!((task.updated_at, task.tally), (world.now(), Tally::default()));
    world.reopen();
    assert_eq!(read(&world, &task).await, Some(task.clone()));
    assert_eq!(running(&world).await, [task.id]);
    let other = PublicId::from_bytes([9; 20]);
    assert_eq!(world.stores.tasks.task(other, task.id).await.unwrap(), None, "another's");
    let wrong = PublicId::new(task.id.key(), [9; 12]);
    assert_eq!(world.stores.tasks.task(ORG, wrong).await.unwrap(), None, "only the key is right");
}

async fn only_one_runs_on_the_same_deliveries(world: World) {
    let (app, other) = (world.app(2).await, world.app(1).await);
    let [first, second] = [0, 1].map(|at| Some(app.endpoints[at].key));
    let task = start(&world, spec(&app, first, Work::Recover(During::default()))).await;
    let missing = || Work::Missing(During::default());
    for overlapping in [first, None] {
        let asked = spec(&app, overlapping, missing());
        let answer = world.stores.tasks.start(asked, world.random()).await.unwrap();
        assert_eq!(answer, Started::Overlaps(task.id));
    }
    start(&world, spec(&app, second, missing())).await;
    start(&world, spec(&other, None, missing())).await;
    let purge = start(&world, spec(&app, None, Work::Purge)).await;
    let again = world.stores.tasks.start(spec(&app, None, Work::Purge), world.random()).await;
    assert_eq!(again.unwrap(), Started::Overlaps(purge.id));
    end(&world, &task, TaskStatus::Cancelled).await.unwrap();
    start(&world, spec(&app, first, missing())).await;
}

async fn a_task_ends_once(world: World) {
    let app = world.app(1).await;
    let task = start(&world, spec(&app, None, Work::Purge)).await;
    world.tick();
    let why = Some("no such application".to_owned());
    let ended = world.stores.tasks.end(task.id, TaskStatus::Failed, why.clone()).await.unwrap();
    let ended = *ended.unwrap();
    assert_eq!((ended.status, ended.updated_at), (TaskStatus::Failed, world.now()));
    assert_eq!(ended.error, why);
    assert_eq!(end(&world, &task, TaskStatus::Cancelled).await, None);
    assert_eq!(read(&world, &task).await, Some(ended));
    assert_eq!(running(&world).await, []);
    let piece = Piece { endpoint: WHOLE_APP, from: 0, acts: Vec::new(), reached: 5 };
    let moved = world.stores.tasks.advance(task.id, piece).await.unwrap();
    assert_eq!(moved, Moved::Stopped);
}

async fn a_piece_moves_the_task_and_no_piece_comes_twice(mut world: World) {
    let app = world.app(2).await;
    let task = start(&world, spec(&app, None, Work::Missing(During::default()))).await;
    let [first, second] = [0, 1].map(|at| app.endpoints[at].key);
    let piece = |endpoint, from, reached| Piece { endpoint, from, acts: Vec::new(), reached };
    world.tick();
    for (piece, moves) in [
        (piece(first, 0, 5), true),
        (piece(first, 0, 5), false),
        (piece(second, 0, END), true),
        (piece(first, 4, 9), false),
        // What holds nothing needs no piece of its own.
        (piece(first, 8, 9), true),
    ] {
        let moved = world.stores.tasks.advance(task.id, piece.clone()).await.unwrap();
        let on = Moved::On { reached: piece.reached, waiting: Vec::new() };
        assert_eq!(moved, if moves { on } else { Moved::Stopped }, "{piece:?}");
    }
    world.reopen();
    let task = read(&world, &task).await.unwrap();
    assert_eq!(task.cursor, [(first, 9), (second, END)].into());
    assert_eq!(task.updated_at, world.now());
}

async fn tasks_are_listed_by_age_and_filtered(world: World) {
    let (app, other) = (world.app(1).await, world.app(1).await);
    let first = start(&world, spec(&app, None, Work::Purge)).await;
    let second = start(&world, spec(&other, None, Work::Purge)).await;
    let third = start(&world, spec(&app, None, Work::Recover(During::default()))).await;
    end(&world, &first, TaskStatus::Finished).await;
    let none = TaskFilter::default;
    assert_eq!(list(&world, none()).await, [first.id, second.id, third.id]);
    let of_app = TaskFilter { app: Some(app.app.key), ..none() };
    assert_eq!(list(&world, of_app).await, [first.id, third.id]);
    let purges = TaskFilter { kinds: vec![TaskKind::Purge], ..none() };
    assert_eq!(list(&world, purges).await, [first.id, second.id]);
    let ended = TaskFilter { statuses: vec![TaskStatus::Finished, TaskStatus::Failed], ..none() };
    assert_eq!(list(&world, ended).await, [first.id]);
    let beyond = crate::page::PageOf { beyond: Some(first.id.key()), limit: 1, ..all() };
    let page = world.stores.tasks.tasks(ORG, none(), beyond).await.unwrap();
    assert_eq!((page.rows, page.reached), (vec![second.clone()], Some(second.id.key())));
    let others = PublicId::from_bytes([9; 20]);
    assert_eq!(world.stores.tasks.tasks(others, none(), all()).await.unwrap(), Looked::nothing());
}

async fn what_ended_long_ago_goes(world: World) {
    let (app, other) = (world.app(1).await, world.app(1).await);
    let ended = start(&world, spec(&app, None, Work::Purge)).await;
    let runs = start(&world, spec(&other, None, Work::Purge)).await;
    end(&world, &ended, TaskStatus::Finished).await;
    world.clock.advance(days(TASK_DAYS) - Duration::from_secs(1));
    let still = start(&world, spec(&app, None, Work::Purge)).await;
    assert_eq!(list(&world, TaskFilter::default()).await, [ended.id, runs.id, still.id]);
    end(&world, &still, TaskStatus::Finished).await;
    world.clock.advance(Duration::from_secs(2));
    let new = start(&world, spec(&app, None, Work::Purge)).await;
    assert_eq!(list(&world, TaskFilter::default()).await, [runs.id, still.id, new.id]);
}

async fn what_comes_later_has_a_larger_key(mut world: World) {
    let app = world.app(1).await;
    let before = world.one(&app).await;
    let task = start(&world, spec(&app, None, Work::Purge)).await;
    world.reopen();
    let after = world.one(&app).await;
    assert!(before.message.0 < task.id.key() && task.id.key() < after.message.0);
}

async fn dead_letters_are_counted_as_they_are_listed(world: World) {
    let app = world.app(1).await;
    let none = DeadFilter::default;
    for _ in 0..3 {
        let row = world.one(&app).await;
        world.tick();
        world.bury(row).await;
    }
    let at = world.now();
    for (filter, count) in [
        (none(), 3),
        (DeadFilter { app: Some(app.app.key), ..none() }, 3),
        (DeadFilter { endpoint: Some(app.endpoints[0].key), ..none() }, 3),
        (DeadFilter { after: Some(at), ..none() }, 1),
        (DeadFilter { before: Some(at), ..none() }, 2),
        (DeadFilter { reasons: vec![DeadReason::Gone], ..none() }, 0),
        (DeadFilter { event_types: vec!["no.such".into()], ..none() }, 0),
    ] {
        let found = world.stores.dead_letters.count(ORG, filter.clone()).await.unwrap();
        assert_eq!(found, count, "{filter:?}");
    }
    let others = world.stores.dead_letters.count(PublicId::from_bytes([9; 20]), none()).await;
    assert_eq!(others.unwrap(), 0);
}
