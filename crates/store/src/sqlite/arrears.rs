//! Lists by application and by endpoint, filled in arrears.
//!
//! What was committed since the last time is sorted by owner and written in packed rows of many
//! keys, a few rows in each batch, so that a message costs a list next to nothing. `listed` moves
//! only when a whole window is in; readers take the list up to there and the table itself beyond,
//! so that they see every committed row exactly once. A window cut off by a crash is written again
//! with the very same rows.
//! Never: a row in a list that is not committed, or a window larger than its bound.

use std::ops::Range;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Row, params};

use super::rows::{all, one, order, value};
use crate::StoreError;
use crate::page::Direction;
use crate::stored::fault::unreadable;

/// Keys of one window.
const WINDOW_KEYS_MAX: usize = 16_384;
/// A window begins at the latest so long after the last.
const WINDOW_SPAN: Duration = Duration::from_secs(1);
/// Keys of one row: as many as fit a quarter of a page.
const ROW_KEYS: usize = 100;
/// Rows written in one batch.
const PIECE_ROWS: usize = 500;
/// Keys remembered; beyond it they are read back from the table.
const REMEMBERED_MAX: usize = 262_144;

/// The statements of one list.
pub(super) struct Kind {
    /// Its row in `listed`.
    name: &'static str,
    table: &'static str,
    load: &'static str,
    exists: &'static str,
}

/// Messages by application.
pub(super) const MESSAGES: Kind = Kind {
    name: "messages",
    table: "message_by_app",
    load: "SELECT app, key FROM message WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
    exists: "SELECT 1 FROM message WHERE key = ?1",
};

/// Attempts by endpoint.
pub(super) const ATTEMPTS: Kind = Kind {
    name: "attempts",
    table: "attempt_by_endpoint",
    load: "SELECT endpoint, key FROM attempt WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3",
    exists: "SELECT 1 FROM attempt WHERE key = ?1",
};

/// Up to which key a list is filled.
pub(super) fn listed(conn: &Connection, kind: &Kind) -> Result<i64, StoreError> {
    let mut statement = conn.prepare_cached("SELECT up_to FROM listed WHERE name = ?1")?;
    Ok(value(&mut statement.query([kind.name])?)?.unwrap_or(0))
}

/// Keys of an owner from `low` to `high`, in the order asked for, at most `limit`.
pub(super) fn keys_of(
    conn: &Connection,
    kind: &Kind,
    (owner, low, high): (i64, i64, i64),
    direction: Direction,
    limit: usize,
) -> Result<Vec<i64>, StoreError> {
    // A row reaches up to its last key: the first row that ends beyond the range may begin in it.
    let sql = format!(
        "SELECT keys FROM {table} WHERE owner = ?1 AND last >= ?2 AND last <= coalesce(
             (SELECT min(last) FROM {table} WHERE owner = ?1 AND last >= ?3), {max})
         ORDER BY last {order}",
        table = kind.table,
        max = i64::MAX,
        order = order(direction),
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([owner, low, high])?;
    let mut keys = Vec::new();
    while keys.len() < limit
        && let Some(row) = rows.next()?
    {
        let begin = keys.len();
        keys.extend(unpacked(row)?.filter(|key| (low..=high).contains(key)));
        if direction == Direction::Descending {
            keys[begin..].reverse();
        }
    }
    keys.truncate(limit);
    Ok(keys)
}

/// The keys of a row of a list.
fn unpacked<'r>(row: &'r Row<'_>) -> Result<impl Iterator<Item = i64> + 'r, StoreError> {
    let (packed, rest) = row.get_ref(0)?.as_blob().map_err(|_| unreadable())?.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(unreadable());
    }
    Ok(packed.iter().map(|key| i64::from_be_bytes(*key)))
}

/// A listed row of the table was removed. A row of the list shrinks only with the last of its keys:
/// to those that are still there, or it goes. Answers with the number of rows written.
pub(super) fn unlist(
    conn: &Connection,
    kind: &Kind,
    (owner, key): (i64, i64),
) -> Result<usize, StoreError> {
    let table = kind.table;
    let sql = format!("SELECT keys FROM {table} WHERE owner = ?1 AND last = ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let listed =
        one(&mut statement.query([owner, key])?, |row| Ok(unpacked(row)?.collect::<Vec<_>>()))?;
    let Some(listed) = listed else { return Ok(0) };
    let mut exists = conn.prepare_cached(kind.exists)?;
    let mut left = Vec::new();
    for key in listed {
        if exists.exists([key])? {
            left.push(key);
        }
    }
    let sql = format!("DELETE FROM {table} WHERE owner = ?1 AND last = ?2");
    conn.prepare_cached(&sql)?.execute([owner, key])?;
    let Some(last) = left.last() else { return Ok(1) };
    let packed: Vec<u8> = left.iter().flat_map(|key| key.to_be_bytes()).collect();
    let sql = format!("INSERT INTO {table} VALUES (?1, ?2, ?3)");
    conn.prepare_cached(&sql)?.execute(params![owner, last, packed])?;
    Ok(2)
}

/// A row of a list: whose, and a stretch of the window.
type Stretch = (i64, Range<usize>);

/// One list that is being filled.
pub(super) struct Arrears {
    kind: Kind,
    /// Committed rows beyond the window, in order of their keys; all of them unless `behind`.
    committed: Vec<(i64, i64)>,
    /// There are rows in the table that are neither listed nor remembered.
    behind: bool,
    /// What is being written, sorted, and the rows it makes.
    window: Vec<(i64, i64)>,
    rows: Vec<Stretch>,
    /// The largest key of the window.
    up_to: i64,
    /// Rows that are committed to the list, and with those of the running batch.
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
            rows: Vec::new(),
            up_to: 0,
            done: 0,
            staged: 0,
            last: now,
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        if !self.window.is_empty() || self.behind || self.committed.len() >= WINDOW_KEYS_MAX {
            return true;
        }
        !self.committed.is_empty() && now.duration_since(self.last) >= WINDOW_SPAN
    }

    /// Whether anything may not be listed yet.
    pub(super) const fn is_behind(&self) -> bool {
        !self.window.is_empty() || self.behind || !self.committed.is_empty()
    }

    /// Writes one piece; answers with the number of rows.
    pub(super) fn step(&mut self, conn: &Connection, now: Instant) -> Result<usize, StoreError> {
        if self.window.is_empty() {
            self.begin(conn)?;
            self.last = now;
        }
        let end = self.rows.len().min(self.done + PIECE_ROWS);
        if end == self.done {
            return Ok(0);
        }
        if self.done == 0 && end < self.rows.len() {
            self.note(
                conn,
                "INSERT INTO listed (name, up_to, writing) VALUES (?1, 0, ?2)
                 ON CONFLICT (name) DO UPDATE SET writing = excluded.writing",
            )?;
        }
        let sql = format!("INSERT OR REPLACE INTO {} VALUES (?1, ?2, ?3)", self.kind.table);
        let mut insert = conn.prepare_cached(&sql)?;
        let mut keys = Vec::new();
        for (owner, stretch) in &self.rows[self.done..end] {
            let window = &self.window[stretch.clone()];
            keys.clear();
            window.iter().for_each(|(_, key)| keys.extend_from_slice(&key.to_be_bytes()));
            insert.execute(params![owner, window.last().map(|(_, key)| key), keys])?;
        }
        if end == self.rows.len() {
            self.note(
                conn,
                "INSERT INTO listed (name, up_to, writing) VALUES (?1, ?2, ?2)
                 ON CONFLICT (name) DO UPDATE SET up_to = excluded.up_to, writing = excluded.up_to",
            )?;
        }
        self.staged = end;
        Ok(end - self.done)
    }

    fn note(&self, conn: &Connection, sql: &str) -> Result<(), StoreError> {
        conn.prepare_cached(sql)?.execute(params![self.kind.name, self.up_to])?;
        Ok(())
    }

    fn begin(&mut self, conn: &Connection) -> Result<(), StoreError> {
        if self.behind {
            self.load(conn)?;
        } else {
            let rest = self.committed.split_off(self.committed.len().min(WINDOW_KEYS_MAX));
            self.window = std::mem::replace(&mut self.committed, rest);
        }
        self.up_to = self.window.last().map_or(0, |(_, key)| *key);
        self.window.sort_unstable();
        self.rows.clear();
        let mut begin = 0;
        for of_owner in self.window.chunk_by(|a, b| a.0 == b.0) {
            for row in of_owner.chunks(ROW_KEYS) {
                self.rows.push((row[0].0, begin..begin + row.len()));
                begin += row.len();
            }
        }
        (self.done, self.staged) = (0, 0);
        Ok(())
    }

    /// Reads the next window from the table: first, exactly, one that was begun and cut off.
    fn load(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let mut statement =
            conn.prepare_cached("SELECT up_to, writing FROM listed WHERE name = ?1")?;
        let (up_to, writing) = one(&mut statement.query([self.kind.name])?, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?
        .unwrap_or_default();
        let cut_off = writing > up_to;
        let end = if cut_off { writing } else { i64::MAX };
        let limit = i64::try_from(WINDOW_KEYS_MAX).unwrap_or(i64::MAX);
        let mut load = conn.prepare_cached(self.kind.load)?;
        self.window = all(&mut load.query(params![up_to, end, limit])?, |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        self.behind = cut_off || self.window.len() == WINDOW_KEYS_MAX;
        Ok(())
    }

    /// The batch was committed, and these rows with it.
    pub(super) fn confirm(&mut self, rows: &mut Vec<(i64, i64)>) {
        self.done = self.staged;
        if self.done == self.rows.len() {
            self.window.clear();
            self.rows.clear();
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
