//! Idempotency records in Redis, a hash per key.
//!
//! Every step is one script, so that it is atomic, and all times are the server's. Fencing numbers
//! are the server's microseconds, and at least one more than the record's last: they grow also over
//! a record that has expired. Needs Redis 5 or newer.
//! Never: a record without an end; a guarantee over a failover, which loses the last writes.

use std::time::Duration;

use bytes::Bytes;
use redis::aio::{ConnectionLike, ConnectionManager};
use redis::{RedisError, Script, ScriptInvocation};

use crate::error::StoreError;
use crate::key::ScopedKey;
use crate::settings::AfterCrash;
use crate::store::{Begin, BeginRequest, IdempotencyStore, LeaseToken, bounded};
use crate::stored::StoredResponse;

const BEGIN: &str = include_str!("redis/begin.lua");
const HEARTBEAT: &str = include_str!("redis/heartbeat.lua");
const COMPLETE: &str = include_str!("redis/complete.lua");
const ABANDON: &str = include_str!("redis/abandon.lua");

/// Records in Redis. Share it between processes by giving them the same server and prefix.
pub struct RedisIdempotencyStore<C = ConnectionManager> {
    connection: C,
    prefix: String,
    begin: Script,
    heartbeat: Script,
    complete: Script,
    abandon: Script,
}

impl<C> RedisIdempotencyStore<C> {
    /// Over a connection that reconnects by itself, such as a [`ConnectionManager`].
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            prefix: "idempotency".to_owned(),
            begin: Script::new(BEGIN),
            heartbeat: Script::new(HEARTBEAT),
            complete: Script::new(COMPLETE),
            abandon: Script::new(ABANDON),
        }
    }

    /// What the names of its keys begin with; `idempotency` if never called.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// The length of the scope keeps the name unambiguous.
    fn name(&self, key: &ScopedKey) -> String {
        format!("{}:{}:{}:{}", self.prefix, key.scope.len(), key.scope, key.key)
    }
}

impl<C> std::fmt::Debug for RedisIdempotencyStore<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisIdempotencyStore").field("prefix", &self.prefix).finish()
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> RedisIdempotencyStore<C> {
    /// Runs a script that answers 0 when the token is stale.
    async fn held(&self, script: &mut ScriptInvocation<'_>) -> Result<(), StoreError> {
        let held: bool = script.invoke_async(&mut self.connection.clone()).await.map_err(failed)?;
        if held { Ok(()) } else { Err(StoreError::Stale) }
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> IdempotencyStore
    for RedisIdempotencyStore<C>
{
    async fn begin(&self, request: &BeginRequest<'_>) -> Result<Begin, StoreError> {
        let reruns = request.after_crash == AfterCrash::Rerun;
        let (what, number, head, body): (String, i64, Vec<u8>, Vec<u8>) = self
            .begin
            .key(self.name(request.key))
            .arg(&request.fingerprint[..])
            .arg(micros(request.lease))
            .arg(millis(request.lease) + millis(request.record_ttl))
            .arg(i64::from(reruns))
            .invoke_async(&mut self.connection.clone())
            .await
            .map_err(failed)?;
        Ok(match what.as_str() {
            "started" => Begin::Started(LeaseToken::new(request.key.clone(), number)),
            "running" => {
                let left = u64::try_from(number).map_err(|_| StoreError::Corrupt("lease"))?;
                Begin::InProgress { retry_in: Duration::from_micros(left) }
            }
            "mismatch" => Begin::Mismatch,
            "indeterminate" => Begin::Indeterminate,
            "done" => {
                let status = u16::try_from(number).map_err(|_| StoreError::Corrupt("status"))?;
                Begin::Replay(StoredResponse::from_kept(status, &head, Bytes::from(body))?)
            }
            _ => return Err(StoreError::Corrupt("record")),
        })
    }

    async fn heartbeat(&self, token: &LeaseToken, lease: Duration) -> Result<(), StoreError> {
        let mut script = self.heartbeat.key(self.name(token.key()));
        self.held(script.arg(token.fence()).arg(micros(lease)).arg(millis(lease))).await
    }

    async fn complete(
        &self,
        token: &LeaseToken,
        response: &StoredResponse,
        record_ttl: Duration,
    ) -> Result<(), StoreError> {
        let mut script = self.complete.key(self.name(token.key()));
        script.arg(token.fence()).arg(millis(record_ttl)).arg(response.status.as_u16());
        self.held(script.arg(response.head()).arg(&response.body[..])).await
    }

    async fn abandon(&self, token: &LeaseToken) -> Result<(), StoreError> {
        self.held(self.abandon.key(self.name(token.key())).arg(token.fence())).await
    }

    async fn forget(&self, key: &ScopedKey) -> Result<bool, StoreError> {
        let mut command = redis::cmd("DEL");
        let connection = &mut self.connection.clone();
        command.arg(self.name(key)).query_async(connection).await.map_err(failed)
    }
}

fn failed(error: RedisError) -> StoreError {
    StoreError::unavailable(error)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(bounded(span).as_micros()).unwrap_or(u64::MAX)
}

/// At least 1: Redis refuses an expiry of 0.
fn millis(span: Duration) -> u64 {
    u64::try_from(bounded(span).as_millis()).unwrap_or(u64::MAX).max(1)
}
