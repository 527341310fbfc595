//! Dead letters, in PostgreSQL: closed rows with three partial indexes in order of their place.
//!
//! Never: touch an attempt.

use domain::attempt::FailureKind;
use domain::dead_letter::DeadLetter;
use domain::delivery::{CancelReason, Trigger};
use domain::edit::Edit;
use domain::ids::{EndpointKey, MessageKey, PublicId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::conn::{Conn, all, exists, one, value};
use super::deliveries::sends;
use super::fault::Fault;
use super::rows::{
    At, bytes_at, code_at, get, id_at, maybe_blob, maybe_code, maybe_narrow, maybe_time,
    message_key, narrow_at, order, small, text, time_at,
};
use super::scan::{Span, Walk};
use super::tx::Tx;
use crate::dead_letters::{DeadFilter, DeadLetters, Edited, Replayed};
use crate::inbox::Accepted;
use crate::page::{Looked, PageOf, keys_within};
use crate::recall::Once;
use crate::stored::codes::{Code as _, closed};
use crate::stored::edit::{self, packed};
use crate::stored::numbers::narrow;
use crate::{Reply, StoreError};

/// The columns that [`dead_letter`] reads, the first and the last attempt behind.
const DEAD: &str = "place, closed.message, message.random, closed.endpoint, endpoint.id, message.event_id, \
     message.event_type, endpoint.url, reason, closed.sends, closed.at, closed.error, first.started_at, \
     latest.started_at, latest.n, latest.status, latest.failure, latest.text, closed.run";
/// What they are read from.
const TABLES: &str = "JOIN message ON message.key = closed.message JOIN endpoint ON endpoint.key = closed.endpoint
     LEFT JOIN LATERAL (SELECT started_at FROM attempt WHERE attempt.message = closed.message
         AND attempt.endpoint = closed.endpoint ORDER BY n LIMIT 1) AS first ON true
     LEFT JOIN LATERAL (SELECT started_at, n, status, failure, text FROM attempt WHERE attempt.message = closed.message
         AND attempt.endpoint = closed.endpoint ORDER BY n DESC LIMIT 1) AS latest ON true";

impl DeadLetters for PostgresStore {
    fn list(
        &self,
        org: PublicId,
        filter: DeadFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<DeadLetter, u64>> {
        self.read(move |conn| async move { list(&conn, org, &filter, &page).await })
    }

    fn count(&self, org: PublicId, filter: DeadFilter) -> Reply<'_, u64> {
        self.read(move |conn| async move {
            let span = Span::within(&keys_within(filter.after, filter.before));
            let sql = format!(
                "SELECT count(*) FROM closed JOIN message ON message.key = closed.message
                 WHERE {} AND (cardinality($5::smallint[]) = 0 OR reason = ANY($5))
                     AND (cardinality($6::text[]) = 0 OR event_type = ANY($6))
                     AND ($7::timestamptz IS NULL OR closed.run = $7)",
                by(&filter)
            );
            let (org, owner) = (&org.as_bytes()[..], owner(&filter));
            let reasons = filter.reasons.iter().map(|reason| small(reason.code()));
            let reasons: Vec<i16> = reasons.collect();
            let types: Vec<_> = filter.event_types.iter().map(|name| text(name)).collect();
            let run = filter.run.map(At);
            let values: [&(dyn ToSql + Sync); 7] =
                [&org, &owner, &span.low, &span.high, &reasons, &types, &run];
            Ok(value::<i64>(&conn, &sql, &values).await?.unwrap_or(0).cast_unsigned())
        })
    }

    fn dead_letter(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Reply<'_, Option<DeadLetter>> {
        self.read(move |conn| async move {
            let sql = format!(
                "SELECT {DEAD} FROM closed {TABLES}
                 WHERE closed.message = $1 AND closed.endpoint = $2 AND state = 1"
            );
            one(&conn, &sql, &[&message.0.cast_signed(), &endpoint.0], dead_letter).await
        })
    }

    fn replay_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        once: Once<Replayed>,
    ) -> Reply<'static, Replayed> {
        self.change_once(once, move |tx| Box::pin(tx.replay(message, endpoint)))
    }

    fn replay_edited_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        edited: Edited,
        once: Once<Option<Accepted>>,
    ) -> Reply<'static, Option<Accepted>> {
        self.change_once(once, move |tx| {
            Box::pin(async move {
                if dead_sends(tx.conn(), message, endpoint).await?.is_none() {
                    return Ok(None);
                }
                let accepted = tx.accept_one(&edited.message).await?;
                if let Accepted::New { key, .. } = accepted {
                    let sql = "INSERT INTO edit (message, spec) VALUES ($1, $2)";
                    let spec = packed(&edited.edit);
                    tx.write(sql, &[&key.0.cast_signed(), &spec]).await?;
                    let reason = CancelReason::Superseded.code();
                    tx.recast(message, endpoint, (closed::CANCELLED, Some(reason))).await?;
                }
                Ok(Some(accepted))
            })
        })
    }

    fn edit(&self, message: MessageKey) -> Reply<'_, Option<Edit>> {
        self.read(move |conn| async move {
            let (sql, key) = ("SELECT spec FROM edit WHERE message = $1", message.0.cast_signed());
            let found = one(&conn, sql, &[&key], |row| maybe_blob(row, 0, edit::read)).await;
            Ok(found?.flatten())
        })
    }

    fn delete(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, bool> {
        self.shared
            .door
            .change(move |tx| Box::pin(tx.recast(message, endpoint, (closed::DISCARDED, None))))
    }
}

impl Tx {
    pub(super) async fn replay(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<Replayed, Fault> {
        let Some(counted) = dead_sends(self.conn(), message, endpoint).await? else {
            return Ok(Replayed::NotDead);
        };
        let key = message.0.cast_signed();
        let sql = "SELECT 1 FROM endpoint WHERE key = $1 AND deleted_at IS NULL";
        if !exists(self.conn(), sql, &[&endpoint.0]).await? {
            return Ok(Replayed::NoEndpoint);
        }
        let sql = "SELECT 1 FROM message WHERE key = $1 AND payload IS NOT NULL";
        if !exists(self.conn(), sql, &[&key]).await? {
            return Ok(Replayed::PayloadGone);
        }
        let sql = "DELETE FROM closed WHERE message = $1 AND endpoint = $2";
        self.write(sql, &[&key, &endpoint.0]).await?;
        let sends = counted.max(sends(self.conn(), message, endpoint).await?);
        self.put_due(message, endpoint, (sends, Trigger::Replay)).await?;
        Ok(Replayed::Pending)
    }

    /// Gives a dead letter another state; `false` when it is not dead.
    async fn recast(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
        (state, reason): (i64, Option<i64>),
    ) -> Result<bool, Fault> {
        let sql = "UPDATE closed SET state = $3, reason = coalesce($4, reason)
                   WHERE message = $1 AND endpoint = $2 AND state = 1";
        let (key, reason) = (message.0.cast_signed(), reason.map(small));
        Ok(self.write(sql, &[&key, &endpoint.0, &small(state), &reason]).await? == 1)
    }
}

/// Sends counted when it was given up; `None` when it is not dead.
async fn dead_sends(
    conn: &Conn,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<u32>, Fault> {
    let sql = "SELECT sends FROM closed WHERE message = $1 AND endpoint = $2 AND state = 1";
    let sends: Option<i64> = value(conn, sql, &[&message.0.cast_signed(), &endpoint.0]).await?;
    Ok(sends.map(narrow).transpose()?)
}

/// Whose dead letters, from the place $3 to $4: $1 is the organisation, $2 the endpoint or the
/// application. The columns of an index are named in its order.
fn by(filter: &DeadFilter) -> String {
    let first = first(filter);
    let owner = if first == "org" { "$1" } else { "$2" };
    let also = match (filter.endpoint, filter.app) {
        (Some(_), Some(app)) => format!("closed.org = $1 AND closed.app = {}", app.0),
        (None, None) => "$2::bigint IS NULL".to_owned(),
        _ => "closed.org = $1".to_owned(),
    };
    format!(
        "state = 1 AND (closed.{first}, place) >= ({owner}, $3) AND (closed.{first}, place) <= ({owner}, $4)
             AND {also}"
    )
}

/// The first column of the index.
const fn first(filter: &DeadFilter) -> &'static str {
    match (filter.endpoint, filter.app) {
        (Some(_), _) => "endpoint",
        (None, Some(_)) => "app",
        (None, None) => "org",
    }
}

fn owner(filter: &DeadFilter) -> Option<i64> {
    filter.endpoint.map(|key| key.0).or_else(|| filter.app.map(|key| key.0))
}

async fn list(
    conn: &Conn,
    org: PublicId,
    filter: &DeadFilter,
    page: &PageOf<u64>,
) -> Result<Looked<DeadLetter, u64>, Fault> {
    let (first, order) = (first(filter), order(page.direction));
    let sql = format!(
        "SELECT {DEAD} FROM closed {TABLES} WHERE {} ORDER BY closed.{first} {order}, place {order} LIMIT $5",
        by(filter)
    );
    let (org, owner) = (&org.as_bytes()[..], owner(filter));
    let filtered =
        filter.run.is_some() || !filter.reasons.is_empty() || !filter.event_types.is_empty();
    let mut walk = Walk::new(page, &keys_within(filter.after, filter.before), filtered);
    let mut found = Vec::new();
    while let Some((span, most)) = walk.piece() {
        let values: [&(dyn ToSql + Sync); 5] = [&org, &owner, &span.low, &span.high, &most];
        let rows = all(conn, &sql, &values, dead_letter).await?;
        let count = rows.len();
        for letter in rows {
            walk.pass(letter.place.cast_signed());
            let wanted = (filter.reasons.is_empty() || filter.reasons.contains(&letter.reason))
                && filter.run.is_none_or(|run| letter.run == Some(run))
                && (filter.event_types.is_empty()
                    || filter.event_types.contains(&letter.event_type));
            found.extend(wanted.then_some(letter));
            if found.len() >= page.limit {
                return Ok(walk.found(found));
            }
        }
        walk.read(count);
    }
    Ok(walk.found(found))
}

/// Reads [`DEAD`].
fn dead_letter(row: &Row) -> Result<DeadLetter, StoreError> {
    let message = message_key(row, 1)?;
    let failed = maybe_code::<FailureKind>(row, 16)?.is_some();
    let last_failure = get::<Option<String>>(row, 17)?.filter(|_| failed);
    let last_status = get::<Option<i16>>(row, 15)?.map_or(Ok(0), |status| narrow(status.into()))?;
    Ok(DeadLetter {
        message,
        message_id: PublicId::new(message.0, bytes_at(row, 2)?),
        endpoint: EndpointKey(get(row, 3)?),
        endpoint_id: id_at(row, 4)?,
        event_id: get(row, 5)?,
        event_type: get(row, 6)?,
        url: get(row, 7)?,
        reason: code_at(row, 8)?,
        sends: narrow_at::<u32>(row, 9)?.max(maybe_narrow(row, 14)?.unwrap_or(0)),
        last_status,
        last_error: get::<Option<String>>(row, 11)?.or(last_failure),
        first_attempt_at: maybe_time(row, 12)?,
        last_attempt_at: maybe_time(row, 13)?,
        dead_at: time_at(row, 10)?,
        place: get::<i64>(row, 0)?.cast_unsigned(),
        run: maybe_time(row, 18)?,
    })
}
