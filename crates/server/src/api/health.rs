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

#[derive(Debug, Serialize)]
struct HealthOut {
    database: Part,
    queue: Part,
    cache: Part,
}

#[derive(Debug, Serialize)]
struct Part {
    status: &'static str,
}

impl Part {
    const fn of(is_well: bool) -> Self {
        Self { status: if is_well { "ok" } else { "error" } }
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

/// `GET /api/v1/health`: the database is read, and the dispatcher answers; the cache is memory.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let database = shared.engine.stores().queue.depth().await.is_ok();
    // Any endpoint will do: the answer comes from the dispatcher's own task.
    let queue = shared.engine.breaker(domain::ids::EndpointKey(0)).await.is_some();
    let answer =
        HealthOut { database: Part::of(database), queue: Part::of(queue), cache: Part::of(true) };
    let is_well = database && queue;
    let status = if is_well { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    Answer::json(status, &answer).into_response()
}

/// `GET /metrics`
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let queue = Arc::clone(&shared.engine.stores().queue);
    let text = shared.metrics.render(&*queue, shared.now()).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
