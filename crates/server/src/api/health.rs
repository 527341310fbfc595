//! Health, metrics, and the way to the documentation.
//!
//! These need no token.
//! Never: report well what was not asked.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use serde::Serialize;

use crate::http::idempotency::Answer;
use crate::state::Shared;
use crate::storage_check::BOUND;

#[derive(Debug, Serialize)]
struct HealthOut {
    database: Part,
    queue: Part,
    cache: Part,
}

#[derive(Debug, Serialize)]
struct Part {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Result<(), String>> for Part {
    fn from(found: Result<(), String>) -> Self {
        let status = if found.is_ok() { "ok" } else { "error" };
        Self { status, reason: found.err() }
    }
}

/// `GET /`
pub(super) async fn home() -> Response {
    (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/docs")]).into_response()
}

/// `GET /api/v1/health/ping`: the process answers.
pub(super) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// `GET /api/v1/health`: the database commits and is read, and the dispatcher answers; the cache is
/// memory.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let (database, queue) = tokio::join!(database(&shared), queue(&shared));
    let is_well = database.is_ok() && queue.is_ok();
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let answer = HealthOut { database: database.into(), queue: queue.into(), cache: Ok(()).into() };
    Answer::json(status, &answer).into_response()
}

async fn database(shared: &Shared) -> Result<(), String> {
    shared.storage.commits().await?;
    match in_time(shared.engine.stores().queue.depth()).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(_)) => Err("it cannot be read".to_owned()),
        None => Err(late("a read")),
    }
}

async fn queue(shared: &Shared) -> Result<(), String> {
    // Any endpoint will do: the answer comes from the dispatcher's own task.
    match in_time(shared.engine.breaker(domain::ids::EndpointKey(0))).await {
        Some(Some(_)) => Ok(()),
        Some(None) => Err("the dispatcher has ended".to_owned()),
        None => Err(late("the dispatcher")),
    }
}

async fn in_time<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(BOUND, asked).await.ok()
}

fn late(what: &str) -> String {
    format!("{what} takes longer than {} s", BOUND.as_secs())
}

/// `GET /metrics`
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let queue = Arc::clone(&shared.engine.stores().queue);
    let text = shared.metrics.render(&*queue, shared.now()).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
