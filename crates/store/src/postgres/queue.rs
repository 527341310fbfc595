//! Due work, in PostgreSQL: ranges of the key of `pending`.
//!
//! Never: group or sort; the order of the key is the order of the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::ids::{EndpointKey, MessageKey};
use domain::message::Envelope;
use domain::until::Until;
use resilience::Timestamp;

use super::PostgresStore;
use super::conn::{all, one};
use super::rows::{LANE, bound, get, lane, maybe_time, time_at};
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
        self.lanes.due(endpoint, until, limit)
    }

    fn envelope(&self, message: MessageKey) -> Reply<'_, Option<Arc<Envelope>>> {
        self.lanes.envelope(message)
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
