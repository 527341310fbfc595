//! PostgreSQL: a server beside Peyk, which may hold more than one machine does.
//!
//! `writer` owns the only connection that writes, and a lock that no second process gets; a pool
//! reads beside it. What is read in several columns of several tables is one statement, so that it
//! is seen at one moment.
//! Never: SQL outside this folder, a payload or an answer's body as text, a write on a second
//! connection.

mod applications;
mod batch;
mod conn;
mod dead_letters;
mod deliveries;
mod directory;
mod door;
mod endpoints;
mod event_types;
mod fault;
mod history;
mod inbox;
mod ledger;
mod link;
mod migrate;
mod notices;
mod pending;
mod prune;
mod queue;
mod recall;
mod revocations;
mod rows;
mod scan;
mod sent;
mod sets;
mod shared;
mod sweep;
mod tasks;
mod tx;
mod withdraw;
mod writer;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use domain::limits::{REQUEST_WAIT_MAX, REQUESTS_WAITING_BYTES_MAX};
use resilience::{Clock, FromOs};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

use crate::cipher::Cipher;
use crate::commits::Commits;
use crate::stored::endpoint::open_secrets;
use crate::{Reply, StoreError};
use conn::{Conn, all, one, run};
use door::{Door, Room};
use fault::{Fault, unavailable};
use rows::{bytes_at, get, id_at};
use shared::Shared;
use writer::Writer;

/// A read that is not answered by then is given up.
const READ_WAIT_MAX: Duration = Duration::from_secs(10);

/// How a store is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, with parameters as libpq takes them.
    pub url: String,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Seals endpoint secrets; without it they are stored as they are.
    pub cipher: Option<Cipher>,
    /// Posts that may wait for the writer.
    pub waiting_max: usize,
    /// Bytes of payload and of answers' bodies that may wait for the writer.
    pub waiting_bytes_max: usize,
    /// A post that waits longer for its turn is refused.
    pub wait_max: Duration,
    /// Connections that read.
    pub readers: usize,
}

impl PostgresOptions {
    /// The database at `url` with the usual bounds and no cipher.
    pub fn new(url: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            url: url.into(),
            clock,
            cipher: None,
            waiting_max: 20_000,
            waiting_bytes_max: REQUESTS_WAITING_BYTES_MAX,
            wait_max: REQUEST_WAIT_MAX,
            readers: 8,
        }
    }

    /// Whether a URL reads as one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] with what is wrong, without the password.
    pub fn check_url(url: &str) -> Result<(), StoreError> {
        link::config(url).map(drop)
    }
}

/// Everything Peyk keeps, in one PostgreSQL database.
pub struct PostgresStore {
    shared: Arc<Shared>,
    readers: Pool,
    cipher: Option<Cipher>,
    installation: [u8; 16],
    /// The writer's task, until the store is closed.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl PostgresStore {
    /// Connects, brings the schema `peyk` up to date or makes it, and starts the writer on the
    /// current runtime.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] with a plain sentence when the database is of a newer version, not
    /// in UTF8, or when its secrets do not open with the cipher; it is then left as it is.
    /// [`StoreError::Unavailable`] when it cannot be reached or written now, or another process
    /// uses it.
    pub async fn open<T>(options: PostgresOptions, tls: T) -> Result<Arc<Self>, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let config = link::config(&options.url)?;
        let pool = link::pool(config.clone(), tls.clone(), 1)?;
        let readers = link::pool(config, tls, options.readers)?;
        let first = link::connect_writer(&pool).await?;
        let prepared = prepare(&first, options.cipher.as_ref()).await;
        let (installation, last) = prepared.map_err(|fault| fault.told())?;
        let (queue, jobs) = unbounded_channel();
        let room = Room {
            jobs: options.waiting_max,
            bytes: options.waiting_bytes_max,
            wait: options.wait_max,
        };
        let shared = Arc::new(Shared {
            clock: options.clock,
            door: Door::new(queue, room),
            commits: OnceLock::new(),
            keeps_mails: Arc::default(),
            depth: 0.into(),
        });
        let tx = writer::open(first, &shared, last).await?;
        let writer = tokio::spawn(Writer::new(Arc::clone(&shared), pool, tx).run(jobs));
        let (cipher, writer) = (options.cipher, Mutex::new(Some(writer)));
        Ok(Arc::new(Self { shared, readers, cipher, installation, writer }))
    }

    /// Names who is told of commits; once, before anything is accepted. A second call changes
    /// nothing.
    pub fn attach(&self, commits: Arc<dyn Commits>) {
        if self.shared.commits.set(commits).is_err() {
            tracing::warn!("the store already tells somebody else of its commits");
        }
    }

    /// Finishes what is queued and ends the connections. Later calls answer that it is closed.
    pub async fn close(&self) {
        self.shared.door.shut();
        self.readers.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.await.is_err()
        {
            tracing::warn!("the writer of the store did not end well");
        }
    }

    /// Runs `look` on a connection that reads.
    fn read<T, F>(&self, look: impl FnOnce(Object) -> F + Send + 'static) -> Reply<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send,
    {
        let readers = self.readers.clone();
        Box::pin(async move {
            let looks = async { look(link::connect(&readers).await?).await };
            match timeout(READ_WAIT_MAX, looks).await {
                Ok(read) => read.map_err(|fault| fault.told()),
                Err(_) => Err(unavailable("the database does not answer")),
            }
        })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.shared.door.shut();
    }
}

/// Brings the schema up to date and looks at what is there: the installation's name and the last
/// key.
async fn prepare(conn: &Conn, cipher: Option<&Cipher>) -> Result<([u8; 16], u64), Fault> {
    migrate::to_latest(conn).await?;
    check_secrets(conn, cipher).await?;
    Ok((installation(conn).await?, tx::last_key(conn).await?))
}

/// The name of this installation, made when the database is new.
async fn installation(conn: &Conn) -> Result<[u8; 16], Fault> {
    let sql = "SELECT value FROM setting WHERE name = 'installation'";
    if let Some(name) = one(conn, sql, &[], |row| bytes_at(row, 0)).await? {
        return Ok(name);
    }
    let mut name = [0_u8; 16];
    FromOs::fill(&mut name).map_err(|_| unavailable("the system gives no random bytes"))?;
    let sql = "INSERT INTO setting (name, value) VALUES ('installation', $1)";
    run(conn, sql, &[&&name[..]]).await?;
    Ok(name)
}

/// Whether stored secrets open: better told at the start than at the first send.
async fn check_secrets(conn: &Conn, cipher: Option<&Cipher>) -> Result<(), Fault> {
    let sql =
        "SELECT id, secrets FROM endpoint WHERE substr(secrets, 1, 1) = '\\x01'::bytea LIMIT 1";
    let sealed =
        all(conn, sql, &[], |row| open_secrets(get(row, 1)?, id_at(row, 0)?, cipher).map(drop));
    sealed.await.map(drop)
}
