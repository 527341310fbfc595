//! The way to the writer: one queue of jobs, bounded by number, by bytes of payload and by time.
//!
//! A job is in the queue before its future is first polled, and dropping the future takes nothing
//! back. A post that is refused, at the door or for having waited too long, is not stored.
//! Never: wait for room; what does not fit is refused at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::tx::{Tx, Work};
use crate::inbox::{Accepted, NewMessage};
use crate::ledger::{Record, Recorded};
use crate::stored::fault::closed;
use crate::{Reply, StoreError};

/// As long as a change takes, so many rows of posts or results are written.
const CHANGE_ROWS: usize = 32;

/// Where an answer goes after the commit.
pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
/// Told how the batch ended: nothing, or why it was rolled back.
pub(super) type Finish = Box<dyn FnOnce(Option<&StoreError>) + Send>;
/// A change that rolls back alone when it fails; it may come to hear why it cannot be made.
pub(super) type Change =
    Box<dyn for<'t> FnOnce(Result<&'t mut Tx, StoreError>) -> BoxFuture<'t, Finish> + Send>;

/// A message, and since when it waits.
pub(super) struct Post {
    pub(super) new: NewMessage,
    pub(super) since: Instant,
    pub(super) answer: Answer<Accepted>,
}

/// Results that are recorded together.
pub(super) struct Results {
    pub(super) records: Vec<Record>,
    pub(super) answer: Answer<Vec<Recorded>>,
}

/// Something for the writer to do.
pub(super) enum Job {
    Accept(Box<Post>),
    Record(Results),
    /// Anything else.
    Change(Change),
    /// Finish what is queued and end.
    Stop,
}

impl Job {
    /// Bytes it holds in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Accept(post) => post.new.spec.payload.len(),
            Self::Record(results) => results.records.iter().map(record_bytes).sum(),
            Self::Change(_) | Self::Stop => 0,
        }
    }

    /// Rows that it writes, roughly; a change is several statements, each of which is waited for.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Accept(post) => 1 + post.new.targets.len(),
            Self::Record(results) => results.records.len() * 2,
            Self::Change(_) | Self::Stop => CHANGE_ROWS,
        }
    }
}

fn record_bytes(record: &Record) -> usize {
    use domain::attempt::Outcome;
    match record.attempt.as_ref().map(|attempt| &attempt.outcome) {
        Some(Outcome::Answered(answer)) => answer.body.len(),
        Some(Outcome::Failed(_)) | None => 0,
    }
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) jobs: usize,
    pub(super) bytes: usize,
    /// How long a post may wait for its turn.
    pub(super) wait: Duration,
}

/// The queue's sending end and its bounds.
pub(super) struct Door {
    queue: UnboundedSender<Job>,
    room: Room,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    shut: AtomicBool,
}

impl Door {
    pub(super) const fn new(queue: UnboundedSender<Job>, room: Room) -> Self {
        Self {
            queue,
            room,
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            shut: AtomicBool::new(false),
        }
    }

    pub(super) fn accept(&self, new: NewMessage) -> Reply<'static, Accepted> {
        let (answer, receiver) = oneshot::channel();
        let post = Post { new, since: Instant::now(), answer };
        answered(self.push(Job::Accept(Box::new(post))), receiver)
    }

    pub(super) fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>> {
        let (answer, receiver) = oneshot::channel();
        answered(self.push(Job::Record(Results { records, answer })), receiver)
    }

    /// Queues `change`; what it returns is answered after the commit.
    pub(super) fn change<T: Send + 'static>(
        &self,
        change: impl for<'t> FnOnce(&'t mut Tx) -> Work<'t, T> + Send + 'static,
    ) -> Reply<'static, T> {
        let (sender, receiver) = oneshot::channel();
        let job: Change = Box::new(move |tx| {
            Box::pin(async move {
                let made = match tx {
                    Ok(tx) => tx.alone(change).await.map_err(|fault| fault.told()),
                    Err(fault) => Err(fault),
                };
                let finish: Finish = Box::new(move |fault| {
                    drop(sender.send(fault.map_or(made, |fault| Err(fault.clone()))));
                });
                finish
            })
        });
        answered(self.push(Job::Change(job)), receiver)
    }

    /// No more jobs after this one.
    pub(super) fn shut(&self) {
        if !self.shut.swap(true, Ordering::SeqCst) {
            drop(self.queue.send(Job::Stop));
        }
    }

    /// A job has left the queue.
    pub(super) fn taken(&self, job: &Job) {
        if !matches!(job, Job::Stop) {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.waiting_bytes.fetch_sub(job.bytes(), Ordering::Relaxed);
        }
    }

    /// Whether a post that came at `since` may not be written any more.
    pub(super) fn is_too_late(&self, since: Instant) -> bool {
        since.elapsed() > self.room.wait
    }

    fn push(&self, job: Job) -> Result<(), StoreError> {
        if self.shut.load(Ordering::SeqCst) {
            return Err(closed());
        }
        let bytes = job.bytes();
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting_bytes = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        // Results and changes are bounded by those who make them; a full queue of posts must not
        // keep them out.
        let full =
            waiting >= self.room.jobs || waiting_bytes.saturating_add(bytes) > self.room.bytes;
        if full && matches!(job, Job::Accept(..)) || waiting >= self.room.jobs.saturating_mul(2) {
            self.taken(&job);
            return Err(StoreError::Overloaded);
        }
        self.queue.send(job).map_err(|_| closed())
    }
}

fn answered<T: Send + 'static>(
    pushed: Result<(), StoreError>,
    answer: oneshot::Receiver<Result<T, StoreError>>,
) -> Reply<'static, T> {
    Box::pin(async move {
        pushed?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    })
}
