//! What is owed after outages, in SQLite: one row for each endpoint.
//!
//! Never: know which letters.

use domain::ids::EndpointKey;
use resilience::Timestamp;
use rusqlite::{Connection, Row, params};

use super::SqliteStore;
use super::queue::bound;
use super::rows::{all, one, time_at};
use super::tx::Tx;
use crate::ledger::Turn;
use crate::recoveries::{Recoveries, Recovery};
use crate::{Reply, StoreError};

pub(super) const READY: &str =
    "SELECT endpoint, since, ready FROM recovery INDEXED BY recovery_ready
     WHERE ready = 1 AND endpoint > ?1 ORDER BY endpoint LIMIT ?2";

impl Recoveries for SqliteStore {
    fn ready(&self, after: Option<EndpointKey>, limit: usize) -> Reply<'_, Vec<Recovery>> {
        self.readers.read(move |conn| {
            let after = after.map_or(i64::MIN, |key| key.0);
            all(&mut conn.prepare_cached(READY)?.query([after, bound(limit)])?, recovery)
        })
    }

    fn recovery(&self, endpoint: EndpointKey) -> Reply<'_, Option<Recovery>> {
        self.readers.read(move |conn| owed(conn, endpoint))
    }

    fn forget(&self, recovery: Recovery) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            let sql = "DELETE FROM recovery WHERE endpoint = ?1 AND since = ?2 AND ready = ?3";
            let Recovery { endpoint, since, ready } = recovery;
            let values = params![endpoint.0, since.as_micros(), ready];
            tx.batch.rows += tx.conn.prepare_cached(sql)?.execute(values)?;
            Ok(())
        })
    }
}

fn recovery(row: &Row<'_>) -> Result<Recovery, StoreError> {
    Ok(Recovery { endpoint: EndpointKey(row.get(0)?), since: time_at(row, 1)?, ready: row.get(2)? })
}

fn owed(conn: &Connection, endpoint: EndpointKey) -> Result<Option<Recovery>, StoreError> {
    let sql = "SELECT endpoint, since, ready FROM recovery WHERE endpoint = ?1";
    one(&mut conn.prepare_cached(sql)?.query([endpoint.0])?, recovery)
}

impl Tx<'_> {
    /// An outage began or ended: what puts letters back stops, and what is owed is noted.
    pub(super) fn turn_recovery(
        &mut self,
        endpoint: EndpointKey,
        turn: Turn,
    ) -> Result<(), StoreError> {
        self.stop_recovering(endpoint)?;
        let (since, ready) = match turn {
            Turn::Failed(since) => (since, false),
            Turn::Recovered(since) => (since, true),
        };
        let sql = "INSERT INTO recovery (endpoint, since, ready) VALUES (?1, ?2, ?3)
                   ON CONFLICT (endpoint) DO UPDATE SET since = min(since, excluded.since), ready = excluded.ready";
        let values = params![endpoint.0, since.as_micros(), ready];
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(values)?;
        self.batch.recovered += usize::from(ready);
        Ok(())
    }

    /// Whether exactly this is owed, and ready.
    pub(super) fn is_owed(
        &self,
        endpoint: Option<EndpointKey>,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(endpoint) = endpoint else { return Ok(false) };
        let wanted = Recovery { endpoint, since, ready: true };
        Ok(owed(self.conn, endpoint)? == Some(wanted))
    }

    /// Nothing is owed to the endpoint any more.
    pub(super) fn settle_recovery(&mut self, endpoint: EndpointKey) -> Result<(), StoreError> {
        let sql = "DELETE FROM recovery WHERE endpoint = ?1";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute([endpoint.0])?;
        Ok(())
    }
}
