//! The writer of the reference model: what queued up while one commit ran is applied in the next.
//!
//! In come closures that check and then change the state; out go, in this order: the change, what
//! `Commits` is told, the answers. The work runs in a task of its own, so a caller that goes away
//! undoes nothing.
//! Never: answer before `Commits` was told, or apply half of an operation.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::delivery::Pending;
use domain::ids::{AppKey, EndpointKey};
use resilience::{Clock, Timestamp};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::state::State;
use crate::commits::{BatchStats, Commits, Fresh};
use crate::{Reply, StoreError};

/// An operation: changes the state, and returns what sends its answer.
type Job = Box<dyn FnOnce(&mut Tx<'_>) -> Answer + Send>;
type Answer = Box<dyn FnOnce() + Send>;

/// What the store, its writer and its answers share.
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    state: Mutex<State>,
    waiting: Mutex<Waiting>,
    commits: Mutex<Option<Arc<dyn Commits>>>,
}

/// What waits for the next commit, and how that one shall go.
#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    running: bool,
    delay: Duration,
    failing: u32,
}

/// One commit: the state, and what to tell of it.
pub(super) struct Tx<'a> {
    pub(super) state: &'a mut State,
    /// The time of the commit.
    pub(super) now: Timestamp,
    /// For `Commits::fresh`.
    pub(super) fresh: Vec<Fresh>,
    /// For `Commits::withdrawn`.
    pub(super) withdrawn: Vec<Pending>,
    /// For `Commits::directory_changed`.
    pub(super) changed: Vec<(AppKey, Option<EndpointKey>)>,
    /// For `Commits::noted`.
    pub(super) noted: bool,
    /// For `Commits::recovered`.
    pub(super) recovered: bool,
    /// Rows written or removed.
    pub(super) rows: usize,
    /// Operations still to refuse.
    failing: u32,
    refused: usize,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, state: State) -> Self {
        let (waiting, commits) = (Mutex::default(), Mutex::default());
        Self { clock, state: Mutex::new(state), waiting, commits }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn attach(&self, commits: Arc<dyn Commits>) {
        *lock(&self.commits) = Some(commits);
    }

    pub(super) fn delay(&self, delay: Duration) {
        lock(&self.waiting).delay = delay;
    }

    pub(super) fn fail_next(&self, count: u32) {
        lock(&self.waiting).failing = count;
    }

    /// Queues `apply` for the next commit. It must check everything before it changes anything.
    pub(super) fn write<T: Send + 'static>(
        self: &Arc<Self>,
        apply: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'static, T> {
        let (answer, answered) = oneshot::channel();
        self.enqueue(Box::new(move |tx: &mut Tx<'_>| {
            let outcome = if tx.refuses() {
                Err(StoreError::Unavailable("told to fail".to_owned()))
            } else {
                apply(tx)
            };
            Box::new(move || drop(answer.send(outcome)))
        }));
        Box::pin(async move {
            answered
                .await
                .unwrap_or_else(|_| Err(StoreError::Unavailable("the writer is gone".to_owned())))
        })
    }

    fn enqueue(self: &Arc<Self>, job: Job) {
        let mut waiting = lock(&self.waiting);
        waiting.jobs.push_back(job);
        if waiting.running {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => {
                waiting.running = true;
                drop(waiting);
                runtime.spawn(Arc::clone(self).run());
            }
            // Without a runtime nothing can wait: commit in the call.
            Err(_) => {
                let jobs = std::mem::take(&mut waiting.jobs);
                drop(waiting);
                self.commit(jobs);
            }
        }
    }

    /// Commits until nothing waits.
    async fn run(self: Arc<Self>) {
        loop {
            let delay = lock(&self.waiting).delay;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let jobs = {
                let mut waiting = lock(&self.waiting);
                waiting.running = !waiting.jobs.is_empty();
                std::mem::take(&mut waiting.jobs)
            };
            if jobs.is_empty() {
                return;
            }
            self.commit(jobs);
        }
    }

    /// One transaction.
    fn commit(&self, jobs: VecDeque<Job>) {
        let failing = std::mem::take(&mut lock(&self.waiting).failing);
        let operations = jobs.len();
        let mut state = self.state();
        let mut tx = Tx {
            state: &mut state,
            now: self.clock.now(),
            fresh: Vec::new(),
            withdrawn: Vec::new(),
            changed: Vec::new(),
            noted: false,
            recovered: false,
            rows: 0,
            failing,
            refused: 0,
        };
        let answers: Vec<Answer> = jobs.into_iter().map(|job| job(&mut tx)).collect();
        let Tx { fresh, withdrawn, changed, noted, recovered, rows, failing, refused, .. } = tx;
        drop(state);
        {
            let mut waiting = lock(&self.waiting);
            waiting.failing = waiting.failing.max(failing);
        }
        let commits = lock(&self.commits).clone();
        if let Some(commits) = commits {
            for (app, endpoint) in changed {
                commits.directory_changed(app, endpoint);
            }
            if !fresh.is_empty() {
                commits.fresh(fresh);
            }
            if !withdrawn.is_empty() {
                commits.withdrawn(withdrawn);
            }
            if noted {
                commits.noted();
            }
            if recovered {
                commits.recovered();
            }
            let committed = refused < operations;
            commits.batch(BatchStats { operations, rows, took: Duration::ZERO, committed });
        }
        answers.into_iter().for_each(|answer| answer());
    }
}

impl Tx<'_> {
    /// Whether the operation at hand is to fail.
    fn refuses(&mut self) -> bool {
        let refused = self.failing > 0;
        self.failing = self.failing.saturating_sub(1);
        self.refused += usize::from(refused);
        refused
    }

    /// The next key: of a message, an attempt, a public id or a place.
    pub(super) fn draw(&mut self) -> u64 {
        self.state.draw(self.now)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
