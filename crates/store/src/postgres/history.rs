//! Reads of what happened, and the resend.
//!
//! Never: change anything but the row of a resend, a payload that is expunged with what waits
//! for it, and an answer that is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::delivery::{Pending, Trigger};
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::limits::OPERATION_ROWS_MAX;
use domain::message::Message;
use resilience::Timestamp;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{Conn, all, one, value};
use super::deliveries::{deliveries, scheduled, sends};
use super::fault::Fault;
use super::inbox::read_message;
use super::rows::{ATTEMPT, ATTEMPT_OF, attempt, get, order, status_at, text};
use super::scan::{Walk, of_app, takes_all, wanted};
use super::sent;
use super::tx::Tx;
use crate::commits::Fresh;
use crate::directory::IdOrUid;
use crate::history::{
    AttemptCounts, AttemptFilter, AttemptRow, DeliveryRow, EXPUNGED, History, MessageFilter,
    Resent, Sent, SentFilter, payloads_fill,
};
use crate::page::{Looked, PageOf, keys_within};
use crate::recall::Once;
use crate::{Reply, StoreError};

/// Deliveries that die in one piece when their payload goes: two rows for each.
const PIECE_DELIVERIES: usize = OPERATION_ROWS_MAX / 2;

impl History for PostgresStore {
    fn message(&self, app: AppKey, which: IdOrUid) -> Reply<'_, Option<Arc<Message>>> {
        self.read(move |conn| async move { find_message(&conn, app, &which).await })
    }

    fn messages(
        &self,
        app: AppKey,
        filter: MessageFilter,
        page: PageOf<MessageKey>,
        payloads: bool,
    ) -> Reply<'_, Looked<Message, MessageKey>> {
        self.read(move |conn| async move {
            let page = page.at(|key| key.0);
            let found = messages(&conn, (app, &filter), &page, payloads).await?;
            Ok(Looked { rows: found.rows, reached: found.reached.map(MessageKey) })
        })
    }

    fn attempts_of(
        &self,
        message: MessageKey,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>> {
        self.attempts(Whose::Message(message), filter, page)
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
        self.read(move |conn| async move {
            let page = page.at(|key| key.0);
            let found = sent::messages_to(&conn, (app, endpoint), &filter, &page).await?;
            Ok(Looked { rows: found.rows, reached: found.reached.map(MessageKey) })
        })
    }

    fn count_attempts(
        &self,
        endpoint: EndpointKey,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Reply<'_, AttemptCounts> {
        Box::pin(sent::count_attempts(self, endpoint, keys_within(Some(from), until)))
    }

    fn attempt(&self, message: MessageKey, id: PublicId) -> Reply<'_, Option<AttemptRow>> {
        self.read(move |conn| async move {
            let sql = format!(
                "SELECT {ATTEMPT} FROM {ATTEMPT_OF} WHERE attempt.key = $1 AND attempt.message = $2"
            );
            let values = (id.key().cast_signed(), message.0.cast_signed());
            let found = one(&conn, &sql, &[&values.0, &values.1], attempt).await?;
            Ok(found.filter(|found| found.id == id))
        })
    }

    fn expunge_attempt(&self, message: MessageKey, id: PublicId) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| Box::pin(tx.expunge_attempt(message, id)))
    }

    fn deliveries(&self, message: MessageKey) -> Reply<'_, Vec<DeliveryRow>> {
        self.read(move |conn| async move { deliveries(&conn, message).await })
    }

    fn waiting(&self, endpoint: EndpointKey, bound: u64) -> Reply<'_, u64> {
        self.read(move |conn| async move {
            let sql =
                "SELECT count(*) FROM (SELECT 1 FROM pending WHERE endpoint = $1 LIMIT $2) AS rows";
            let bound = i64::try_from(bound).unwrap_or(i64::MAX);
            let count: Option<i64> = value(&conn, sql, &[&endpoint.0, &bound]).await?;
            Ok(count.unwrap_or(0).cast_unsigned())
        })
    }

    fn resend_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        once: Once<Resent>,
    ) -> Reply<'static, Resent> {
        self.change_once(once, move |tx| Box::pin(tx.resend(message, endpoint)))
    }

    fn expunge(&self, message: MessageKey) -> Reply<'static, ()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            while !shared.door.change(move |tx| Box::pin(tx.expunge(message))).await? {}
            Ok(())
        })
    }
}

/// Whose attempts.
#[derive(Clone, Copy)]
enum Whose {
    Message(MessageKey),
    Endpoint(EndpointKey),
}

impl PostgresStore {
    fn attempts(
        &self,
        whose: Whose,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'static, Looked<AttemptRow, AttemptKey>> {
        self.read(move |conn| async move {
            let page = page.at(|key| key.0);
            let found = attempts(&conn, whose, &filter, &page).await?;
            Ok(Looked { rows: found.rows, reached: found.reached.map(AttemptKey) })
        })
    }
}

async fn find_message(
    conn: &Conn,
    app: AppKey,
    which: &IdOrUid,
) -> Result<Option<Arc<Message>>, Fault> {
    let key = match which {
        IdOrUid::Id(id) => Some(MessageKey(id.key())),
        IdOrUid::Uid(uid) => {
            let sql = "SELECT key FROM message WHERE app = $1 AND event_id = $2";
            let key: Option<i64> = value(conn, sql, &[&app.0, &text(uid)]).await?;
            key.map(|key| MessageKey(key.cast_unsigned()))
        }
    };
    let Some(key) = key else { return Ok(None) };
    let found = read_message(conn, key).await?.filter(|found| {
        let same = match which {
            IdOrUid::Id(id) => found.id == *id,
            IdOrUid::Uid(_) => true,
        };
        same && found.app == app
    });
    Ok(found.map(Arc::new))
}

async fn messages(
    conn: &Conn,
    (app, filter): (AppKey, &MessageFilter),
    page: &PageOf<u64>,
    payloads: bool,
) -> Result<Looked<Message, u64>, Fault> {
    let mut found = Vec::new();
    let keys = keys_within(filter.after, filter.before);
    let mut walk = Walk::new(page, &keys, !takes_all(filter));
    while let Some((span, most)) = walk.piece() {
        let rows = of_app(conn, (app, filter), (span.low, span.high, most), page).await?;
        let count = rows.len();
        for (key, lean) in rows {
            walk.pass(key);
            let Some(lean) = lean else { continue };
            found.extend(if payloads { read_message(conn, lean.key).await? } else { Some(lean) });
            if found.len() >= page.limit || payloads_fill(&found) {
                return Ok(walk.found(found));
            }
        }
        walk.read(count);
    }
    Ok(walk.found(found))
}

async fn attempts(
    conn: &Conn,
    whose: Whose,
    filter: &AttemptFilter,
    page: &PageOf<u64>,
) -> Result<Looked<AttemptRow, u64>, Fault> {
    let mut found = Vec::new();
    let order = order(page.direction);
    let own = match whose {
        // There are few of one message, and they are sorted.
        Whose::Message(_) => "SELECT key, message, endpoint, status FROM attempt
             WHERE message = $1 AND key BETWEEN $2 AND $3"
            .to_owned(),
        Whose::Endpoint(_) => format!(
            "SELECT key, message, endpoint, status FROM attempt
             WHERE (endpoint, key) >= ($1, $2) AND (endpoint, key) <= ($1, $3)
             ORDER BY endpoint {order}, key {order} LIMIT $4"
        ),
    };
    let sql = format!(
        "WITH own AS MATERIALIZED ({own})
         SELECT own.key, own.endpoint, own.status, message.event_type, message.labels
         FROM own JOIN message ON message.key = own.message ORDER BY own.key {order} LIMIT $4"
    );
    let owner = match whose {
        Whose::Message(message) => message.0.cast_signed(),
        Whose::Endpoint(endpoint) => endpoint.0,
    };
    let keys = keys_within(filter.message.after, filter.message.before);
    let mut walk = Walk::new(page, &keys, !is_open(filter));
    while let Some((span, most)) = walk.piece() {
        let read = |row: &Row| Ok((get::<i64>(row, 0)?, is_wanted(row, filter)?));
        let rows = all(conn, &sql, &[&owner, &span.low, &span.high, &most], read).await?;
        let room = page.limit - found.len();
        let taken: Vec<i64> =
            rows.iter().filter(|(_, wanted)| *wanted).map(|(key, _)| *key).take(room).collect();
        let mut whole = by_keys(conn, &taken).await?;
        let count = rows.len();
        for (key, wanted) in rows {
            walk.pass(key);
            found.extend(whole.remove(&key).filter(|_| wanted));
            if found.len() >= page.limit {
                return Ok(walk.found(found));
            }
        }
        walk.read(count);
    }
    Ok(walk.found(found))
}

async fn by_keys(conn: &Conn, keys: &[i64]) -> Result<HashMap<i64, AttemptRow>, Fault> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!("SELECT {ATTEMPT} FROM {ATTEMPT_OF} WHERE attempt.key = ANY($1)");
    let rows = all(conn, &sql, &[&keys], |row| Ok((get(row, 0)?, attempt(row)?))).await;
    Ok(rows?.into_iter().collect())
}

/// Whether a filter takes every attempt of its time.
fn is_open(filter: &AttemptFilter) -> bool {
    filter.endpoint.is_none()
        && filter.status.is_none()
        && filter.status_class.is_none()
        && takes_all(&filter.message)
}

fn is_wanted(row: &Row, filter: &AttemptFilter) -> Result<bool, StoreError> {
    let (endpoint, status) = (get::<i64>(row, 1)?, status_at(row, 2)?);
    let standing = if (200..300).contains(&status) { 0 } else { 2 };
    let fits = filter.endpoint.is_none_or(|wanted| wanted.0 == endpoint)
        && filter.status.is_none_or(|wanted| wanted == standing)
        && filter.status_class.is_none_or(|wanted| wanted == status / 100 * 100);
    Ok(fits && wanted(row, [3, 4], &filter.message)?)
}

impl Tx {
    /// Deletes the payload, and a piece of what waits for it; whether nothing does any more.
    async fn expunge(&mut self, message: MessageKey) -> Result<bool, Fault> {
        let sql = "UPDATE message SET payload = NULL WHERE key = $1";
        match self.write(sql, &[&message.0.cast_signed()]).await? {
            0 => Err(StoreError::Missing("message").into()),
            _ => self.withdraw(message, PIECE_DELIVERIES).await,
        }
    }

    async fn expunge_attempt(&mut self, message: MessageKey, id: PublicId) -> Result<(), Fault> {
        let sql = "UPDATE attempt SET body = $4, cut = NULL
                   WHERE key = $1 AND message = $2 AND random = $3";
        let (key, message) = (id.key().cast_signed(), message.0.cast_signed());
        let (random, body) = (id.random(), EXPUNGED.as_bytes());
        match self.write(sql, &[&key, &message, &&random[..], &body]).await? {
            0 => Err(StoreError::Missing("attempt").into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn resend(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<Resent, Fault> {
        let sql = "SELECT payload IS NULL FROM message JOIN endpoint ON endpoint.app = message.app
                   WHERE message.key = $1 AND endpoint.key = $2 AND endpoint.deleted_at IS NULL";
        let gone: Option<bool> =
            value(self.conn(), sql, &[&message.0.cast_signed(), &endpoint.0]).await?;
        match gone {
            None => return Ok(Resent::Missing),
            Some(true) => return Ok(Resent::PayloadGone),
            Some(false) => {}
        }
        let waiting = scheduled(self.conn(), message, endpoint).await?.map_or(0, |row| row.sends);
        let sends = sends(self.conn(), message, endpoint).await?.max(waiting);
        self.put_due(message, endpoint, (sends, Trigger::Manual)).await?;
        Ok(Resent::Pending)
    }

    /// Adds a pending row that is due now, with budget and age at their beginning.
    pub(super) async fn put_due(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
        (sends, trigger): (u32, Trigger),
    ) -> Result<(), Fault> {
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
        let pending = self.put_pending(row).await?;
        self.batch.fresh.push(Fresh { pending, endpoint: None, envelope: None });
        Ok(())
    }
}
