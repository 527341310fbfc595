//! What the next piece of pruning takes away: found on a reader, in ranges of keys.
//!
//! One walk after the other: payloads of messages that named their day, dead letters, other
//! payloads, messages. Each reads a bounded number of rows from where the last piece stopped.
//! Never: change anything, or decide for good; `apply` looks again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::delivery::Pending;
use domain::ids::key_floor;
use domain::limits::{IDEMPOTENCY_WINDOW, PRUNE_ROWS_MAX};
use domain::message::hours;
use resilience::Timestamp;
use rusqlite::Connection;

use crate::StoreError;
use crate::prune::{Cursor, Retention};
use crate::sqlite::counts::counted;
use crate::sqlite::deliveries::fresh;
use crate::sqlite::queue::{bound, earliest};
use crate::sqlite::rows::{all, time_at, value};
use crate::sqlite::shared::Shared;
use crate::stored::codes::closed;
use crate::stored::numbers::narrow;

/// The next longer period that a message named.
pub(super) const PERIOD: &str = "SELECT min(retention_hours) FROM message INDEXED BY message_named
     WHERE retention_hours > ?1 AND payload IS NOT NULL";
/// Payloads of messages that named their period.
pub(super) const NAMED: &str = "SELECT key, accepted_at FROM message INDEXED BY message_named
     WHERE retention_hours = ?1 AND payload IS NOT NULL AND key < ?2 ORDER BY key LIMIT ?3";
/// Closed deliveries, dead letters or not.
pub(super) const CLOSED: &str =
    "SELECT place, state FROM closed WHERE place > ?1 AND place < ?2 ORDER BY place LIMIT ?3";
/// Messages, and whether the payload is there and by whose period.
pub(super) const MESSAGES: &str =
    "SELECT key, accepted_at, app, payload IS NOT NULL, retention_hours IS NOT NULL FROM message
     WHERE key > ?1 AND key < ?2 ORDER BY key LIMIT ?3";
/// Whether a delivery of a message is a dead letter or waits in a row that was moved.
pub(super) const NEEDED: &str =
    "SELECT 1 FROM closed INDEXED BY closed_of WHERE message = ?1 AND state = 1
     UNION ALL SELECT 1 FROM pending INDEXED BY pending_moved WHERE moved = 1 AND message = ?1";

/// Whether an attempt of a message is in no figures yet.
pub(super) const UNCOUNTED: &str =
    "SELECT 1 FROM attempt INDEXED BY attempt_of WHERE message = ?1 AND key > ?2";

/// Answers whose time is over.
pub(super) const ANSWERS: &str =
    "SELECT number, at FROM answer INDEXED BY answer_at WHERE at <= ?1 ORDER BY at LIMIT ?2";

/// A commit may be seen by readers so long after the time it carries.
const COMMIT_SLACK: Duration = Duration::from_secs(60);

/// What a piece is to do, and where it stands once all of it is done; `None`: there is nothing.
pub(in crate::sqlite) struct Plan {
    pub(in crate::sqlite) work: Work,
    pub(in crate::sqlite) reached: Option<Cursor>,
    /// Some of it is in no figures yet.
    pub(in crate::sqlite) uncounted: bool,
}

/// Things of one kind, oldest first.
pub(in crate::sqlite) enum Work {
    /// Answers, and when they were kept.
    Answers(Vec<(i64, i64)>),
    /// A message's payload, and the rows that wait for it and were never moved.
    Named(Vec<(i64, Vec<Pending>)>),
    /// By place.
    DeadLetters(Vec<i64>),
    /// By message.
    Payloads(Vec<i64>),
    /// Message and application.
    Messages(Vec<(i64, i64)>),
}

impl Work {
    pub(in crate::sqlite) const fn is_empty(&self) -> bool {
        match self {
            Self::Named(named) => named.is_empty(),
            Self::DeadLetters(keys) | Self::Payloads(keys) => keys.is_empty(),
            Self::Messages(pairs) | Self::Answers(pairs) => pairs.is_empty(),
        }
    }
}

/// Finds the next piece.
pub(super) fn plan(
    conn: &Connection,
    shared: &Shared,
    (now, keep): (Timestamp, &Retention),
    from: Cursor,
) -> Result<Plan, StoreError> {
    let answers = over(conn, now)?;
    if !answers.is_empty() {
        return Ok(Plan::new(Work::Answers(answers), Some(from)));
    }
    let mut search = Search { conn, shared, looked: false };
    let named = search.named(now)?;
    if !named.is_empty() {
        return Ok(Plan::new(Work::Named(named), Some(from)));
    }
    let span = (signed(from.dead_letters), signed(keep.dead_letter_floor(now)));
    let (letters, last) = dead_letters(conn, span)?;
    if let Some(last) = last {
        let reached = Some(Cursor { dead_letters: last, ..from });
        return Ok(Plan::new(Work::DeadLetters(letters), reached));
    }
    let oldest = keep.message_floor(now);
    if keep.payloads_go_first() {
        // What is older goes with its message.
        let after = from.payloads.max(oldest.saturating_sub(1));
        let span = (signed(after), signed(keep.payload_floor(now)));
        let (due, last) = search.walk(span, |row| row.payload && !row.named)?;
        if let Some(last) = last {
            let work = Work::Payloads(due.iter().map(|row| row.key).collect());
            return Ok(Plan::new(work, Some(Cursor { payloads: last, ..from })));
        }
    }
    let span = (signed(from.messages), signed(oldest));
    let (due, last) = search.walk(span, |row| !(row.payload && row.named))?;
    let uncounted = uncounted(conn, &due)?;
    let work = Work::Messages(due.iter().map(|row| (row.key, row.app)).collect());
    Ok(Plan { work, reached: last.map(|messages| Cursor { messages, ..from }), uncounted })
}

/// Whether any of these messages, or an attempt of one, is in no figures yet.
fn uncounted(conn: &Connection, due: &[Looked]) -> Result<bool, StoreError> {
    let counted = counted(conn)?;
    let mut attempts = conn.prepare_cached(UNCOUNTED)?;
    for message in due {
        if message.key > counted || attempts.exists([message.key, counted])? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Plan {
    const fn new(work: Work, reached: Option<Cursor>) -> Self {
        Self { work, reached, uncounted: false }
    }
}

/// Answers that nobody is given any more.
fn over(conn: &Connection, now: Timestamp) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut statement = conn.prepare_cached(ANSWERS)?;
    let until = now.minus(IDEMPOTENCY_WINDOW).as_micros();
    all(&mut statement.query([until, bound(PRUNE_ROWS_MAX)])?, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// A key as SQL compares it.
fn signed(key: u64) -> i64 {
    i64::try_from(key).unwrap_or(i64::MAX)
}

/// Places of dead letters, and of the last row that was looked at.
fn dead_letters(
    conn: &Connection,
    (after, before): (i64, i64),
) -> Result<(Vec<i64>, Option<u64>), StoreError> {
    let mut statement = conn.prepare_cached(CLOSED)?;
    let rows: Vec<(i64, i64)> =
        all(&mut statement.query([after, before, bound(PRUNE_ROWS_MAX)])?, |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let last = rows.last().map(|(place, _)| place.cast_unsigned());
    let dead = rows.into_iter().filter(|(_, state)| *state == closed::DEAD);
    Ok((dead.map(|(place, _)| place).collect(), last))
}

/// A message that is looked at.
struct Looked {
    key: i64,
    accepted_at: Timestamp,
    app: i64,
    payload: bool,
    named: bool,
}

struct Search<'c> {
    conn: &'c Connection,
    shared: &'c Shared,
    /// It was looked for the first pending row.
    looked: bool,
}

impl Search<'_> {
    /// Messages that named their period and are past their day. Few at a time: each may have many
    /// rows that wait.
    fn named(&mut self, now: Timestamp) -> Result<Vec<(i64, Vec<Pending>)>, StoreError> {
        let mut found = Vec::new();
        let mut periods = self.conn.prepare_cached(PERIOD)?;
        let mut period = 0;
        while let Some(next) = value(&mut periods.query([period])?)?.flatten() {
            period = next;
            let before = signed(key_floor(now.minus(hours(narrow(period)?))));
            let room = bound(PRUNE_ROWS_MAX - found.len());
            let mut statement = self.conn.prepare_cached(NAMED)?;
            let due: Vec<(i64, Timestamp)> =
                all(&mut statement.query([period, before, room])?, |row| {
                    Ok((row.get(0)?, time_at(row, 1)?))
                })?;
            for (key, accepted_at) in due {
                let fresh = self.fresh(key, accepted_at)?;
                let many = !fresh.is_empty();
                found.push((key, fresh));
                if many || found.len() == PRUNE_ROWS_MAX {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Messages of a range that are `due` and that no delivery needs, and the last one looked at.
    fn walk(
        &mut self,
        (after, before): (i64, i64),
        due: impl Fn(&Looked) -> bool,
    ) -> Result<(Vec<Looked>, Option<u64>), StoreError> {
        let mut statement = self.conn.prepare_cached(MESSAGES)?;
        let rows = all(&mut statement.query([after, before, bound(PRUNE_ROWS_MAX)])?, |row| {
            Ok(Looked {
                key: row.get(0)?,
                accepted_at: time_at(row, 1)?,
                app: row.get(2)?,
                payload: row.get(3)?,
                named: row.get(4)?,
            })
        })?;
        let last = rows.last().map(|row| row.key.cast_unsigned());
        let mut needed = self.conn.prepare_cached(NEEDED)?;
        let mut found = Vec::new();
        for row in rows {
            if due(&row)
                && !needed.exists([row.key])?
                && self.fresh(row.key, row.accepted_at)?.is_empty()
            {
                found.push(row);
            }
        }
        Ok((found, last))
    }

    /// Rows of a message that wait and were never moved. They are due when it was accepted, so that
    /// before the first pending row of all there are none.
    fn fresh(&mut self, message: i64, accepted_at: Timestamp) -> Result<Vec<Pending>, StoreError> {
        let at = accepted_at.as_micros();
        let mark = &self.shared.no_fresh_before;
        if at >= mark.load(Ordering::Relaxed) && !std::mem::replace(&mut self.looked, true) {
            let latest = self.shared.clock.now().minus(COMMIT_SLACK);
            let first = earliest(self.conn)?.map_or(latest, |first| first.min(latest));
            mark.fetch_max(first.as_micros(), Ordering::Relaxed);
        }
        if at < mark.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        fresh(self.conn, message)
    }
}
