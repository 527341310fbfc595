//! What handlers take from a request: its place, its whole body, its idempotency key.
//!
//! Never: answer in any shape but that of `problem`.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Path, Request};
use bytes::Bytes;
use domain::error::Invalid;
use domain::idempotency::IngestKey;
use domain::text;
use domain::trace::Given;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::limits::Hold;
use super::origin::Origin;
use super::problem::Problem;
use super::tokens::Caller;
use crate::state::Shared;

/// The header that names a request.
const NAME: &str = "idempotency-key";
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

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
    /// Its body.
    pub(crate) body: Bytes,
    method: Method,
    /// The template of its path.
    route: Option<MatchedPath>,
    headers: HeaderMap,
    _hold: Hold,
}

/// The same for a body that may hold a payload with every character escaped.
pub(crate) struct Escaped(pub(crate) Received);

impl FromRequest<Arc<Shared>> for Received {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Self::Rejection> {
        Self::read(request, shared, shared.settings.body_bytes_max).await
    }
}

impl FromRequest<Arc<Shared>> for Escaped {
    type Rejection = Problem;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, Self::Rejection> {
        Received::read(request, shared, shared.settings.escaped_bytes_max).await.map(Self)
    }
}

impl Received {
    async fn read(request: Request, shared: &Shared, most: usize) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let announced = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let (body, hold) = shared.budget.read(body, announced, most).await?;
        let Parts { method, headers, mut extensions, .. } = parts;
        let route = extensions.remove::<MatchedPath>();
        Ok(Self { body, method, route, headers, _hold: hold })
    }

    /// The beginning of links in its answer.
    pub(crate) fn origin(&self, origin: &Origin) -> String {
        let text = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        origin.of(text("host"), text("x-forwarded-proto") == Some("https"))
    }

    /// Whether there is an `idempotency-key`, good or bad.
    pub(crate) fn has_idempotency_key(&self) -> bool {
        self.headers.contains_key(NAME)
    }

    /// The trace that the caller is in, if it said so as the specification has it.
    pub(crate) fn trace(&self) -> Option<Arc<Given>> {
        let of = |name| self.headers.get_all(name).iter().map(HeaderValue::as_bytes);
        Given::read(of(TRACE_PARENT), of(TRACE_STATE)).map(Arc::new)
    }

    /// The `idempotency-key`, if there is one.
    fn idempotency_key(&self) -> Result<Option<&str>, Problem> {
        let mut values = self.headers.get_all(NAME).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let refuse = |rule: &str| Problem::field(&["header", NAME], rule, Invalid::KIND);
        if values.next().is_some() {
            return Err(refuse("must be given once"));
        }
        // What is no text breaks the same rule as an empty one.
        let key = value.to_str().unwrap_or_default();
        match text::idempotency_key(NAME, key) {
            Ok(()) => Ok(Some(key)),
            Err(fault) => Err(refuse(&fault.rule)),
        }
    }

    /// The name of this request: who asked, how, where and with which key; and of its body.
    ///
    /// `place` is what the path leads to now, by inner numbers: a name may lead to another thing
    /// later, and a key belongs to the thing.
    pub(crate) fn ingest_key(
        &self,
        caller: &Caller,
        place: &[u64],
    ) -> Result<Option<IngestKey>, Problem> {
        let Some(key) = self.idempotency_key()? else { return Ok(None) };
        let mut scope = Sha256::new();
        let route = self.route.as_ref().map_or("", MatchedPath::as_str);
        for part in [&caller.subject, self.method.as_str(), route, key] {
            // The length in front keeps neighbours apart.
            scope.update(part.len().to_le_bytes());
            scope.update(part);
        }
        // An application's token names its organisation beside its subject; both are one caller.
        scope.update(caller.org.as_bytes());
        for number in place {
            scope.update(number.to_le_bytes());
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
