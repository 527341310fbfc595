//! Notices, in PostgreSQL: one row each, until its message is accepted; and e-mails, until they are
//! sent.
//!
//! Which organisations are told is known in memory once it was asked, and asked again after any
//! change of the applications that tell; so what is not told costs one look.
//! Never: a row for an organisation that nobody tells.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use domain::notice::{LastAttempt, MANAGEMENT, Named, News, Notice, told_by};
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{all, exists, one};
use super::fault::Fault;
use super::rows::{
    At, bound, bytes_at, get, id_at, maybe_id, maybe_time, small, status_at, time_at,
};
use super::tx::Tx;
use crate::inbox::{Accepted, NewMessage};
use crate::notices::{Kept, Mail, Notices};
use crate::stored::notice::{self, code, news};
use crate::{Reply, StoreError};

const NOTICE: &str = "place, org, about, at, app_id, app_uid, endpoint_id, endpoint_uid, message_id, event_id, \
     attempt_id, attempt_status, attempt_at, endpoint";

impl Notices for PostgresStore {
    fn waiting(&self, limit: usize) -> Reply<'_, Vec<Kept>> {
        self.read(move |conn| async move {
            let sql = format!("SELECT {NOTICE} FROM notice ORDER BY place LIMIT $1");
            all(&conn, &sql, &[&bound(limit)], kept).await
        })
    }

    fn post(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                // Another node may be about to post it, too, while the work moves there.
                let sql = "SELECT 1 FROM notice WHERE place = $1 FOR UPDATE";
                if !exists(tx.conn(), sql, &[&place.cast_signed()]).await? {
                    return Ok(None);
                }
                let accepted = tx.accept_one(&message).await?;
                if !matches!(accepted, Accepted::Stale | Accepted::NoApplication) {
                    tx.forget(place).await?;
                }
                Ok(Some(accepted))
            })
        })
    }

    fn discard(&self, place: u64) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| Box::pin(tx.forget(place)))
    }

    fn keep_mails(&self, keep: bool) {
        self.shared.keeps_mails.store(keep, Ordering::Relaxed);
    }

    fn mails(&self, after: u64, limit: usize) -> Reply<'_, Vec<Mail>> {
        self.read(move |conn| async move {
            let sql = "SELECT place, endpoint, about, at, written_at FROM mail
                       WHERE place > $1 ORDER BY place LIMIT $2";
            all(&conn, sql, &[&after.cast_signed(), &bound(limit)], |row| {
                Ok(Mail {
                    place: get::<i64>(row, 0)?.cast_unsigned(),
                    endpoint: EndpointKey(get(row, 1)?),
                    news: news(get(row, 2)?, maybe_time(row, 3)?)?,
                    at: time_at(row, 4)?,
                })
            })
            .await
        })
    }

    fn mailed(&self, place: u64) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let sql = "DELETE FROM mail WHERE place = $1";
                tx.write(sql, &[&place.cast_signed()]).await.map(drop)
            })
        })
    }
}

/// What a notice says of where it happened.
struct Scene {
    org: PublicId,
    app: Named,
    endpoint: Named,
}

impl Tx {
    /// Notes what happened to an endpoint, deleted or not, if its organisation is told.
    pub(super) async fn note(
        &mut self,
        news: News,
        endpoint: EndpointKey,
        message: Option<MessageKey>,
    ) -> Result<(), Fault> {
        if self.told_orgs().await?.is_empty() {
            return Ok(());
        }
        let sql = "SELECT app.org, app.id, app.uid, endpoint.id, endpoint.uid
                   FROM endpoint JOIN app ON app.key = endpoint.app WHERE endpoint.key = $1";
        let scene = one(self.conn(), sql, &[&endpoint.0], |row| {
            let app = (id_at(row, 1)?, get(row, 2)?);
            Ok(Scene { org: id_at(row, 0)?, app, endpoint: (id_at(row, 3)?, get(row, 4)?) })
        })
        .await;
        let Some(scene) = scene? else { return Ok(()) };
        if !self.told_orgs().await?.contains(&scene.org) {
            return Ok(());
        }
        let Scene { org, app, endpoint: named } = scene;
        let (message, attempt) = match message {
            Some(message) => {
                (self.named(message).await?, self.last_attempt(message, endpoint).await?)
            }
            None => (None, None),
        };
        self.put_notice(&Notice { org, news, app, endpoint: named, message, attempt }).await
    }

    /// Notes what happened to an endpoint, and keeps an e-mail of it if it names whom to write to.
    pub(super) async fn note_by_mail(
        &mut self,
        news: News,
        endpoint: EndpointKey,
    ) -> Result<(), Fault> {
        self.note(news, endpoint, None).await?;
        if !self.keeps_mails.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (about, at) = code(news);
        let place = self.draw().cast_signed();
        let sql = "INSERT INTO mail (place, endpoint, about, at, written_at)
                   SELECT $1, key, $3, $4, $5 FROM endpoint
                   WHERE key = $2 AND contact_email IS NOT NULL AND deleted_at IS NULL";
        let now = At(self.now);
        self.batch.noted +=
            self.write(sql, &[&place, &endpoint.0, &about, &at.map(At), &now]).await?;
        Ok(())
    }

    /// Notes the same of every endpoint of an application that was not deleted yet.
    pub(super) async fn note_all(&mut self, news: News, app: AppKey) -> Result<(), Fault> {
        if self.told_orgs().await?.is_empty() {
            return Ok(());
        }
        let sql = "SELECT key FROM endpoint WHERE app = $1 AND deleted_at IS NULL ORDER BY key";
        let keys = all(self.conn(), sql, &[&app.0], |row| Ok(EndpointKey(get(row, 0)?))).await?;
        for endpoint in keys {
            self.note(news, endpoint, None).await?;
        }
        Ok(())
    }

    async fn told_orgs(&mut self) -> Result<&HashSet<PublicId>, Fault> {
        let told = match self.told_orgs.take() {
            Some(told) => told,
            None => {
                let sql = "SELECT uid FROM app
                           WHERE org = $1 AND uid IS NOT NULL AND deleted_at IS NULL";
                let uids: Vec<String> =
                    all(self.conn(), sql, &[&&MANAGEMENT.as_bytes()[..]], |row| get(row, 0))
                        .await?;
                uids.iter().filter_map(|uid| told_by(uid)).collect()
            }
        };
        Ok(self.told_orgs.insert(told))
    }

    async fn named(&self, message: MessageKey) -> Result<Option<Named>, Fault> {
        let sql = "SELECT random, event_id FROM message WHERE key = $1";
        one(self.conn(), sql, &[&message.0.cast_signed()], |row| {
            Ok((PublicId::new(message.0, bytes_at(row, 0)?), get(row, 1)?))
        })
        .await
    }

    async fn last_attempt(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<Option<LastAttempt>, Fault> {
        let sql = "SELECT key, random, status, started_at FROM attempt
                   WHERE message = $1 AND endpoint = $2 ORDER BY n DESC LIMIT 1";
        one(self.conn(), sql, &[&message.0.cast_signed(), &endpoint.0], |row| {
            let id = PublicId::new(get::<i64>(row, 0)?.cast_unsigned(), bytes_at(row, 1)?);
            Ok(LastAttempt { id, status: status_at(row, 2)?, at: time_at(row, 3)? })
        })
        .await
    }

    async fn put_notice(&mut self, notice: &Notice) -> Result<(), Fault> {
        let place = self.draw().cast_signed();
        let (about, at) = code(notice.news);
        let sql = format!(
            "INSERT INTO notice ({NOTICE}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
                 $14)"
        );
        let (message, attempt) = (notice.message.as_ref(), notice.attempt.as_ref());
        let written = self
            .write(
                &sql,
                &[
                    &place,
                    &&notice.org.as_bytes()[..],
                    &about,
                    &at.map(At),
                    &&notice.app.0.as_bytes()[..],
                    &notice.app.1,
                    &&notice.endpoint.0.as_bytes()[..],
                    &notice.endpoint.1,
                    &message.map(|(id, _)| &id.as_bytes()[..]),
                    &message.and_then(|(_, event_id)| event_id.as_ref()),
                    &attempt.map(|last| &last.id.as_bytes()[..]),
                    &attempt.map(|last| small(i64::from(last.status))),
                    &attempt.map(|last| At(last.at)),
                    &notice::endpoint(notice.news).map(|endpoint| endpoint.0),
                ],
            )
            .await;
        written?;
        self.batch.noted += 1;
        Ok(())
    }

    async fn forget(&mut self, place: u64) -> Result<(), Fault> {
        let sql = "DELETE FROM notice WHERE place = $1";
        self.write(sql, &[&place.cast_signed()]).await.map(drop)
    }
}

/// Reads [`NOTICE`].
fn kept(row: &Row) -> Result<Kept, StoreError> {
    let attempt = match maybe_id(row, 10)? {
        None => None,
        Some(id) => {
            let (status, at) = (status_at(row, 11)?, time_at(row, 12)?);
            Some(LastAttempt { id, status, at })
        }
    };
    let event_id = get(row, 9)?;
    let endpoint = get::<Option<i64>>(row, 13)?.map(EndpointKey);
    Ok(Kept {
        place: get::<i64>(row, 0)?.cast_unsigned(),
        notice: Notice {
            org: id_at(row, 1)?,
            news: notice::whole(get(row, 2)?, maybe_time(row, 3)?, endpoint)?,
            app: (id_at(row, 4)?, get(row, 5)?),
            endpoint: (id_at(row, 6)?, get(row, 7)?),
            message: maybe_id(row, 8)?.map(|id| (id, event_id)),
            attempt,
        },
    })
}
