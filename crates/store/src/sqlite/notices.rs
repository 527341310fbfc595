//! Notices, in SQLite: one row each, until its message is accepted; and e-mails, until they are
//! sent.
//!
//! Which organisations are told is known in memory once it was asked, and asked again after any
//! change of the applications that tell; so what is not told costs one look.
//! Never: a row for an organisation that nobody tells.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use domain::ids::{AppKey, EndpointKey, MessageKey, PublicId};
use domain::notice::{LastAttempt, MANAGEMENT, Named, News, Notice, told_by};
use resilience::Timestamp;
use rusqlite::{Row, params};

use super::SqliteStore;
use super::queue::bound;
use super::rows::{all, bytes_at, id_at, maybe_blob, maybe_time, narrow_at, one, time_at};
use super::tx::Tx;
use crate::inbox::{Accepted, NewMessage};
use crate::notices::{Kept, Mail, Notices};
use crate::stored::fault::unreadable;
use crate::stored::notice::{self, code, news};
use crate::{Reply, StoreError};

const NOTICE: &str = "place, org, about, at, app_id, app_uid, endpoint_id, endpoint_uid, message_id, event_id, \
     attempt_id, attempt_status, attempt_at, endpoint";

impl Notices for SqliteStore {
    fn waiting(&self, limit: usize) -> Reply<'_, Vec<Kept>> {
        self.readers.read(move |conn| {
            let sql = format!("SELECT {NOTICE} FROM notice ORDER BY place LIMIT ?1");
            all(&mut conn.prepare_cached(&sql)?.query([bound(limit)])?, kept)
        })
    }

    fn post(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>> {
        self.shared.door.change(move |tx| {
            let sql = "SELECT 1 FROM notice WHERE place = ?1";
            if !tx.conn.prepare_cached(sql)?.exists([place.cast_signed()])? {
                return Ok(None);
            }
            let accepted = tx.accept(message)?;
            if !matches!(accepted, Accepted::Stale | Accepted::NoApplication) {
                tx.forget(place)?;
            }
            Ok(Some(accepted))
        })
    }

    fn discard(&self, place: u64) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.forget(place))
    }

    fn keep_mails(&self, keep: bool) {
        self.shared.keeps_mails.store(keep, Ordering::Relaxed);
    }

    fn mails(&self, after: u64, limit: usize) -> Reply<'_, Vec<Mail>> {
        self.readers.read(move |conn| {
            let sql = "SELECT place, endpoint, about, at, written_at FROM mail
                       WHERE place > ?1 ORDER BY place LIMIT ?2";
            let values = params![after.cast_signed(), bound(limit)];
            all(&mut conn.prepare_cached(sql)?.query(values)?, |row| {
                Ok(Mail {
                    place: row.get::<_, i64>(0)?.cast_unsigned(),
                    endpoint: EndpointKey(row.get(1)?),
                    news: news(row.get(2)?, maybe_time(row, 3)?)?,
                    at: time_at(row, 4)?,
                })
            })
        })
    }

    fn mailed(&self, place: u64) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            let sql = "DELETE FROM mail WHERE place = ?1";
            tx.batch.rows += tx.conn.prepare_cached(sql)?.execute([place.cast_signed()])?;
            Ok(())
        })
    }
}

/// What a notice says of where it happened.
struct Scene {
    org: PublicId,
    app: Named,
    endpoint: Named,
}

impl Tx<'_> {
    /// Notes what happened to an endpoint, deleted or not, if its organisation is told.
    pub(super) fn note(
        &mut self,
        news: News,
        endpoint: EndpointKey,
        message: Option<MessageKey>,
    ) -> Result<(), StoreError> {
        if self.told_orgs()?.is_empty() {
            return Ok(());
        }
        let sql = "SELECT app.org, app.id, app.uid, endpoint.id, endpoint.uid
                   FROM endpoint JOIN app ON app.key = endpoint.app WHERE endpoint.key = ?1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let scene = one(&mut statement.query([endpoint.0])?, |row| {
            let app = (id_at(row, 1)?, row.get(2)?);
            Ok(Scene { org: id_at(row, 0)?, app, endpoint: (id_at(row, 3)?, row.get(4)?) })
        })?;
        let Some(scene) = scene else { return Ok(()) };
        if !self.told_orgs()?.contains(&scene.org) {
            return Ok(());
        }
        let Scene { org, app, endpoint: named } = scene;
        let (message, attempt) = match message {
            Some(message) => (self.named(message)?, self.last_attempt(message, endpoint)?),
            None => (None, None),
        };
        self.put_notice(&Notice { org, news, app, endpoint: named, message, attempt })
    }

    /// Notes what happened to an endpoint, and keeps an e-mail of it if it names whom to write to.
    pub(super) fn note_by_mail(
        &mut self,
        news: News,
        endpoint: EndpointKey,
    ) -> Result<(), StoreError> {
        self.note(news, endpoint, None)?;
        if !self.keeps_mails.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (about, at) = code(news);
        let place = self.draw().cast_signed();
        let sql = "INSERT INTO mail (place, endpoint, about, at, written_at)
                   SELECT ?1, key, ?3, ?4, ?5 FROM endpoint
                   WHERE key = ?2 AND contact_email IS NOT NULL AND deleted_at IS NULL";
        let at = at.map(Timestamp::as_micros);
        let values = params![place, endpoint.0, about, at, self.now.as_micros()];
        let written = self.conn.prepare_cached(sql)?.execute(values)?;
        self.batch.rows += written;
        self.batch.noted += written;
        Ok(())
    }

    /// Notes the same of every endpoint of an application that was not deleted yet.
    pub(super) fn note_all(&mut self, news: News, app: AppKey) -> Result<(), StoreError> {
        if self.told_orgs()?.is_empty() {
            return Ok(());
        }
        let sql = "SELECT key FROM endpoint WHERE app = ?1 AND deleted_at IS NULL ORDER BY key";
        let mut statement = self.conn.prepare_cached(sql)?;
        let keys = all(&mut statement.query([app.0])?, |row| Ok(EndpointKey(row.get(0)?)))?;
        drop(statement);
        keys.into_iter().try_for_each(|endpoint| self.note(news, endpoint, None))
    }

    fn told_orgs(&mut self) -> Result<&HashSet<PublicId>, StoreError> {
        let told = match self.told_orgs.take() {
            Some(told) => told,
            None => {
                let sql = "SELECT uid FROM app
                           WHERE org = ?1 AND uid IS NOT NULL AND deleted_at IS NULL";
                let mut statement = self.conn.prepare_cached(sql)?;
                let uids = all(&mut statement.query([MANAGEMENT.as_bytes()])?, |row| {
                    Ok(row.get::<_, String>(0)?)
                })?;
                uids.iter().filter_map(|uid| told_by(uid)).collect()
            }
        };
        Ok(self.told_orgs.insert(told))
    }

    fn named(&self, message: MessageKey) -> Result<Option<Named>, StoreError> {
        let sql = "SELECT random, event_id FROM message WHERE key = ?1";
        let mut statement = self.conn.prepare_cached(sql)?;
        one(&mut statement.query([message.0.cast_signed()])?, |row| {
            Ok((PublicId::new(message.0, bytes_at(row, 0)?), row.get(1)?))
        })
    }

    fn last_attempt(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<Option<LastAttempt>, StoreError> {
        let sql = "SELECT key, random, status, started_at FROM attempt
                   WHERE message = ?1 AND endpoint = ?2 ORDER BY n DESC LIMIT 1";
        let mut statement = self.conn.prepare_cached(sql)?;
        one(&mut statement.query(params![message.0.cast_signed(), endpoint.0])?, |row| {
            let key = row.get::<_, i64>(0)?.cast_unsigned();
            let id = PublicId::new(key, bytes_at(row, 1)?);
            Ok(LastAttempt { id, status: narrow_at(row, 2)?, at: time_at(row, 3)? })
        })
    }

    fn put_notice(&mut self, notice: &Notice) -> Result<(), StoreError> {
        let place = self.draw().cast_signed();
        let (about, at) = code(notice.news);
        let sql = format!(
            "INSERT INTO notice ({NOTICE}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
        );
        let (message, attempt) = (notice.message.as_ref(), notice.attempt.as_ref());
        self.batch.rows += self.conn.prepare_cached(&sql)?.execute(params![
            place,
            notice.org.as_bytes(),
            about,
            at.map(Timestamp::as_micros),
            notice.app.0.as_bytes(),
            notice.app.1,
            notice.endpoint.0.as_bytes(),
            notice.endpoint.1,
            message.map(|(id, _)| id.as_bytes()),
            message.and_then(|(_, event_id)| event_id.as_ref()),
            attempt.map(|last| last.id.as_bytes()),
            attempt.map(|last| last.status),
            attempt.map(|last| last.at.as_micros()),
            notice::endpoint(notice.news).map(|endpoint| endpoint.0),
        ])?;
        self.batch.noted += 1;
        Ok(())
    }

    fn forget(&mut self, place: u64) -> Result<(), StoreError> {
        let sql = "DELETE FROM notice WHERE place = ?1";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute([place.cast_signed()])?;
        Ok(())
    }
}

/// Reads [`NOTICE`].
fn kept(row: &Row<'_>) -> Result<Kept, StoreError> {
    let id = |column| {
        maybe_blob(row, column, |blob| {
            blob.try_into().map(PublicId::from_bytes).map_err(|_| unreadable())
        })
    };
    let attempt = match id(10)? {
        None => None,
        Some(id) => {
            let (status, at) = (narrow_at(row, 11)?, time_at(row, 12)?);
            Some(LastAttempt { id, status, at })
        }
    };
    let event_id = row.get(9)?;
    let endpoint = row.get::<_, Option<i64>>(13)?.map(EndpointKey);
    Ok(Kept {
        place: row.get::<_, i64>(0)?.cast_unsigned(),
        notice: Notice {
            org: id_at(row, 1)?,
            news: notice::whole(row.get(2)?, maybe_time(row, 3)?, endpoint)?,
            app: (id_at(row, 4)?, row.get(5)?),
            endpoint: (id_at(row, 6)?, row.get(7)?),
            message: id(8)?.map(|id| (id, event_id)),
            attempt,
        },
    })
}
