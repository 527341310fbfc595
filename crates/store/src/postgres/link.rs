//! The way to the server: pools of connections, and what every session is told.
//!
//! The writer has a connection of its own, which holds a lock that names this installation's one
//! writer: a second process finds it taken. Every statement here is a look-up by key. The planner
//! is told so, since its statistics lag behind a queue that is empty now and holds a million rows
//! in a minute.
//! Never: a server that only reads; a commit that does not wait for the disk where it could.

use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use super::conn::exists;
use super::fault::unavailable;
use crate::StoreError;
use crate::stored::fault::closed;

/// "peyk" and what it is for: the lock of the one writer.
const WRITER_LOCK: i64 = 0x7065_796B_0000_0001;
/// A connection that is not there by then is not waited for.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A server that is silent for so long is gone.
const SILENT_MAX: Duration = Duration::from_secs(15);
const SESSION: &str = "SET search_path = peyk; SET timezone = 'UTC'; SET jit = off;
    SET default_transaction_isolation = 'read committed'; SET idle_in_transaction_session_timeout = '10s';
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET lock_timeout = '2s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// What a URL says, with what it leaves open.
pub(super) fn config(url: &str) -> Result<Config, StoreError> {
    let mut config: Config = url.parse().map_err(|fault: tokio_postgres::Error| {
        StoreError::Unavailable(format!("the URL of the database is wrong: {}", root(&fault)))
    })?;
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.keepalives_idle(SILENT_MAX);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENT_MAX);
    }
    if config.get_application_name().is_none() {
        config.application_name("peyk");
    }
    Ok(config)
}

/// A pool of so many connections.
pub(super) fn pool<T>(config: Config, tls: T, size: usize) -> Result<Pool, StoreError>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let told = Hook::async_fn(|conn: &mut deadpool_postgres::ClientWrapper, _| {
        Box::pin(async move { conn.batch_execute(SESSION).await.map_err(HookError::Backend) })
    });
    Pool::builder(Manager::from_config(config, tls, how))
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .create_timeout(Some(CONNECT_MAX))
        .wait_timeout(Some(CONNECT_MAX))
        .post_create(told)
        .build()
        .map_err(|fault| StoreError::Unavailable(fault.to_string()))
}

/// A connection from a pool.
pub(super) async fn connect(pool: &Pool) -> Result<Object, StoreError> {
    pool.get().await.map_err(|fault| match fault {
        PoolError::Closed => closed(),
        PoolError::Timeout(_) => unavailable("the database does not answer"),
        PoolError::Backend(fault) | PoolError::PostCreateHook(HookError::Backend(fault)) => {
            let said = root(&fault);
            let hint = match said.contains("certificate") {
                true => "; ?sslmode=disable in the URL goes without TLS",
                false => "",
            };
            StoreError::Unavailable(format!("cannot connect to the database: {said}{hint}"))
        }
        other => StoreError::Unavailable(other.to_string()),
    })
}

/// A connection for the writer, which holds the lock of the one writer as long as it lasts.
pub(super) async fn connect_writer(pool: &Pool) -> Result<Object, StoreError> {
    let conn = connect(pool).await?;
    // One that has just ended may hold it for another moment.
    match exists(&conn, "SELECT pg_advisory_lock($1)", &[&WRITER_LOCK]).await {
        Ok(_) => Ok(conn),
        Err(fault) => {
            drop(Object::take(conn));
            Err(if fault.is_lock_taken() { in_use() } else { fault.told() })
        }
    }
}

fn in_use() -> StoreError {
    unavailable("another peyk uses the database: stop it, or name another database")
}

/// What the server or the system said, without what stands around it.
fn root(fault: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = fault;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
