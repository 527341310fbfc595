//! Dead letters, in SQLite: closed rows with three partial indexes in order of their place.
//!
//! Never: touch an attempt.

use domain::dead_letter::{DeadLetter, DeadReason};
use domain::delivery::{CancelReason, Trigger};
use domain::edit::Edit;
use domain::ids::{EndpointKey, MessageKey, PublicId};
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::deliveries::sends;
use super::queue::bound;
use super::rows::{
    bytes_at, code_at, id_at, maybe_blob, maybe_code, maybe_time, message_key, narrow_at, one,
    order, time_at, value,
};
use super::scan::{LOOK_PIECES, PIECE_ROWS, Span, piece, walk};
use super::tx::Tx;
use crate::dead_letters::{DeadFilter, DeadLetters, Edited, Replayed};
use crate::inbox::Accepted;
use crate::page::{Direction, Looked, PageOf};
use crate::recall::Once;
use crate::stored::codes::{Code as _, closed};
use crate::stored::edit::{self, packed};
use crate::{Reply, StoreError};

/// The columns that [`dead_letter`] reads.
const DEAD: &str = "place, closed.message, message.random, closed.endpoint, endpoint.id, message.event_id, \
     message.event_type, endpoint.url, reason, sends, at, error, run";
/// What they are read from.
const TABLES: &str = "CROSS JOIN message ON message.key = closed.message
     CROSS JOIN endpoint ON endpoint.key = closed.endpoint";

impl DeadLetters for SqliteStore {
    fn list(
        &self,
        org: PublicId,
        filter: DeadFilter,
        page: PageOf<u64>,
    ) -> Reply<'_, Looked<DeadLetter, u64>> {
        self.readers.read(move |conn| list(conn, org, &filter, &page))
    }

    fn count(&self, org: PublicId, filter: DeadFilter) -> Reply<'_, u64> {
        self.readers.read(move |conn| {
            let all = PageOf { beyond: None, direction: Direction::Ascending, limit: usize::MAX };
            let mut count = 0;
            look(conn, org, (&filter, &all), usize::MAX, |_, _| {
                count += 1;
                Ok(false)
            })?;
            Ok(count)
        })
    }

    fn dead_letter(
        &self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Reply<'_, Option<DeadLetter>> {
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            let sql = format!(
                "SELECT {DEAD} FROM closed {TABLES}
                 WHERE closed.message = ?1 AND closed.endpoint = ?2 AND state = {}",
                closed::DEAD
            );
            let mut statement = snapshot.prepare_cached(&sql)?;
            let mut rows = statement.query([message.0.cast_signed(), endpoint.0])?;
            one(&mut rows, |row| dead_letter(&snapshot, row))
        })
    }

    fn replay_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        once: Once<Replayed>,
    ) -> Reply<'static, Replayed> {
        self.change_once(once, move |tx| tx.replay(message, endpoint))
    }

    fn replay_edited_once(
        &self,
        (message, endpoint): (MessageKey, EndpointKey),
        edited: Edited,
        once: Once<Option<Accepted>>,
    ) -> Reply<'static, Option<Accepted>> {
        self.change_once(once, move |tx| {
            if dead_sends(tx.conn, message, endpoint)?.is_none() {
                return Ok(None);
            }
            let accepted = tx.accept(edited.message)?;
            if let Accepted::New { key, .. } = accepted {
                let sql = "INSERT INTO edit (message, spec) VALUES (?1, ?2)";
                let values = params![key.0.cast_signed(), packed(&edited.edit)];
                tx.batch.rows += tx.conn.prepare_cached(sql)?.execute(values)?;
                let reason = CancelReason::Superseded.code();
                tx.recast(message, endpoint, (closed::CANCELLED, Some(reason)))?;
            }
            Ok(Some(accepted))
        })
    }

    fn edit(&self, message: MessageKey) -> Reply<'_, Option<Edit>> {
        self.readers.read(move |conn| {
            let mut statement = conn.prepare_cached("SELECT spec FROM edit WHERE message = ?1")?;
            let mut rows = statement.query([message.0.cast_signed()])?;
            Ok(one(&mut rows, |row| maybe_blob(row, 0, edit::read))?.flatten())
        })
    }

    fn delete(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, bool> {
        self.shared.door.change(move |tx| tx.recast(message, endpoint, (closed::DISCARDED, None)))
    }
}

impl Tx<'_> {
    pub(super) fn replay(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<Replayed, StoreError> {
        let Some(counted) = dead_sends(self.conn, message, endpoint)? else {
            return Ok(Replayed::NotDead);
        };
        let key = message.0.cast_signed();
        let sql = "SELECT 1 FROM endpoint WHERE key = ?1 AND deleted_at IS NULL";
        if !self.conn.prepare_cached(sql)?.exists([endpoint.0])? {
            return Ok(Replayed::NoEndpoint);
        }
        let sql = "SELECT 1 FROM message WHERE key = ?1 AND payload IS NOT NULL";
        if !self.conn.prepare_cached(sql)?.exists([key])? {
            return Ok(Replayed::PayloadGone);
        }
        let sql = "DELETE FROM closed WHERE message = ?1 AND endpoint = ?2";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute([key, endpoint.0])?;
        let sends = counted.max(sends(self.conn, message, endpoint)?);
        self.put_due(message, endpoint, (sends, Trigger::Replay))?;
        Ok(Replayed::Pending)
    }

    /// Gives a dead letter another state; `false` when it is not dead.
    fn recast(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
        (state, reason): (i64, Option<i64>),
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE closed SET state = ?3, reason = coalesce(?4, reason)
                   WHERE message = ?1 AND endpoint = ?2 AND state = ?5";
        let values = params![message.0.cast_signed(), endpoint.0, state, reason, closed::DEAD];
        let changed = self.conn.prepare_cached(sql)?.execute(values)?;
        self.batch.rows += changed;
        Ok(changed == 1)
    }
}

/// Sends counted when it was given up; `None` when it is not dead.
fn dead_sends(
    conn: &Connection,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<u32>, StoreError> {
    let sql = "SELECT sends FROM closed WHERE message = ?1 AND endpoint = ?2 AND state = ?3";
    let mut statement = conn.prepare_cached(sql)?;
    value(&mut statement.query([message.0.cast_signed(), endpoint.0, closed::DEAD])?)
}

fn list(
    conn: &Connection,
    org: PublicId,
    filter: &DeadFilter,
    page: &PageOf<u64>,
) -> Result<Looked<DeadLetter, u64>, StoreError> {
    let mut found = Vec::new();
    if page.limit == 0 {
        return Ok(Looked::nothing());
    }
    let reached = look(conn, org, (filter, page), LOOK_PIECES, |conn, row| {
        found.push(dead_letter(conn, row)?);
        Ok(found.len() >= page.limit)
    })?;
    Ok(Looked { rows: found, reached: reached.map(i64::cast_unsigned) })
}

/// Shows `take` each dead letter that is wanted, until it has enough or so many pieces were read;
/// up to which place, if there may be more.
fn look(
    conn: &Connection,
    org: PublicId,
    (filter, page): (&DeadFilter, &PageOf<u64>),
    pieces: usize,
    mut take: impl FnMut(&Connection, &Row<'_>) -> Result<bool, StoreError>,
) -> Result<Option<i64>, StoreError> {
    let index = match (filter.endpoint, filter.app) {
        (Some(_), _) => "dead_of_endpoint",
        (None, Some(_)) => "dead_of_app",
        (None, None) => "dead_of_org",
    };
    let by = match (filter.endpoint, filter.app) {
        (Some(_), Some(_)) => "closed.endpoint = ?2 AND +closed.app = ?3 AND +org = ?1",
        (Some(_), None) => "closed.endpoint = ?2 AND ?3 IS NULL AND +org = ?1",
        (None, Some(_)) => "?2 IS NULL AND closed.app = ?3 AND +org = ?1",
        (None, None) => "?2 IS NULL AND ?3 IS NULL AND org = ?1",
    };
    let filtered =
        filter.run.is_some() || !filter.reasons.is_empty() || !filter.event_types.is_empty();
    let rows_max = if filtered { PIECE_ROWS } else { page.limit.min(PIECE_ROWS) };
    let order = order(page.direction);
    let sql = format!(
        "SELECT {DEAD} FROM closed INDEXED BY {index} {TABLES}
         WHERE state = {} AND {by} AND place BETWEEN ?4 AND ?5 ORDER BY place {order} LIMIT ?6",
        closed::DEAD
    );
    let span = (Span::of(page).within(filter.after, filter.before), page.direction);
    walk(conn, None, span, pieces, |conn, _, span| {
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params![
            org.as_bytes(),
            filter.endpoint.map(|key| key.0),
            filter.app.map(|key| key.0),
            span.low,
            span.high,
            bound(rows_max),
        ])?;
        piece(&mut rows, rows_max, |row| Ok(is_wanted(row, filter)? && take(conn, row)?))
    })
}

fn is_wanted(row: &Row<'_>, filter: &DeadFilter) -> Result<bool, StoreError> {
    let reason: DeadReason = code_at(row, 8)?;
    let event_type: String = row.get(6)?;
    let run = maybe_time(row, 12)?;
    Ok(filter.run.is_none_or(|wanted| run == Some(wanted))
        && (filter.reasons.is_empty() || filter.reasons.contains(&reason))
        && (filter.event_types.is_empty() || filter.event_types.contains(&event_type)))
}

/// Reads [`DEAD`], and the first and the last attempt.
fn dead_letter(conn: &Connection, row: &Row<'_>) -> Result<DeadLetter, StoreError> {
    let (message, endpoint) = (message_key(row, 1)?, EndpointKey(row.get(3)?));
    let ids = [message.0.cast_signed(), endpoint.0];
    let sql = "SELECT started_at FROM attempt WHERE message = ?1 AND endpoint = ?2
               ORDER BY n LIMIT 1";
    let first = one(&mut conn.prepare_cached(sql)?.query(ids)?, |row| time_at(row, 0))?;
    let sql = "SELECT started_at, n, status, failure, text FROM attempt
               WHERE message = ?1 AND endpoint = ?2 ORDER BY n DESC LIMIT 1";
    let last = one(&mut conn.prepare_cached(sql)?.query(ids)?, |row| {
        let failed = maybe_code::<domain::attempt::FailureKind>(row, 3)?.is_some();
        let text: Option<String> = row.get(4)?;
        Ok((
            time_at(row, 0)?,
            narrow_at::<u32>(row, 1)?,
            narrow_at(row, 2)?,
            text.filter(|_| failed),
        ))
    })?;
    let sends: u32 = narrow_at(row, 9)?;
    let error: Option<String> = row.get(11)?;
    let place = row.get::<_, i64>(0)?.cast_unsigned();
    let (last_attempt_at, number, last_status, last_failure) = match last {
        Some((at, number, status, text)) => (Some(at), number, status, text),
        None => (None, 0, 0, None),
    };
    Ok(DeadLetter {
        message,
        message_id: PublicId::new(message.0, bytes_at(row, 2)?),
        endpoint,
        endpoint_id: id_at(row, 4)?,
        event_id: row.get(5)?,
        event_type: row.get(6)?,
        url: row.get(7)?,
        reason: code_at(row, 8)?,
        sends: sends.max(number),
        last_status,
        last_error: error.or(last_failure),
        first_attempt_at: first,
        last_attempt_at,
        dead_at: time_at(row, 10)?,
        place,
        run: maybe_time(row, 12)?,
    })
}
