//! Taking a piece of what is due away, on the writer.
//!
//! A piece ends after 500 rows or 2 ms of writing. What has come to need a message since the plan
//! was made keeps it.
//! Never: leave a row behind that belongs to a message which is gone.

use domain::ids::MessageKey;
use domain::limits::{PRUNE_ROWS_MAX, PRUNE_TIME_MAX};
use rusqlite::params;

use super::plan::{NEEDED, Plan, Work};
use crate::StoreError;
use crate::prune::{Counts, Cursor, Pruned};
use crate::sqlite::arrears::{ATTEMPTS, MESSAGES, listed, unlist};
use crate::sqlite::counts::counted;
use crate::sqlite::queue::bound;
use crate::sqlite::rows::all;
use crate::sqlite::stopwatch::started;
use crate::sqlite::tx::Tx;
use crate::stored::codes::closed;

pub(super) const DISCARD: &str = "UPDATE closed SET state = ?2 WHERE place = ?1 AND state = ?3";
pub(super) const CLEAR: &str =
    "UPDATE message SET payload = NULL WHERE key = ?1 AND payload IS NOT NULL";
pub(super) const ATTEMPTS_OF: &str =
    "SELECT key, endpoint FROM attempt INDEXED BY attempt_of WHERE message = ?1 LIMIT ?2";
pub(super) const DELETE_ATTEMPT: &str = "DELETE FROM attempt WHERE key = ?1";
pub(super) const DELETE_CLOSED: &str = "DELETE FROM closed WHERE place IN
     (SELECT place FROM closed INDEXED BY closed_of WHERE message = ?1 LIMIT ?2)";
pub(super) const DELETE_ANSWER: &str = "DELETE FROM answer WHERE number = ?1 AND at = ?2";
pub(super) const DELETE_MESSAGE: &str = "DELETE FROM message WHERE key = ?1";
const DELETE_EDIT: &str = "DELETE FROM edit WHERE message = ?1";

/// Attempts of one message that go at once, though the piece has room for more.
const AT_ONCE: usize = 100;

/// How a piece ended.
enum End {
    /// All of it is done.
    All,
    /// This was the last thing that is done, if any is.
    After(Option<i64>),
}

impl Tx<'_> {
    /// Takes away what was planned, as far as it fits a piece that begins at `from`.
    pub(in crate::sqlite) fn prune(
        &mut self,
        plan: Plan,
        from: Cursor,
    ) -> Result<Pruned, StoreError> {
        let mut counts = Counts::default();
        let (end, after): (End, fn(u64, Cursor) -> Cursor) = match plan.work {
            Work::Answers(answers) => {
                let end = self.each(
                    &answers,
                    |(number, _)| *number,
                    |tx, (number, at), _| {
                        // One that was kept anew since the plan was made stays.
                        counts.answers += tx.write(DELETE_ANSWER, [number, at])?;
                        Ok(true)
                    },
                );
                (end?, |_, from| from)
            }
            Work::Named(named) => {
                let end = self.each(
                    &named,
                    |(key, _)| *key,
                    |tx, (key, fresh), room| {
                        // Two rows for each delivery that dies.
                        let (message, most) = (MessageKey(key.cast_unsigned()), (room / 2).max(1));
                        let alone = tx.withdraw(message, fresh, most)?;
                        counts.payloads += if alone { tx.clear(*key)? } else { 0 };
                        Ok(alone)
                    },
                );
                (end?, |_, from| from)
            }
            Work::DeadLetters(places) => {
                let end = self.each(
                    &places,
                    |place| *place,
                    |tx, place, _| {
                        let values = params![place, closed::DISCARDED, closed::DEAD];
                        counts.dead_letters += tx.write(DISCARD, values)?;
                        Ok(true)
                    },
                );
                (end?, |dead_letters, from| Cursor { dead_letters, ..from })
            }
            Work::Payloads(keys) => {
                let end = self.each(
                    &keys,
                    |key| *key,
                    |tx, key, _| {
                        counts.payloads += if tx.is_needed(*key)? { 0 } else { tx.clear(*key)? };
                        Ok(true)
                    },
                );
                (end?, |payloads, from| Cursor { payloads, ..from })
            }
            Work::Messages(messages) => {
                let end = self.each(
                    &messages,
                    |(key, _)| *key,
                    |tx, message, room| tx.prune_message(*message, room, &mut counts),
                );
                (end?, |messages, from| Cursor { messages, ..from })
            }
        };
        let reached = match end {
            End::All => plan.reached.unwrap_or(from),
            End::After(last) => last.map_or(from, |last| after(last.cast_unsigned(), from)),
        };
        Ok(Pruned { counts, reached, more: true })
    }

    /// Does one thing after the other while there is room; `act` says whether it is done with its
    /// one.
    fn each<T>(
        &mut self,
        things: &[T],
        key: impl Fn(&T) -> i64,
        mut act: impl FnMut(&mut Self, &T, usize) -> Result<bool, StoreError>,
    ) -> Result<End, StoreError> {
        let (begun, before) = (started(), self.batch.rows);
        let mut last = None;
        for thing in things {
            let room = (before + PRUNE_ROWS_MAX).saturating_sub(self.batch.rows);
            let late = last.is_some() && begun.elapsed() >= PRUNE_TIME_MAX;
            if room == 0 || late || !act(self, thing, room)? {
                return Ok(End::After(last));
            }
            last = Some(key(thing));
        }
        Ok(End::All)
    }

    /// A message with everything that belongs to it, its attempts first; whether it is done with.
    fn prune_message(
        &mut self,
        (key, app): (i64, i64),
        room: usize,
        counts: &mut Counts,
    ) -> Result<bool, StoreError> {
        if self.is_needed(key)? {
            return Ok(true);
        }
        let conn = self.conn;
        // Each may take a row of a list with it.
        let most = (room / 2).clamp(1, AT_ONCE);
        let attempts: Vec<(i64, i64)> = {
            let mut statement = conn.prepare_cached(ATTEMPTS_OF)?;
            all(&mut statement.query([key, bound(most)])?, |row| Ok((row.get(0)?, row.get(1)?)))?
        };
        let newest = attempts.iter().map(|(key, _)| *key).max().unwrap_or(0);
        if key.max(newest) > counted(conn)? {
            // The next plan sees that, and counts it first.
            return Ok(false);
        }
        if key > listed(conn, &MESSAGES)? || newest > listed(conn, &ATTEMPTS)? {
            // A list must not name what is gone: it is filled first.
            self.lists_wanted = true;
            return Ok(false);
        }
        for (attempt, endpoint) in &attempts {
            counts.attempts += self.write(DELETE_ATTEMPT, [attempt])?;
            self.batch.rows += unlist(conn, &ATTEMPTS, (*endpoint, *attempt))?;
        }
        if attempts.len() == most || self.write(DELETE_CLOSED, [key, bound(most)])? == most {
            // There may be more.
            return Ok(false);
        }
        self.write(DELETE_EDIT, [key])?;
        counts.messages += self.write(DELETE_MESSAGE, [key])?;
        self.batch.rows += unlist(conn, &MESSAGES, (app, key))?;
        Ok(true)
    }

    /// Whether a delivery has come to need the message since the plan was made.
    fn is_needed(&self, message: i64) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached(NEEDED)?.exists([message])?)
    }

    fn clear(&mut self, message: i64) -> Result<usize, StoreError> {
        self.write(CLEAR, [message])
    }

    fn write(&mut self, sql: &str, values: impl rusqlite::Params) -> Result<usize, StoreError> {
        let written = self.conn.prepare_cached(sql)?.execute(values)?;
        self.batch.rows += written;
        Ok(written)
    }
}
