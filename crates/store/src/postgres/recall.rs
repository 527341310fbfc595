//! Answers under idempotency keys, in PostgreSQL: one row each, in the transaction of what they
//! tell of.
//!
//! An answer may hold a secret, so it is sealed as secrets are.
//! Never: an answer whose change was rolled back, or a change whose answer was to be kept and is
//! not.

use bytes::Bytes;
use domain::idempotency::IngestKey;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::one;
use super::fault::Fault;
use super::rows::{At, bytes_at, get, small, status_at, time_at};
use super::tx::{Tx, Work};
use crate::cipher::Cipher;
use crate::recall::{Kept, Once, Recall, Told};
use crate::stored::answer::{owner, pack, unpack};
use crate::stored::seal::{open, seal};
use crate::{Reply, StoreError};

const ANSWER: &str = "SELECT body, at, status, made, answer FROM answer WHERE scope = $1";

impl Recall for PostgresStore {
    fn recall(&self, scope: [u8; 16]) -> Reply<'_, Option<Kept>> {
        let cipher = self.cipher.clone();
        self.read(move |conn| async move {
            one(&conn, ANSWER, &[&&scope[..]], |row| kept(row, &scope, cipher.as_ref())).await
        })
    }

    fn keep(&self, key: IngestKey, told: Told) -> Reply<'static, ()> {
        let cipher = self.cipher.clone();
        self.shared.door.change(move |tx| {
            Box::pin(async move { tx.keep_answer(key, &told, cipher.as_ref()).await })
        })
    }
}

impl PostgresStore {
    /// Queues `change`, and keeps its answer with it.
    pub(super) fn change_once<T: Send + 'static>(
        &self,
        once: Once<T>,
        change: impl for<'t> FnOnce(&'t mut Tx) -> Work<'t, T> + Send + 'static,
    ) -> Reply<'static, T> {
        let Some(remember) = once else { return self.shared.door.change(change) };
        let cipher = self.cipher.clone();
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let made = change(tx).await?;
                if let Some(told) = (remember.tell)(&made) {
                    tx.keep_answer(remember.key, &told, cipher.as_ref()).await?;
                }
                Ok(made)
            })
        })
    }
}

impl Tx {
    async fn keep_answer(
        &mut self,
        key: IngestKey,
        told: &Told,
        cipher: Option<&Cipher>,
    ) -> Result<(), Fault> {
        let sql = "INSERT INTO answer (scope, body, at, status, made, answer) VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (scope) DO UPDATE SET body = excluded.body, at = excluded.at,
                       status = excluded.status, made = excluded.made, answer = excluded.answer";
        let answer = seal(&told.body, &owner(&key.scope), cipher)?;
        let (status, made, now) = (small(i64::from(told.status)), pack(&told.made), At(self.now));
        self.write(sql, &[&&key.scope[..], &&key.body[..], &now, &status, &made, &answer])
            .await
            .map(drop)
    }
}

/// Reads [`ANSWER`].
fn kept(row: &Row, scope: &[u8; 16], cipher: Option<&Cipher>) -> Result<Kept, StoreError> {
    let body = open(get(row, 4)?, &owner(scope), cipher)?;
    let told = Told {
        status: status_at(row, 2)?,
        body: Bytes::copy_from_slice(&body),
        made: unpack(get(row, 3)?)?,
    };
    Ok(Kept { body: bytes_at(row, 0)?, at: time_at(row, 1)?, told })
}
