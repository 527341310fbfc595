//! What handlers take from a request: its place, its whole body, its idempotency key.
//!
//! Never: answer in any shape but that of `problem`.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use domain::idempotency::IngestKey;
use domain::ids::PublicId;
use domain::text;
use http::request::Parts;
use http::{HeaderMap, Method, Uri, header};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::limits::Hold;
use super::problem::Problem;
use super::tokens::Caller;
use crate::state::Shared;

/// The header that names a request.
const NAME: &str = "idempotency-key";

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
    /// Whether there is an `idempotency-key`, good or bad.
    pub(crate) fn has_idempotency_key(&self) -> bool {
        self.headers.contains_key(NAME)
    }

    /// The `idempotency-key`, if there is one.
    fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
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

    /// The name of this request: who asked, how, where and with which key; and of its body.
    ///
    /// `place` is what the path leads to now: a name may lead to another thing later, and a key
    /// belongs to the thing.
    pub(crate) fn ingest_key(
        &self,
        caller: &Caller,
        place: Option<&PublicId>,
    ) -> Result<Option<IngestKey>, Problem> {
        let Some(key) = self.idempotency_key()? else { return Ok(None) };
        let mut scope = Sha256::new();
        for part in [&caller.subject, self.method.as_str(), self.uri.path(), key] {
            // The length in front keeps neighbours apart.
            scope.update(part.len().to_le_bytes());
            scope.update(part);
        }
        // An application's token names its organisation beside its subject; both are one caller.
        scope.update(caller.org.as_bytes());
        if let Some(place) = place {
            scope.update(place.as_bytes());
        }
        let body = Sha256::digest(&self.body);
        Ok(Some(IngestKey { scope: first_half(&scope.finalize()), body: first_half(&body) }))
    }
}

fn first_half(hash: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}
