//! What everything is kept in: the store that the settings name, and how it is opened.
//!
//! Never: know what is kept.

use std::sync::Arc;
use std::time::Duration;

use domain::nodes::NodeId;
use engine::Stores;
use resilience::Clock;
use store::StoreError;
use store::cipher::Cipher;
use store::commits::Commits;
use store::common_clock::CommonClock;
use store::nodes::{Nodes as _, PeerAddress};
use store::postgres::{PostgresOptions, PostgresStore};
use store::sqlite::{SqliteOptions, SqliteStore};

use super::boot_clock::BootClock;
use super::node;
use super::trouble::Trouble;
use crate::config::{Database, Settings};

/// A database that cannot be reached is tried again after this, while a start waits for it.
const OPEN_AGAIN: Duration = Duration::from_millis(500);

/// The store, by what everything is kept in.
#[derive(Clone)]
pub(super) enum Store {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>, Arc<CommonClock>),
}

impl Store {
    /// Opens what the settings name. `clock` is that of this machine.
    pub(super) async fn open(
        settings: &Settings,
        address: Option<PeerAddress>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Trouble> {
        let cipher = settings.main_key.as_ref().map(|key| Cipher::from_main_key(key.reveal()));
        let unencrypted = cipher.is_none();
        let opened = Self::open_with(settings, address, (clock, cipher)).await;
        let opened = opened.map_err(match settings.database {
            Database::Sqlite(_) => Trouble::Other,
            Database::Postgres(_) => Trouble::Database,
        })?;
        if unencrypted {
            tracing::warn!("signing secrets are stored unencrypted: set main_key to encrypt them");
        }
        Ok(opened)
    }

    async fn open_with(
        settings: &Settings,
        address: Option<PeerAddress>,
        (clock, cipher): (Arc<dyn Clock>, Option<Cipher>),
    ) -> Result<Self, String> {
        match &settings.database {
            Database::Sqlite(path) => {
                let mut options = SqliteOptions::new(path, clock);
                options.cipher = cipher;
                let opened = SqliteStore::open(options);
                opened.map(Self::Sqlite).map_err(|fault| {
                    format!("cannot open the database {}: {fault}", path.display())
                })
            }
            Database::Postgres(url) => {
                let steady: Arc<dyn Clock> = Arc::new(BootClock);
                let common = Arc::new(CommonClock::new(clock, Arc::clone(&steady)));
                let mut options = PostgresOptions::new(url.reveal(), Arc::clone(&common) as _);
                options.common = Some(Arc::clone(&common));
                options.cipher = cipher;
                options.steady = steady;
                options.works = settings.nodes.works;
                options.is_asked = settings.nodes.api;
                options.address = address;
                options.former = node::former(&settings.data_dir);
                let direct = settings.nodes.direct_url.as_ref();
                options.direct_url = direct.map(|url| url.reveal().to_owned());
                options.is_pooled = settings.nodes.is_pooled;
                let opened = open_in_time(&options, settings.nodes.wait).await;
                opened.map(|store| Self::Postgres(store, common)).map_err(|fault| {
                    format!("cannot open the database that database_url names: {fault}")
                })
            }
        }
    }

    /// The time of day that all who use it have in common, if it has one.
    pub(super) fn clock(&self) -> Option<Arc<dyn Clock>> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(_, common) => Some(Arc::clone(common) as _),
        }
    }

    /// Which node this is, if there may be others.
    pub(super) fn node(&self) -> Option<NodeId> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(store, _) => Some(store.node()),
        }
    }

    /// All its roles.
    pub(super) fn roles(&self) -> Stores {
        match self {
            Self::Sqlite(store) => Stores::of(store),
            Self::Postgres(store, _) => Stores::of(store).among(Arc::clone(store) as _),
        }
    }

    /// Whether other processes may use it, too.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(..))
    }

    /// Waits until other nodes have declared this one dead.
    pub(super) async fn over(&self) {
        if let Self::Postgres(store, _) = self {
            store.share().over().await;
        } else {
            std::future::pending().await
        }
    }

    /// Who is told of commits.
    pub(super) fn attach(&self, commits: Arc<dyn Commits>) {
        match self {
            Self::Sqlite(store) => store.attach(commits),
            Self::Postgres(store, _) => store.attach(commits),
        }
    }

    /// Finishes what is queued.
    pub(super) async fn close(self) {
        match self {
            Self::Sqlite(store) => {
                let _closed = tokio::task::spawn_blocking(move || store.close()).await;
            }
            Self::Postgres(store, _) => store.close().await,
        }
    }
}

/// Opens the database, trying again for so long while it cannot be reached.
async fn open_in_time(
    options: &PostgresOptions,
    wait: Duration,
) -> Result<Arc<PostgresStore>, StoreError> {
    let begun = tokio::time::Instant::now();
    loop {
        let opened = PostgresStore::open(options.clone(), console::database_tls()).await;
        match opened {
            Err(fault) if fault.is_retryable() && begun.elapsed() < wait => {
                tracing::info!(%fault, "waiting for the database");
                tokio::time::sleep(OPEN_AGAIN).await;
            }
            opened => return opened,
        }
    }
}
