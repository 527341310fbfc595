//! The few API calls that a measurement needs: applications, endpoints, and reads of what became of
//! a message.
//!
//! In: a server's address and a token. Out: ids and JSON. One connection, opened when first needed.
//! Never: be in the timed part of a measurement, but for reads that are themselves measured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::conn::Conn;
use crate::fault::{Fault, Result, While as _};
use crate::machine::now_us;

/// Connections that create applications side by side.
const CREATORS: usize = 16;

/// A client of the API.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    addr: SocketAddr,
    token: String,
}

/// An API client on an open connection.
pub(crate) struct Session {
    api: Api,
    conn: Conn,
}

impl Api {
    /// For a server.
    pub(crate) const fn new(addr: SocketAddr, token: String) -> Self {
        Self { addr, token }
    }

    /// The token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Connects.
    pub(crate) async fn session(&self) -> Result<Session> {
        Ok(Session { api: self.clone(), conn: Conn::open(self.addr).await? })
    }

    /// Creates an application with one endpoint for each URL; answers the applications' ids in the
    /// same order.
    pub(crate) async fn create_apps(&self, urls: Vec<String>) -> Result<Arc<[String]>> {
        let next = Arc::new(AtomicUsize::new(0));
        let urls: Arc<[String]> = urls.into();
        let mut creators = JoinSet::new();
        for _ in 0..CREATORS.min(urls.len()) {
            let (api, urls, next) = (self.clone(), Arc::clone(&urls), Arc::clone(&next));
            creators.spawn(async move {
                let mut session = api.session().await?;
                let mut made = Vec::new();
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(url) = urls.get(index) else { return Ok::<_, Fault>(made) };
                    made.push((index, session.create_app(url).await?));
                }
            });
        }
        let mut all = Vec::with_capacity(urls.len());
        while let Some(made) = creators.join_next().await {
            all.append(&mut made??);
        }
        all.sort_unstable();
        Ok(all.into_iter().map(|(_, id)| id).collect())
    }

    /// Adds `count` endpoints to each application, each for an event type of its own that nobody
    /// sends.
    pub(crate) async fn add_strangers(&self, apps: &[String], count: u32, url: &str) -> Result<()> {
        let mut session = self.session().await?;
        for of in 0..count {
            let event_type = format!("bench.other-{of}");
            let made = json!({"name": event_type, "description": ""});
            session.post("/api/v1/event-type", &made).await?;
            for app in apps {
                let endpoint = json!({"url": url, "filterTypes": [event_type]});
                session.post(&format!("/api/v1/app/{app}/endpoint"), &endpoint).await?;
            }
        }
        Ok(())
    }
}

impl Session {
    /// Creates an application with one endpoint; answers the application's id.
    pub(crate) async fn create_app(&mut self, url: &str) -> Result<String> {
        let app = self.post("/api/v1/app", &json!({"name": "bench"})).await?;
        let id = app["id"].as_str().ok_or_else(|| Fault::new("an application without an id"))?;
        self.post(&format!("/api/v1/app/{id}/endpoint"), &json!({"url": url})).await?;
        Ok(id.to_owned())
    }

    /// GET that must succeed.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Value> {
        self.call("GET", path, "").await
    }

    /// The same, and how long its answer took, in microseconds.
    pub(crate) async fn timed(&mut self, path: &str) -> Result<(Value, u32)> {
        let began = now_us();
        let body = self.call("GET", path, "").await?;
        let took = u32::try_from(now_us() - began).unwrap_or(u32::MAX);
        Ok((body, took))
    }

    /// A text, and how long its answer took, in microseconds.
    pub(crate) async fn text(&mut self, path: &str) -> Result<(String, u32)> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.api.addr);
        let began = now_us();
        let answer = self.conn.call(request.as_bytes()).await.while_(path)?;
        let took = u32::try_from(now_us() - began).unwrap_or(u32::MAX);
        if !answer.is_ok() {
            return Err(Fault::new(format!("{path} was answered with {}", answer.text())));
        }
        Ok((String::from_utf8_lossy(answer.body).into_owned(), took))
    }

    /// POST that must succeed.
    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.call("POST", path, &body.to_string()).await
    }

    /// PATCH that must succeed.
    pub(crate) async fn patch(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.call("PATCH", path, &body.to_string()).await
    }

    async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Value> {
        let Api { addr, token } = &self.api;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len(),
        );
        let what = format!("{method} {path}");
        let answer = self.conn.call(request.as_bytes()).await.while_(&what)?;
        if !answer.is_ok() {
            return Err(Fault::new(format!("{what} was answered with {}", answer.text())));
        }
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(answer.body).while_(&what)
    }
}
