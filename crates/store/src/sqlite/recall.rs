//! Answers under idempotency keys, in SQLite: one row each, in the transaction of what they tell
//! of.
//!
//! An answer may hold a secret, so it is sealed as secrets are.
//! Never: an answer whose change was rolled back, or a change whose answer was to be kept and is
//! not.

use bytes::Bytes;
use domain::idempotency::IngestKey;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::rows::{bytes_at, maybe_blob, narrow_at, one, time_at};
use super::tx::Tx;
use crate::cipher::Cipher;
use crate::recall::{Kept, Once, Recall, Told};
use crate::stored::answer::{owner, pack, unpack};
use crate::stored::fault::unreadable;
use crate::stored::seal::{open, seal};
use crate::{Reply, StoreError};

pub(super) const ANSWER: &str =
    "SELECT body, at, status, made, answer FROM answer WHERE scope = ?1";

impl Recall for SqliteStore {
    fn recall(&self, scope: [u8; 16]) -> Reply<'_, Option<Kept>> {
        let cipher = self.cipher.clone();
        self.readers.read(move |conn| find(conn, &scope, cipher.as_ref()))
    }

    fn keep(&self, key: IngestKey, told: Told) -> Reply<'static, ()> {
        let cipher = self.cipher.clone();
        self.shared.door.change(move |tx| tx.keep_answer(key, &told, cipher.as_ref()))
    }
}

impl SqliteStore {
    /// Queues `change`, and keeps its answer with it.
    pub(super) fn change_once<T: Send + 'static>(
        &self,
        once: Once<T>,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'static, T> {
        let Some(remember) = once else { return self.shared.door.change(change) };
        let cipher = self.cipher.clone();
        self.shared.door.change(move |tx| {
            let made = change(tx)?;
            if let Some(told) = (remember.tell)(&made) {
                tx.keep_answer(remember.key, &told, cipher.as_ref())?;
            }
            Ok(made)
        })
    }
}

impl Tx<'_> {
    fn keep_answer(
        &mut self,
        key: IngestKey,
        told: &Told,
        cipher: Option<&Cipher>,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO answer (scope, body, at, status, made, answer)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(params![
            key.scope,
            key.body,
            self.now.as_micros(),
            told.status,
            pack(&told.made),
            seal(&told.body, &owner(&key.scope), cipher)?,
        ])?;
        Ok(())
    }
}

fn find(
    conn: &Connection,
    scope: &[u8; 16],
    cipher: Option<&Cipher>,
) -> Result<Option<Kept>, StoreError> {
    let mut statement = conn.prepare_cached(ANSWER)?;
    one(&mut statement.query([scope])?, |row| kept(row, scope, cipher))
}

/// Reads [`ANSWER`].
fn kept(row: &Row<'_>, scope: &[u8; 16], cipher: Option<&Cipher>) -> Result<Kept, StoreError> {
    let body = maybe_blob(row, 4, |stored| {
        let opened = open(stored, &owner(scope), cipher)?;
        Ok(Bytes::copy_from_slice(&opened))
    })?;
    let made = maybe_blob(row, 3, unpack)?;
    let told = Told {
        status: narrow_at(row, 2)?,
        body: body.ok_or_else(unreadable)?,
        made: made.ok_or_else(unreadable)?,
    };
    Ok(Kept { body: bytes_at(row, 0)?, at: time_at(row, 1)?, told })
}
