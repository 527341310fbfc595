//! A receiver on a port of its own: answers by a script and keeps everything it got.
//!
//! Never: judge what it got; tests do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::watch;

use super::PATIENCE;

/// What the receiver answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: format!("said {status}").into_bytes() }
    }
}

/// One complete request.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Hit {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

type Script = Box<dyn Fn(usize, &Hit) -> Reply + Send + Sync>;

struct Inner {
    script: Mutex<Script>,
    hits: Mutex<Vec<Hit>>,
    count: watch::Sender<usize>,
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
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = parts.uri.path_and_query().unwrap().to_string();
    let hit = Hit { path, headers: parts.headers, body };
    let number = {
        let mut hits = inner.hits.lock().unwrap();
        hits.push(hit.clone());
        hits.len() - 1
    };
    let reply = (inner.script.lock().unwrap())(number, &hit);
    inner.count.send_replace(number + 1);
    let status = StatusCode::from_u16(reply.status).unwrap();
    let mut response = (status, reply.body).into_response();
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
