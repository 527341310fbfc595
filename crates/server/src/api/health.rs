//! Health, metrics, and the way to the documentation.
//!
//! These need no token.
//! Never: report well what was not asked.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use domain::nodes::Standing;
use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::operation::{Operation, Token};
use super::shapes::Text;
use crate::http::idempotency::Answer;
use crate::state::Shared;
use crate::storage_check::BOUND;

/// The media type of metrics.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How the parts of the server are.
#[derive(Debug, Serialize, JsonSchema)]
struct HealthOut {
    database: Part,
    queue: Part,
    cache: Part,
}

/// How a part is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HealthPart")]
struct Part {
    #[schemars(extend("enum" = ["ok", "error"]))]
    status: &'static str,
    /// Why it is not well.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Result<(), String>> for Part {
    fn from(found: Result<(), String>) -> Self {
        let status = if found.is_ok() { "ok" } else { "error" };
        Self { status, reason: found.err() }
    }
}

pub(super) const HOME: Operation =
    Operation::new("v1.document.home", "Leads to the reference.").token(Token::None).ends(307);

/// `GET /`
pub(super) async fn home() -> Response {
    (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/docs")]).into_response()
}

pub(super) const PING: Operation =
    Operation::new("v1.health.ping", "Says that the process answers.").token(Token::None).ends(204);

/// `GET /api/v1/health/ping`: the process answers.
pub(super) async fn ping() -> StatusCode {
    StatusCode::NO_CONTENT
}

pub(super) const HEALTH: Operation =
    Operation::new("v1.health.get", "Says whether it can accept and deliver; 503 when not.")
        .token(Token::None)
        .gives::<HealthOut>(200)
        .gives::<HealthOut>(503);

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
    if shared.engine.standing() != Standing::Holds {
        return Err("the database does not hear that this node lives".to_owned());
    }
    match in_time(shared.engine.answers()).await {
        Some(true) => Ok(()),
        Some(false) => Err("the dispatcher has ended".to_owned()),
        None => Err(late("the dispatcher")),
    }
}

async fn in_time<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(BOUND, asked).await.ok()
}

fn late(what: &str) -> String {
    format!("{what} takes longer than {} s", BOUND.as_secs())
}

pub(super) const METRICS: Operation =
    Operation::new("v1.health.metrics", "Metrics in the text format of Prometheus.")
        .token(Token::None)
        .gives_as::<Text>(200, METRICS_TYPE);

/// `GET /metrics`
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let queue = Arc::clone(&shared.engine.stores().queue);
    let text = shared.metrics.render(&queue, shared.now()).await;
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}
