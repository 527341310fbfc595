//! Due work, in SQLite: ranges of the key of `pending`.
//!
//! Never: group or sort; the order of the key is the order of the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::ids::{EndpointKey, MessageKey, PublicId};
use domain::message::Envelope;
use domain::until::Until;
use resilience::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::rows::{
    LANE, PENDING, all, bytes_at, content_type, labels_at, lane, maybe_blob, one, pending, value,
};
use crate::ledger::LaneState;
use crate::queue::{DueRows, Queue};
use crate::{Reply, StoreError};

/// Jumps from one endpoint's first row to the next one's.
const ENDPOINTS: &str = "WITH RECURSIVE step (endpoint) AS (
         SELECT min(endpoint) FROM pending WHERE endpoint > ?1
         UNION ALL
         SELECT (SELECT min(endpoint) FROM pending WHERE endpoint > step.endpoint) FROM step
         WHERE step.endpoint IS NOT NULL
     )
     SELECT endpoint, (SELECT min(due_at) FROM pending WHERE pending.endpoint = step.endpoint)
     FROM step WHERE endpoint IS NOT NULL LIMIT ?2";

/// The earliest of the first rows of all endpoints.
const EARLIEST: &str = "WITH RECURSIVE step (endpoint) AS (
         SELECT min(endpoint) FROM pending
         UNION ALL
         SELECT (SELECT min(endpoint) FROM pending WHERE endpoint > step.endpoint) FROM step
         WHERE step.endpoint IS NOT NULL
     )
     SELECT min((SELECT min(due_at) FROM pending WHERE pending.endpoint = step.endpoint)) FROM step";

impl Queue for SqliteStore {
    fn endpoints(
        &self,
        after: Option<EndpointKey>,
        limit: usize,
    ) -> Reply<'_, Vec<(EndpointKey, Timestamp)>> {
        self.readers.read(move |conn| endpoints(conn, after, limit))
    }

    fn due(&self, endpoint: EndpointKey, until: Until, limit: usize) -> Reply<'_, DueRows> {
        self.readers.read(move |conn| due(conn, endpoint, until, limit))
    }

    fn envelope(&self, message: MessageKey) -> Reply<'_, Option<Arc<Envelope>>> {
        self.readers.read(move |conn| envelope(conn, message))
    }

    fn lane_states(&self) -> Reply<'_, Vec<LaneState>> {
        self.readers.read(|conn| {
            let sql = format!("SELECT {LANE} FROM lane_state ORDER BY endpoint");
            all(&mut conn.prepare_cached(&sql)?.query([])?, lane)
        })
    }

    fn depth(&self) -> Reply<'_, (u64, Option<Timestamp>)> {
        let depth = u64::try_from(self.shared.depth.load(Ordering::Relaxed)).unwrap_or(0);
        self.readers.read(move |conn| Ok((depth, earliest(conn)?)))
    }
}

/// When the first of all pending rows is due.
pub(super) fn earliest(conn: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let earliest: Option<i64> = value(&mut conn.prepare_cached(EARLIEST)?.query([])?)?.flatten();
    Ok(earliest.map(Timestamp::from_micros))
}

/// A bound for SQL.
pub(super) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn endpoints(
    conn: &Connection,
    after: Option<EndpointKey>,
    limit: usize,
) -> Result<Vec<(EndpointKey, Timestamp)>, StoreError> {
    let after = after.map_or(i64::MIN, |key| key.0);
    let mut statement = conn.prepare_cached(ENDPOINTS)?;
    all(&mut statement.query([after, bound(limit)])?, |row| {
        Ok((EndpointKey(row.get(0)?), Timestamp::from_micros(row.get(1)?)))
    })
}

fn due(
    conn: &Connection,
    endpoint: EndpointKey,
    until: Until,
    limit: usize,
) -> Result<DueRows, StoreError> {
    // One row beyond what is due or asked for tells when to come again.
    let sql = format!(
        "SELECT {PENDING} FROM pending WHERE endpoint = ?1
         ORDER BY endpoint, due_at, message, manual LIMIT ?2"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![endpoint.0, bound(limit.saturating_add(1))])?;
    let mut due = DueRows::default();
    while let Some(row) = rows.next()? {
        let row = pending(row)?;
        if !until.has(&row) || due.rows.len() == limit {
            due.next_due = Some(row.due_at);
            break;
        }
        due.rows.push(row);
    }
    Ok(due)
}

fn envelope(conn: &Connection, key: MessageKey) -> Result<Option<Arc<Envelope>>, StoreError> {
    let sql = "SELECT random, content_type, labels, payload FROM message WHERE key = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let found = one(&mut statement.query([key.0.cast_signed()])?, |row| {
        let id = PublicId::new(key.0, bytes_at(row, 0)?);
        let content_type = content_type(row, 1)?;
        let payload = maybe_blob(row, 3, |blob| Ok(bytes::Bytes::copy_from_slice(blob)))?;
        let trace = labels_at(row, 2)?.trace;
        Ok(payload.map(|payload| Arc::new(Envelope { id, payload, content_type, trace })))
    })?;
    Ok(found.flatten())
}
