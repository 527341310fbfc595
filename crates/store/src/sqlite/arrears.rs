//! Lists by application and by endpoint, filled in arrears.
//!
//! What was committed since the last time is sorted and written in small pieces, so that a list's
//! leaf is touched once for many rows. `listed` moves only when a whole window is in; readers take
//! the index up to there and the table itself beyond, so that they see every committed row exactly
//! once.
//! Never: a row in a list that is not committed, or a window larger than its bound.

use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::rows::{all, value};
use crate::StoreError;

/// Rows of one window.
const WINDOW_ROWS_MAX: usize = 16_384;
/// A window begins at the latest so long after the last.
const WINDOW_SPAN: Duration = Duration::from_secs(1);
/// Rows written in one batch.
const PIECE_ROWS: usize = 2_000;
/// Rows of one statement.
const STATEMENT_ROWS: usize = 50;
/// Rows remembered; beyond it they are read back from the table.
const REMEMBERED_MAX: usize = 262_144;

/// The statements of one list.
pub(super) struct Kind {
    /// Its row in `listed`.
    name: &'static str,
    table: &'static str,
    load: &'static str,
}

/// Messages by application.
pub(super) const MESSAGES: Kind = Kind {
    name: "messages",
    table: "message_by_app",
    load: "SELECT app, key FROM message WHERE key > ?1 ORDER BY key LIMIT ?2",
};

/// Attempts by endpoint.
pub(super) const ATTEMPTS: Kind = Kind {
    name: "attempts",
    table: "attempt_by_endpoint",
    load: "SELECT endpoint, key FROM attempt WHERE key > ?1 ORDER BY key LIMIT ?2",
};

/// Up to which key a list is filled.
pub(super) fn listed(conn: &Connection, kind: &Kind) -> Result<i64, StoreError> {
    let mut statement = conn.prepare_cached("SELECT up_to FROM listed WHERE name = ?1")?;
    Ok(value(&mut statement.query([kind.name])?)?.unwrap_or(0))
}

/// One list that is being filled.
pub(super) struct Arrears {
    kind: Kind,
    /// Committed rows beyond the window, in order of their keys; all of them unless `behind`.
    committed: Vec<(i64, i64)>,
    /// There are rows in the table that are neither listed nor remembered.
    behind: bool,
    /// What is being written, sorted.
    window: Vec<(i64, i64)>,
    /// The largest key of the window.
    up_to: i64,
    /// Rows of the window that are committed to the list, and with those of the running batch.
    done: usize,
    staged: usize,
    last: Instant,
}

impl Arrears {
    /// Begins with whatever the table holds beyond what is listed.
    pub(super) const fn new(kind: Kind, now: Instant) -> Self {
        Self {
            kind,
            committed: Vec::new(),
            behind: true,
            window: Vec::new(),
            up_to: 0,
            done: 0,
            staged: 0,
            last: now,
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        if !self.window.is_empty() || self.behind || self.committed.len() >= WINDOW_ROWS_MAX {
            return true;
        }
        !self.committed.is_empty() && now.duration_since(self.last) >= WINDOW_SPAN
    }

    /// Writes one piece; answers with the number of rows.
    pub(super) fn step(&mut self, conn: &Connection, now: Instant) -> Result<usize, StoreError> {
        if self.window.is_empty() {
            self.begin(conn)?;
            self.last = now;
        }
        let end = self.window.len().min(self.done + PIECE_ROWS);
        if end == self.done {
            return Ok(0);
        }
        let (many, few) = self.window[self.done..end].as_chunks::<STATEMENT_ROWS>();
        many.iter().try_for_each(|rows| self.insert(conn, rows))?;
        few.iter().try_for_each(|row| self.insert(conn, std::slice::from_ref(row)))?;
        if end == self.window.len() {
            let sql = "INSERT INTO listed (name, up_to) VALUES (?1, ?2)
                       ON CONFLICT (name) DO UPDATE SET up_to = excluded.up_to";
            conn.prepare_cached(sql)?.execute(params![self.kind.name, self.up_to])?;
        }
        self.staged = end;
        Ok(end - self.done)
    }

    /// Many rows in one statement cost a third of what they cost alone.
    fn insert(&self, conn: &Connection, rows: &[(i64, i64)]) -> Result<(), StoreError> {
        let values = vec!["(?, ?)"; rows.len()].join(", ");
        let sql =
            format!("INSERT OR IGNORE INTO {} (owner, place) VALUES {values}", self.kind.table);
        let values = rows.iter().flat_map(|(owner, key)| [*owner, *key]);
        conn.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values))?;
        Ok(())
    }

    fn begin(&mut self, conn: &Connection) -> Result<(), StoreError> {
        if self.behind {
            let from = listed(conn, &self.kind)?;
            let limit = i64::try_from(WINDOW_ROWS_MAX).unwrap_or(i64::MAX);
            let mut load = conn.prepare_cached(self.kind.load)?;
            self.window =
                all(&mut load.query(params![from, limit])?, |row| Ok((row.get(0)?, row.get(1)?)))?;
            self.behind = self.window.len() == WINDOW_ROWS_MAX;
        } else {
            let rest = self.committed.split_off(self.committed.len().min(WINDOW_ROWS_MAX));
            self.window = std::mem::replace(&mut self.committed, rest);
        }
        self.up_to = self.window.last().map_or(0, |(_, key)| *key);
        self.window.sort_unstable();
        (self.done, self.staged) = (0, 0);
        Ok(())
    }

    /// The batch was committed, and these rows with it.
    pub(super) fn confirm(&mut self, rows: &mut Vec<(i64, i64)>) {
        self.done = self.staged;
        if self.done == self.window.len() {
            self.window.clear();
            (self.done, self.staged) = (0, 0);
        }
        if self.behind {
            return;
        }
        self.committed.append(rows);
        if self.committed.len() > REMEMBERED_MAX {
            self.committed = Vec::new();
            self.behind = true;
        }
    }

    /// The batch was rolled back.
    pub(super) const fn undo(&mut self) {
        self.staged = self.done;
    }
}
