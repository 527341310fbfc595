//! The one writer: takes what has queued up, writes it in one transaction, tells of it, answers.
//!
//! In: jobs. Out, in this order after each commit: `Commits` is told, then callers are answered. No
//! artificial wait: what arrives while a commit runs is the next batch. A change that fails rolls
//! back alone; any fault of the database rolls the whole batch back, and everybody in it is told.
//! Never: answer before the commit, or leave a transaction open between two batches.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use domain::limits::{BATCH_BYTES_MAX, BATCH_ROWS_MAX};
use rusqlite::Connection;

use super::answers::Waiting;
use super::batch::Batch;
use super::checkpoint::Log;
use super::chores::Chores;
use super::door::Job;
use super::shared::Shared;
use super::stopwatch::started;
use super::tx::Tx;
use crate::StoreError;
use crate::commits::BatchStats;

/// How long the writer sleeps when nothing is queued, so that chores come to their turn.
const IDLE: Duration = Duration::from_millis(250);

/// The writer's thread.
pub(super) struct Writer<'c> {
    pub(super) tx: Tx<'c>,
    shared: Arc<Shared>,
    chores: Chores,
    log: Log,
    told: Told,
}

/// Which faults were told of in the log: each is told once, and its end.
#[derive(Default)]
struct Told {
    batches: bool,
    chores: bool,
}

impl<'c> Writer<'c> {
    pub(super) fn new(conn: &'c Connection, shared: Arc<Shared>) -> Result<Self, StoreError> {
        Ok(Self {
            tx: Tx::new(conn, shared.clock.now(), Arc::clone(&shared.keeps_mails))?,
            log: Log::new(conn),
            shared,
            chores: Chores::new(started()),
            told: Told::default(),
        })
    }

    /// Runs until the store closes.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut open = true;
        while open {
            open = match jobs.recv_timeout(IDLE) {
                Ok(job) => self.turn(Some(job), jobs),
                Err(RecvTimeoutError::Timeout) => self.turn(None, jobs),
                Err(RecvTimeoutError::Disconnected) => false,
            };
            self.look();
        }
        // What was queued behind the last job still gets its turn.
        while let Ok(job) = jobs.try_recv() {
            self.turn(Some(job), jobs);
        }
    }

    /// Keeps the log short, between two batches.
    pub(super) fn look(&mut self) {
        self.log.look(self.tx.conn);
    }

    /// One batch; `false` when the store is closing.
    pub(super) fn turn(&mut self, first: Option<Job>, jobs: &Receiver<Job>) -> bool {
        let begun = started();
        self.tx.now = self.shared.clock.now();
        let chores =
            self.chores.are_due(begun) || self.tx.lists_wanted || self.tx.used.is_due(self.tx.now);
        if first.is_none() && !chores {
            return true;
        }
        self.tx.fault = self.tx.hot.begin.execute([]).err().map(StoreError::from);
        let done = chores && self.try_chore(begun);
        let (before, working) = (self.tx.batch.rows, started());
        let mut waiting = Vec::new();
        let mut open = true;
        let mut next = first;
        while let Some(job) = next {
            if matches!(job, Job::Stop) {
                open = false;
                break;
            }
            self.shared.door.taken(&job);
            self.tx.batch.bytes += job.bytes();
            waiting.push(self.perform(job));
            let rows = self.tx.batch.rows.saturating_sub(before);
            let full = rows >= BATCH_ROWS_MAX || self.tx.batch.bytes >= BATCH_BYTES_MAX;
            next = if full || working.elapsed() >= self.shared.batch_time_max {
                None
            } else {
                jobs.try_recv().ok()
            };
        }
        let operations = waiting.len();
        let batch = self.end(operations);
        let took = begun.elapsed();
        let committed = self.tx.fault.is_none();
        if done && committed && std::mem::take(&mut self.told.chores) {
            tracing::info!("chores of the store are done again");
        }
        let stats = BatchStats { operations, rows: batch.rows, took, committed };
        self.tell(batch, waiting, stats);
        open
    }

    fn perform(&mut self, job: Job) -> Waiting {
        match job {
            Job::Accept(new, since, caller) => {
                // Refused before it is written, so that the answer is true.
                let made = if self.shared.door.is_too_late(since) {
                    Err(StoreError::Overloaded)
                } else {
                    self.tx.together(|tx| tx.accept(*new))
                };
                Waiting::Accept(caller, made)
            }
            Job::Record(records, caller) => {
                let made = self.tx.together(|tx| tx.record(records));
                Waiting::Record(caller, made)
            }
            Job::Change(change) => Waiting::Change(change(&mut self.tx)),
            #[cfg(test)]
            Job::Chore(due, caller) => {
                let made = self.chore(due);
                Waiting::Change(Box::new(move |_| drop(caller.send(made))))
            }
            Job::Stop => Waiting::Change(Box::new(|_| ())),
        }
    }

    /// Commits, or rolls everything back; answers with what the batch has done.
    fn end(&mut self, operations: usize) -> Batch {
        let Self { tx, chores, shared, told, .. } = self;
        if tx.fault.is_none()
            && let Err(fault) = tx.hot.commit.execute([])
        {
            tx.fault = Some(fault.into());
        }
        if let Some(fault) = &tx.fault {
            if !std::mem::replace(&mut told.batches, true) {
                tracing::warn!(%fault, "nothing is committed: a batch was rolled back");
            }
            if !tx.conn.is_autocommit()
                && let Err(fault) = tx.conn.execute_batch("ROLLBACK")
            {
                tracing::warn!(code = ?fault.sqlite_error_code(), "the roll-back failed");
            }
            tx.failed = true;
            tx.undo();
            chores.undo();
            return Batch::default();
        }
        let mut batch = tx.confirm();
        // One that wrote nothing proves nothing, and a chore writes too little to prove much.
        tx.failed &= batch.rows == 0 || operations == 0;
        if batch.rows > 0 && std::mem::take(&mut told.batches) {
            tracing::info!("batches are committed again");
        }
        chores.confirm(&mut batch);
        shared.depth.fetch_add(batch.depth, Ordering::Relaxed);
        shared.written.fetch_add(batch.rows, Ordering::Relaxed);
        batch
    }

    /// Tells of a batch that ended: first the engine, then the callers.
    fn tell(&self, batch: Batch, waiting: Vec<Waiting>, stats: BatchStats) {
        if let Some(commits) = self.shared.commits.get() {
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
        self.shared.answers.give(waiting, self.tx.fault.clone());
    }

    /// Does one chore; whether it was done. Where the whole batch is lost that is told of it.
    fn try_chore(&mut self, begun: Instant) -> bool {
        let done = self.chore(begun);
        if let Err(fault) = &done
            && self.tx.fault.is_none()
            && !std::mem::replace(&mut self.told.chores, true)
        {
            tracing::warn!(%fault, "a chore of the store failed");
        }
        done.is_ok()
    }

    /// Does one chore, if one is due.
    fn chore(&mut self, begun: Instant) -> Result<(), StoreError> {
        let Self { tx, chores, .. } = self;
        let done = tx.alone(|tx| chores.step(tx, begun));
        if done.is_err() {
            chores.undo();
        }
        done
    }
}
