//! What is owed after outages, in PostgreSQL: one row for each endpoint.
//!
//! Never: know which letters.

use domain::ids::EndpointKey;
use resilience::Timestamp;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{Conn, all, one};
use super::fault::Fault;
use super::rows::{At, bound, get, time_at};
use super::tx::Tx;
use crate::ledger::Turn;
use crate::recoveries::{Recoveries, Recovery};
use crate::{Reply, StoreError};

const READY: &str = "SELECT endpoint, since, ready FROM recovery
     WHERE ready AND endpoint > $1 ORDER BY endpoint LIMIT $2";
const NOTE: &str = "INSERT INTO recovery (endpoint, since, ready) VALUES ($1, $2, $3)
     ON CONFLICT (endpoint) DO UPDATE SET since = least(recovery.since, excluded.since), ready = excluded.ready";

impl Recoveries for PostgresStore {
    fn ready(&self, after: Option<EndpointKey>, limit: usize) -> Reply<'_, Vec<Recovery>> {
        self.read(move |conn| async move {
            let after = after.map_or(i64::MIN, |key| key.0);
            all(&conn, READY, &[&after, &bound(limit)], recovery).await
        })
    }

    fn recovery(&self, endpoint: EndpointKey) -> Reply<'_, Option<Recovery>> {
        self.read(move |conn| async move { owed(&conn, endpoint).await })
    }

    fn forget(&self, recovery: Recovery) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let sql = "DELETE FROM recovery WHERE endpoint = $1 AND since = $2 AND ready = $3";
                let Recovery { endpoint, since, ready } = recovery;
                tx.write(sql, &[&endpoint.0, &At(since), &ready]).await.map(drop)
            })
        })
    }
}

fn recovery(row: &Row) -> Result<Recovery, StoreError> {
    Ok(Recovery {
        endpoint: EndpointKey(get(row, 0)?),
        since: time_at(row, 1)?,
        ready: get(row, 2)?,
    })
}

async fn owed(conn: &Conn, endpoint: EndpointKey) -> Result<Option<Recovery>, Fault> {
    let sql = "SELECT endpoint, since, ready FROM recovery WHERE endpoint = $1";
    one(conn, sql, &[&endpoint.0], recovery).await
}

impl Tx {
    /// An outage began or ended: what puts letters back stops, and what is owed is noted.
    pub(super) async fn turn_recovery(
        &mut self,
        endpoint: EndpointKey,
        turn: Turn,
    ) -> Result<(), Fault> {
        self.stop_recovering(endpoint).await?;
        let (since, ready) = match turn {
            Turn::Failed(since) => (since, false),
            Turn::Recovered(since) => (since, true),
        };
        self.write(NOTE, &[&endpoint.0, &At(since), &ready]).await?;
        self.batch.recovered += usize::from(ready);
        Ok(())
    }

    /// Whether exactly this is owed, and ready.
    pub(super) async fn is_owed(
        &self,
        endpoint: Option<EndpointKey>,
        since: Timestamp,
    ) -> Result<bool, Fault> {
        let Some(endpoint) = endpoint else { return Ok(false) };
        let wanted = Recovery { endpoint, since, ready: true };
        Ok(owed(self.conn(), endpoint).await? == Some(wanted))
    }

    /// Nothing is owed to the endpoint any more.
    pub(super) async fn settle_recovery(&mut self, endpoint: EndpointKey) -> Result<(), Fault> {
        let sql = "DELETE FROM recovery WHERE endpoint = $1";
        self.write(sql, &[&endpoint.0]).await.map(drop)
    }
}
