//! Reads of what happened, and the resend.
//!
//! Never: change anything but the row of a resend, a payload that is expunged with what waits
//! for it, and an answer that is.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{Pending, Trigger};
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::limits::OPERATION_ROWS_MAX;
use domain::message::Message;
use resilience::Timestamp;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::arrears::{ATTEMPTS, MESSAGES};
use super::deliveries::{deliveries, fresh, scheduled, sends};
use super::inbox::read_message;
use super::keys::{Whose, message_keys};
use super::rows::{ATTEMPT, ATTEMPT_OF, MESSAGE, MESSAGE_LEAN, attempt, message, one, value};
use super::scan::{LOOK_PIECES, PIECE_ROWS, Span, each, walk, wanted};
use super::sent;
use super::tx::Tx;
use crate::commits::Fresh;
use crate::directory::IdOrUid;
use crate::history::{
    AttemptCounts, AttemptFilter, AttemptRow, DeliveryRow, EXPUNGED, History, MessageFilter,
    Resent, Sent, SentFilter, payloads_fill,
};
use crate::page::{Looked, PageOf};
use crate::recall::Once;
use crate::{Reply, StoreError};

/// Deliveries that die in one piece when their payload goes: two rows for each.
const PIECE_DELIVERIES: usize = OPERATION_ROWS_MAX / 2;
/// What [`wanted`] looks at, behind the columns of an attempt.
const OF_MESSAGE: &str = "message.event_type, message.labels";

impl History for SqliteStore {
    fn message(&self, app: AppKey, which: IdOrUid) -> Reply<'_, Option<Arc<Message>>> {
        self.readers.read(move |conn| find_message(conn, app, &which))
    }

    fn messages(
        &self,
        app: AppKey,
        filter: MessageFilter,
        page: PageOf<MessageKey>,
        payloads: bool,
    ) -> Reply<'_, Looked<Message, MessageKey>> {
        let page = page.at(|key| key.0);
        self.readers.read(move |conn| messages(conn, app, &filter, &page, payloads))
    }

    fn attempts_of(
        &self,
        message: MessageKey,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>> {
        self.attempts(Whose::Message(message, filter.endpoint), filter, page)
    }

    fn attempts_to(
        &self,
        endpoint: EndpointKey,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>> {
        self.attempts(Whose::Endpoint(endpoint), filter, page)
    }

    fn messages_to(
        &self,
        app: AppKey,
        endpoint: EndpointKey,
        filter: SentFilter,
        page: PageOf<MessageKey>,
    ) -> Reply<'_, Looked<Sent, MessageKey>> {
        let page = page.at(|key| key.0);
        self.readers.read(move |conn| sent::messages_to(conn, (app, endpoint), &filter, &page))
    }

    fn count_attempts(
        &self,
        endpoint: EndpointKey,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Reply<'_, AttemptCounts> {
        Box::pin(sent::count_attempts(&self.readers, endpoint, (from, until)))
    }

    fn attempt(&self, message: MessageKey, id: PublicId) -> Reply<'_, Option<AttemptRow>> {
        self.readers.read(move |conn| {
            let sql = format!(
                "SELECT {ATTEMPT} FROM {ATTEMPT_OF} WHERE attempt.key = ?1 AND attempt.message = ?2"
            );
            let mut statement = conn.prepare_cached(&sql)?;
            let values = [id.key().cast_signed(), message.0.cast_signed()];
            let found = one(&mut statement.query(values)?, |row| with_url(conn, row))?;
            Ok(found.filter(|found| found.id == id))
        })
    }

    fn expunge_attempt(&self, message: MessageKey, id: PublicId) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.expunge_attempt(message, id))
    }

    fn deliveries(&self, message: MessageKey) -> Reply<'_, Vec<DeliveryRow>> {
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            deliveries(&snapshot, message)
        })
    }

    fn waiting(&self, endpoint: EndpointKey, bound: u64) -> Reply<'_, u64> {
        self.readers.read(move |conn| {
            let sql = "SELECT count(*) FROM (SELECT 1 FROM pending WHERE endpoint = ?1 LIMIT ?2)";
            let bound = i64::try_from(bound).unwrap_or(i64::MAX);
            let mut statement = conn.prepare_cached(sql)?;
            let count: Option<i64> = value(&mut statement.query([endpoint.0, bound])?)?;
            Ok(count.unwrap_or(0).cast_unsigned())
        })
    }

    fn resend_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        once: Once<Resent>,
    ) -> Reply<'static, Resent> {
        self.change_once(once, move |tx| tx.resend(message, endpoint))
    }

    fn expunge(&self, message: MessageKey) -> Reply<'static, ()> {
        let shared = Arc::clone(&self.shared);
        let fresh = self.readers.read(move |conn| fresh(conn, message.0.cast_signed()));
        Box::pin(async move {
            let mut fresh = fresh.await?;
            loop {
                let part = fresh[..fresh.len().min(PIECE_DELIVERIES)].to_vec();
                let done = part.len();
                if shared.door.change(move |tx| tx.expunge(message, &part)).await? {
                    fresh.drain(..done);
                    if fresh.is_empty() {
                        return Ok(());
                    }
                }
            }
        })
    }
}

impl SqliteStore {
    fn attempts(
        &self,
        whose: Whose,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'static, Looked<AttemptRow, AttemptKey>> {
        let page = page.at(|key| key.0);
        self.readers.read(move |conn| attempts(conn, whose, &filter, &page))
    }
}

fn find_message(
    conn: &Connection,
    app: AppKey,
    which: &IdOrUid,
) -> Result<Option<Arc<Message>>, StoreError> {
    let key = match which {
        IdOrUid::Id(id) => Some(MessageKey(id.key())),
        IdOrUid::Uid(uid) => {
            let sql = "SELECT key FROM message WHERE app = ?1 AND event_id = ?2";
            let mut statement = conn.prepare_cached(sql)?;
            let key: Option<i64> = value(&mut statement.query(params![app.0, uid])?)?;
            key.map(|key| MessageKey(key.cast_unsigned()))
        }
    };
    let Some(key) = key else { return Ok(None) };
    let found = read_message(conn, key)?.filter(|found| {
        let same = match which {
            IdOrUid::Id(id) => found.id == *id,
            IdOrUid::Uid(_) => true,
        };
        same && found.app == app
    });
    Ok(found.map(Arc::new))
}

fn messages(
    conn: &Connection,
    app: AppKey,
    filter: &MessageFilter,
    page: &PageOf<u64>,
    payloads: bool,
) -> Result<Looked<Message, MessageKey>, StoreError> {
    let mut found = Vec::new();
    if page.limit == 0 {
        return Ok(Looked::nothing());
    }
    let columns = if payloads { MESSAGE } else { MESSAGE_LEAN };
    let rows_max = if *filter == MessageFilter::default() { page.limit } else { PIECE_ROWS };
    let span = (Span::of(page).within(filter.after, filter.before), page.direction);
    let reached = walk(conn, Some(&MESSAGES), span, LOOK_PIECES, |conn, part, span| {
        let keys = message_keys(conn, app, (part, span), (page.direction, rows_max))?;
        let sql = format!("SELECT {columns} FROM message WHERE key = ?1");
        let mut statement = conn.prepare_cached(&sql)?;
        each(&keys, rows_max, |key| {
            let wanted = one(&mut statement.query([key])?, |row| {
                if wanted(row, [4, 6], filter)? { message(row).map(Some) } else { Ok(None) }
            })?;
            found.extend(wanted.flatten());
            Ok(found.len() >= page.limit || payloads_fill(&found))
        })
    })?;
    Ok(Looked { rows: found, reached: reached.map(|key| MessageKey(key.cast_unsigned())) })
}

fn attempts(
    conn: &Connection,
    whose: Whose,
    filter: &AttemptFilter,
    page: &PageOf<u64>,
) -> Result<Looked<AttemptRow, AttemptKey>, StoreError> {
    let mut found = Vec::new();
    if page.limit == 0 {
        return Ok(Looked::nothing());
    }
    let list = match whose {
        Whose::Message(..) => None,
        Whose::Endpoint(_) => Some(&ATTEMPTS),
    };
    let rows_max = if *filter == AttemptFilter::default() { page.limit } else { PIECE_ROWS };
    let span = Span::of(page).within(filter.message.after, filter.message.before);
    let span = (span, page.direction);
    let reached = walk(conn, list, span, LOOK_PIECES, |conn, part, span| {
        let keys = whose.keys(conn, part, span, (page.direction, rows_max))?;
        each(&keys, rows_max, |key| {
            found.extend(wanted_attempt(conn, key, filter)?);
            Ok(found.len() >= page.limit)
        })
    })?;
    Ok(Looked { rows: found, reached: reached.map(|key| AttemptKey(key.cast_unsigned())) })
}

fn wanted_attempt(
    conn: &Connection,
    key: i64,
    filter: &AttemptFilter,
) -> Result<Option<AttemptRow>, StoreError> {
    let sql = format!("SELECT {ATTEMPT}, {OF_MESSAGE} FROM {ATTEMPT_OF} WHERE attempt.key = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    let found = one(&mut statement.query([key])?, |row| {
        if is_wanted(row, filter)? { with_url(conn, row).map(Some) } else { Ok(None) }
    })?;
    Ok(found.flatten())
}

fn is_wanted(row: &Row<'_>, filter: &AttemptFilter) -> Result<bool, StoreError> {
    let (endpoint, status): (i64, u16) = (row.get(3)?, row.get(9)?);
    let standing = if (200..300).contains(&status) { 0 } else { 2 };
    let fits = filter.endpoint.is_none_or(|wanted| wanted.0 == endpoint)
        && filter.status.is_none_or(|wanted| wanted == standing)
        && filter.status_class.is_none_or(|wanted| wanted == status / 100 * 100);
    Ok(fits && wanted(row, [19, 20], &filter.message)?)
}

/// Reads an attempt, with the URL that held when it was made.
fn with_url(conn: &Connection, row: &Row<'_>) -> Result<AttemptRow, StoreError> {
    let (key, endpoint, started_at): (i64, i64, i64) = (row.get(0)?, row.get(3)?, row.get(5)?);
    let sql = "SELECT url FROM endpoint_url WHERE endpoint = ?1 AND since < ?2 AND at <= ?3
               ORDER BY since DESC LIMIT 1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut url = value(&mut statement.query([endpoint, key, started_at])?)?;
    if url.is_none() {
        let sql = "SELECT url FROM endpoint_url WHERE endpoint = ?1 ORDER BY since LIMIT 1";
        url = value(&mut conn.prepare_cached(sql)?.query([endpoint])?)?;
    }
    attempt(row, url.unwrap_or_default())
}

impl Tx<'_> {
    /// Deletes the payload, and a piece of what waits for it; whether nothing does any more.
    fn expunge(&mut self, message: MessageKey, fresh: &[Pending]) -> Result<bool, StoreError> {
        let sql = "UPDATE message SET payload = NULL WHERE key = ?1";
        let found = self.conn.prepare_cached(sql)?.execute([message.0.cast_signed()])?;
        self.batch.rows += found;
        if found == 0 {
            return Err(StoreError::Missing("message"));
        }
        self.withdraw(message, fresh, PIECE_DELIVERIES)
    }

    fn expunge_attempt(&mut self, message: MessageKey, id: PublicId) -> Result<(), StoreError> {
        let sql = "UPDATE attempt SET body = ?4, cut = NULL
                   WHERE key = ?1 AND message = ?2 AND random = ?3";
        let (key, message) = (id.key().cast_signed(), message.0.cast_signed());
        let values = params![key, message, &id.random()[..], EXPUNGED.as_bytes()];
        let found = self.conn.prepare_cached(sql)?.execute(values)?;
        self.batch.rows += found;
        if found == 0 { Err(StoreError::Missing("attempt")) } else { Ok(()) }
    }

    pub(super) fn resend(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<Resent, StoreError> {
        let sql = "SELECT payload IS NULL FROM message JOIN endpoint ON endpoint.app = message.app
                   WHERE message.key = ?1 AND endpoint.key = ?2 AND endpoint.deleted_at IS NULL";
        let mut statement = self.conn.prepare_cached(sql)?;
        let gone: Option<bool> =
            value(&mut statement.query([message.0.cast_signed(), endpoint.0])?)?;
        match gone {
            None => return Ok(Resent::Missing),
            Some(true) => return Ok(Resent::PayloadGone),
            Some(false) => {}
        }
        let waiting = scheduled(self.conn, message, endpoint)?.map_or(0, |row| row.sends);
        let sends = sends(self.conn, message, endpoint)?.max(waiting);
        self.put_due(message, endpoint, (sends, Trigger::Manual))?;
        Ok(Resent::Pending)
    }

    /// Adds a pending row that is due now, with budget and age at their beginning.
    pub(super) fn put_due(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
        (sends, trigger): (u32, Trigger),
    ) -> Result<(), StoreError> {
        let row = Pending {
            endpoint,
            due_at: self.now,
            message,
            age_from: self.now,
            sends,
            budget_used: 0,
            last_delay: Duration::ZERO,
            trigger,
        };
        let pending = self.put_pending(row, true)?;
        self.batch.fresh.push(Fresh { pending, endpoint: None, envelope: None });
        Ok(())
    }
}
