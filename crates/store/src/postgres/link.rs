//! The way to the server: pools of connections, and what every session is told.
//!
//! Behind a pooler that gives a session to several clients in turn nothing can be told to one: its
//! settings are those of the role, or what the pooler says itself, and are looked at once.
//! Every statement here is a look-up by key. The planner is told so, since its statistics lag
//! behind a queue that is empty now and holds a million rows in a minute. A transaction in which
//! nothing is said for 3 s is ended by the server: its node may be gone, and others wait for its
//! locks.
//! Never: a server that only reads; a commit that does not wait for the disk where it could.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, QueueMode, RecyclingMethod, Runtime,
};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, SimpleQueryMessage, Socket};

use super::conn::Conn;
use super::fault::{Fault, unavailable};
use super::reach::{reach, root};
use super::types::Types;
use crate::stored::fault::corrupt;
use crate::{Reply, StoreError};

/// A connection that is not there by then is not waited for.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A server that is silent for so long is gone.
const SILENT_MAX: Duration = Duration::from_secs(15);
/// A read that is not answered by then is given up.
const READ_WAIT_MAX: Duration = Duration::from_secs(10);
/// What a session must have.
const SESSION: [(&str, &str); 10] = [
    ("search_path", "peyk"),
    ("timezone", "UTC"),
    ("jit", "off"),
    ("default_transaction_isolation", "read committed"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("lock_timeout", "2s"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];
const SYNCHRONOUS: &str = "SELECT set_config('synchronous_commit', 'on', false)
     WHERE current_setting('synchronous_commit') = 'off'";

/// Ways to one server.
#[derive(Clone)]
pub(super) struct Pool {
    inner: deadpool_postgres::Pool,
    /// Where statements have no name.
    types: Option<Arc<Types>>,
}

/// How connections are made.
#[derive(Clone)]
pub(super) struct Way<T> {
    pub(super) config: Config,
    pub(super) tls: T,
    /// Around a pooler that gives a session to several clients in turn, if it leads to one.
    pub(super) types: Option<Arc<Types>>,
}

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

impl<T> Way<T>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    /// A way to a session of one's own for each connection.
    pub(super) fn to(url: &str, tls: T) -> Result<Self, StoreError> {
        Ok(Self { config: config(url)?, tls, types: None })
    }

    /// The same way, where a pooler gives a session to several clients in turn; `direct` leads
    /// around it.
    pub(super) fn pooled(mut self, direct: &Self) -> Result<Self, StoreError> {
        self.types = Some(Arc::new(Types::new(direct.pool(1)?.inner)));
        Ok(self)
    }

    /// A pool of so many connections.
    pub(super) fn pool(&self, size: usize) -> Result<Pool, StoreError> {
        self.made(size, session())
    }

    /// The same for statements that are planned once, however long their arrays.
    pub(super) fn pool_for_arrays(&self, size: usize) -> Result<Pool, StoreError> {
        self.made(size, format!("{}; {ANY_LENGTH}", session()))
    }

    fn made(&self, size: usize, session: String) -> Result<Pool, StoreError> {
        let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.clone(), how);
        let pool = deadpool_postgres::Pool::builder(manager)
            .max_size(size)
            // The one that was used last is the one whose session is warm.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .create_timeout(Some(CONNECT_MAX))
            .wait_timeout(Some(CONNECT_MAX));
        let pool = match &self.types {
            Some(_) => pool,
            None => pool.post_create(told(session)),
        };
        let inner = pool.build().map_err(|fault| StoreError::Unavailable(fault.to_string()))?;
        Ok(Pool { inner, types: self.types.clone() })
    }
}

/// Arrays are of any length: to plan for the length of each costs more than it saves.
pub(super) const ANY_LENGTH: &str = "SET plan_cache_mode = force_generic_plan";

/// What gives a session what it must have.
pub(super) fn session() -> String {
    let sets = SESSION.map(|(name, value)| format!("SET {name} = '{value}'; "));
    format!("{}{SYNCHRONOUS}", sets.concat())
}

/// Tells a session what it must have.
fn told(session: String) -> Hook {
    let sets: Arc<str> = session.into();
    Hook::async_fn(move |conn: &mut ClientWrapper, _| {
        let sets = Arc::clone(&sets);
        Box::pin(async move { conn.batch_execute(&sets).await.map_err(HookError::Backend) })
    })
}

/// Whether a pooler's session has what it must have, or which settings it lacks.
pub(super) async fn check_session(conn: &Conn) -> Result<(), Fault> {
    let wanted = SESSION.map(|(name, value)| format!("('{name}', '{value}')")).join(", ");
    let sql = format!(
        "SELECT wanted.name FROM (VALUES {wanted}) AS wanted (name, value)
         WHERE current_setting(wanted.name) <> wanted.value
         UNION ALL SELECT 'synchronous_commit' WHERE current_setting('synchronous_commit') = 'off'"
    );
    let said = conn.simple_query(&sql).await?;
    let lacks: Vec<&str> = said
        .iter()
        .filter_map(|row| match row {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    if lacks.is_empty() {
        return Ok(());
    }
    Err(corrupt(&format!(
        "sessions of the pooler have other settings than they must ({}): give them to the role as \
         docs/postgresql.md says, and let the pooler connect again",
        lacks.join(", ")
    ))
    .into())
}

/// A connection from a pool.
pub(super) async fn connect(pool: &Pool) -> Result<Conn, StoreError> {
    Ok(Conn::new(reach(&pool.inner).await?, pool.types.clone()))
}

impl Pool {
    /// Ends its connections, and makes no more.
    pub(super) fn close(&self) {
        self.inner.close();
    }
}

/// Runs `look` on a connection of a pool.
pub(super) fn read<T, F>(
    pool: Pool,
    look: impl FnOnce(Conn) -> F + Send + 'static,
) -> Reply<'static, T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send,
{
    Box::pin(async move {
        let looks = async { look(connect(&pool).await?).await };
        match timeout(READ_WAIT_MAX, looks).await {
            Ok(read) => read.map_err(|fault| fault.told()),
            Err(_) => Err(unavailable("the database does not answer")),
        }
    })
}
