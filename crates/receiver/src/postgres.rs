//! Idempotency records in PostgreSQL, a row per key.
//!
//! Every step is one statement, sent without preparing it, so that poolers in transaction mode
//! work; all times are the server's. [`PgIdempotency`] commits a record in the handler's own
//! transaction.
//! Never: a row locked between two statements; a delete without a bound.

use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::{Client, Pool};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Transaction};

use crate::error::StoreError;
use crate::key::ScopedKey;
use crate::running::Running;
use crate::settings::AfterCrash;
use crate::store::{Begin, BeginRequest, IdempotencyStore, LeaseToken, bounded};
use crate::stored::StoredResponse;

const BEGIN: &str = include_str!("postgres/begin.sql");
const HEARTBEAT: &str = include_str!("postgres/heartbeat.sql");
const COMPLETE: &str = include_str!("postgres/complete.sql");
const ABANDON: &str = include_str!("postgres/abandon.sql");
const FORGET: &str = "DELETE FROM peyk_idempotency WHERE scope = $1 AND key = $2 RETURNING 1";
const PRUNE: &str = include_str!("postgres/prune.sql");

/// Tries to begin while others take and give back the same key.
const BEGIN_TRIES: usize = 4;
/// What a caller is told to wait when even that was not enough.
const CROWDED: Duration = Duration::from_millis(50);

type Params<'a> = [(&'a (dyn ToSql + Sync), Type)];

/// Records in the table `peyk_idempotency`.
#[derive(Clone, Debug)]
pub struct PgIdempotencyStore {
    pool: Pool,
}

impl PgIdempotencyStore {
    /// The table and what belongs to it, for those who run their own migrations. May be run again.
    pub const SCHEMA: &str = include_str!("postgres/schema.sql");

    /// Over a pool of connections.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Creates what is missing of [`Self::SCHEMA`]. Any number of processes may do so at once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn create_table(&self) -> Result<(), StoreError> {
        self.client().await?.batch_execute(Self::SCHEMA).await.map_err(failed)
    }

    /// Deletes up to `rows_max` records that have expired, and returns how many. Call it now and
    /// then, until it returns less: nothing else removes them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn prune(&self, rows_max: u32) -> Result<usize, StoreError> {
        let rows_max = i64::from(rows_max);
        self.run(PRUNE, &[(&rows_max, Type::INT8)]).await.map(|rows| rows.len())
    }

    async fn client(&self) -> Result<Client, StoreError> {
        self.pool.get().await.map_err(StoreError::unavailable)
    }

    async fn run(&self, statement: &str, params: &Params<'_>) -> Result<Vec<Row>, StoreError> {
        self.client().await?.query_typed(statement, params).await.map_err(failed)
    }

    /// Runs a statement that returns no row when the token is stale.
    async fn held(&self, statement: &str, params: &Params<'_>) -> Result<(), StoreError> {
        let rows = self.run(statement, params).await?;
        if rows.is_empty() { Err(StoreError::Stale) } else { Ok(()) }
    }
}

impl IdempotencyStore for PgIdempotencyStore {
    async fn begin(&self, request: &BeginRequest<'_>) -> Result<Begin, StoreError> {
        let ScopedKey { scope, key } = request.key;
        let fingerprint = &request.fingerprint[..];
        let (lease, ttl) = (micros(request.lease), micros(request.record_ttl));
        let reruns = request.after_crash == AfterCrash::Rerun;
        let client = self.client().await?;
        for _ in 0..BEGIN_TRIES {
            let params: &Params<'_> = &[
                (scope, Type::TEXT),
                (key, Type::TEXT),
                (&fingerprint, Type::BYTEA),
                (&lease, Type::INT8),
                (&ttl, Type::INT8),
                (&reruns, Type::BOOL),
            ];
            let rows = client.query_typed(BEGIN, params).await.map_err(failed)?;
            // No row: the key was taken or given back after this statement began. Look again.
            if let Some(row) = rows.first() {
                return begun(row, request);
            }
        }
        Ok(Begin::InProgress { retry_in: CROWDED })
    }

    async fn heartbeat(&self, token: &LeaseToken, lease: Duration) -> Result<(), StoreError> {
        let ScopedKey { scope, key } = token.key();
        let (fence, lease) = (token.fence(), micros(lease));
        let [scope, key]: [(&(dyn ToSql + Sync), Type); 2] =
            [(scope, Type::TEXT), (key, Type::TEXT)];
        self.held(HEARTBEAT, &[scope, key, (&fence, Type::INT8), (&lease, Type::INT8)]).await
    }

    async fn complete(
        &self,
        token: &LeaseToken,
        response: &StoredResponse,
        record_ttl: Duration,
    ) -> Result<(), StoreError> {
        let row = Completion::new(token, response, record_ttl)?;
        let rows = self.run(COMPLETE, &row.params()).await?;
        if rows.is_empty() { Err(StoreError::Stale) } else { Ok(()) }
    }

    async fn abandon(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let ScopedKey { scope, key } = token.key();
        let fence = token.fence();
        let params: &Params<'_> = &[(scope, Type::TEXT), (key, Type::TEXT), (&fence, Type::INT8)];
        self.held(ABANDON, params).await
    }

    async fn forget(&self, key: &ScopedKey) -> Result<bool, StoreError> {
        let params: &Params<'_> = &[(&key.scope, Type::TEXT), (&key.key, Type::TEXT)];
        self.run(FORGET, params).await.map(|rows| !rows.is_empty())
    }
}

/// Completes the record in the handler's own transaction: effects and record are committed together
/// or not at all, so the effects happen exactly once.
///
/// ```no_run
/// use bytes::Bytes;
/// use http::Response;
/// use receiver::{PgIdempotency, Running};
///
/// async fn pay(
///     client: &mut tokio_postgres::Client,
///     running: &Running, // from the request's extensions
/// ) -> Result<Response<Bytes>, Box<dyn std::error::Error>> {
///     let tx = client.transaction().await?;
///     tx.execute("UPDATE account SET balance = balance - 1", &[]).await?;
///     let response = Response::new(Bytes::from("paid"));
///     // Last, since it locks the record. Fails if the lease was lost: then nothing is committed.
///     PgIdempotency::in_tx(&tx).complete(running, &response).await?;
///     tx.commit().await?;
///     Ok(response)
/// }
/// ```
#[derive(Clone, Copy)]
pub struct PgIdempotency<'a> {
    tx: &'a Transaction<'a>,
}

impl<'a> PgIdempotency<'a> {
    /// In this transaction, which must be in the database of the store.
    #[must_use]
    pub fn in_tx(tx: &'a Transaction<'a>) -> Self {
        Self { tx }
    }

    /// Records `response`, which the handler must then return. Roll back if this fails.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another request took over: its effects will count, not these.
    pub async fn complete(
        &self,
        running: &Running,
        response: &http::Response<Bytes>,
    ) -> Result<(), StoreError> {
        let stored = running.keep(response);
        let row = Completion::new(running.token(), &stored, running.record_ttl())?;
        let rows = self.tx.query_typed(COMPLETE, &row.params()).await.map_err(failed)?;
        if rows.is_empty() { Err(StoreError::Stale) } else { Ok(()) }
    }
}

impl std::fmt::Debug for PgIdempotency<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgIdempotency").finish_non_exhaustive()
    }
}

/// A response as the parameters of the statement that records it.
struct Completion<'a> {
    key: &'a ScopedKey,
    fence: i64,
    ttl: i64,
    status: i16,
    head: Vec<u8>,
    body: &'a [u8],
}

impl<'a> Completion<'a> {
    fn new(
        token: &'a LeaseToken,
        response: &'a StoredResponse,
        record_ttl: Duration,
    ) -> Result<Self, StoreError> {
        let status = i16::try_from(response.status.as_u16());
        Ok(Self {
            key: token.key(),
            fence: token.fence(),
            ttl: micros(record_ttl),
            status: status.map_err(|_| StoreError::Corrupt("status"))?,
            head: response.head(),
            body: &response.body,
        })
    }

    fn params(&self) -> [(&(dyn ToSql + Sync), Type); 7] {
        [
            (&self.key.scope, Type::TEXT),
            (&self.key.key, Type::TEXT),
            (&self.fence, Type::INT8),
            (&self.ttl, Type::INT8),
            (&self.status, Type::INT2),
            (&self.head, Type::BYTEA),
            (&self.body, Type::BYTEA),
        ]
    }
}

/// What the row of `begin.sql` says: what, a number, headers, body.
fn begun(row: &Row, request: &BeginRequest<'_>) -> Result<Begin, StoreError> {
    let what: &str = row.try_get(0).map_err(failed)?;
    let number: i64 = row.try_get(1).map_err(failed)?;
    Ok(match what {
        "started" => Begin::Started(LeaseToken::new(request.key.clone(), number)),
        "running" => {
            let left = u64::try_from(number).map_err(|_| StoreError::Corrupt("lease"))?;
            Begin::InProgress { retry_in: Duration::from_micros(left) }
        }
        "mismatch" => Begin::Mismatch,
        "indeterminate" => Begin::Indeterminate,
        _ => {
            let status = u16::try_from(number).map_err(|_| StoreError::Corrupt("status"))?;
            let head: &[u8] = row.try_get(2).map_err(failed)?;
            let body: Vec<u8> = row.try_get(3).map_err(failed)?;
            Begin::Replay(StoredResponse::from_kept(status, head, Bytes::from(body))?)
        }
    })
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    StoreError::unavailable(error)
}

fn micros(span: Duration) -> i64 {
    i64::try_from(bounded(span).as_micros()).unwrap_or(i64::MAX)
}
