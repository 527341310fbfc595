//! What `Recoveries` promises: owed with the state that makes it so, paid off once.
//!
//! Never: a case about which letters go back.

use std::time::Duration;

use domain::application::AppSnapshot;
use domain::ids::EndpointKey;
use resilience::Timestamp;

use super::world::{ORG, World};
use super::{Case, cases, samples};
use crate::ledger::{Follow, LaneState, Outage, Record, Recorded};
use crate::recoveries::Recovery;
use crate::tasks::{
    Act, Moved, PRECEDED, Piece, RELAPSED, Started, Task, TaskSpec, TaskStatus, Work,
};

/// The suite.
pub const CASES: &[Case] = cases![
    an_outage_is_owed_from_its_beginning_and_ready_once_it_is_over,
    what_is_owed_is_written_with_the_result_that_makes_it_so,
    an_outage_whose_beginning_was_not_written_counts,
    a_relapse_stops_the_task_and_the_first_beginning_holds,
    a_task_begins_only_for_what_is_owed_and_beside_no_other,
    it_makes_way_for_what_somebody_asks_for,
    a_letter_goes_back_from_its_place_whenever_it_died,
    what_ended_is_owed_no_longer_but_what_was_stopped_is,
    what_nobody_wants_is_forgotten_unless_it_changed,
    what_is_ready_is_paged,
    a_deleted_endpoint_is_owed_nothing,
];

/// The time in whole seconds after the beginning.
fn at(world: &World, secs: u64) -> Timestamp {
    world.now().plus(Duration::from_secs(secs))
}

fn out(endpoint: EndpointKey, since: Timestamp) -> LaneState {
    let outage = Some(Outage { since, until: None });
    LaneState { outage, ..samples::bare_lane(endpoint) }
}

fn over(endpoint: EndpointKey, since: Timestamp, until: Timestamp) -> LaneState {
    let outage = Some(Outage { since, until: Some(until) });
    LaneState { outage, ..samples::bare_lane(endpoint) }
}

async fn keep(world: &World, lane: LaneState) {
    world.stores.ledger.keep_lanes(vec![lane]).await.unwrap();
}

async fn owed(world: &World, endpoint: EndpointKey) -> Option<(Timestamp, bool)> {
    let found = world.stores.recoveries.recovery(endpoint).await.unwrap();
    found.map(|it| (it.since, it.ready))
}

async fn ready(world: &World) -> Vec<EndpointKey> {
    let found = world.stores.recoveries.ready(None, 100).await.unwrap();
    found.into_iter().map(|it| it.endpoint).collect()
}

fn spec(app: &AppSnapshot, endpoint: EndpointKey, work: Work) -> TaskSpec {
    let (app, endpoint) = (app.app.key, Some(endpoint));
    TaskSpec { org: ORG, app, endpoint, work, rate_per_s: None, total: None }
}

async fn start(world: &World, spec: TaskSpec) -> Started {
    world.stores.tasks.start(spec, world.random()).await.unwrap()
}

async fn begun(world: &World, spec: TaskSpec) -> Task {
    match start(world, spec).await {
        Started::New(task) => *task,
        other => panic!("{other:?}"),
    }
}

async fn read(world: &World, task: &Task) -> Task {
    *world.stores.tasks.task(ORG, task.id).await.unwrap().unwrap()
}

async fn an_outage_is_owed_from_its_beginning_and_ready_once_it_is_over(mut world: World) {
    let app = world.app(2).await;
    let [sick, well] = [0, 1].map(|at| app.endpoints[at].key);
    let since = at(&world, 5);
    keep(&world, out(sick, since)).await;
    keep(&world, samples::bare_lane(well)).await;
    assert_eq!(owed(&world, sick).await, Some((since, false)));
    assert!(!world.told.take_recovered() && ready(&world).await.is_empty());
    let ended = over(sick, since, at(&world, 9));
    keep(&world, ended.clone()).await;
    assert!(world.told.take_recovered(), "whoever puts letters back is woken");
    world.reopen();
    assert_eq!(owed(&world, sick).await, Some((since, true)));
    assert_eq!(world.stores.queue.lane_states().await.unwrap()[0], ended);
    assert_eq!((ready(&world).await, owed(&world, well).await), (vec![sick], None));
    keep(&world, LaneState { warned: true, ..ended }).await;
    assert!(!world.told.take_recovered(), "once");
}

async fn what_is_owed_is_written_with_the_result_that_makes_it_so(world: World) {
    let app = world.app(1).await;
    let since = at(&world, 5);
    for (status, lane, found) in [
        (503, out(app.endpoints[0].key, since), Some((since, false))),
        (200, over(app.endpoints[0].key, since, at(&world, 9)), Some((since, true))),
    ] {
        let row = world.one(&app).await;
        let attempt = Some(samples::answered(&row, status, world.now()));
        let follow = if status == 200 { Follow::Delivered } else { samples::retry(world.now(), 1) };
        let record = Record { lane: Some(lane), ..world.result(row, attempt, follow) };
        assert_eq!(world.record(record.clone()).await, Recorded::Applied);
        assert_eq!(owed(&world, row.endpoint).await, found);
        let recovery = Recovery { endpoint: row.endpoint, since, ready: status == 200 };
        world.stores.recoveries.forget(recovery).await.unwrap();
        assert_eq!(world.record(record).await, Recorded::Late);
        assert_eq!(owed(&world, row.endpoint).await, None, "a late result makes nothing owed");
    }
}

async fn an_outage_whose_beginning_was_not_written_counts(world: World) {
    let app = world.app(1).await;
    let (endpoint, since) = (app.endpoints[0].key, at(&world, 5));
    keep(&world, over(endpoint, since, at(&world, 9))).await;
    assert_eq!(owed(&world, endpoint).await, Some((since, true)));
    let task = begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
    keep(&world, over(endpoint, at(&world, 10), at(&world, 11))).await;
    assert_eq!(owed(&world, endpoint).await, Some((since, true)));
    assert_eq!(read(&world, &task).await.status, TaskStatus::Stopped, "another begins");
}

async fn a_relapse_stops_the_task_and_the_first_beginning_holds(world: World) {
    let app = world.app(2).await;
    let [endpoint, other] = [0, 1].map(|at| app.endpoints[at].key);
    let since = at(&world, 5);
    keep(&world, over(endpoint, since, at(&world, 9))).await;
    keep(&world, over(other, since, at(&world, 9))).await;
    let task = begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
    let beside = begun(&world, spec(&app, other, Work::Outage(since))).await;
    world.tick();
    keep(&world, out(endpoint, at(&world, 20))).await;
    let stopped = read(&world, &task).await;
    assert_eq!((stopped.status, stopped.updated_at), (TaskStatus::Stopped, world.now()));
    assert_eq!(stopped.error.as_deref(), Some(RELAPSED));
    assert_eq!(read(&world, &beside).await.status, TaskStatus::Running);
    assert_eq!(owed(&world, endpoint).await, Some((since, false)));
    let moot = start(&world, spec(&app, endpoint, Work::Outage(since))).await;
    assert_eq!(moot, Started::NotOwed, "it does not work");
    keep(&world, over(endpoint, at(&world, 20), at(&world, 30))).await;
    assert_eq!(owed(&world, endpoint).await, Some((since, true)));
    begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
}

async fn a_task_begins_only_for_what_is_owed_and_beside_no_other(world: World) {
    let app = world.app(1).await;
    let (endpoint, since) = (app.endpoints[0].key, at(&world, 5));
    let outage = || spec(&app, endpoint, Work::Outage(since));
    assert_eq!(start(&world, outage()).await, Started::NotOwed);
    keep(&world, over(endpoint, since, at(&world, 9))).await;
    let older = spec(&app, endpoint, Work::Outage(at(&world, 4)));
    assert_eq!(start(&world, older).await, Started::NotOwed, "of another outage");
    let by_hand = begun(&world, spec(&app, endpoint, Work::DeadLetters(Default::default()))).await;
    assert_eq!(start(&world, outage()).await, Started::Overlaps(by_hand.id));
    world.stores.tasks.end(by_hand.id, TaskStatus::Finished, None).await.unwrap();
    assert_eq!(owed(&world, endpoint).await, Some((since, true)), "not by that one");
    let task = begun(&world, outage()).await;
    assert_eq!(start(&world, outage()).await, Started::Overlaps(task.id));
}

async fn it_makes_way_for_what_somebody_asks_for(world: World) {
    let app = world.app(2).await;
    let [endpoint, other] = [0, 1].map(|at| app.endpoints[at].key);
    let since = at(&world, 5);
    keep(&world, over(endpoint, since, at(&world, 9))).await;
    keep(&world, over(other, since, at(&world, 9))).await;
    let task = begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
    let beside = begun(&world, spec(&app, other, Work::Outage(since))).await;
    begun(&world, spec(&app, endpoint, Work::Purge)).await;
    assert_eq!(read(&world, &task).await.status, TaskStatus::Running, "that one is no overlap");
    let letters = || spec(&app, endpoint, Work::DeadLetters(Default::default()));
    let by_hand = begun(&world, letters()).await;
    let stopped = read(&world, &task).await;
    assert_eq!((stopped.status, stopped.error.as_deref()), (TaskStatus::Stopped, Some(PRECEDED)));
    assert_eq!(read(&world, &beside).await.status, TaskStatus::Running);
    assert_eq!(owed(&world, endpoint).await, Some((since, true)), "it has its turn later");
    assert_eq!(start(&world, letters()).await, Started::Overlaps(by_hand.id));
}

async fn a_letter_goes_back_from_its_place_whenever_it_died(world: World) {
    let app = world.app(1).await;
    let (endpoint, since) = (app.endpoints[0].key, world.now());
    keep(&world, over(endpoint, since, since)).await;
    let task = begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
    let row = world.one(&app).await;
    world.tick();
    world.bury(row).await;
    let found = world.stores.dead_letters.dead_letter(row.message, endpoint).await.unwrap();
    let place = found.unwrap().place;
    for (from, place, waits) in [(0, place - 1, 0), (place - 1, place, 1), (place, place, 0)] {
        let acts = vec![(place, row.message, Act::Return)];
        let piece = Piece { endpoint, from, acts, reached: place };
        let moved = world.stores.tasks.advance(task.id, piece).await.unwrap();
        let waiting = vec![row.message; waits];
        assert_eq!(moved, Moved::On { reached: place, waiting });
    }
}

async fn what_ended_is_owed_no_longer_but_what_was_stopped_is(world: World) {
    let app = world.app(1).await;
    let (endpoint, since) = (app.endpoints[0].key, at(&world, 5));
    for (round, status) in (1..).zip(TaskStatus::ALL) {
        if status == TaskStatus::Running {
            continue;
        }
        let since = since.plus(Duration::from_secs(100 * round));
        keep(&world, over(endpoint, since, since.plus(Duration::from_secs(1)))).await;
        let task = begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
        world.stores.tasks.end(task.id, status, Some("why".into())).await.unwrap();
        let left = (status == TaskStatus::Stopped).then_some((since, true));
        assert_eq!(owed(&world, endpoint).await, left, "{status:?}");
    }
}

async fn what_nobody_wants_is_forgotten_unless_it_changed(world: World) {
    let app = world.app(1).await;
    let (endpoint, since) = (app.endpoints[0].key, at(&world, 5));
    keep(&world, over(endpoint, since, at(&world, 9))).await;
    let recovery = Recovery { endpoint, since, ready: true };
    for other in
        [Recovery { ready: false, ..recovery }, Recovery { since: world.now(), ..recovery }]
    {
        world.stores.recoveries.forget(other).await.unwrap();
        assert_eq!(owed(&world, endpoint).await, Some((since, true)));
    }
    world.stores.recoveries.forget(recovery).await.unwrap();
    assert_eq!(owed(&world, endpoint).await, None);
}

async fn what_is_ready_is_paged(world: World) {
    let app = world.app(5).await;
    let keys: Vec<EndpointKey> = app.endpoints.iter().map(|it| it.key).collect();
    for (key, ready) in keys.iter().zip([true, false, true, true, true]) {
        let since = world.now();
        keep(&world, if ready { over(*key, since, since) } else { out(*key, since) }).await;
    }
    let mut all = keys.clone();
    all.remove(1);
    all.sort_unstable();
    let first = world.stores.recoveries.ready(None, 3).await.unwrap();
    let rest = world.stores.recoveries.ready(Some(first[2].endpoint), 3).await.unwrap();
    let found: Vec<EndpointKey> = first.iter().chain(&rest).map(|it| it.endpoint).collect();
    assert_eq!((first.len(), found), (3, all));
}

async fn a_deleted_endpoint_is_owed_nothing(world: World) {
    let app = world.app(1).await;
    let (endpoint, since) = (app.endpoints[0].key, at(&world, 5));
    keep(&world, over(endpoint, since, at(&world, 9))).await;
    let task = begun(&world, spec(&app, endpoint, Work::Outage(since))).await;
    world.stores.directory.delete_endpoint(endpoint).await.unwrap();
    world.stores.tasks.end(task.id, TaskStatus::Failed, None).await.unwrap();
    assert_eq!(owed(&world, endpoint).await, None);
    keep(&world, out(endpoint, at(&world, 20))).await;
    assert_eq!(
        owed(&world, endpoint).await,
        Some((at(&world, 20), false)),
        "a late state harms not"
    );
}
