//! The composition root: puts the concrete store, transport and clock together, and takes them
//! apart again.
//!
//! In: settings and an observer. Out: a running Peyk with an address, which ends in order: no new
//! requests, answers given, sends ended or left pending, results committed, the file closed.
//! Never: decide; this is the only file that names concrete types.

mod descriptors;
pub(crate) mod secret;

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::events::{Observer, Unobserved};
use engine::mail::Mailer;
use engine::transport::dns::system::SystemSource;
use engine::transport::http1::{HttpOptions, HttpTransport};
use engine::{Engine, Parts, Stores, announce};
use resilience::{Clock, FromOs, SystemClock, Timestamp};
use store::cipher::Cipher;
use store::commits::Commits;
use store::postgres::{PostgresOptions, PostgresStore};
use store::sqlite::{SqliteOptions, SqliteStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::Routes;
use crate::api::views::notice;
use crate::config::{Database, Settings};
use crate::http::idempotency::Answers;
use crate::http::limits::Budget;
use crate::http::serve::{self, Serving};
use crate::http::token_rate::TokenRates;
use crate::http::tokens::Tokens;
use crate::mail::SmtpMailer;
use crate::reports::Reports;
use crate::schema_check::SchemaCheck;
use crate::state::Shared;
use crate::storage_check::StorageCheck;
use crate::telemetry::metrics::Metrics;

/// Metrics are tidied this often though nobody asks for them.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// A Peyk that runs.
pub(crate) struct Peyk {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    running: engine::engine::Running,
    store: Store,
    /// Held as long as this runs.
    _locks: Vec<File>,
}

/// The store, by what everything is kept in.
#[derive(Clone)]
enum Store {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Store {
    async fn open(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let cipher = settings.main_key.as_ref().map(|key| Cipher::from_main_key(key.reveal()));
        let unencrypted = cipher.is_none();
        let opened = Self::open_with(settings, clock, cipher).await?;
        if unencrypted {
            tracing::warn!("signing secrets are stored unencrypted: set main_key to encrypt them");
        }
        Ok(opened)
    }

    async fn open_with(
        settings: &Settings,
        clock: Arc<dyn Clock>,
        cipher: Option<Cipher>,
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
                let mut options = PostgresOptions::new(url.reveal(), clock);
                options.cipher = cipher;
                let opened = PostgresStore::open(options, console::database_tls()).await;
                opened.map(Self::Postgres).map_err(|fault| {
                    format!("cannot open the database that database_url names: {fault}")
                })
            }
        }
    }

    fn roles(&self) -> Stores {
        match self {
            Self::Sqlite(store) => Stores::of(store),
            Self::Postgres(store) => Stores::of(store),
        }
    }

    fn attach(&self, commits: Arc<dyn Commits>) {
        match self {
            Self::Sqlite(store) => store.attach(commits),
            Self::Postgres(store) => store.attach(commits),
        }
    }

    async fn close(self) {
        match self {
            Self::Sqlite(store) => {
                let _closed = tokio::task::spawn_blocking(move || store.close()).await;
            }
            Self::Postgres(store) => store.close().await,
        }
    }
}

/// The machine's clock.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// `peyk serve`: runs until it is told to stop.
pub(crate) fn serve(settings: Settings) -> Result<(), String> {
    runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(|fault| fault.to_string())?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(|fault| fault.to_string())?;
        let peyk = Peyk::start(settings, Arc::new(Unobserved)).await?;
        print_address(peyk.address);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        peyk.stop().await;
        Ok(())
    })
}

/// `peyk migrate`: makes the database, or brings it up to date.
pub(crate) fn migrate(settings: &Settings) -> Result<(), String> {
    runtime()?.block_on(async {
        let _locks = lock(&settings.data_dir, &settings.database)?;
        Store::open(settings, clock()).await?.close().await;
        Ok(())
    })
}

/// The runtime everything runs on.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|fault| format!("cannot start a runtime: {fault}"))
}

/// Scripts wait for this line; a standard output that is closed must not stop the server.
fn print_address(address: SocketAddr) {
    let mut out = std::io::stdout().lock();
    let _closed = writeln!(out, "listening on http://{address}").and_then(|()| out.flush());
}

impl Peyk {
    /// Starts everything; when it returns, requests are answered.
    pub(crate) async fn start(
        settings: Settings,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, String> {
        let lock = lock(&settings.data_dir, &settings.database)?;
        let secret = secret::read_or_make(&settings)?;
        // Before anything is sent: a taken port must not cost a restart of deliveries.
        let listener = TcpListener::bind(&settings.listen_address).await.map_err(|fault| {
            let address = &settings.listen_address;
            format!("cannot listen on {address}: {fault}; set listen_address to a free one")
        })?;
        let address = listener.local_addr().map_err(|fault| fault.to_string())?;
        let clock = clock();
        let routes = Routes::all();
        let metrics = Metrics::install(&routes.templates())?;
        let store = Store::open(&settings, Arc::clone(&clock)).await?;
        let parts = parts(&settings, &store, Arc::clone(&clock), observer)?;
        let connections_max = descriptors::connections_max(parts.settings.sends_max);
        let for_engine = store.clone();
        let started = Engine::start(parts, move |commits| for_engine.attach(commits)).await;
        let (engine, running) = started.map_err(|fault| fault.to_string())?;
        let directory = &*engine.stores().directory;
        if let Err(fault) = announce::make_event_types(directory, clock.now()).await {
            // Made at the next start; nothing but a filter of an endpoint needs them.
            tracing::warn!(%fault, "event types of operational webhooks were not made");
        }
        let tokens = known_tokens(&secret, &engine, clock.now()).await?;
        let inbox = Arc::clone(&engine.stores().inbox);
        let shared = Arc::new(Shared {
            engine,
            clock: Arc::clone(&clock),
            tokens,
            token_rates: TokenRates::new(settings.token_requests_per_s),
            schemas: Arc::new(SchemaCheck::new(settings.schema_validation)),
            budget: Budget::new(domain::limits::REQUESTS_WAITING_BYTES_MAX),
            storage: StorageCheck::new(inbox, Arc::clone(&clock)),
            edits: tokio::sync::Mutex::default(),
            answers: Answers::default(),
            reports: Reports::default(),
            metrics,
            settings,
        });
        let (stop, stopped) = watch::channel(false);
        let router = routes.router(Arc::clone(&shared));
        let what = Serving { router, connections_max, clock };
        let serving = tokio::spawn(serve::serve(listener, what, stopped));
        let upkeep = tokio::spawn(upkeep(Arc::clone(&shared)));
        Ok(Self { address, shared, stop, serving, upkeep, running, store, _locks: lock })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A token of an organisation.
    pub(crate) fn token(&self, org: &str) -> Option<String> {
        self.shared.tokens.make(org, None, self.shared.now())
    }

    /// Ends everything in order.
    pub(crate) async fn stop(self) {
        let _all_gone = self.stop.send(true);
        let _ended = self.serving.await;
        self.upkeep.abort();
        self.running.drain(self.shared.settings.attempt_deadline).await;
        self.store.close().await;
        tracing::info!("stopped");
    }
}

/// Tokens of the secret, those that were revoked left out.
async fn known_tokens(secret: &str, engine: &Engine, now: Timestamp) -> Result<Tokens, String> {
    let tokens = Tokens::new(secret)?;
    let kept = engine.stores().revocations.revocations().await;
    let (revoked, expired) = kept.map_err(|fault| fault.to_string())?;
    for token in &revoked {
        tokens.revocations().revoke(token, now);
    }
    tokens.revocations().expire(expired, now);
    Ok(tokens)
}

/// Only one process at a time may use a data directory, and only one a database, wherever it is.
fn lock(data_dir: &Path, database: &Database) -> Result<Vec<File>, String> {
    let shown = data_dir.display();
    std::fs::create_dir_all(data_dir).map_err(|fault| {
        format!("cannot make the data directory {shown}: {fault}; set data_dir to another one")
    })?;
    let ours = format!("the data directory {shown}: stop it, or set data_dir to another one");
    let mut locks = vec![lock_file(&data_dir.join("lock"), &ours)?];
    // A server knows by itself who uses a database of its.
    let Database::Sqlite(database) = database else { return Ok(locks) };
    let mut beside = database.as_os_str().to_owned();
    beside.push(".lock");
    let shown = database.display();
    let theirs = format!("the database {shown}: stop it, or set database_url to another one");
    locks.push(lock_file(Path::new(&beside), &theirs)?);
    Ok(locks)
}

fn lock_file(path: &Path, what: &str) -> Result<File, String> {
    let file = File::options().write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|fault| format!("cannot open {}: {fault}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(format!("another peyk uses {what}")),
        Err(TryLockError::Error(fault)) => Err(format!("cannot lock {}: {fault}", path.display())),
    }
}

fn parts(
    settings: &Settings,
    store: &Store,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Result<Parts, String> {
    let stores = store.roles();
    let resolver = Arc::new(SystemSource::cached());
    let options = HttpOptions::new(settings.guard.clone(), resolver, Arc::clone(&clock));
    let installation = stores.directory.installation();
    let chance = FromOs::new().map_err(|fault| format!("no random numbers: {fault}"))?;
    Ok(Parts {
        settings: engine::Settings {
            retry: settings.retry.clone(),
            breaker: settings.breaker.clone(),
            suspending: settings.suspending,
            attempt_deadline: settings.attempt_deadline,
            connect_timeout: settings.connect_timeout,
            window_start: settings.window_start,
            window_max: settings.window_max,
            lane_hold_max: settings.lane_hold_max,
            header_families: settings.signing_headers,
            installation,
            retention: settings.retention,
            replay_rate_per_s: settings.replay_rate_per_s,
            ..engine::Settings::default()
        },
        stores,
        transport: Arc::new(HttpTransport::new(options)),
        clock,
        chance: Box::new(chance),
        observer,
        wording: notice::payload,
        mailer: mailer(settings, installation)?,
        inflight_path: Some(settings.data_dir.join("inflight")),
    })
}

fn mailer(settings: &Settings, installation: [u8; 16]) -> Result<Option<Arc<dyn Mailer>>, String> {
    let Some(smtp) = &settings.smtp else { return Ok(None) };
    let mailer = SmtpMailer::new(smtp, installation)?;
    Ok(Some(Arc::new(mailer)))
}

async fn upkeep(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(UPKEEP_EVERY);
    loop {
        ticks.tick().await;
        shared.metrics.upkeep();
    }
}
