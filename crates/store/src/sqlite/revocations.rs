//! Revocations, in SQLite.
//!
//! Never: a token.

use domain::limits::APP_TOKEN_MAX;
use rusqlite::{Row, params};

use super::SqliteStore;
use super::rows::{all, bytes_at, id_at, time_at};
use super::tx::Tx;
use crate::recall::Once;
use crate::revocations::{Expired, Revocations, Revoked};
use crate::{Reply, StoreError};

const REVOKED: &str = "SELECT hash, until FROM revoked_token ORDER BY hash";
const EXPIRED: &str = "SELECT app, session, issued_before, from_then FROM expired_tokens
     ORDER BY app, session, issued_before";
pub(super) const ENDED: &str = "DELETE FROM revoked_token WHERE until < ?1";
pub(super) const COVERED: &str = "DELETE FROM expired_tokens
     WHERE app = ?1 AND session = ?2 AND issued_before <= ?3 AND from_then >= ?4";
pub(super) const COVERING: &str = "SELECT 1 FROM expired_tokens
     WHERE app = ?1 AND session = ?2 AND issued_before >= ?3 AND from_then <= ?4";
pub(super) const OVER: &str = "DELETE FROM expired_tokens INDEXED BY expired_session
     WHERE session <> '' AND issued_before < ?1";

impl Revocations for SqliteStore {
    fn revoke(&self, token: Revoked) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            let now = tx.now.as_micros();
            tx.batch.rows += tx.conn.prepare_cached(ENDED)?.execute([now])?;
            let sql = "INSERT INTO revoked_token (hash, until) VALUES (?1, ?2)
                       ON CONFLICT DO UPDATE SET until = excluded.until";
            let values = params![token.hash, token.until.as_micros()];
            tx.batch.rows += tx.conn.prepare_cached(sql)?.execute(values)?;
            Ok(())
        })
    }

    fn expire_once(&self, tokens: Vec<Expired>, once: Once<()>) -> Reply<'static, ()> {
        self.change_once(once, move |tx| {
            tokens.iter().try_for_each(|new| tx.expire(new))?;
            let over = tx.now.minus(APP_TOKEN_MAX * 2).as_micros();
            tx.batch.rows += tx.conn.prepare_cached(OVER)?.execute([over])?;
            Ok(())
        })
    }

    fn revocations(&self) -> Reply<'_, (Vec<Revoked>, Vec<Expired>)> {
        self.readers.read(|conn| {
            let revoked = all(&mut conn.prepare(REVOKED)?.query([])?, |row| {
                Ok(Revoked { hash: bytes_at(row, 0)?, until: time_at(row, 1)? })
            })?;
            Ok((revoked, all(&mut conn.prepare(EXPIRED)?.query([])?, expired)?))
        })
    }
}

impl Tx<'_> {
    fn expire(&mut self, new: &Expired) -> Result<(), StoreError> {
        let session = new.session.as_deref().unwrap_or_default();
        let (before, from) = (new.issued_before.as_micros(), new.from.as_micros());
        let values = params![new.app.as_bytes(), session, before, from];
        if self.conn.prepare_cached(COVERING)?.exists(values)? {
            return Ok(());
        }
        self.batch.rows += self.conn.prepare_cached(COVERED)?.execute(values)?;
        let sql = "INSERT INTO expired_tokens (app, session, issued_before, from_then)
                   VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO UPDATE SET from_then = min(from_then, excluded.from_then)";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }
}

fn expired(row: &Row<'_>) -> Result<Expired, StoreError> {
    let session: String = row.get(1)?;
    Ok(Expired {
        app: id_at(row, 0)?,
        session: Some(session).filter(|session| !session.is_empty()),
        issued_before: time_at(row, 2)?,
        from: time_at(row, 3)?,
    })
}
