//! A client of the API, as small as the demo needs.
//!
//! Never: retry; a refusal ends the demo with its reason.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// A client with a token.
pub(super) struct Client {
    http: hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    token: String,
}

impl Client {
    /// For the server at this address.
    pub(super) fn new(address: SocketAddr, token: String) -> Self {
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
        Self { http, address, token }
    }

    /// Reads.
    pub(super) async fn get(&self, path: &str) -> Result<Value, String> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Posts.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.send(Method::POST, path, body.to_string().into()).await
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, String> {
        let failed = |fault: &dyn std::fmt::Display| format!("{path} failed: {fault}");
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}/api/v1{path}", self.address))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Full::new(body))
            .map_err(|fault| failed(&fault))?;
        let response = self.http.request(request).await.map_err(|fault| failed(&fault))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|fault| failed(&fault))?;
        let text = body.to_bytes();
        if !status.is_success() {
            return Err(failed(&format!("{status} {}", String::from_utf8_lossy(&text))));
        }
        serde_json::from_slice(&text).map_err(|fault| failed(&fault))
    }
}
