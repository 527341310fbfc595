//! The composition root: puts the concrete store, transport and clock together, and takes them
//! apart again.
//!
//! In: settings and an observer. Out: a running Peyk with an address, which ends in order: no new
//! requests, answers given, sends ended or left pending, results committed, the file closed.
//! Never: decide. This file and its folder alone name concrete types.

mod boot_clock;
mod descriptors;
mod kept;
mod node;
mod peers;
mod pushing;
pub(crate) mod secret;
mod trouble;

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::limits::HAND_OVER_MAX;
use engine::alert::Alerting;
use engine::events::{Observer, Unobserved};
use engine::mail::Mailer;
use engine::trace::Tracing;
use engine::transport::dns::system::SystemSource;
use engine::transport::http1::{HttpOptions, HttpTransport};
use engine::{Engine, Parts, announce};
use resilience::{Clock, FromOs, SystemClock, Timestamp};
use store::StoreError;
use store::copy::Copied;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use kept::Store;
use pushing::Pushing;
pub(crate) use trouble::Trouble;

use crate::alert;
use crate::api::Routes;
use crate::api::views::notice;
use crate::config::{Database, Settings};
use crate::http::idempotency::Answers;
use crate::http::iterators::Iterators;
use crate::http::limits::Budget;
use crate::http::origin::Origin;
use crate::http::serve::{self, Serving};
use crate::http::token_rate::TokenRates;
use crate::http::tokens::Tokens;
use crate::mail::SmtpMailer;
use crate::reports::Reports;
use crate::schema_check::SchemaCheck;
use crate::state::{Edits, Shared};
use crate::storage_check::StorageCheck;
use crate::telemetry::metrics::Metrics;

/// Metrics are tidied this often though nobody asks for them.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// What other nodes changed, and could not be read, is read again after this.
const READ_AGAIN: Duration = Duration::from_millis(250);
const DECLARED_DEAD: &str = "the database did not hear from this node in time, and other nodes have taken over what it had: start it \
     again";

/// A Peyk that runs.
pub(crate) struct Peyk {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    copies: JoinHandle<()>,
    /// Sends metrics and spans until it is told to stop.
    pushing: Pushing,
    running: engine::engine::Running,
    store: Store,
    /// Held as long as this runs.
    _locks: Vec<File>,
}

/// The machine's clock.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// `peyk serve`: runs until it is told to stop.
pub(crate) fn serve(settings: Settings) -> Result<(), Trouble> {
    runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(|fault| fault.to_string())?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(|fault| fault.to_string())?;
        let peyk = Peyk::start(settings, Arc::new(Unobserved)).await?;
        print_address(peyk.address);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            // What it had is others' now: it has nothing to end in order.
            () = peyk.store.over() => return Err(Trouble::Other(DECLARED_DEAD.to_owned())),
        }
        tracing::info!("stopping");
        peyk.stop().await;
        Ok(())
    })
}

/// `peyk migrate`: makes the database, or brings it up to date.
pub(crate) fn migrate(settings: &Settings) -> Result<(), Trouble> {
    runtime()?.block_on(async {
        let _locks = lock(&settings.data_dir, &settings.database)?;
        // Nodes that run keep what they serve.
        let mut settings = settings.clone();
        (settings.nodes.works, settings.nodes.api) = (false, false);
        Store::open(&settings, None, clock()).await?.close().await;
        Ok(())
    })
}

/// `peyk copy`: from a file into a database.
pub(crate) fn copy(from: &Path, to: &str) -> Result<Copied, String> {
    if !from.is_file() {
        return Err(format!("there is no file {}", from.display()));
    }
    let _lock = lock_database(from)?;
    let copied = runtime()?.block_on(store::copy::copy(from, to, console::database_tls()));
    copied.map_err(|fault| match fault {
        StoreError::Conflict(_) => {
            "the database holds a Peyk already; it was left as it is: name an empty one".to_owned()
        }
        fault => format!("nothing was copied: {fault}"),
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
    ) -> Result<Self, Trouble> {
        let lock = lock(&settings.data_dir, &settings.database)?;
        let secret = secret::read_or_make(&settings)?;
        // Before anything is sent: a taken port must not cost a restart of deliveries.
        let listener = TcpListener::bind(&settings.listen_address).await.map_err(|fault| {
            let address = &settings.listen_address;
            format!("cannot listen on {address}: {fault}; set listen_address to a free one")
        })?;
        let listens = listener.local_addr().map_err(|fault| fault.to_string())?;
        let clock = clock();
        let routes = if settings.nodes.api { Routes::all() } else { Routes::unasked() };
        let metrics = Metrics::install(&routes.templates())?;
        let (forwarding, address) = peers::open(&settings).await?.unzip();
        let store = Store::open(&settings, address, Arc::clone(&clock)).await?;
        let clock = store.clock().unwrap_or(clock);
        let _noted = store.node().map(|node| node::note(&settings.data_dir, node));
        let (tracing, spans) = pushing::tracing(&settings.push.traces);
        let clocked = (Arc::clone(&clock), tracing.clone());
        let mut parts = parts(&settings, &store, clocked, observer)?;
        parts.forwarding = forwarding;
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
        let share = engine.stores().nodes.share();
        let shared = Arc::new(Shared {
            engine,
            clock: Arc::clone(&clock),
            tokens,
            iterators: Iterators::new(&secret),
            origin: Origin::new(settings.public_url.clone(), listens),
            token_rates: TokenRates::new(settings.token_requests_per_s, share),
            schemas: Arc::new(SchemaCheck::new(settings.schema_validation)),
            budget: Budget::new(domain::limits::REQUESTS_WAITING_BYTES_MAX),
            storage: StorageCheck::new(inbox, Arc::clone(&clock)),
            edits: Edits::default(),
            answers: Answers::default(),
            reports: Reports::default(),
            metrics,
            tracing,
            settings,
        });
        let (stop, stopped) = watch::channel(false);
        let router = routes.router(Arc::clone(&shared));
        let what = Serving { router, connections_max, clock };
        let serving = tokio::spawn(serve::serve(listener, what, stopped));
        let upkeep = tokio::spawn(upkeep(Arc::clone(&shared)));
        let copies = tokio::spawn(copies(Arc::clone(&shared)));
        let pushing = Pushing::start(&shared, spans);
        Ok(Self {
            address: listens,
            shared,
            stop,
            serving,
            upkeep,
            copies,
            pushing,
            running,
            store,
            _locks: lock,
        })
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
        self.copies.abort();
        let deadline = self.shared.settings.attempt_deadline;
        // Other nodes wait for what this one serves.
        let grace = if self.store.is_shared() { deadline.min(HAND_OVER_MAX) } else { deadline };
        self.running.drain(grace).await;
        self.pushing.end().await;
        self.store.close().await;
        tracing::info!("stopped");
    }
}

/// Tokens of the secret, those that were revoked left out.
async fn known_tokens(secret: &str, engine: &Engine, now: Timestamp) -> Result<Tokens, String> {
    let tokens = Tokens::new(secret)?;
    learn_revocations(&tokens, engine, now).await.map_err(|fault| fault.to_string())?;
    Ok(tokens)
}

async fn learn_revocations(
    tokens: &Tokens,
    engine: &Engine,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (revoked, expired) = engine.stores().revocations.revocations().await?;
    for token in &revoked {
        tokens.revocations().revoke(token, now);
    }
    tokens.revocations().expire(expired, now);
    Ok(())
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
    locks.push(lock_database(database)?);
    Ok(locks)
}

fn lock_database(database: &Path) -> Result<File, String> {
    let mut beside = database.as_os_str().to_owned();
    beside.push(".lock");
    let shown = database.display();
    let theirs = format!("the database {shown}: stop it, or set database_url to another one");
    lock_file(Path::new(&beside), &theirs)
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
    (clock, tracing): (Arc<dyn Clock>, Tracing),
    observer: Arc<dyn Observer>,
) -> Result<Parts, String> {
    let stores = store.roles();
    let resolver = Arc::new(SystemSource::cached());
    let mut options = HttpOptions::new(settings.guard.clone(), resolver, Arc::clone(&clock));
    options.proxy = settings.proxy.clone();
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
            replay_automatic: settings.replay_automatic,
            ..engine::Settings::default()
        },
        stores,
        transport: Arc::new(HttpTransport::new(options)),
        clock,
        chance: Box::new(chance),
        tracing,
        observer,
        wording: notice::payload,
        mailer: mailer(settings, installation)?,
        alerting: Some(alerting(settings)),
        forwarding: None,
        inflight_path: Some(settings.data_dir.join("inflight")),
    })
}

fn alerting(settings: &Settings) -> Alerting {
    Alerting {
        rules: settings.alerts.rules.clone(),
        routes: settings.alerts.routes.clone(),
        interval: settings.alerts.interval,
        wording: alert::wording(settings.public_url.clone()),
        secret: alert::secret,
        // One node so far.
        is_evaluator: Arc::new(|| true),
    }
}

fn mailer(settings: &Settings, installation: [u8; 16]) -> Result<Option<Arc<dyn Mailer>>, String> {
    let Some(smtp) = &settings.smtp else { return Ok(None) };
    let mailer = SmtpMailer::new(smtp, installation)?;
    Ok(Some(Arc::new(mailer)))
}

/// Reads again what another node changed.
async fn copies(shared: Arc<Shared>) {
    let mut changes = shared.engine.copies();
    while changes.changed().await.is_ok() {
        shared.schemas.forget_all();
        while let Err(fault) = learn_revocations(&shared.tokens, &shared.engine, shared.now()).await
        {
            tracing::warn!(%fault, "revoked tokens not read; trying again");
            tokio::time::sleep(READ_AGAIN).await;
        }
    }
}

async fn upkeep(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(UPKEEP_EVERY);
    loop {
        ticks.tick().await;
        shared.metrics.upkeep();
    }
}
