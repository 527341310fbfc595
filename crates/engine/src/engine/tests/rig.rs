//! An engine with one endpoint over the reference model, which may die and begin again.
//!
//! Never: real time; both clocks move when a test says so.

use std::path::PathBuf;

use domain::endpoint::EndpointSpec;
use store::queue::Queue as _;

use super::*;
use crate::alert::Alerting;

/// What outlives a process.
pub(super) struct Rig {
    pub(super) clock: Arc<ManualClock>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) transport: Arc<ScriptedTransport>,
    pub(super) endpoint: EndpointKey,
    app: PublicId,
    pub(super) settings: crate::settings::Settings,
    /// What alerts are built from, from the next life on.
    pub(super) alerting: Option<Alerting>,
    pub(super) mailer: Arc<dyn mail::Mailer>,
    /// What other nodes leave to this one, if there are any.
    pub(super) nodes: Option<Arc<dyn store::nodes::Nodes>>,
    pub(super) commits: std::sync::Mutex<Option<Arc<dyn Commits>>>,
    /// The engine is not told of new rows, as of what another node has written.
    pub(super) is_deaf: Arc<AtomicBool>,
    posted: AtomicU64,
    scratch: tempfile::TempDir,
}

/// A mail server that never answers: what is to be sent stays in sight.
pub(super) struct Deaf;

impl mail::Mailer for Deaf {
    fn send(&self, _: mail::Letter) -> mail::Mailing<'_> {
        Box::pin(std::future::pending())
    }

    fn send_alert(&self, _: mail::AlertLetter) -> mail::Mailing<'_> {
        Box::pin(std::future::pending())
    }
}

/// Passes on what the store tells, unless it is deaf.
struct Ear {
    to: Arc<dyn Commits>,
    is_deaf: Arc<AtomicBool>,
}

impl Commits for Ear {
    fn fresh(&self, rows: Vec<Fresh>) {
        if !self.is_deaf.load(Ordering::SeqCst) {
            self.to.fresh(rows);
        }
    }

    fn withdrawn(&self, rows: Vec<Pending>) {
        self.to.withdrawn(rows);
    }

    fn directory_changed(&self, app: AppKey, endpoint: Option<EndpointKey>) {
        self.to.directory_changed(app, endpoint);
    }

    fn noted(&self) {
        self.to.noted();
    }

    fn recovered(&self) {
        self.to.recovered();
    }

    fn batch(&self, stats: BatchStats) {
        self.to.batch(stats);
    }
}

/// A process.
pub(super) struct Life {
    pub(super) engine: Engine,
    running: Running,
}

impl Life {
    /// An orderly end.
    pub(super) async fn end(self) {
        self.running.drain(Duration::from_secs(1)).await;
    }
}

impl Rig {
    pub(super) async fn new(
        spec: EndpointSpec,
        script: impl Fn(&crate::transport::Outbound) -> Script + Send + Sync + 'static,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(NOW));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let org = PublicId::parse(Kind::Organisation, ORG).unwrap();
        let app = store.create_app(org, samples::app(None), [1; 12]).await.unwrap();
        let new = NewEndpoint { app: app.key, spec, secret: samples::secret(2), random: [2; 12] };
        let endpoint = store.create_endpoint(new).await.unwrap().key;
        let transport = Arc::new(ScriptedTransport::new(script));
        let scratch = tempfile::tempdir().unwrap();
        let (settings, posted) = (crate::settings::Settings::default(), AtomicU64::new(0));
        let (alerting, mailer) = (None, Arc::new(Deaf) as _);
        let (nodes, commits, app) = (None, std::sync::Mutex::default(), app.id);
        Self {
            clock,
            store,
            transport,
            endpoint,
            app,
            settings,
            alerting,
            mailer,
            nodes,
            commits,
            is_deaf: Arc::default(),
            posted,
            scratch,
        }
    }

    /// Where ids in flight stand.
    pub(super) fn inflight_file(&self) -> PathBuf {
        self.scratch.path().join("inflight")
    }

    pub(super) async fn start(&self) -> Life {
        let alone = Stores::of(&self.store);
        let stores = match &self.nodes {
            Some(nodes) => alone.among(Arc::clone(nodes)),
            None => alone,
        };
        let parts = Parts {
            settings: self.settings.clone(),
            stores,
            transport: Arc::clone(&self.transport) as _,
            clock: Arc::clone(&self.clock) as _,
            chance: Box::new(Seeded::new(1)),
            tracing: Default::default(),
            observer: Arc::new(Unobserved),
            forwarding: None,
            inflight_path: Some(self.inflight_file()),
            wording: |notice| Bytes::from_static(notice.news.name().as_bytes()),
            mailer: Some(Arc::clone(&self.mailer)),
            alerting: self.alerting.clone(),
        };
        let attached = Arc::clone(&self.store);
        let attach = move |commits: Arc<dyn Commits>| {
            *self.commits.lock().unwrap() = Some(Arc::clone(&commits));
            attached.attach(Arc::new(Ear { to: commits, is_deaf: Arc::clone(&self.is_deaf) }));
        };
        let (engine, running) = Engine::start(parts, attach).await.unwrap();
        Life { engine, running }
    }

    /// The process is killed: what it had not stored is gone.
    pub(super) fn kill(&mut self, life: Life) {
        life.running.dispatcher.abort();
        life.running.tasks.abort();
        life.running.mailing.inspect(JoinHandle::abort);
        life.running.alerting.iter().for_each(JoinHandle::abort);
        self.store = self.store.crash_image();
    }

    /// Lets time pass, on both clocks.
    pub(super) async fn pass(&self, span: Duration) {
        let step = Duration::from_millis(100);
        for _ in 0..span.as_millis() / step.as_millis() {
            self.clock.advance(step);
            tokio::time::advance(step).await;
            tokio::task::yield_now().await;
        }
    }

    pub(super) async fn post(&self, life: &Life) -> MessageKey {
        let number = self.posted.fetch_add(1, Ordering::SeqCst);
        let payload = Bytes::from(number.to_string());
        let spec = MessageSpec { payload, ..samples::message() };
        let mut random = [3; 12];
        random[..8].copy_from_slice(&number.to_le_bytes());
        let org = PublicId::parse(Kind::Organisation, ORG).unwrap();
        let post = Post { org, app: IdOrUid::Id(self.app), spec, only: None, key: None, random };
        let accepted = life.engine.ingest(post).await.unwrap();
        let Accepted::New { key, .. } = accepted else { panic!("{accepted:?}") };
        key
    }

    pub(super) async fn posts(&self, life: &Life, count: usize) -> Vec<MessageKey> {
        let mut posted = Vec::new();
        for _ in 0..count {
            posted.push(self.post(life).await);
        }
        posted
    }

    /// The numbers of the messages that were sent since this was last asked.
    pub(super) fn sent(&self) -> Vec<usize> {
        let number = |body: &[u8]| String::from_utf8_lossy(body).parse().unwrap();
        self.transport.take().iter().map(|sent| number(&sent.body)).collect()
    }

    /// How many requests the endpoint got since this was last asked.
    pub(super) fn sent_to_customer(&self) -> usize {
        self.transport.take().iter().filter(|sent| sent.endpoint == self.endpoint).count()
    }

    /// Deliveries that wait.
    pub(super) async fn waiting(&self) -> u64 {
        self.store.depth().await.unwrap().0
    }
}
