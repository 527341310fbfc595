//! Revocations, in PostgreSQL.
//!
//! Never: a token.

use domain::limits::APP_TOKEN_MAX;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{Params, all, exists};
use super::fault::Fault;
use super::rows::{At, bytes_at, get, id_at, text, time_at};
use super::tx::Tx;
use crate::recall::Once;
use crate::revocations::{Expired, Revocations, Revoked};
use crate::{Reply, StoreError};

const REVOKED: &str = "SELECT hash, until FROM revoked_token ORDER BY hash";
const EXPIRED: &str = "SELECT app, session, issued_before, from_then FROM expired_tokens
     ORDER BY app, session, issued_before";
const ENDED: &str = "DELETE FROM revoked_token WHERE until < $1";
const COVERED: &str = "DELETE FROM expired_tokens
     WHERE app = $1 AND session = $2 AND issued_before <= $3 AND from_then >= $4";
const COVERING: &str = "SELECT 1 FROM expired_tokens
     WHERE app = $1 AND session = $2 AND issued_before >= $3 AND from_then <= $4";
const OVER: &str = "DELETE FROM expired_tokens WHERE session <> '' AND issued_before < $1";

impl Revocations for PostgresStore {
    fn revoke(&self, token: Revoked) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                tx.batch.copies += 1;
                let now = At(tx.now);
                tx.write(ENDED, &[&now]).await?;
                let sql = "INSERT INTO revoked_token (hash, until) VALUES ($1, $2)
                           ON CONFLICT (hash) DO UPDATE SET until = excluded.until";
                tx.write(sql, &[&&token.hash[..], &At(token.until)]).await.map(drop)
            })
        })
    }

    fn expire_once(&self, tokens: Vec<Expired>, once: Once<()>) -> Reply<'static, ()> {
        self.change_once(once, move |tx| {
            Box::pin(async move {
                tx.batch.copies += 1;
                for new in &tokens {
                    tx.expire(new).await?;
                }
                let over = At(tx.now.minus(APP_TOKEN_MAX * 2));
                tx.write(OVER, &[&over]).await.map(drop)
            })
        })
    }

    fn revocations(&self) -> Reply<'_, (Vec<Revoked>, Vec<Expired>)> {
        self.read(|conn| async move {
            let revoked = all(&conn, REVOKED, &[], |row| {
                Ok(Revoked { hash: bytes_at(row, 0)?, until: time_at(row, 1)? })
            })
            .await;
            Ok((revoked?, all(&conn, EXPIRED, &[], expired).await?))
        })
    }
}

impl Tx {
    async fn expire(&mut self, new: &Expired) -> Result<(), Fault> {
        let session = text(new.session.as_deref().unwrap_or_default());
        let (before, from) = (At(new.issued_before), At(new.from));
        let values: Params<'_> = &[&&new.app.as_bytes()[..], &session, &before, &from];
        if exists(self.conn(), COVERING, values).await? {
            return Ok(());
        }
        self.write(COVERED, values).await?;
        let sql = "INSERT INTO expired_tokens (app, session, issued_before, from_then)
                   VALUES ($1, $2, $3, $4)
                   ON CONFLICT (app, session, issued_before)
                       DO UPDATE SET from_then = least(expired_tokens.from_then, excluded.from_then)";
        self.write(sql, values).await.map(drop)
    }
}

fn expired(row: &Row) -> Result<Expired, StoreError> {
    let session: String = get(row, 1)?;
    Ok(Expired {
        app: id_at(row, 0)?,
        session: Some(session).filter(|session| !session.is_empty()),
        issued_before: time_at(row, 2)?,
        from: time_at(row, 3)?,
    })
}
