//! A collector of OpenTelemetry: takes requests in Protocol Buffers over HTTP.
//!
//! Whoever does not take them is told of in the log once, and again when it works.
//! Never: hold up anything else, or show an answer's text.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// A push takes no longer.
const TIME_MAX: Duration = Duration::from_secs(5);
const PROTOBUF: &str = "application/x-protobuf";

/// Why a request was not taken.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) text: String,
    /// The same request is not going to be taken later.
    pub(super) is_final: bool,
}

/// Where requests go.
pub(super) struct Collector {
    uri: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Collector {
    pub(super) fn new(uri: Uri) -> Self {
        Self { uri, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Sends one.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<(), Refused> {
        within(self.send(body)).await.unwrap_or_else(|text| Err(later(text)))
    }

    async fn send(&self, body: Vec<u8>) -> Result<Result<(), Refused>, String> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.uri)
            .header(header::CONTENT_TYPE, PROTOBUF)
            .header(header::USER_AGENT, concat!("Peyk/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))
            .map_err(|fault| fault.to_string())?;
        let answer = self.client.request(request).await.map_err(|fault| fault.to_string())?;
        let status = answer.status();
        // Read to its end, so that the connection can be used again.
        let _body = answer.into_body().collect().await.map_err(|fault| fault.to_string())?;
        if status.is_success() {
            return Ok(Ok(()));
        }
        let is_final = !is_passing(status);
        Ok(Err(Refused { text: format!("the collector answered {status}"), is_final }))
    }
}

/// The answers after which the protocol has the same request sent again.
const fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

const fn later(text: String) -> Refused {
    Refused { text, is_final: false }
}

/// Whether somebody did not take it the last time.
#[derive(Default)]
pub(super) struct Fault(bool);

impl Fault {
    /// Says in the log what has changed for `what` (metrics, spans).
    pub(super) fn tell(&mut self, (setting, what): (&str, &str), found: Option<&str>) {
        match (found, self.0) {
            (Some(fault), false) => {
                tracing::warn!(setting, fault, "{what} cannot be sent; trying again");
            }
            (None, true) => tracing::info!(setting, "what was to be sent is taken again"),
            _ => {}
        }
        self.0 = found.is_some();
    }
}

/// Gives up after a while.
pub(super) async fn within<T>(send: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::time::timeout(TIME_MAX, send).await.unwrap_or_else(|_| Err("no answer in time".into()))
}
