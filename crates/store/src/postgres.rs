//! PostgreSQL: a server beside Peyk, which may hold more than one machine does.
//!
//! `writer` owns the only connection that writes what is kept, under a lock that says that this
//! node lives (`node`): a batch in one statement where it can be (`at_once`), else step by step
//! (`sets`); a pool reads beside it. Several processes may use one database: `keeper`
//! sees to what each of them owns, `ears` to what they tell each other. What is read in several
//! columns of several tables is one statement, so that it is seen at one moment.
//! Never: SQL outside this folder, a payload or an answer's body as text, a write on a second
//! connection.

mod alerts;
mod applications;
mod at_once;
mod batch;
mod columns;
mod conn;
mod counts;
mod dead_letters;
mod deliveries;
mod directory;
mod door;
mod ears;
mod endpoints;
mod event_types;
mod fault;
mod gather;
mod history;
mod inbox;
pub(crate) mod incoming;
mod keeper;
mod lanes;
mod ledger;
mod link;
mod migrate;
mod node;
mod nodes;
mod notices;
mod pending;
#[cfg(test)]
mod plans;
mod prune;
mod queue;
mod reach;
mod recall;
mod recoveries;
mod revocations;
mod rows;
mod scan;
mod sent;
mod sets;
mod shared;
mod sweep;
mod tasks;
mod towards;
mod tx;
mod types;
mod wake;
mod withdraw;
mod writer;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use domain::limits::{REQUEST_WAIT_MAX, REQUESTS_WAITING_BYTES_MAX};
use domain::nodes::NodeId;
use resilience::{Clock, FromOs, SteadyClock};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

use crate::cipher::Cipher;
use crate::commits::Commits;
use crate::common_clock::CommonClock;
use crate::nodes::{PeerAddress, Peers, Share};
use crate::stored::endpoint::open_secrets;
use crate::stored::figures::Rolling;
use crate::{Reply, StoreError};
use conn::{Conn, all, one};
use door::{Door, Room};
use ears::Ears;
use fault::{Fault, unavailable};
use keeper::Keeper;
use lanes::Lanes;
use link::{Pool, Way};
use node::{Joining, Me};
use rows::{bytes_at, get, id_at};
use shared::Shared;
pub use towards::address_towards;
use writer::Writer;

/// How a store is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, with parameters as libpq takes them.
    pub url: String,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The same clock, where it wants to be told the time of the database.
    pub common: Option<Arc<CommonClock>>,
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
    /// Where notifications are heard, if not at `url`: around a pooler that gives a session to
    /// several clients.
    pub direct_url: Option<String>,
    /// `url` leads to such a pooler: sessions keep nothing from one transaction to the next.
    pub is_pooled: bool,
    /// Goes on while the machine sleeps, and is never set: the lease is kept by it.
    pub steady: Arc<dyn Clock>,
    /// Whether this node serves endpoints.
    pub works: bool,
    /// Whether this node answers the API.
    pub is_asked: bool,
    /// Where this node takes posts from others; `None` if it takes none.
    pub address: Option<PeerAddress>,
    /// A node whose process is known to have ended.
    pub former: Option<NodeId>,
}

impl PostgresOptions {
    /// The database at `url` with the usual bounds and no cipher.
    pub fn new(url: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            url: url.into(),
            clock,
            common: None,
            cipher: None,
            waiting_max: 20_000,
            waiting_bytes_max: REQUESTS_WAITING_BYTES_MAX,
            wait_max: REQUEST_WAIT_MAX,
            readers: 6,
            direct_url: None,
            is_pooled: false,
            steady: Arc::new(SteadyClock::new()),
            works: true,
            is_asked: true,
            address: None,
            former: None,
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
    lanes: Lanes,
    cipher: Option<Cipher>,
    installation: [u8; 16],
    rolling: Rolling,
    stop: watch::Sender<bool>,
    /// The writer's task, until the store is closed, and those beside it.
    writer: Mutex<Option<JoinHandle<()>>>,
    beside: Mutex<Vec<JoinHandle<()>>>,
}

impl PostgresStore {
    /// Connects, brings the schema `peyk` up to date or makes it, and starts the writer on the
    /// current runtime.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] with a plain sentence when the database is of a newer version, not
    /// in UTF8, or when its secrets do not open with the cipher; it is then left as it is.
    /// [`StoreError::Unavailable`] when it cannot be reached or written now.
    pub async fn open<T>(options: PostgresOptions, tls: T) -> Result<Arc<Self>, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (way, direct) = ways(&options, tls)?;
        let (pool, kept, heard) = (way.pool(1)?, way.pool(1)?, way.pool(1)?);
        let readers = way.pool(options.readers)?;
        let lanes = Lanes::new(way.pool_for_arrays(lanes::CONNECTIONS)?);
        let share = Share::leased(Arc::clone(&options.steady));
        let begun = share.renewal();
        let first = link::connect(&pool).await?;
        let prepared = if options.is_pooled {
            let around = link::connect(&direct.pool(1)?).await?;
            link::check_session(&first).await.map_err(|fault| fault.told())?;
            prepare(&around, &options).await
        } else {
            prepare(&first, &options).await
        };
        let (installation, last, me) = prepared.map_err(|fault| fault.told())?;
        share.renewed(begun);
        let (queue, jobs) = unbounded_channel();
        let room = Room {
            jobs: options.waiting_max,
            bytes: options.waiting_bytes_max,
            wait: options.wait_max,
        };
        let shared = Arc::new(Shared {
            clock: options.clock,
            common: options.common,
            door: Door::new(queue, room),
            commits: OnceLock::new(),
            attached: false.into(),
            me,
            share,
            peers: watch::Sender::new(Arc::new(Peers::default())),
            keeps_mails: Arc::default(),
            depth: 0.into(),
        });
        let tx = writer::open(first, &shared, last).await?;
        let writer = tokio::spawn(Writer::new(Arc::clone(&shared), pool, tx).run(jobs));
        let (stop, stopped) = watch::channel(false);
        let ears = Ears { told: Arc::default(), moved: Arc::default() };
        let mut keeper = Keeper::new(Arc::clone(&shared), kept, Arc::clone(&ears.moved));
        keeper.round().await.map_err(|fault| fault.told())?;
        let told = Arc::clone(&ears.told);
        let beside = vec![
            tokio::spawn(keeper.run(stopped.clone())),
            tokio::spawn(ears::read(Arc::clone(&shared), heard, told, stopped.clone())),
            tokio::spawn(ears::listen(
                Arc::clone(&shared),
                (direct.config, direct.tls),
                ears,
                stopped,
            )),
        ];
        let (cipher, writer) = (options.cipher, Mutex::new(Some(writer)));
        Ok(Arc::new(Self {
            shared,
            readers,
            lanes,
            cipher,
            installation,
            rolling: Rolling::default(),
            stop,
            writer,
            beside: Mutex::new(beside),
        }))
    }

    /// Which node this is.
    pub fn node(&self) -> NodeId {
        self.shared.me.id
    }

    /// Names who is told of commits; once, before anything is accepted. A second call changes
    /// nothing.
    pub fn attach(&self, commits: Arc<dyn Commits>) {
        if self.shared.commits.set(Arc::clone(&commits)).is_err() {
            tracing::warn!("the store already tells somebody else of its commits");
            return;
        }
        commits.acquired(self.shared.share.owned());
        self.shared.attached.store(true, Ordering::SeqCst);
    }

    /// Finishes what is queued and ends the connections. Later calls answer that it is closed.
    pub async fn close(&self) {
        self.shared.door.shut();
        self.readers.close();
        self.lanes.close();
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer
            && writer.await.is_err()
        {
            tracing::warn!("the writer of the store did not end well");
        }
        let _all_gone = self.stop.send(true);
        let beside = std::mem::take(&mut *lock(&self.beside));
        for task in beside {
            let _ended = task.await;
        }
    }

    /// Runs `look` on a connection that reads.
    fn read<T, F>(&self, look: impl FnOnce(Conn) -> F + Send + 'static) -> Reply<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send,
    {
        link::read(self.readers.clone(), look)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.shared.door.shut();
        let _all_gone = self.stop.send(true);
    }
}

/// The way to the database, and that around a pooler.
fn ways<T>(options: &PostgresOptions, tls: T) -> Result<(Way<T>, Way<T>), StoreError>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let way = Way::to(&options.url, tls.clone())?;
    let direct = match &options.direct_url {
        Some(url) => Way::to(url, tls)?,
        None => way.clone(),
    };
    match options.is_pooled {
        true => Ok((way.pooled(&direct)?, direct)),
        false => Ok((way, direct)),
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings the schema up to date, joins the nodes, and looks at what is there: the installation's
/// name and the last key.
async fn prepare(conn: &Conn, of: &PostgresOptions) -> Result<([u8; 16], u64, Me), Fault> {
    migrate::to_latest(conn).await?;
    check_secrets(conn, of.cipher.as_ref()).await?;
    let installation = installation(conn).await?;
    let address = of.address.clone();
    let joining = Joining { works: of.works, is_asked: of.is_asked, address };
    let me = Me::join(conn, &joining, of.former).await?;
    // After all that a node before it wrote under the same slot.
    Ok((installation, tx::last_key(conn).await?, me))
}

/// The name of this installation, made when the database is new.
async fn installation(conn: &Conn) -> Result<[u8; 16], Fault> {
    let sql = "SELECT value FROM setting WHERE name = 'installation'";
    if let Some(name) = one(conn, sql, &[], |row| bytes_at(row, 0)).await? {
        return Ok(name);
    }
    let mut name = [0_u8; 16];
    FromOs::fill(&mut name).map_err(|_| unavailable("the system gives no random bytes"))?;
    // The first of several nodes that start at once names it.
    let sql = "INSERT INTO setting (name, value) VALUES ('installation', $1)
               ON CONFLICT (name) DO UPDATE SET value = setting.value RETURNING value";
    let name = one(conn, sql, &[&&name[..]], |row| bytes_at(row, 0)).await?;
    Ok(name.ok_or_else(|| unavailable("the installation has no name"))?)
}

/// Whether stored secrets open: better told at the start than at the first send.
async fn check_secrets(conn: &Conn, cipher: Option<&Cipher>) -> Result<(), Fault> {
    let sql =
        "SELECT id, secrets FROM endpoint WHERE substr(secrets, 1, 1) = '\\x01'::bytea LIMIT 1";
    let sealed =
        all(conn, sql, &[], |row| open_secrets(get(row, 1)?, id_at(row, 0)?, cipher).map(drop));
    sealed.await.map(drop)
}
