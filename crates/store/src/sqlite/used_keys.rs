//! Idempotency keys that were used, without a random index page for each.
//!
//! A key stands in the row of the message it made; that is the truth. To find it again, recent keys
//! are kept in memory (and read back from the messages at the start); when there are many they
//! become a *run*: written once, in order, as 512 blobs picked by the scope's first bits, with a
//! filter that tells nearly always whether a look is worth it. A run is dropped whole when its
//! youngest key has run out.
//! Never: forget a key before its time, or answer from here alone: a hit is checked against the
//! message.

use domain::ids::{MessageKey, key_time};
use domain::limits::IDEMPOTENCY_WINDOW;
use resilience::Timestamp;
use rusqlite::{Connection, params};

use super::filter::Filter;
use super::rows::{all, bytes_at, one};
use crate::StoreError;
use crate::stored::fault::unreadable;

/// Keys of one run.
const RUN_KEYS: usize = 65_536;
/// A run ends after so many messages all the same: they are read again at the start.
const RUN_MESSAGES: usize = 131_072;
/// Blobs of one run; each fits a page.
const PARTS: usize = 512;
/// Blobs written or deleted in one batch.
const PIECE_PARTS: usize = 64;
/// Bytes of a key in a blob: scope and message.
const ENTRY_BYTES: usize = 24;

type Scope = [u8; 16];
type Part = Vec<(Scope, u64)>;

/// The keys.
pub(super) struct UsedKeys {
    recent: Vec<Part>,
    /// Keys in `recent`, and messages since the last run.
    keys: usize,
    messages: usize,
    /// The parts that the running batch has added to, in order.
    added: Vec<usize>,
    /// The youngest message committed.
    last: u64,
    freezing: Option<Freezing>,
    /// Oldest first.
    runs: Vec<Run>,
    dropping: usize,
    next: i64,
}

/// A run that is being written.
struct Freezing {
    parts: Vec<Part>,
    filter: Filter,
    up_to: u64,
    keys: usize,
    /// Parts committed, and with those of the running batch.
    done: usize,
    staged: usize,
}

/// A run that was written.
struct Run {
    number: i64,
    up_to: u64,
    filter: Filter,
}

fn part_of(scope: &Scope) -> usize {
    usize::from(u16::from_be_bytes([scope[0], scope[1]]) >> 7)
}

fn find(part: &Part, scope: &Scope) -> Option<MessageKey> {
    part.iter().rev().find(|(held, _)| held == scope).map(|(_, message)| MessageKey(*message))
}

impl UsedKeys {
    /// Reads the runs' filters, and the keys of the messages beyond them.
    pub(super) fn load(conn: &Connection) -> Result<Self, StoreError> {
        let sql = "SELECT number, up_to, filter FROM key_run ORDER BY number";
        let runs = all(&mut conn.prepare(sql)?.query([])?, |row| {
            let up_to = row.get::<_, i64>(1)?.cast_unsigned();
            Ok(Run { number: row.get(0)?, up_to, filter: Filter::from_bytes(row.get(2)?) })
        })?;
        let last = runs.last().map_or(0, |run| run.up_to);
        let next = runs.last().map_or(0, |run| run.number) + 1;
        let mut keys = Self {
            recent: vec![Part::new(); PARTS],
            keys: 0,
            messages: 0,
            added: Vec::new(),
            last,
            freezing: None,
            runs,
            dropping: 0,
            next,
        };
        let mut statement =
            conn.prepare("SELECT key, key_scope FROM message WHERE key > ?1 ORDER BY key")?;
        let mut rows = statement.query([last.cast_signed()])?;
        while let Some(row) = rows.next()? {
            keys.last = row.get::<_, i64>(0)?.cast_unsigned();
            keys.messages += 1;
            if row.get_ref(1)?.as_blob_or_null().is_ok_and(|blob| blob.is_some()) {
                keys.add(bytes_at(row, 1)?, MessageKey(keys.last));
            }
        }
        keys.added.clear();
        Ok(keys)
    }

    /// Notes that `message` used the key.
    pub(super) fn add(&mut self, scope: Scope, message: MessageKey) {
        let part = part_of(&scope);
        self.recent[part].push((scope, message.0));
        self.added.push(part);
        self.keys += 1;
    }

    /// The last message that used the key, if its time may not be over.
    pub(super) fn find(
        &self,
        conn: &Connection,
        scope: &Scope,
    ) -> Result<Option<MessageKey>, StoreError> {
        let part = part_of(scope);
        let freezing = || find(&self.freezing.as_ref()?.parts[part], scope);
        if let Some(found) = find(&self.recent[part], scope).or_else(freezing) {
            return Ok(Some(found));
        }
        for run in self.runs.iter().rev() {
            if run.filter.may_hold(scope)
                && let Some(found) = find_written(conn, run.number, part, scope)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Where the running batch stands.
    pub(super) const fn mark(&self) -> usize {
        self.added.len()
    }

    /// Has a run begin at the next chance.
    #[cfg(test)]
    pub(super) const fn write_now(&mut self) {
        self.messages = RUN_MESSAGES;
    }

    /// Takes back what the running batch has added since the mark.
    pub(super) fn back_to(&mut self, mark: usize) {
        for part in self.added.drain(mark..).rev() {
            self.recent[part].pop();
            self.keys -= 1;
        }
    }

    /// The batch was committed, with these messages.
    pub(super) fn confirm(&mut self, messages: &[(i64, i64)]) {
        self.added.clear();
        self.messages += messages.len();
        if let Some((_, key)) = messages.last() {
            self.last = key.cast_unsigned();
        }
        let Some(freezing) = &mut self.freezing else { return };
        freezing.done = freezing.staged;
        if freezing.done == PARTS
            && let Some(Freezing { filter, up_to, .. }) = self.freezing.take()
        {
            self.runs.push(Run { number: self.next, up_to, filter });
            self.next += 1;
        }
    }

    /// The batch was rolled back.
    pub(super) fn undo(&mut self) {
        self.back_to(0);
        if let Some(freezing) = &mut self.freezing {
            freezing.staged = freezing.done;
        }
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.freezing.is_some()
            || self.keys >= RUN_KEYS
            || self.messages >= RUN_MESSAGES
            || self.runs.first().is_some_and(|run| is_over(run, now))
    }

    /// Writes a piece of a run, or drops a piece of one that is over. Only at the head of a batch:
    /// all keys held are committed.
    pub(super) fn step(&mut self, conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
        if self.freezing.is_none() && (self.keys >= RUN_KEYS || self.messages >= RUN_MESSAGES) {
            self.freezing = Some(Freezing {
                parts: std::mem::replace(&mut self.recent, vec![Part::new(); PARTS]),
                filter: Filter::for_keys(self.keys),
                up_to: self.last,
                keys: self.keys,
                done: 0,
                staged: 0,
            });
            (self.keys, self.messages) = (0, 0);
        }
        match &mut self.freezing {
            Some(freezing) => freezing.write(conn, self.next),
            None => self.drop_oldest(conn, now),
        }
    }

    fn drop_oldest(&mut self, conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
        let Some(run) = self.runs.first().filter(|run| is_over(run, now)) else { return Ok(0) };
        let (from, to) = (self.dropping, self.dropping + PIECE_PARTS);
        let sql = "DELETE FROM key_part WHERE place >= ?1 AND place < ?2";
        let mut delete = conn.prepare_cached(sql)?;
        let dropped = delete.execute([place(run.number, from), place(run.number, to)])?;
        // Should this be rolled back, the row and its parts come back to nobody but the next start,
        // which drops them.
        self.dropping = to;
        if to >= PARTS {
            conn.prepare_cached("DELETE FROM key_run WHERE number = ?1")?.execute([run.number])?;
            self.runs.remove(0);
            self.dropping = 0;
        }
        Ok(dropped)
    }
}

impl Freezing {
    fn write(&mut self, conn: &Connection, number: i64) -> Result<usize, StoreError> {
        let end = PARTS.min(self.done + PIECE_PARTS);
        // A start after a crash may find parts of a run that was not finished: they are replaced.
        let sql = "INSERT OR REPLACE INTO key_part (place, entries) VALUES (?1, ?2)";
        let mut insert = conn.prepare_cached(sql)?;
        let mut blob = Vec::new();
        for part in self.done..end {
            blob.clear();
            for (scope, message) in &self.parts[part] {
                self.filter.add(scope);
                blob.extend_from_slice(scope);
                blob.extend_from_slice(&message.to_be_bytes());
            }
            insert.execute(params![place(number, part), blob])?;
        }
        let written = end - self.done;
        if end == PARTS {
            let sql = "INSERT OR REPLACE INTO key_run (number, up_to, keys, filter) VALUES (?1, ?2, ?3, ?4)";
            let keys = i64::try_from(self.keys).unwrap_or(i64::MAX);
            let values = params![number, self.up_to.cast_signed(), keys, self.filter.as_bytes()];
            conn.prepare_cached(sql)?.execute(values)?;
        }
        self.staged = end;
        Ok(written)
    }
}

fn is_over(run: &Run, now: Timestamp) -> bool {
    now.since(key_time(run.up_to)) > IDEMPOTENCY_WINDOW
}

fn place(run: i64, part: usize) -> i64 {
    let parts = i64::try_from(PARTS).unwrap_or(i64::MAX);
    run.saturating_mul(parts).saturating_add(i64::try_from(part).unwrap_or(i64::MAX))
}

fn find_written(
    conn: &Connection,
    run: i64,
    part: usize,
    scope: &Scope,
) -> Result<Option<MessageKey>, StoreError> {
    let mut statement = conn.prepare_cached("SELECT entries FROM key_part WHERE place = ?1")?;
    let found = one(&mut statement.query([place(run, part)])?, |row| {
        let entries = row.get_ref(0)?.as_blob().map_err(|_| unreadable())?;
        let found = entries.chunks_exact(ENTRY_BYTES).rev().find(|entry| entry[..16] == scope[..]);
        Ok(found.and_then(|entry| entry.last_chunk::<8>()).map(|key| u64::from_be_bytes(*key)))
    })?;
    Ok(found.flatten().map(MessageKey))
}
