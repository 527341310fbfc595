//! A receiver on a port of its own: answers by a script and keeps everything it got.
//!
//! Never: judge what it got; tests do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use resilience::{Clock as _, SystemClock, Timestamp};
use tokio::sync::{Semaphore, watch};

use super::PATIENCE;

/// What the receiver answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Waited for before the answer is given.
    pub(crate) gate: Option<Gate>,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        let body = format!("said {status}").into_bytes();
        Self { status, headers: Vec::new(), body, gate: None }
    }

    /// With one more header line.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Given once `gate` lets it through.
    pub(crate) fn held(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }
}

/// Holds answers back until a test lets them through.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn shut() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets so many answers through.
    pub(crate) fn allow(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Lets every answer through from now on.
    pub(crate) fn open(&self) {
        self.0.close();
    }

    pub(crate) async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// One complete request.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// When it was complete.
    pub(crate) at: Timestamp,
}

impl Hit {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The number `n` in its body.
    pub(crate) fn n(&self) -> u64 {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        body["n"].as_u64().unwrap()
    }
}

type Script = Box<dyn Fn(usize, &Hit) -> Reply + Send + Sync>;

struct Inner {
    script: Mutex<Script>,
    hits: Mutex<Vec<Hit>>,
    count: watch::Sender<usize>,
    /// Requests without an answer: now, and the most there ever were.
    open: Mutex<(usize, usize)>,
}

/// A request that waits for its answer, or is given up by its sender.
struct Open(Arc<Inner>);

impl Open {
    fn new(inner: &Arc<Inner>) -> Self {
        let mut open = inner.open.lock().unwrap();
        open.0 += 1;
        open.1 = open.1.max(open.0);
        Self(Arc::clone(inner))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.lock().unwrap().0 -= 1;
    }
}

/// A receiver.
#[derive(Clone)]
pub(crate) struct Receiver {
    inner: Arc<Inner>,
    address: SocketAddr,
}

impl Receiver {
    /// One that answers 200.
    pub(crate) async fn start() -> Self {
        Self::scripted(|_, _| Reply::status(200)).await
    }

    /// One that answers by number of the request, from 0, and the request.
    pub(crate) async fn scripted(
        script: impl Fn(usize, &Hit) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Mutex::new(Box::new(script)),
            hits: Mutex::default(),
            count: watch::channel(0).0,
            open: Mutex::default(),
        });
        let router = Router::new().fallback(receive).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { inner, address }
    }

    /// Changes the script.
    pub(crate) fn script(&self, script: impl Fn(usize, &Hit) -> Reply + Send + Sync + 'static) {
        *self.inner.script.lock().unwrap() = Box::new(script);
    }

    /// A URL of it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `127.0.0.1/32:` and its port: a rule that allows it and nothing else.
    pub(crate) fn rule(&self) -> String {
        format!("127.0.0.1/32:{}", self.address.port())
    }

    /// Requests that have no answer yet.
    pub(crate) fn open(&self) -> usize {
        self.inner.open.lock().unwrap().0
    }

    /// The most requests that were without an answer at once, since this was last asked.
    pub(crate) fn most_at_once(&self) -> usize {
        let mut open = self.inner.open.lock().unwrap();
        let now = open.0;
        std::mem::replace(&mut open.1, now)
    }

    /// Everything it got so far.
    pub(crate) fn hits(&self) -> Vec<Hit> {
        self.inner.hits.lock().unwrap().clone()
    }

    /// Waits until it got so many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Hit> {
        let mut seen = self.inner.count.subscribe();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| *seen >= count)).await;
        assert!(waited.is_ok(), "{} requests instead of {count}", self.hits().len());
        self.hits()
    }
}

async fn receive(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let _open = Open::new(&inner);
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        // Cut off by a kill: no complete request.
        return StatusCode::BAD_REQUEST.into_response();
    };
    let path = parts.uri.path_and_query().unwrap().to_string();
    let hit = Hit { path, headers: parts.headers, body: body.to_bytes(), at: SystemClock.now() };
    let (number, reply) = {
        let mut hits = inner.hits.lock().unwrap();
        hits.push(hit.clone());
        let number = hits.len() - 1;
        (number, (inner.script.lock().unwrap())(number, &hit))
    };
    inner.count.send_modify(|count| *count = (number + 1).max(*count));
    if let Some(gate) = &reply.gate {
        gate.pass().await;
    }
    let mut response = (StatusCode::from_u16(reply.status).unwrap(), reply.body).into_response();
    for (name, _) in &reply.headers {
        response.headers_mut().remove(*name);
    }
    for (name, value) in reply.headers {
        // Any bytes, as a receiver may send them.
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        response.headers_mut().append(HeaderName::from_static(name), value);
    }
    response
}
