//! A server with a handler under the test's control, a client for it, and the three stores.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use bytes::Bytes;
use deadpool_postgres::{Manager, Pool};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use receiver::{IdempotencyLayer, IdempotencyStore, PgIdempotencyStore, RedisIdempotencyStore};
use redis::aio::ConnectionManager;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// Longer than anything takes here; only a test that fails waits for so long.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// The code of a problem, or the text.
    pub(crate) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let code = text.split_once("\"code\":\"").and_then(|(_, rest)| rest.split_once('"'));
        code.map_or_else(|| text.to_string(), |(code, _)| code.to_owned())
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }
}

/// A server on loopback.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Server {
    /// Serves `app` until the test ends.
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self::at(port)
    }

    /// A server that somebody else started.
    pub(crate) fn at(port: u16) -> Self {
        Self { port, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    pub(crate) async fn send(&self, request: http::request::Builder, body: &[u8]) -> Reply {
        let body = Full::new(Bytes::copy_from_slice(body));
        let response = self.client.request(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let uri = format!("http://127.0.0.1:{}{path}", self.port);
        Request::builder().method(method).uri(uri)
    }

    /// A POST under this key.
    pub(crate) async fn post(&self, key: &str, body: &str) -> Reply {
        let request = self.request("POST", "/").header("idempotency-key", key);
        self.send(request, body.as_bytes()).await
    }

    /// A POST under this key that goes on beside the test.
    pub(crate) fn posting(&self, key: &'static str, body: &'static str) -> JoinHandle<Reply> {
        let server = self.clone();
        tokio::spawn(async move { server.post(key, body).await })
    }

    /// Posts until the answer is as `wanted`.
    pub(crate) async fn post_until(&self, key: &str, wanted: impl Fn(&Reply) -> bool) -> Reply {
        until(async || {
            let reply = self.post(key, "body").await;
            if wanted(&reply) { Some(reply) } else { None }
        })
        .await
    }
}

/// Asks again and again, as fast as it is answered, until there is something.
pub(crate) async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, asking).await.expect("what is waited for never came")
}

/// A handler that counts its runs and, if it is gated, waits in each to be let go.
#[derive(Clone)]
pub(crate) struct Handler {
    runs: Arc<AtomicUsize>,
    entered: watch::Sender<usize>,
    gate: Arc<Semaphore>,
}

impl Handler {
    pub(crate) fn new() -> Self {
        let handler = Self::gated();
        handler.gate.close();
        handler
    }

    pub(crate) fn gated() -> Self {
        let (entered, _) = watch::channel(0);
        Self { runs: Arc::default(), entered, gate: Arc::new(Semaphore::new(0)) }
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Waits until the handler has been entered `times` times.
    pub(crate) async fn entered(&self, times: usize) {
        let mut entered = self.entered.subscribe();
        let waiting = entered.wait_for(|entered| *entered >= times);
        tokio::time::timeout(LONG, waiting).await.expect("the handler was not entered").unwrap();
    }

    /// Lets one run go on.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1);
    }

    /// To be called by the handler first; returns the number of this run.
    pub(crate) async fn enter(&self) -> usize {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.entered.send_modify(|entered| *entered += 1);
        if let Ok(permit) = self.gate.acquire().await {
            permit.forget();
        }
        run
    }

    /// An application whose handler answers `run N` with 201.
    pub(crate) fn app<St: IdempotencyStore>(&self, layer: IdempotencyLayer<St>) -> Router {
        let handler = self.clone();
        app(layer, move |_| {
            let handler = handler.clone();
            async move {
                let run = handler.enter().await;
                let response = Response::builder().status(201).header("location", "/things/1");
                response.body(Body::from(format!("run {run}"))).unwrap()
            }
        })
    }
}

/// An application with this one handler behind the layer.
pub(crate) fn app<St, H, F>(layer: IdempotencyLayer<St>, handle: H) -> Router
where
    St: IdempotencyStore,
    H: Fn(Request<Body>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    Router::new().route("/", any(handle)).layer(layer)
}

pub(crate) async fn redis(url: &str) -> RedisIdempotencyStore {
    let client = redis::Client::open(url).unwrap();
    RedisIdempotencyStore::new(ConnectionManager::new(client).await.unwrap())
}

pub(crate) fn pool(url: &str) -> Pool {
    let manager = Manager::new(url.parse().unwrap(), tokio_postgres::NoTls);
    Pool::builder(manager).max_size(8).build().unwrap()
}

pub(crate) async fn postgres(url: &str) -> PgIdempotencyStore {
    let store = PgIdempotencyStore::new(pool(url));
    store.create_table().await.unwrap();
    store
}
