//! Tasks over the reference model, round by round.
//!
//! Never: a lane; whether there is room is said by each test.

mod reads;

use std::sync::atomic::{AtomicBool, Ordering};

use domain::delivery::{Pending, Trigger};
use domain::ids::MessageKey;
use resilience::ManualClock;
use store::conformance::world::{ORG, World as Stored};
use store::conformance::{START, samples};
use store::history::SentFilter;
use store::ledger::Follow;
use store::memory::MemoryStore;
use store::page::LOOK_ROWS_MAX;
use store::tasks::{During, Letters, Started, TaskSpec};

use super::*;

struct World {
    stored: Stored,
    app: AppSnapshot,
    worker: Worker,
    room: Arc<AtomicBool>,
}

impl World {
    async fn with(endpoints: usize) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let backend = Box::new(MemoryStore::new(Arc::clone(&clock) as _));
        let stored = Stored::new(backend, clock);
        let app = stored.app(endpoints).await;
        let room = Arc::new(AtomicBool::new(true));
        let worker = worker(&stored, &room);
        Self { stored, app, worker, room }
    }

    /// The process died and is there again.
    fn restart(&mut self) {
        self.stored.reopen();
        self.worker = worker(&self.stored, &self.room);
    }

    /// So many dead letters of an endpoint.
    async fn bury(&self, count: usize, at: usize) -> Vec<MessageKey> {
        let mut messages = Vec::new();
        for _ in 0..count {
            let mut new = self.stored.message(&self.app);
            new.targets = vec![Arc::clone(&self.app.endpoints[at])];
            let message = self.stored.post(new).await;
            let row = self.stored.row(message, self.app.endpoints[at].key).await.unwrap();
            self.stored.bury(row).await;
            messages.push(message);
        }
        messages
    }

    async fn start(&self, endpoint: Option<usize>, work: Work) -> PublicId {
        let endpoint = endpoint.map(|at| self.app.endpoints[at].key);
        let app = self.app.app.key;
        let spec = TaskSpec { org: ORG, app, endpoint, work, rate_per_s: None, total: None };
        match self.stored.stores.tasks.start(spec, self.stored.random()).await.unwrap() {
            Started::New(task) => task.id,
            other => panic!("{other:?}"),
        }
    }

    async fn task(&self, id: PublicId) -> Task {
        *self.stored.stores.tasks.task(ORG, id).await.unwrap().unwrap()
    }

    async fn rows(&self, at: usize) -> Vec<Pending> {
        self.stored.rows(self.app.endpoints[at].key).await
    }

    /// Rounds until there is nothing to do at once.
    async fn settle(&mut self) {
        while self.worker.round().await.unwrap() == Some(Step::Moved) {}
    }

    /// Delivers all that waits for an endpoint.
    async fn deliver(&self, at: usize) -> Vec<MessageKey> {
        let rows = self.rows(at).await;
        for row in &rows {
            self.stored.deliver(*row).await;
        }
        rows.iter().map(|row| row.message).collect()
    }

    /// Lets it work, a second after the other, until it has ended; what was sent, in order.
    async fn finish(&mut self, id: PublicId) -> Vec<MessageKey> {
        let mut sent = Vec::new();
        for _ in 0..100 {
            self.settle().await;
            sent.extend(self.deliver(0).await);
            if self.task(id).await.status != TaskStatus::Running {
                return sent;
            }
            self.stored.tick();
        }
        panic!("it does not end");
    }
}

fn worker(stored: &Stored, room: &Arc<AtomicBool>) -> Worker {
    let (clock, room) = (Arc::clone(&stored.clock), Arc::clone(room));
    let has_room: HasRoom = Box::new(move |_| {
        let has = room.load(Ordering::SeqCst);
        Box::pin(async move { has })
    });
    let deadline = Duration::from_secs(10);
    let replaying = Replaying { rate_per_s: 10, automatic: true, deadline };
    Worker::new(stored.stores.clone(), clock, replaying, has_room)
}

fn letters() -> Work {
    Work::DeadLetters(Letters::default())
}

#[tokio::test]
async fn a_bulk_replay_keeps_its_rate_and_waits_for_what_it_put_out() {
    let mut world = World::with(1).await;
    let dead = world.bury(25, 0).await;
    let id = world.start(None, letters()).await;
    world.settle().await;
    assert_eq!(world.rows(0).await.len(), 10, "a second's worth");
    for _ in 0..5 {
        world.stored.tick();
        world.settle().await;
    }
    assert_eq!(world.rows(0).await.len(), 10, "none of it was sent");
    let sent = world.finish(id).await;
    assert_eq!(sent, dead, "each once, oldest first");
    let task = world.task(id).await;
    assert_eq!((task.status, task.tally.done), (TaskStatus::Finished, 25));
    assert_eq!(world.worker.round().await.unwrap(), None, "nothing runs");
}

#[tokio::test]
async fn a_task_goes_on_where_a_look_ended_that_found_nothing() {
    let mut world = World::with(1).await;
    for _ in 0..=LOOK_ROWS_MAX {
        let mut elsewhere = world.stored.message(&world.app);
        elsewhere.targets.clear();
        world.stored.post(elsewhere).await;
    }
    let row = world.stored.one(&world.app).await;
    world.stored.deliver(row).await;
    let id = world.start(Some(0), Work::Again(SentFilter::default(), None)).await;
    assert_eq!(world.finish(id).await, [row.message]);
    assert_eq!(world.task(id).await.tally.done, 1);
}

#[tokio::test]
async fn a_lane_without_room_is_left_alone() {
    let mut world = World::with(1).await;
    world.bury(3, 0).await;
    world.start(None, letters()).await;
    world.room.store(false, Ordering::SeqCst);
    assert_eq!(world.worker.round().await.unwrap(), Some(Step::Waits));
    assert!(world.rows(0).await.is_empty());
    world.room.store(true, Ordering::SeqCst);
    world.settle().await;
    assert_eq!(world.rows(0).await.len(), 3);
}

#[tokio::test]
async fn a_lane_that_does_not_send_keeps_no_other_waiting() {
    let mut world = World::with(2).await;
    world.bury(15, 0).await;
    world.bury(15, 1).await;
    let id = world.start(None, letters()).await;
    for _ in 0..6 {
        world.settle().await;
        world.deliver(1).await;
        world.stored.tick();
    }
    assert_eq!(world.rows(0).await.len(), 10);
    assert_eq!(world.task(id).await.tally.done, 25);
    assert_eq!(world.task(id).await.status, TaskStatus::Running);
}

#[tokio::test]
async fn a_restart_repeats_nothing() {
    let mut world = World::with(1).await;
    let dead = world.bury(30, 0).await;
    let id = world.start(None, letters()).await;
    let mut sent = Vec::new();
    while world.task(id).await.status == TaskStatus::Running {
        world.settle().await;
        sent.extend(world.deliver(0).await);
        world.stored.tick();
        world.restart();
    }
    assert_eq!(sent, dead);
}

#[tokio::test]
async fn what_dies_again_is_not_taken_twice() {
    let mut world = World::with(1).await;
    world.bury(5, 0).await;
    let id = world.start(None, letters()).await;
    world.settle().await;
    for row in world.rows(0).await {
        world.stored.bury(row).await;
    }
    world.restart();
    world.stored.tick();
    world.settle().await;
    assert!(world.rows(0).await.is_empty());
    assert_eq!(world.task(id).await.tally.done, 5);
    assert_eq!(world.task(id).await.status, TaskStatus::Finished);
}

#[tokio::test]
async fn a_cancelled_task_puts_nothing_more_out() {
    let mut world = World::with(1).await;
    world.bury(25, 0).await;
    let id = world.start(None, letters()).await;
    world.settle().await;
    world.stored.stores.tasks.end(id, TaskStatus::Cancelled, None).await.unwrap().unwrap();
    world.deliver(0).await;
    world.stored.tick();
    assert_eq!(world.worker.round().await.unwrap(), None);
    assert!(world.rows(0).await.is_empty());
}

#[tokio::test]
async fn letters_are_chosen_by_what_was_asked() {
    let mut world = World::with(1).await;
    let dead = world.bury(4, 0).await;
    let endpoint = world.app.endpoints[0].key;
    let ids = vec![(endpoint, dead[2]), (endpoint, dead[0]), (endpoint, MessageKey(1))];
    let id = world.start(None, Work::DeadLetters(Letters { ids, ..Letters::default() })).await;
    assert_eq!(world.finish(id).await, [dead[0], dead[2]]);
    let of_type = vec!["no.such".to_owned()];
    let none = Letters { event_types: of_type, ..Letters::default() };
    let id = world.start(None, Work::DeadLetters(none)).await;
    assert!(world.finish(id).await.is_empty());
    let id = world.start(None, letters()).await;
    assert_eq!(world.finish(id).await, [dead[1], dead[3]]);
}

#[tokio::test]
async fn an_endpoint_that_is_switched_off_keeps_its_dead_letters() {
    let mut world = World::with(2).await;
    let dead = world.bury(2, 0).await;
    world.bury(2, 1).await;
    let mut spec = world.app.endpoints[1].spec.clone();
    spec.disabled = Some(domain::endpoint::Disabled::Gone);
    let change = store::directory::EndpointChange { spec: Some(spec), ..Default::default() };
    let off = world.app.endpoints[1].key;
    world.stored.stores.directory.change_endpoint(off, change).await.unwrap();
    let id = world.start(None, letters()).await;
    assert_eq!(world.finish(id).await, dead);
    assert_eq!(world.task(id).await.status, TaskStatus::Finished);
    assert!(world.rows(1).await.is_empty());
}

#[tokio::test]
async fn rp_02_recovery_is_by_the_time_of_the_failed_sends() {
    let mut world = World::with(1).await;
    let before = world.bury(1, 0).await;
    world.stored.tick();
    let since = world.stored.now();
    let within = world.bury(2, 0).await;
    world.stored.tick();
    let until = world.stored.now();
    let after = world.bury(1, 0).await;
    let waits = world.stored.one(&world.app).await;
    let during = During { since: Some(since), until: Some(until) };
    let id = world.start(Some(0), Work::Recover(during)).await;
    let mut sent = world.finish(id).await;
    sent.retain(|message| *message != waits.message);
    assert_eq!(sent, within);
    assert_eq!(world.task(id).await.tally.done, 2, "what waits has its own retry");
    let id = world.start(Some(0), Work::Recover(During::default())).await;
    assert_eq!(world.finish(id).await, [before, after].concat());
}

#[tokio::test]
async fn what_an_endpoint_never_got_is_sent_by_its_filters() {
    let mut world = World::with(1).await;
    let mut missed = Vec::new();
    for event_type in ["user.created", "user.deleted", "user.created"] {
        let mut new = world.stored.message(&world.app);
        new.targets.clear();
        new.spec.event_type = event_type.to_owned();
        missed.push(world.stored.post(new).await);
    }
    let had = world.stored.one(&world.app).await;
    world.stored.deliver(had).await;
    let endpoint = Arc::clone(&world.app.endpoints[0]);
    let mut spec = endpoint.spec.clone();
    spec.event_types = Some(vec!["user.created".to_owned()]);
    let change = store::directory::EndpointChange { spec: Some(spec), ..Default::default() };
    world.stored.stores.directory.change_endpoint(endpoint.key, change).await.unwrap();
    let id = world.start(Some(0), Work::Missing(During::default())).await;
    world.settle().await;
    let rows = world.rows(0).await;
    assert!(rows.iter().all(|row| (row.trigger, row.sends) == (Trigger::Asked, 0)));
    assert_eq!(world.finish(id).await, [missed[0], missed[2]]);
    let id = world.start(Some(0), Work::Missing(During::default())).await;
    assert!(world.finish(id).await.is_empty(), "now it has them all");
}

#[tokio::test]
async fn everything_is_sent_again_but_what_waits() {
    let mut world = World::with(1).await;
    let dead = world.bury(1, 0).await[0];
    let delivered = world.stored.one(&world.app).await;
    world.stored.deliver(delivered).await;
    let waits = world.stored.one(&world.app).await;
    let id = world.start(Some(0), Work::Again(SentFilter::default(), None)).await;
    world.settle().await;
    let mut rows = world.rows(0).await;
    rows.retain(|row| row.message != waits.message);
    rows.sort_by_key(|row| row.message);
    let made: Vec<_> = rows.iter().map(|row| (row.message, row.trigger)).collect();
    assert_eq!(made, [(dead, Trigger::Replay), (delivered.message, Trigger::Manual)]);
    world.finish(id).await;
    let refused = Work::Again(SentFilter::default(), Some(400));
    let id = world.start(Some(0), refused).await;
    assert!(world.finish(id).await.is_empty(), "the last answer of each was 200");
    let again = world.stored.one(&world.app).await;
    let failed = samples::answered(&again, 404, world.stored.now());
    world.stored.record(world.stored.result(again, Some(failed), samples::dead())).await;
    let id = world.start(Some(0), Work::Again(SentFilter::default(), Some(400))).await;
    assert_eq!(world.finish(id).await, [again.message]);
}

#[tokio::test]
async fn payloads_are_deleted_up_to_the_start_of_the_task() {
    let mut world = World::with(1).await;
    let mut messages = Vec::new();
    for _ in 0..600 {
        messages.push(world.stored.post(world.stored.message(&world.app)).await);
    }
    let id = world.start(None, Work::Purge).await;
    let later = world.stored.post(world.stored.message(&world.app)).await;
    world.settle().await;
    let task = world.task(id).await;
    assert_eq!((task.status, task.tally.done), (TaskStatus::Finished, 600));
    assert_eq!(world.rows(0).await.iter().map(|row| row.message).collect::<Vec<_>>(), [later]);
}

#[tokio::test]
async fn a_task_whose_endpoint_is_gone_fails() {
    let mut world = World::with(2).await;
    world.bury(30, 0).await;
    let id = world.start(Some(0), Work::Recover(During::default())).await;
    world.settle().await;
    world.stored.stores.directory.delete_endpoint(world.app.endpoints[0].key).await.unwrap();
    world.stored.tick();
    world.settle().await;
    let task = world.task(id).await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error.as_deref(), Some("the endpoint was deleted"));
    let id = world.start(None, letters()).await;
    world.stored.stores.directory.delete_app(world.app.app.key).await.unwrap();
    world.settle().await;
    assert_eq!(world.task(id).await.status, TaskStatus::Failed);
}

#[tokio::test]
async fn a_send_that_failed_again_still_counts_as_out() {
    let mut world = World::with(1).await;
    world.bury(12, 0).await;
    let id = world.start(None, letters()).await;
    world.settle().await;
    for row in world.rows(0).await {
        let failed = samples::answered(&row, 503, world.stored.now());
        let due_at = world.stored.now().plus(Duration::from_secs(60));
        let follow = Follow::Retry {
            due_at,
            tried_at: due_at,
            budget_used: 1,
            delay: Duration::from_secs(60),
            term: resilience::Term::Backoff,
        };
        world.stored.record(world.stored.result(row, Some(failed), follow)).await;
    }
    world.stored.tick();
    world.settle().await;
    assert_eq!(world.task(id).await.tally.done, 10);
}
