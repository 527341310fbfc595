//! Background tasks: worked on in turn, piece by piece, as slowly as live traffic needs.
//!
//! In: tasks that the store says run, and whether a lane has room. Out: pieces. What is to be done
//! is found by `plan`, how much of it now by `pace`; the store does a piece and moves the task in
//! one transaction, so that nothing here must survive a crash.
//! Never: put anything in a lane that has due rows on disk, or more than a second's worth in any.

mod pace;
mod plan;
mod recovery;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::application::AppSnapshot;
use domain::endpoint::Endpoint;
use domain::ids::{EndpointKey, PublicId};
use domain::nodes::Chore;
use metrics::{Gauge, gauge};
use resilience::{Clock, Timestamp};
use store::nodes::Share;
use store::tasks::{END, Moved, Piece, Task, TaskStatus, WHOLE_APP, Work};
use store::{StoreError, Stores};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::chores::idle;
use pace::Pace;

/// Tasks that are worked on side by side; the others wait until one ends.
const TASKS_MAX: usize = 64;
/// Between two pieces.
const PAUSE: Duration = Duration::from_millis(10);
/// Until it is looked again whether there is room.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Until it is looked again what is owed after outages.
const OWED_AGAIN: Duration = Duration::from_secs(1);
/// After the store failed.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Answers whether nothing due of an endpoint is on disk only.
pub type HasRoom =
    Box<dyn Fn(EndpointKey) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// How letters are put back where nobody says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Replaying {
    /// So many a second.
    pub rate_per_s: u32,
    /// By themselves after an outage.
    pub automatic: bool,
    /// No attempt takes longer.
    pub deadline: Duration,
}

/// Works on tasks.
pub struct Worker {
    stores: Stores,
    clock: Arc<dyn Clock>,
    replaying: Replaying,
    has_room: HasRoom,
    jobs: HashMap<PublicId, Job>,
    /// When it was last looked at what is owed after outages; `None`: it is to be looked now.
    looked_at: Option<Timestamp>,
    /// Something is owed that has to wait for another task.
    waits: bool,
    running: Gauge,
    share: Arc<Share>,
}

/// What is remembered of a task between two pieces.
struct Job {
    pace: Pace,
    /// How far it was looked, where that is further than the store knows.
    looked: HashMap<EndpointKey, u64>,
}

/// What a look at a task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Something was done, and there may be more to do at once.
    Moved,
    /// There is no room now.
    Waits,
}

impl Worker {
    /// Works on what `stores` keep.
    pub fn new(
        stores: Stores,
        clock: Arc<dyn Clock>,
        replaying: Replaying,
        has_room: HasRoom,
    ) -> Self {
        let (jobs, running) = (HashMap::new(), gauge!("peyk_tasks_running"));
        let (looked_at, waits, share) = (None, false, stores.nodes.share());
        Self { stores, clock, replaying, has_room, jobs, looked_at, waits, running, share }
    }

    /// Works until it is dropped; `wake` tells of a new task, or of something that one may begin
    /// for.
    pub async fn run(mut self, wake: Arc<Notify>) {
        loop {
            if !self.share.does(Chore::Tasks) {
                idle(&self.share, &wake).await;
                continue;
            }
            let pause = match self.round().await {
                Ok(None) if self.waits => OWED_AGAIN,
                Ok(None) => {
                    idle(&self.share, &wake).await;
                    self.looked_at = None;
                    continue;
                }
                Ok(Some(Step::Moved)) => PAUSE,
                Ok(Some(Step::Waits)) => LOOK_AGAIN,
                Err(error) => {
                    tracing::warn!(%error, "background tasks cannot go on; trying again");
                    AFTER_FAULT
                }
            };
            tokio::select! {
                () = wake.notified() => self.looked_at = None,
                () = sleep(pause) => {}
            }
        }
    }

    /// One piece of each task; `None` when none runs.
    async fn round(&mut self) -> Result<Option<Step>, StoreError> {
        let mut tasks = self.stores.tasks.running(TASKS_MAX).await?;
        let known = self.jobs.len();
        self.jobs.retain(|id, _| tasks.iter().any(|task| task.id == *id));
        if self.jobs.len() < known {
            // What waited for a task that ended may begin.
            self.looked_at = None;
        }
        let now = self.clock.now();
        let is_due = |at: Timestamp| now < at || now >= at.plus(OWED_AGAIN);
        if self.looked_at.is_none_or(is_due) {
            if self.begin_recoveries(&tasks).await? {
                tasks = self.stores.tasks.running(TASKS_MAX).await?;
            }
            self.looked_at = Some(now);
        }
        self.running.set(f64::from(u32::try_from(tasks.len()).unwrap_or(u32::MAX)));
        let mut all = None;
        for task in tasks {
            let now = self.clock.now();
            let rate = task.spec.rate_per_s.unwrap_or(self.replaying.rate_per_s);
            let new = || Job { pace: Pace::new(rate, now), looked: HashMap::new() };
            let mut job = self.jobs.remove(&task.id).unwrap_or_else(new);
            job.pace.pass(now);
            let step = self.step(&task, &mut job).await?;
            self.jobs.insert(task.id, job);
            if all != Some(Step::Moved) {
                all = Some(step);
            }
        }
        Ok(all)
    }

    async fn step(&self, task: &Task, job: &mut Job) -> Result<Step, StoreError> {
        let Some(app) = self.stores.directory.app_by_key(task.spec.app).await? else {
            return self.end(task, Some("the application was deleted")).await;
        };
        if task.spec.work == Work::Purge {
            return self.purge(task).await;
        }
        let endpoints = match task.spec.endpoint {
            // What is switched off must not keep the others from coming to their end.
            None => {
                let on = app.endpoints.iter().filter(|it| it.spec.disabled.is_none());
                on.cloned().collect()
            }
            Some(key) => match app.endpoints.iter().find(|endpoint| endpoint.key == key) {
                Some(endpoint) => match self.unwanted(task, endpoint).await? {
                    Some(step) => return Ok(step),
                    None => vec![Arc::clone(endpoint)],
                },
                None => return self.end(task, Some("the endpoint was deleted")).await,
            },
        };
        self.replay(task, job, (&app, &endpoints)).await
    }

    /// A piece for each endpoint that has room.
    async fn replay(
        &self,
        task: &Task,
        job: &mut Job,
        (app, endpoints): (&AppSnapshot, &[Arc<Endpoint>]),
    ) -> Result<Step, StoreError> {
        let (mut left, mut step) = (false, Step::Waits);
        for endpoint in endpoints {
            let from = reached(task, job, endpoint.key);
            if from == END {
                continue;
            }
            left = true;
            let most = self.allowed(job, endpoint.key).await?;
            if most == 0 {
                continue;
            }
            let how = (from, most, self.settling(task, endpoint));
            let piece = plan::replays(&self.stores, task, (app, endpoint), how).await?;
            if piece.reached != from {
                step = Step::Moved;
            }
            if piece.acts.is_empty() {
                job.looked.insert(endpoint.key, piece.reached);
                continue;
            }
            match self.stores.tasks.advance(task.id, piece).await? {
                Moved::On { reached, waiting } => {
                    job.looked.insert(endpoint.key, reached);
                    job.pace.sent(endpoint.key, waiting);
                }
                Moved::Stopped => return Ok(Step::Moved),
            }
        }
        if left { Ok(step) } else { self.end(task, None).await }
    }

    /// How many sends may be put into a lane now.
    async fn allowed(&self, job: &mut Job, endpoint: EndpointKey) -> Result<usize, StoreError> {
        if job.pace.is_full(endpoint) {
            let out = job.pace.out(endpoint);
            let waiting = self.stores.tasks.waiting_of(endpoint, out).await?;
            job.pace.still_out(endpoint, waiting);
        }
        let most = job.pace.allowed(endpoint);
        Ok(if most > 0 && (self.has_room)(endpoint).await { most } else { 0 })
    }

    async fn purge(&self, task: &Task) -> Result<Step, StoreError> {
        let from = task.cursor.get(&WHOLE_APP).copied().unwrap_or(0);
        if from == END {
            return self.end(task, None).await;
        }
        let piece: Piece = plan::purges(&self.stores, task, from).await?;
        self.stores.tasks.advance(task.id, piece).await?;
        Ok(Step::Moved)
    }

    /// All is done, or nothing more can be.
    async fn end(&self, task: &Task, error: Option<&str>) -> Result<Step, StoreError> {
        let status = if error.is_some() { TaskStatus::Failed } else { TaskStatus::Finished };
        self.stores.tasks.end(task.id, status, error.map(str::to_owned)).await?;
        Ok(Step::Moved)
    }
}

fn reached(task: &Task, job: &Job, endpoint: EndpointKey) -> u64 {
    let stored = task.cursor.get(&endpoint).copied().unwrap_or(0);
    job.looked.get(&endpoint).copied().unwrap_or(0).max(stored)
}

#[cfg(test)]
mod tests;
