//! A receiver of webhooks on loopback that notes what it gets.
//!
//! Never: verify a signature; who looks at a hit does.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Nothing that works takes longer, on a machine that is busy with other things too.
const PATIENCE: Duration = Duration::from_secs(45);

/// A request that came in.
#[derive(Clone)]
pub struct Hit {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Hit {
    pub fn header(&self, name: &str) -> String {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Default)]
struct Noted {
    hits: Vec<Hit>,
    down: HashSet<String>,
}

/// Answers 200 on every path, and 500 on those that are down.
pub struct Receiver {
    origin: String,
    noted: Arc<Mutex<Noted>>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let noted = Arc::new(Mutex::new(Noted::default()));
        tokio::spawn(accept(listener, Arc::clone(&noted)));
        Self { origin: format!("http://{address}"), noted }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Whether what comes to a path is answered 500.
    pub fn set_down(&self, path: &str, down: bool) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if down {
            noted.down.insert(path.to_owned());
        } else {
            noted.down.remove(path);
        }
    }

    /// What came to a path, oldest first.
    pub fn to(&self, path: &str) -> Vec<Hit> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.hits.iter().filter(|hit| hit.path == path).cloned().collect()
    }

    /// Waits until so many came to a path; more are a fault.
    pub async fn wait(&self, path: &str, count: usize) -> Vec<Hit> {
        let found = until(path, async || {
            let hits = self.to(path);
            (hits.len() >= count).then_some(hits)
        })
        .await;
        assert_eq!(found.len(), count, "{path}");
        found
    }
}

/// Asks until there is an answer.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            if let Some(found) = ask().await {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, asking).await;
    found.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

async fn accept(listener: TcpListener, noted: Arc<Mutex<Noted>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let noted = Arc::clone(&noted);
        let service = service_fn(move |request| answer(request, Arc::clone(&noted)));
        let serving = hyper::server::conn::http1::Builder::new();
        tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    noted: Arc<Mutex<Noted>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
    let mut response = Response::new(Full::from("noted"));
    if noted.down.contains(&path) {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    noted.hits.push(Hit { path, headers: parts.headers, body });
    Ok(response)
}
