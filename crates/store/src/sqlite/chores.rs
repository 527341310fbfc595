//! What the writer does besides: lists in arrears, idempotency keys that ran out, what deleted
//! endpoints left behind.
//!
//! One small piece at a time, at the head of a batch, each in a savepoint of its own.
//! Never: take longer than a few milliseconds, or fail a batch.

use std::time::{Duration, Instant};

use domain::delivery::CancelReason;
use domain::limits::OPERATION_ROWS_MAX;

use super::arrears::{ATTEMPTS, Arrears, MESSAGES};
use super::batch::Batch;
use super::deliveries::Ending;
use super::rows::{PENDING, all, pending, value};
use super::tx::Tx;
use crate::StoreError;
use crate::stored::codes::Code as _;

/// Deleted endpoints are looked for so often, and swept so long after their deletion: the engine
/// comes first.
const SWEEP_SPAN: Duration = Duration::from_secs(10);
const SWEEP_AFTER: Duration = Duration::from_secs(60);

/// The chores and how far they are.
pub(super) struct Chores {
    messages: Arrears,
    attempts: Arrears,
    /// The two lists take turns.
    attempts_next: bool,
    sweep_last: Instant,
    sweeping: bool,
}

impl Chores {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            messages: Arrears::new(MESSAGES, now),
            attempts: Arrears::new(ATTEMPTS, now),
            attempts_next: false,
            sweep_last: now,
            sweeping: false,
        }
    }

    pub(super) fn are_due(&self, now: Instant) -> bool {
        self.messages.is_due(now) || self.attempts.is_due(now) || self.sweep_is_due(now)
    }

    fn sweep_is_due(&self, now: Instant) -> bool {
        self.sweeping || now.duration_since(self.sweep_last) >= SWEEP_SPAN
    }

    /// Does one piece of what is due.
    pub(super) fn step(&mut self, tx: &mut Tx<'_>, now: Instant) -> Result<(), StoreError> {
        tx.lists_wanted &= self.messages.is_behind() || self.attempts.is_behind();
        let due = |list: &Arrears| list.is_due(now) || (tx.lists_wanted && list.is_behind());
        let (messages, attempts) = (due(&self.messages), due(&self.attempts));
        if tx.used.is_due(tx.now) {
            tx.batch.rows += tx.used.step(tx.conn, tx.now)?;
        } else if messages && !(attempts && self.attempts_next) {
            tx.batch.rows += self.messages.step(tx.conn, now)?;
            self.attempts_next = true;
        } else if attempts {
            tx.batch.rows += self.attempts.step(tx.conn, now)?;
            self.attempts_next = false;
        } else if self.sweep_is_due(now) {
            self.sweep_last = now;
            self.sweeping = sweep(tx)?;
        }
        Ok(())
    }

    /// The batch was committed.
    pub(super) fn confirm(&mut self, batch: &mut Batch) {
        self.messages.confirm(&mut batch.messages);
        self.attempts.confirm(&mut batch.attempts);
    }

    /// The batch was rolled back.
    pub(super) const fn undo(&mut self) {
        self.messages.undo();
        self.attempts.undo();
    }
}

/// Cancels a piece of what waits for a deleted endpoint; whether there may be more.
fn sweep(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let sql = "SELECT key FROM endpoint
               WHERE deleted_at IS NOT NULL AND swept = 0 AND deleted_at <= ?1 ORDER BY deleted_at LIMIT 1";
    let before = tx.now.minus(SWEEP_AFTER).as_micros();
    let found: Option<i64> = value(&mut tx.conn.prepare_cached(sql)?.query([before])?)?;
    let Some(endpoint) = found else { return Ok(false) };
    let sql = format!("SELECT {PENDING} FROM pending WHERE endpoint = ?1 LIMIT ?2");
    let limit = i64::try_from(OPERATION_ROWS_MAX).unwrap_or(i64::MAX);
    let rows = all(&mut tx.conn.prepare_cached(&sql)?.query([endpoint, limit])?, pending)?;
    for row in &rows {
        tx.remove_pending(row)?;
        if !row.trigger.is_extra() {
            let reason = CancelReason::EndpointDeleted.code();
            tx.close(row, Ending::cancelled(reason), row.sends)?;
        }
    }
    if rows.is_empty() {
        let conn = tx.conn;
        conn.prepare_cached("UPDATE endpoint SET swept = 1 WHERE key = ?1")?.execute([endpoint])?;
        conn.prepare_cached("DELETE FROM lane_state WHERE endpoint = ?1")?.execute([endpoint])?;
        conn.prepare_cached("DELETE FROM recovery WHERE endpoint = ?1")?.execute([endpoint])?;
    }
    Ok(true)
}
