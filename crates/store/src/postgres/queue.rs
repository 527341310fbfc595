//! Due work, in PostgreSQL: ranges of the key of `pending`.
//!
//! Never: group or sort; the order of the key is the order of the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use domain::ids::{EndpointKey, MessageKey, PublicId};
use domain::message::Envelope;
use domain::until::Until;
use resilience::Timestamp;

use super::PostgresStore;
use super::conn::{all, one};
use super::rows::{
    LANE, PENDING, bound, bytes_at, content_type, get, labels_at, lane, maybe_blob, maybe_time,
    pending, time_at,
};
use crate::Reply;
use crate::ledger::LaneState;
use crate::queue::{DueRows, Queue};

/// Jumps from one endpoint's first row to the next one's.
const ENDPOINTS: &str = "WITH RECURSIVE step (endpoint, due_at) AS (
         (SELECT endpoint, due_at FROM pending WHERE endpoint > $1 ORDER BY endpoint, due_at LIMIT 1)
         UNION ALL
         SELECT next.endpoint, next.due_at FROM step, LATERAL (
             SELECT endpoint, due_at FROM pending WHERE endpoint > step.endpoint
             ORDER BY endpoint, due_at LIMIT 1) AS next
     )
     SELECT endpoint, due_at FROM step LIMIT $2";

/// The earliest of the first rows of all endpoints.
const EARLIEST: &str = "WITH RECURSIVE step (endpoint, due_at) AS (
         (SELECT endpoint, due_at FROM pending ORDER BY endpoint, due_at LIMIT 1)
         UNION ALL
         SELECT next.endpoint, next.due_at FROM step, LATERAL (
             SELECT endpoint, due_at FROM pending WHERE endpoint > step.endpoint
             ORDER BY endpoint, due_at LIMIT 1) AS next
     )
     SELECT min(due_at) FROM step";

impl Queue for PostgresStore {
    fn endpoints(
        &self,
        after: Option<EndpointKey>,
        limit: usize,
    ) -> Reply<'_, Vec<(EndpointKey, Timestamp)>> {
        self.read(move |conn| async move {
            let after = after.map_or(i64::MIN, |key| key.0);
            all(&conn, ENDPOINTS, &[&after, &bound(limit)], |row| {
                Ok((EndpointKey(get(row, 0)?), time_at(row, 1)?))
            })
            .await
        })
    }

    fn due(&self, endpoint: EndpointKey, until: Until, limit: usize) -> Reply<'_, DueRows> {
        self.read(move |conn| async move {
            // One row beyond what is due or asked for tells when to come again.
            let sql = format!(
                "SELECT {PENDING} FROM pending WHERE endpoint = $1
                 ORDER BY endpoint, due_at, message, manual LIMIT $2"
            );
            let most = bound(limit.saturating_add(1));
            let mut rows = all(&conn, &sql, &[&endpoint.0, &most], pending).await?;
            let due = rows.iter().take(limit).take_while(|row| until.has(row)).count();
            let next_due = rows.get(due).map(|row| row.due_at);
            rows.truncate(due);
            Ok(DueRows { rows, next_due })
        })
    }

    fn envelope(&self, message: MessageKey) -> Reply<'_, Option<Arc<Envelope>>> {
        self.read(move |conn| async move {
            let sql = "SELECT random, content_type, labels, payload FROM message WHERE key = $1";
            let found = one(&conn, sql, &[&message.0.cast_signed()], |row| {
                let id = PublicId::new(message.0, bytes_at(row, 0)?);
                let content_type = content_type(row, 1)?;
                let payload = maybe_blob(row, 3, |blob| Ok(Bytes::copy_from_slice(blob)))?;
                let trace = labels_at(row, 2)?.trace;
                Ok(payload.map(|payload| Arc::new(Envelope { id, payload, content_type, trace })))
            })
            .await;
            Ok(found?.flatten())
        })
    }

    fn lane_states(&self) -> Reply<'_, Vec<LaneState>> {
        self.read(|conn| async move {
            let sql = format!("SELECT {LANE} FROM lane_state ORDER BY endpoint");
            all(&conn, &sql, &[], lane).await
        })
    }

    fn depth(&self) -> Reply<'_, (u64, Option<Timestamp>)> {
        let depth = u64::try_from(self.shared.depth.load(Ordering::Relaxed)).unwrap_or(0);
        self.read(move |conn| async move {
            let earliest = one(&conn, EARLIEST, &[], |row| maybe_time(row, 0)).await?;
            Ok((depth, earliest.flatten()))
        })
    }
}
