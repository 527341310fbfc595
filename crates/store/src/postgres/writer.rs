//! The one writer: takes what has queued up, writes it in one transaction, tells of it, answers.
//!
//! In: jobs. Out, in this order after each commit: `Commits` is told, then callers are answered. No
//! artificial wait: what arrives while a commit runs is the next batch. Posts and results of a
//! batch are written at once, then changes one by one, each of which rolls back alone. When the
//! connection is lost everybody in the batch is told; what it was to write may be written or not,
//! and may be written again.
//! Never: answer before the commit, or leave a transaction open between two batches.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::limits::{BATCH_BYTES_MAX, BATCH_ROWS_MAX};
use domain::nodes::Chore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout};

use super::batch::Batch;
use super::conn::{Conn, value};
use super::door::{Change, Finish, Job, Post, Results};
use super::fault::{Fault, Remedy, unavailable};
use super::link::{ANY_LENGTH, Pool, connect};
use super::sets::Made;
use super::shared::Shared;
use super::tx::{By, Tx};
use crate::StoreError;
use crate::commits::BatchStats;

/// How long the writer sleeps when nothing is queued, so that it comes to sweep.
const IDLE: Duration = Duration::from_secs(1);
/// Deleted endpoints are looked for so often.
const SWEEP_SPAN: Duration = Duration::from_secs(10);
/// A batch that is not written by then is given up, and its connection with it.
const BATCH_WAIT_MAX: Duration = Duration::from_secs(10);
/// After a connection that could not be made, the next is tried after so long, doubling up to that.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The writer's task.
pub(super) struct Writer {
    shared: Arc<Shared>,
    pool: Pool,
    link: Link,
    sweep_last: Instant,
    sweeping: bool,
    /// A fault was told of in the log: once, and its end.
    told: bool,
}

/// The connection.
enum Link {
    Up(Box<Tx>),
    Down { last: u64, why: StoreError, not_before: Instant, pause: Duration },
}

/// What a batch is to do.
#[derive(Default)]
struct Work {
    posts: Vec<Post>,
    results: Vec<Results>,
    changes: Vec<Change>,
}

impl Work {
    fn operations(&self) -> usize {
        self.posts.len() + self.results.len() + self.changes.len()
    }
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, pool: Pool, tx: Tx) -> Self {
        let link = Link::Up(Box::new(tx));
        Self { shared, pool, link, sweep_last: Instant::now(), sweeping: false, told: false }
    }

    /// Runs until the store closes.
    pub(super) async fn run(mut self, mut jobs: UnboundedReceiver<Job>) {
        let mut open = true;
        while open {
            open = match timeout(IDLE, jobs.recv()).await {
                Ok(Some(job)) => self.turn(Some(job), &mut jobs).await,
                Ok(None) => false,
                Err(_) => self.turn(None, &mut jobs).await,
            };
        }
        // What was queued behind the last job still gets its turn.
        while let Ok(job) = jobs.try_recv() {
            self.turn(Some(job), &mut jobs).await;
        }
    }

    /// One batch; `false` when the store is closing.
    async fn turn(&mut self, first: Option<Job>, jobs: &mut UnboundedReceiver<Job>) -> bool {
        let begun = Instant::now();
        let (mut work, open) = self.gather(first, jobs);
        let sweep = self.shared.share.does(Chore::Sweep)
            && (self.sweeping || begun.duration_since(self.sweep_last) >= SWEEP_SPAN);
        let operations = work.operations();
        if operations == 0 && !sweep {
            return open;
        }
        let changes = std::mem::take(&mut work.changes);
        let (mut made, mut finishes) = (Made::default(), Vec::new());
        let ended = match self.link().await {
            Err(fault) => {
                for change in changes {
                    finishes.push(change(Err(fault.clone())).await);
                }
                Err(fault)
            }
            Ok(tx) => {
                let writes =
                    write(tx, (&work.posts, &work.results), changes, (&mut made, &mut finishes));
                let ended = timeout(BATCH_WAIT_MAX, writes).await;
                self.end(ended.unwrap_or_else(|_| Err(Lost::silent()))).await
            }
        };
        let stats =
            |rows, committed| BatchStats { operations, rows, took: begun.elapsed(), committed };
        match ended {
            Ok(batch) => {
                let stats = stats(batch.rows, true);
                self.tell(batch, stats);
                answer(work, made, finishes, None);
                if sweep {
                    self.sweep().await;
                }
            }
            Err(fault) => {
                self.tell(Batch::default(), stats(0, false));
                answer(work, made, finishes, Some(fault));
            }
        }
        open
    }

    /// Takes what is queued, as far as it fits a batch.
    fn gather(&self, first: Option<Job>, jobs: &mut UnboundedReceiver<Job>) -> (Work, bool) {
        let (mut work, mut rows, mut bytes) = (Work::default(), 0, 0);
        let mut next = first;
        while let Some(job) = next {
            self.shared.door.taken(&job);
            (rows, bytes) = (rows + job.rows(), bytes + job.bytes());
            match job {
                // Refused before it is written, so that the answer is true.
                Job::Accept(post) if self.shared.door.is_too_late(post.since) => {
                    drop(post.answer.send(Err(StoreError::Overloaded)));
                }
                Job::Accept(post) => work.posts.push(*post),
                Job::Record(results) => work.results.push(results),
                Job::Change(change) => work.changes.push(change),
                Job::Stop => return (work, false),
            }
            let full = rows >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX;
            next = if full { None } else { jobs.try_recv().ok() };
        }
        (work, true)
    }

    /// The connection, made anew if it was lost and it is time.
    async fn link(&mut self) -> Result<&mut Tx, StoreError> {
        if let Link::Down { last, why, not_before, pause } = &mut self.link {
            let now = Instant::now();
            if now < *not_before {
                return Err(why.clone());
            }
            match reopen(&self.pool, &self.shared, *last).await {
                Ok(tx) => {
                    tracing::info!("the database is connected again");
                    self.link = Link::Up(Box::new(tx));
                }
                Err(fault) => {
                    *pause = (*pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                    *not_before = Instant::now() + *pause;
                    *why = fault;
                }
            }
        }
        match &mut self.link {
            Link::Up(tx) => {
                tx.now = self.shared.clock.now();
                Ok(tx)
            }
            Link::Down { why, .. } => Err(why.clone()),
        }
    }

    /// What a batch has done, or why it did nothing that is known of.
    async fn end(&mut self, ended: Result<(), Lost>) -> Result<Batch, StoreError> {
        let Link::Up(tx) = &mut self.link else { return Err(unavailable("not connected")) };
        let lost = match ended {
            Ok(()) => {
                let batch = std::mem::take(&mut tx.batch);
                self.shared.depth.fetch_add(batch.depth, Ordering::Relaxed);
                if batch.rows > 0 && std::mem::take(&mut self.told) {
                    tracing::info!("batches are committed again");
                }
                return Ok(batch);
            }
            Err(lost) => lost,
        };
        let why = lost.why;
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(fault = %why, "nothing is committed: a batch was given up");
        }
        // It may have been committed all the same: whoever keeps a copy reads it again.
        let changed = std::mem::take(&mut tx.batch.changed);
        if let (true, Some(commits)) = (lost.reconnect, self.shared.commits.get()) {
            changed.iter().for_each(|(app, endpoint)| commits.directory_changed(*app, *endpoint));
        }
        let healed =
            !lost.reconnect && matches!(timeout(BATCH_WAIT_MAX, tx.roll_back()).await, Ok(Ok(())));
        if !healed {
            self.leave(why.clone());
        }
        Err(why)
    }

    /// Gives the connection up.
    fn leave(&mut self, why: StoreError) {
        let Link::Up(tx) = &self.link else { return };
        let down =
            Link::Down { last: tx.last(), why, not_before: Instant::now(), pause: Duration::ZERO };
        if let Link::Up(tx) = std::mem::replace(&mut self.link, down) {
            tx.leave();
        }
    }

    /// Tells the engine of a batch that ended.
    fn tell(&self, batch: Batch, stats: BatchStats) {
        let Some(commits) = self.shared.commits.get() else { return };
        for (app, endpoint) in batch.changed {
            commits.directory_changed(app, endpoint);
        }
        if !batch.fresh.is_empty() {
            commits.fresh(batch.fresh);
        }
        if !batch.withdrawn.is_empty() {
            commits.withdrawn(batch.withdrawn);
        }
        if batch.noted > 0 {
            commits.noted();
        }
        if batch.recovered > 0 {
            commits.recovered();
        }
        if stats.operations > 0 || stats.rows > 0 {
            commits.batch(stats);
        }
    }

    /// Sweeps behind deleted endpoints, in a batch of its own.
    async fn sweep(&mut self) {
        (self.sweep_last, self.sweeping) = (Instant::now(), false);
        let Ok(tx) = self.link().await else { return };
        let sweeps = async {
            tx.begin().await?;
            let more = tx.sweep().await?;
            tx.commit().await.map(|()| more)
        };
        let ended = timeout(BATCH_WAIT_MAX, sweeps).await;
        let ended = match ended {
            Ok(Ok(more)) => {
                self.sweeping = more;
                Ok(())
            }
            Ok(Err(fault)) => Err(fault.into()),
            Err(_) => Err(Lost::silent()),
        };
        // What is wrong with it is in the log.
        drop(self.end(ended).await);
    }
}

/// A batch that was given up.
struct Lost {
    why: StoreError,
    /// The connection is of no more use.
    reconnect: bool,
}

impl Lost {
    fn silent() -> Self {
        Self { why: unavailable("the database does not answer"), reconnect: true }
    }
}

impl From<Fault> for Lost {
    fn from(fault: Fault) -> Self {
        Self { why: fault.told(), reconnect: fault.remedy() == Remedy::Reconnect }
    }
}

/// A server on the GNU C library gives memory back after each statement and gets it anew for the
/// next one, until a session has freed a piece so large.
const KEEPS_MEMORY: &str = "SELECT length(repeat(' ', 8388608))";

/// The connection, once it is known how much waits.
pub(super) async fn open(conn: Conn, shared: &Shared, last: u64) -> Result<Tx, StoreError> {
    // Statements without a name are planned each time anyway.
    if !conn.is_pooled() {
        for setting in [ANY_LENGTH, KEEPS_MEMORY] {
            let told = conn.batch_execute(setting).await;
            told.map_err(|fault| Fault::from(fault).told())?;
        }
    }
    let depth = value::<i64>(&conn, "SELECT count(*) FROM pending", &[]).await;
    shared.depth.store(depth.map_err(|fault| fault.told())?.unwrap_or(0), Ordering::Relaxed);
    let (share, keeps_mails) = (Arc::clone(&shared.share), Arc::clone(&shared.keeps_mails));
    Ok(Tx::new(conn, last, shared.clock.now(), By { me: shared.me, share, keeps_mails }))
}

async fn reopen(pool: &Pool, shared: &Shared, last: u64) -> Result<Tx, StoreError> {
    open(connect(pool).await?, shared, last).await
}

/// Writes and commits all of it.
async fn write(
    tx: &mut Tx,
    (posts, results): (&[Post], &[Results]),
    changes: Vec<Change>,
    (made, finishes): (&mut Made, &mut Vec<Finish>),
) -> Result<(), Lost> {
    let only_sets = changes.is_empty() && !(posts.is_empty() && results.is_empty());
    if only_sets && let Some(written) = tx.write_at_once(posts, results).await? {
        *made = written;
        return Ok(());
    }
    *made = tx.write_sets(posts, results).await?;
    for change in changes {
        let known = match &tx.fault {
            None => Ok(&mut *tx),
            Some(fault) => Err(fault.clone()),
        };
        finishes.push(change(known).await);
    }
    match tx.fault.take() {
        // What was under way has failed with its transaction; the connection tells by itself
        // whether it is of use.
        Some(why) => Err(Lost { why, reconnect: true }),
        None => {
            tx.tell_others().await?;
            Ok(tx.commit().await?)
        }
    }
}

/// Answers everybody of one batch, with `fault` in place of what was to be said if there is one.
fn answer(work: Work, made: Made, finishes: Vec<Finish>, fault: Option<StoreError>) {
    let fault = fault.as_ref();
    let mut accepted = made.accepted.into_iter();
    for post in work.posts {
        let made = accepted.next().unwrap_or_else(|| Err(unavailable("it was not written")));
        drop(post.answer.send(fault.map_or(made, |fault| Err(fault.clone()))));
    }
    let mut recorded = made.recorded.into_iter();
    for results in work.results {
        let made = recorded.next().unwrap_or_else(|| Err(unavailable("it was not written")));
        drop(results.answer.send(fault.map_or(made, |fault| Err(fault.clone()))));
    }
    finishes.into_iter().for_each(|finish| finish(fault));
}
