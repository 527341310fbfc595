//! The backends under test, as the suites and the comparison open them.
//!
//! Never: a test.

use std::sync::Arc;

use resilience::{Clock, ManualClock};
use store::commits::Commits;
use store::conformance::{Backend, Stores};
use store::memory::MemoryStore;
use store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

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
