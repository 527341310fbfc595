//! SQLite: one file, one writer, no server. The default backend.
//!
//! `writer` owns the only connection that writes; `readers` read beside it. The trait of each file
//! is written once for both sides: what changes runs on the writer, what reads on a reader.
//! Never: SQL outside this folder, a payload or an answer's body as text, a write on a second
//! connection.

mod alerts;
mod answers;
mod applications;
mod arrears;
mod batch;
#[cfg(test)]
mod bench;
mod checkpoint;
mod chores;
mod counts;
mod dead_letters;
mod deliveries;
mod directory;
mod door;
mod endpoints;
mod event_types;
mod fault;
mod filter;
mod headroom;
mod history;
mod hot;
mod inbox;
mod keys;
mod ledger;
mod migrate;
mod notices;
#[cfg(feature = "postgres")]
pub(crate) mod outgoing;
mod probe;
mod prune;
mod queue;
mod readers;
mod recall;
mod recoveries;
mod revocations;
mod rows;
mod scan;
mod sent;
mod shared;
mod stopwatch;
mod tasks;
#[cfg(test)]
mod tests;
mod tx;
mod used_keys;
mod withdraw;
mod writer;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use domain::ids::PublicId;
use domain::limits::{BATCH_TIME_MAX, REQUEST_WAIT_MAX, REQUESTS_WAITING_BYTES_MAX};
use resilience::{Clock, FromOs};
use rusqlite::{Connection, params};

use crate::StoreError;
use crate::cipher::Cipher;
use crate::commits::Commits;
use crate::stored::endpoint::open_secrets;
use crate::stored::fault::closed;
use crate::stored::figures::Rolling;
use checkpoint::Helper;
use door::{Door, Room};
use readers::{Readers, join, no_thread};
use rows::{all, bytes_at, id_at, one};
use shared::Shared;
use writer::Writer;

/// How a store is opened.
#[derive(Clone)]
pub struct SqliteOptions {
    /// The database file; created when it is not there, its folder must be.
    pub path: PathBuf,
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
    /// Writing time of one transaction; what waits then goes into the next one.
    pub batch_time_max: Duration,
    /// Connections that read.
    pub readers: usize,
    /// Page cache of the writer, in KiB.
    pub writer_cache_kib: u32,
    /// Page cache of each reader, in KiB.
    pub reader_cache_kib: u32,
}

impl SqliteOptions {
    /// The file `path` with the usual bounds and no cipher.
    pub fn new(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self {
            path: path.into(),
            clock,
            cipher: None,
            waiting_max: 20_000,
            waiting_bytes_max: REQUESTS_WAITING_BYTES_MAX,
            wait_max: REQUEST_WAIT_MAX,
            batch_time_max: BATCH_TIME_MAX,
            readers: 3,
            writer_cache_kib: 64 << 10,
            reader_cache_kib: 8 << 10,
        }
    }
}

/// Everything Peyk keeps, in one SQLite file.
pub struct SqliteStore {
    shared: Arc<Shared>,
    readers: Readers,
    cipher: Option<Cipher>,
    installation: [u8; 16],
    rolling: Rolling,
    /// The writer's thread and the helper's, until the store is closed.
    threads: Mutex<Option<(JoinHandle<()>, Helper)>>,
}

impl SqliteStore {
    /// Opens the file, or makes it, and starts the threads.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] with a plain sentence when the file is not ours, damaged, of a newer
    /// version, or when its secrets do not open with the cipher; it is then left as it is.
    /// [`StoreError::Unavailable`] when it cannot be opened or written now.
    pub fn open(options: SqliteOptions) -> Result<Arc<Self>, StoreError> {
        let conn = migrate::open_writer(&options.path, options.writer_cache_kib)?;
        check_secrets(&conn, options.cipher.as_ref())?;
        let installation = installation(&conn)?;
        let depth = conn.query_row("SELECT count(*) FROM pending", [], |row| row.get(0))?;
        let (queue, jobs) = channel();
        let room = Room {
            jobs: options.waiting_max,
            bytes: options.waiting_bytes_max,
            wait: options.wait_max,
        };
        let shared = Arc::new(Shared::new(
            options.clock,
            Door::new(queue, room),
            depth,
            options.batch_time_max,
        ));
        let readers = Readers::open(&options.path, options.readers, options.reader_cache_kib)?;
        let helper = Helper::start(&options.path, Arc::clone(&shared))?;
        let (ready, readied) = channel();
        let for_writer = Arc::clone(&shared);
        let writer = Builder::new().name("peyk-write".into()).spawn(move || {
            match Writer::new(&conn, for_writer) {
                Ok(writer) => {
                    drop(ready.send(Ok(())));
                    writer.run(&jobs);
                }
                Err(fault) => drop(ready.send(Err(fault))),
            }
        });
        let writer = writer.map_err(|_| no_thread())?;
        readied.recv().unwrap_or_else(|_| Err(closed()))?;
        Ok(Arc::new(Self {
            shared,
            readers,
            cipher: options.cipher,
            installation,
            rolling: Rolling::default(),
            threads: Mutex::new(Some((writer, helper))),
        }))
    }

    /// Names who is told of commits; once, before anything is accepted. A second call changes
    /// nothing.
    pub fn attach(&self, commits: Arc<dyn Commits>) {
        if self.shared.commits.set(commits).is_err() {
            tracing::warn!("the store already tells somebody else of its commits");
        }
    }

    /// Finishes what is queued, then ends the threads and closes the file. Later calls answer that
    /// it is closed.
    pub fn close(&self) {
        self.shared.door.shut();
        self.readers.close();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((writer, helper)) = threads {
            helper.close();
            join(writer);
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

/// The name of this installation, made when the file is new.
fn installation(conn: &Connection) -> Result<[u8; 16], StoreError> {
    let sql = "SELECT value FROM setting WHERE name = 'installation'";
    if let Some(name) = one(&mut conn.prepare(sql)?.query([])?, |row| bytes_at(row, 0))? {
        return Ok(name);
    }
    let mut name = [0_u8; 16];
    FromOs::fill(&mut name)
        .map_err(|_| StoreError::Unavailable("the system gives no random bytes".into()))?;
    let sql = "INSERT INTO setting (name, value) VALUES ('installation', ?1)";
    conn.execute(sql, params![name])?;
    Ok(name)
}

/// Whether stored secrets open: better told at the start than at the first send.
fn check_secrets(conn: &Connection, cipher: Option<&Cipher>) -> Result<(), StoreError> {
    let sql = "SELECT id, secrets FROM endpoint WHERE substr(secrets, 1, 1) = x'01' LIMIT 1";
    let mut statement = conn.prepare(sql)?;
    let sealed: Vec<(PublicId, Vec<u8>)> =
        all(&mut statement.query([])?, |row| Ok((id_at(row, 0)?, row.get(1)?)))?;
    sealed.iter().try_for_each(|(owner, secrets)| open_secrets(secrets, *owner, cipher).map(drop))
}
