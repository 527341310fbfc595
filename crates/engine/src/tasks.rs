//! Background tasks: worked on in turn, piece by piece, as slowly as live traffic needs.
//!
//! In: tasks that the store says run, and whether a lane has room. Out: pieces. What is to be done
//! is found by `plan`, how much of it now by `pace`; the store does a piece and moves the task in
//! one transaction, so that nothing here must survive a crash.
//! Never: put anything in a lane that has due rows on disk, or more than a second's worth in any.

mod pace;
mod plan;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::application::AppSnapshot;
use domain::endpoint::Endpoint;
use domain::ids::{EndpointKey, PublicId};
use metrics::{Gauge, gauge};
use resilience::Clock;
use store::tasks::{END, Moved, Piece, Task, TaskStatus, WHOLE_APP, Work};
use store::{StoreError, Stores};
use tokio::sync::Notify;
use tokio::time::sleep;

use pace::Pace;

/// Tasks that are worked on side by side; the others wait until one ends.
const TASKS_MAX: usize = 64;
/// Between two pieces.
const PAUSE: Duration = Duration::from_millis(10);
/// Until it is looked again whether there is room.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// After the store failed.
const AFTER_FAULT: Duration = Duration::from_secs(1);

/// Answers whether nothing due of an endpoint is on disk only.
pub type HasRoom =
    Box<dyn Fn(EndpointKey) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Works on tasks.
pub struct Worker {
    stores: Stores,
    clock: Arc<dyn Clock>,
    rate_per_s: u32,
    has_room: HasRoom,
    jobs: HashMap<PublicId, Job>,
    running: Gauge,
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
    /// Works at `rate_per_s` where a task names no rate.
    pub fn new(stores: Stores, clock: Arc<dyn Clock>, rate_per_s: u32, has_room: HasRoom) -> Self {
        let running = gauge!("peyk_tasks_running");
        Self { stores, clock, rate_per_s, has_room, jobs: HashMap::new(), running }
    }

    /// Works until it is dropped; `wake` tells of a new task.
    pub async fn run(mut self, wake: Arc<Notify>) {
        loop {
            let pause = match self.round().await {
                Ok(None) => {
                    wake.notified().await;
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
                () = wake.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// One piece of each task; `None` when none runs.
    async fn round(&mut self) -> Result<Option<Step>, StoreError> {
        let tasks = self.stores.tasks.running(TASKS_MAX).await?;
        self.jobs.retain(|id, _| tasks.iter().any(|task| task.id == *id));
        self.running.set(f64::from(u32::try_from(tasks.len()).unwrap_or(u32::MAX)));
        let mut all = None;
        for task in tasks {
            let now = self.clock.now();
            let rate = task.spec.rate_per_s.unwrap_or(self.rate_per_s);
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
                Some(endpoint) => vec![Arc::clone(endpoint)],
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
            let piece = plan::replays(&self.stores, task, (app, endpoint), (from, most)).await?;
            step = Step::Moved;
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
