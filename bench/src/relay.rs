//! The relay floor: accepts the same POST and forwards it from memory, nothing else.
//!
//! In: `POST /api/v1/app/{app}/msg` with the JSON body that peyk takes. The body is parsed once,
//! the payload kept raw; 202 is answered at once, and up to 64 sends a target run beside it. Out:
//! the payload, with a content type.
//! Never: store, sign, retry, match, or check a token. It is the cost that any delivery engine has
//! at least.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use clap::Args;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::{TcpListener, TcpStream};

use crate::fault::{Fault, Result, While as _};

/// Sends under way to one target.
const SENDS_MAX: usize = 64;

/// Options of `bench relay`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where to listen; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where payloads go; `{app}` in it stands for the application in the path.
    #[arg(long)]
    target: String,
}

/// What of the body matters.
#[derive(Deserialize)]
struct Post<'a> {
    #[serde(rename = "eventType", borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Payloads on their way to one host.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<(Uri, Bytes)>,
    under_way: usize,
}

struct Relay {
    client: Client<HttpConnector, Full<Bytes>>,
    target: String,
    targets: RwLock<HashMap<String, Uri>>,
    lane: Mutex<Lane>,
    accepted: AtomicU64,
}

/// Serves until the process is killed.
pub(crate) async fn run(options: Options) -> Result<()> {
    uri(&options.target, "app")?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client =
        Client::builder(TokioExecutor::new()).pool_max_idle_per_host(SENDS_MAX).build(connector);
    let relay = Arc::new(Relay {
        client,
        target: options.target,
        targets: RwLock::default(),
        lane: Mutex::default(),
        accepted: AtomicU64::new(0),
    });
    let listen = options.listen;
    let listener = TcpListener::bind(listen).await.while_(&format!("listening on {listen}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(connection(stream, Arc::clone(&relay)));
    }
}

async fn connection(stream: TcpStream, relay: Arc<Relay>) {
    let service = service_fn(|request| {
        let relay = Arc::clone(&relay);
        async move { Ok::<_, Infallible>(relay.accept(request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served
        && !error.is_incomplete_message()
    {
        eprintln!("relay: {error}");
    }
}

impl Relay {
    async fn accept(self: &Arc<Self>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (&Method::POST, Some(app)) = (request.method(), app_in(request.uri().path())) else {
            return answer(StatusCode::NOT_FOUND, "{\"code\":\"not_found\"}".into());
        };
        let target = match self.target_of(app) {
            Ok(target) => target,
            Err(fault) => return answer(StatusCode::BAD_REQUEST, fault.to_string()),
        };
        let body = match request.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return answer(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let text = match serde_json::from_slice::<Post<'_>>(&body) {
            Ok(post) => {
                let payload = body.slice_ref(post.payload.get().as_bytes());
                let number = self.accepted.fetch_add(1, Relaxed);
                self.forward(target, payload);
                format!("{{\"id\":\"msg_{number:027}\",\"eventType\":\"{}\"}}", post.event_type)
            }
            Err(error) => return answer(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        };
        answer(StatusCode::ACCEPTED, text)
    }

    /// Sends now, or when one of the 64 under way has ended.
    fn forward(self: &Arc<Self>, target: Uri, payload: Bytes) {
        {
            let mut lane = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
            if lane.under_way >= SENDS_MAX {
                lane.waiting.push_back((target, payload));
                return;
            }
            lane.under_way += 1;
        }
        let relay = Arc::clone(self);
        tokio::spawn(async move {
            let mut next = Some((target, payload));
            while let Some((target, payload)) = next {
                if let Err(fault) = relay.send(target, payload).await {
                    eprintln!("relay: {fault}");
                }
                next = relay.next();
            }
        });
    }

    fn next(&self) -> Option<(Uri, Bytes)> {
        let mut lane = self.lane.lock().unwrap_or_else(PoisonError::into_inner);
        let next = lane.waiting.pop_front();
        if next.is_none() {
            lane.under_way -= 1;
        }
        next
    }

    async fn send(&self, target: Uri, payload: Bytes) -> Result<()> {
        let mut request = Request::new(Full::new(payload));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        let mut answer = self.client.request(request).await.while_("forwarding")?;
        // Only a body that was read to its end gives the connection back.
        while !answer.body().is_end_stream() {
            match answer.body_mut().frame().await {
                Some(frame) => drop(frame.while_("reading an answer")?),
                None => break,
            }
        }
        Ok(())
    }

    fn target_of(&self, app: &str) -> Result<Uri> {
        let known = self.targets.read().unwrap_or_else(PoisonError::into_inner).get(app).cloned();
        if let Some(target) = known {
            return Ok(target);
        }
        let target = uri(&self.target, app)?;
        let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        Ok(targets.entry(app.to_owned()).or_insert(target).clone())
    }
}

fn uri(target: &str, app: &str) -> Result<Uri> {
    let text = target.replace("{app}", app);
    text.parse().map_err(|error| Fault::new(format!("{text} is no URL: {error}")))
}

fn app_in(path: &str) -> Option<&str> {
    let app = path.strip_prefix("/api/v1/app/")?.strip_suffix("/msg")?;
    (!app.is_empty() && !app.contains('/')).then_some(app)
}

fn answer(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_route() {
        assert_eq!(app_in("/api/v1/app/a1/msg"), Some("a1"));
        assert_eq!(app_in("/api/v1/app//msg"), None);
        assert_eq!(app_in("/api/v1/app/a/b/msg"), None);
        assert_eq!(app_in("/api/v1/app/a1"), None);
    }

    #[test]
    fn targets_may_name_the_application() {
        assert_eq!(uri("http://127.0.0.1:9/ok/{app}", "a1").unwrap().path(), "/ok/a1");
        assert!(uri("not a url", "a1").is_err());
    }

    #[test]
    fn the_payload_stays_raw() {
        let body = br#"{"eventType":"a.b","payload":{"z":1.50, "a":"\u00e4"},"more":[1]}"#;
        let post: Post<'_> = serde_json::from_slice(body).unwrap();
        assert_eq!(post.payload.get(), r#"{"z":1.50, "a":"\u00e4"}"#);
    }
}
