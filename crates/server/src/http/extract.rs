//! What handlers take from a request: its place, its whole body, its idempotency key.
//!
//! Never: answer in any shape but that of `problem`.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use domain::text;
use http::request::Parts;
use http::{HeaderMap, Method, Uri, header};
use serde::de::DeserializeOwned;

use super::limits::Hold;
use super::problem::Problem;
use crate::state::Shared;

/// The variable parts of the path. A part that is no text leads nowhere.
pub(crate) struct Place<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Shared>> for Place<T> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Self::Rejection> {
        match Path::<T>::from_request_parts(parts, shared).await {
            Ok(Path(place)) => Ok(Self(place)),
            Err(_) => Err(Problem::not_found("Entity not found")),
        }
    }
}

/// A request that was read to its end.
pub(crate) struct Received {
    /// Its method.
    pub(crate) method: Method,
    /// Its target.
    pub(crate) uri: Uri,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its body.
    pub(crate) body: Bytes,
    _hold: Hold,
}

impl FromRequest<Arc<Shared>> for Received {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        let announced = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let (body, hold) = shared.budget.read(body, announced).await?;
        let Parts { method, uri, headers, .. } = parts;
        Ok(Self { method, uri, headers, body, _hold: hold })
    }
}

impl Received {
    /// The `idempotency-key`, if there is one.
    pub(crate) fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        const NAME: &str = "idempotency-key";
        let Some(value) = self.headers.get(NAME) else { return Ok(None) };
        let refuse = |rule: &str| Problem::field(&["header", NAME], rule, "value_error");
        let Ok(key) = value.to_str() else {
            return Err(refuse("must be visible ASCII characters"));
        };
        match text::idempotency_key(NAME, key) {
            Ok(()) => Ok(Some(key)),
            Err(fault) => Err(refuse(&fault.rule)),
        }
    }
}
