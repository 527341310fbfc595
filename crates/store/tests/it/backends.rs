//! The backends under test, as the suites and the comparison open them.
//!
//! Never: a test.

use std::sync::{Arc, Mutex, OnceLock};

use resilience::{Clock, ManualClock};
use store::commits::Commits;
use store::conformance::{Backend, Stores};
use store::memory::MemoryStore;
use store::postgres::{PostgresOptions, PostgresStore};
use store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use testparts::PgBouncer;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio_postgres::NoTls;

/// The reference model, new and empty.
pub(crate) fn memory(clock: Arc<ManualClock>) -> Box<dyn Backend> {
    Box::new(MemoryStore::new(clock as Arc<dyn Clock>))
}

/// SQLite in a folder of its own.
pub(crate) struct Sqlite {
    store: Arc<SqliteStore>,
    clock: Arc<ManualClock>,
    folder: TempDir,
}

impl Sqlite {
    /// A new, empty one.
    pub(crate) fn open(clock: Arc<ManualClock>) -> Box<dyn Backend> {
        let folder = TempDir::new().unwrap();
        let store = Self::start(&folder, &clock);
        Box::new(Self { store, clock, folder })
    }

    fn start(folder: &TempDir, clock: &Arc<ManualClock>) -> Arc<SqliteStore> {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
        SqliteStore::open(SqliteOptions::new(folder.path().join("peyk.db"), clock)).unwrap()
    }
}

impl Backend for Sqlite {
    fn stores(&self) -> Stores {
        Stores::of(&self.store)
    }

    fn attach(&self, commits: Arc<dyn Commits>) {
        self.store.attach(commits);
    }

    fn reopen(&mut self) {
        self.store.close();
        self.store = Self::start(&self.folder, &self.clock);
    }
}

/// Databases that nobody uses any more: to make one anew takes longer than to clear it.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What a role is given where a pooler stands before the database.
const PAGE: &str = include_str!("../../../../docs/postgresql.md");
/// Fewer sessions than a store has connections.
const SESSIONS: usize = 4;
static BOUNCER: OnceLock<PgBouncer> = OnceLock::new();

/// PostgreSQL: a database of its own in a server of this process.
pub(crate) struct Postgres {
    store: Arc<PostgresStore>,
    clock: Arc<ManualClock>,
    url: String,
    is_pooled: bool,
}

impl Postgres {
    /// A new, empty one.
    pub(crate) fn open(clock: Arc<ManualClock>) -> Box<dyn Backend> {
        let free = FREE.lock().unwrap().pop();
        let url = free.unwrap_or_else(|| testparts::Postgres::shared().fresh_database());
        let store = Self::start(&url, false, &clock);
        Box::new(Self { store, clock, url, is_pooled: false })
    }

    /// The same, behind a pooler in transaction mode.
    pub(crate) fn open_pooled(clock: Arc<ManualClock>) -> Box<dyn Backend> {
        let server = testparts::Postgres::shared();
        let url = server.fresh_database();
        server.give_settings(&url, PAGE);
        let store = Self::start(&url, true, &clock);
        Box::new(Self { store, clock, url, is_pooled: true })
    }

    fn start(url: &str, is_pooled: bool, clock: &Arc<ManualClock>) -> Arc<PostgresStore> {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
        let mut options = PostgresOptions::new(url, clock);
        if is_pooled {
            let bouncer =
                BOUNCER.get_or_init(|| PgBouncer::start(testparts::Postgres::shared(), SESSIONS));
            options.direct_url = Some(std::mem::take(&mut options.url));
            options.url = bouncer.url(url.rsplit('/').next().unwrap());
            options.is_pooled = true;
        }
        wait(PostgresStore::open(options, NoTls)).unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        wait(async {
            self.store.close().await;
            let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute("DROP SCHEMA peyk CASCADE").await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
        });
        if !self.is_pooled {
            FREE.lock().unwrap().push(std::mem::take(&mut self.url));
        }
    }
}

/// The suites open backends from within a runtime.
fn wait<T>(future: impl Future<Output = T>) -> T {
    block_in_place(|| Handle::current().block_on(future))
}

impl Backend for Postgres {
    fn stores(&self) -> Stores {
        Stores::of(&self.store)
    }

    fn attach(&self, commits: Arc<dyn Commits>) {
        self.store.attach(commits);
    }

    fn reopen(&mut self) {
        wait(self.store.close());
        self.store = Self::start(&self.url, self.is_pooled, &self.clock);
    }
}
