//! Retention, in PostgreSQL: a reader picks what is due, the writer takes a piece of it away.
//!
//! One walk after the other: answers, payloads of messages that named their day, dead letters,
//! other payloads, messages. Each reads a bounded number of rows from where the last piece stopped;
//! the writer looks again, in the transaction that deletes.
//! Never: hold up the writer for a search, or read a table from its beginning for each piece.

use domain::ids::{MessageKey, key_floor};
use domain::limits::{IDEMPOTENCY_WINDOW, PRUNE_ROWS_MAX};
use domain::message::hours;
use resilience::Timestamp;

use super::PostgresStore;
use super::conn::{Conn, all, exists, value};
use super::fault::Fault;
use super::rows::{At, bound, get};
use super::tx::{KEEP_LAST_KEY, Tx};
use crate::Reply;
use crate::prune::{Counts, Cursor, Prune, Pruned, Retention};
use crate::stored::numbers::narrow;

const OVER: &str = "SELECT 1 FROM answer WHERE at <= $1 LIMIT 1";
const DELETE_ANSWERS: &str = "DELETE FROM answer WHERE scope IN
     (SELECT scope FROM answer WHERE at <= $1 ORDER BY at LIMIT $2)";
/// The next longer period that a message named.
const PERIOD: &str =
    "SELECT min(retention_hours) FROM message WHERE retention_hours > $1 AND payload IS NOT NULL";
const NAMED: &str = "SELECT key FROM message
     WHERE retention_hours = $1 AND payload IS NOT NULL AND key < $2 ORDER BY retention_hours, key LIMIT $3";
const LETTERS: &str =
    "SELECT place, state = 1 FROM closed WHERE place > $1 AND place < $2 ORDER BY place LIMIT $3";
const DISCARD: &str = "UPDATE closed SET state = 3 WHERE place = ANY($1) AND state = 1";
/// Whether a delivery of a message waits or is a dead letter.
const NEEDED: &str =
    "(EXISTS (SELECT 1 FROM closed WHERE closed.message = message.key AND closed.state = 1)
     OR EXISTS (SELECT 1 FROM pending WHERE pending.message = message.key))";
/// Whether some of these messages, or an attempt of one, is in no figures yet.
const UNCOUNTED: &str =
    "SELECT 1 FROM attempt WHERE message = ANY($1) AND key > (SELECT up_to FROM figure_mark WHERE one = 1)
     UNION ALL SELECT 1 FROM unnest($1::bigint[]) AS message (key)
     WHERE key > (SELECT up_to FROM figure_mark WHERE one = 1) LIMIT 1";
const CLEAR_ONE: &str = "UPDATE message SET payload = NULL WHERE key = $1 AND payload IS NOT NULL";
const DELETE_SOME_ATTEMPTS: &str = "DELETE FROM attempt WHERE key IN
     (SELECT key FROM attempt WHERE message = $1 ORDER BY message, endpoint, n LIMIT $2)";
const DELETE_ATTEMPTS: &str = "DELETE FROM attempt WHERE message = ANY($1)";
const DELETE_CLOSED: &str = "DELETE FROM closed WHERE message = ANY($1)";
const DELETE_EDITS: &str = "DELETE FROM edit WHERE message = ANY($1)";
const DELETE_MESSAGES: &str = "DELETE FROM message WHERE key = ANY($1)";

impl Prune for PostgresStore {
    fn prune(&self, now: Timestamp, keep: Retention, from: Cursor) -> Reply<'static, Pruned> {
        let planned = self.read(move |conn| async move { plan(&conn, (now, &keep), from).await });
        let shared = std::sync::Arc::clone(&self.shared);
        Box::pin(async move {
            let plan = planned.await?;
            if plan.uncounted {
                // What goes is counted first.
                shared.door.change(|tx| Box::pin(tx.count_some())).await?;
                return Ok(Pruned { reached: from, more: true, ..Pruned::default() });
            }
            if plan.work.is_empty() {
                let Some(reached) = plan.reached else {
                    return Ok(Pruned { reached: from, ..Pruned::default() });
                };
                return Ok(Pruned { reached, more: true, ..Pruned::default() });
            }
            shared.door.change(move |tx| Box::pin(tx.prune(plan, from))).await
        })
    }
}

/// What a piece is to do, and where it stands once all of it is done; `None`: there is nothing.
struct Plan {
    work: Work,
    reached: Option<Cursor>,
    /// Some of it is in no figures yet.
    uncounted: bool,
}

impl Plan {
    const fn new(work: Work, reached: Option<Cursor>) -> Self {
        Self { work, reached, uncounted: false }
    }
}

/// Things of one kind, oldest first.
enum Work {
    /// All that were kept by then.
    Answers(Timestamp),
    Named(Vec<i64>),
    Letters(Vec<i64>),
    Payloads(Vec<i64>),
    Messages(Vec<i64>),
}

impl Work {
    const fn is_empty(&self) -> bool {
        match self {
            Self::Answers(_) => false,
            Self::Named(keys)
            | Self::Letters(keys)
            | Self::Payloads(keys)
            | Self::Messages(keys) => keys.is_empty(),
        }
    }
}

/// Finds the next piece.
async fn plan(
    conn: &Conn,
    (now, keep): (Timestamp, &Retention),
    from: Cursor,
) -> Result<Plan, Fault> {
    let over = now.minus(IDEMPOTENCY_WINDOW);
    if exists(conn, OVER, &[&At(over)]).await? {
        return Ok(Plan::new(Work::Answers(over), Some(from)));
    }
    let named = named(conn, now).await?;
    if !named.is_empty() {
        return Ok(Plan::new(Work::Named(named), Some(from)));
    }
    let (after, before) = (signed(from.dead_letters), signed(keep.dead_letter_floor(now)));
    let (letters, last) = walk(conn, LETTERS, (after, before)).await?;
    if let Some(dead_letters) = last {
        let reached = Some(Cursor { dead_letters, ..from });
        return Ok(Plan::new(Work::Letters(letters), reached));
    }
    let oldest = keep.message_floor(now);
    if keep.payloads_go_first() {
        // What is older goes with its message.
        let after = from.payloads.max(oldest.saturating_sub(1));
        let span = (signed(after), signed(keep.payload_floor(now)));
        let due = format!("payload IS NOT NULL AND retention_hours IS NULL AND NOT {NEEDED}");
        let (keys, last) = walk(conn, &messages(&due), span).await?;
        if let Some(payloads) = last {
            let reached = Some(Cursor { payloads, ..from });
            return Ok(Plan::new(Work::Payloads(keys), reached));
        }
    }
    let due = format!("NOT (payload IS NOT NULL AND retention_hours IS NOT NULL) AND NOT {NEEDED}");
    let span = (signed(from.messages), signed(oldest));
    let (keys, last) = walk(conn, &messages(&due), span).await?;
    let reached = last.map(|messages| Cursor { messages, ..from });
    let uncounted = exists(conn, UNCOUNTED, &[&keys]).await?;
    Ok(Plan { work: Work::Messages(keys), reached, uncounted })
}

/// Messages of a range, and whether they are due.
fn messages(due: &str) -> String {
    format!("SELECT key, {due} FROM message WHERE key > $1 AND key < $2 ORDER BY key LIMIT $3")
}

/// Keys of a range that are due, and the last one that was looked at.
async fn walk(
    conn: &Conn,
    sql: &str,
    (after, before): (i64, i64),
) -> Result<(Vec<i64>, Option<u64>), Fault> {
    let values: super::conn::Params<'_> = &[&after, &before, &bound(PRUNE_ROWS_MAX)];
    let rows: Vec<(i64, bool)> =
        all(conn, sql, values, |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
    let last = rows.last().map(|(key, _)| key.cast_unsigned());
    Ok((rows.into_iter().filter(|(_, due)| *due).map(|(key, _)| key).collect(), last))
}

/// Messages that named their period and are past their day.
async fn named(conn: &Conn, now: Timestamp) -> Result<Vec<i64>, Fault> {
    let (mut found, mut period) = (Vec::new(), 0_i64);
    while let Some(next) = value(conn, PERIOD, &[&period]).await? {
        period = next;
        let before = signed(key_floor(now.minus(hours(narrow(period)?))));
        let room = bound(PRUNE_ROWS_MAX - found.len());
        found.extend(all(conn, NAMED, &[&period, &before, &room], |row| get::<i64>(row, 0)).await?);
        if found.len() >= PRUNE_ROWS_MAX {
            break;
        }
    }
    Ok(found)
}

/// A key as SQL compares it.
fn signed(key: u64) -> i64 {
    i64::try_from(key).unwrap_or(i64::MAX)
}

impl Tx {
    /// Takes away what was planned, as far as it fits a piece that begins at `from`.
    async fn prune(&mut self, plan: Plan, from: Cursor) -> Result<Pruned, Fault> {
        let mut counts = Counts::default();
        let mut reached = plan.reached.unwrap_or(from);
        match plan.work {
            Work::Answers(over) => {
                let values = (At(over), bound(PRUNE_ROWS_MAX));
                counts.answers = self.write(DELETE_ANSWERS, &[&values.0, &values.1]).await?;
            }
            Work::Named(keys) => counts.payloads = self.clear_named(&keys).await?,
            Work::Letters(places) => counts.dead_letters = self.write(DISCARD, &[&places]).await?,
            Work::Payloads(keys) => {
                let sql = format!(
                    "UPDATE message SET payload = NULL
                     WHERE key = ANY($1) AND payload IS NOT NULL AND NOT {NEEDED}"
                );
                counts.payloads = self.write(&sql, &[&keys]).await?;
            }
            Work::Messages(keys) => {
                if let Some(messages) = self.prune_messages(&keys, &mut counts).await? {
                    reached = Cursor { messages: messages.unwrap_or(from.messages), ..from };
                }
            }
        }
        Ok(Pruned { counts, reached, more: true })
    }

    /// Payloads of messages that named their day, and what waits for them.
    async fn clear_named(&mut self, keys: &[i64]) -> Result<usize, Fault> {
        let (end, mut cleared) = (self.batch.rows + PRUNE_ROWS_MAX, 0);
        for key in keys {
            // Two rows for each delivery that dies.
            let room = end.saturating_sub(self.batch.rows);
            let alone = match room {
                0 => false,
                room => self.withdraw(MessageKey(key.cast_unsigned()), (room / 2).max(1)).await?,
            };
            if !alone {
                break;
            }
            cleared += self.write(CLEAR_ONE, &[key]).await?;
        }
        Ok(cleared)
    }

    /// Messages with everything that belongs to them. `None` when all of them are done with, else
    /// the last that is, if one is.
    async fn prune_messages(
        &mut self,
        keys: &[i64],
        counts: &mut Counts,
    ) -> Result<Option<Option<u64>>, Fault> {
        if exists(self.conn(), UNCOUNTED, &[&keys]).await? {
            // The next plan sees that, and counts it first.
            return Ok(Some(None));
        }
        let sql = format!(
            "SELECT key, 1 + (SELECT count(*) FROM attempt WHERE attempt.message = message.key)
                 + (SELECT count(*) FROM closed WHERE closed.message = message.key), {NEEDED}
             FROM message WHERE key = ANY($1) ORDER BY key"
        );
        let found: Vec<(i64, i64, bool)> =
            all(self.conn(), &sql, &[&keys], |row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))
                .await?;
        let (mut room, mut last, mut cut, mut due) = (bound(PRUNE_ROWS_MAX), None, None, vec![]);
        for (key, rows, needed) in found {
            if needed {
                last = Some(key);
                continue;
            }
            room -= rows;
            if room < 0 {
                cut = Some(key);
                break;
            }
            due.push(key);
            last = Some(key);
        }
        if let (Some(large), true) = (cut, due.is_empty()) {
            // It alone does not fit a piece: its attempts go first.
            let most = bound(PRUNE_ROWS_MAX);
            let gone = self.write(DELETE_SOME_ATTEMPTS, &[&large, &most]).await?;
            counts.attempts += gone;
            if gone == 0 {
                counts.messages += self.delete_messages(&[large], counts).await?;
                last = Some(large);
            }
        } else {
            counts.messages += self.delete_messages(&due, counts).await?;
        }
        Ok(cut.map(|_| last.map(i64::cast_unsigned)))
    }

    async fn delete_messages(&mut self, keys: &[i64], counts: &mut Counts) -> Result<usize, Fault> {
        // What was drawn is gone, and nothing new may fall below it.
        let last = self.last().to_be_bytes();
        self.write(KEEP_LAST_KEY, &[&&last[..]]).await?;
        counts.attempts += self.write(DELETE_ATTEMPTS, &[&keys]).await?;
        self.write(DELETE_CLOSED, &[&keys]).await?;
        self.write(DELETE_EDITS, &[&keys]).await?;
        self.write(DELETE_MESSAGES, &[&keys]).await
    }
}
