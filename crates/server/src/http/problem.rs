//! Errors as callers see them: the only map from what went wrong to a status and a code.
//!
//! Every error is JSON: `{code, detail}`, and for 422 `{detail: [{loc, msg, type}]}`.
//! Never: an internal cause in an answer; it is logged once, here.

use axum::response::{IntoResponse, Response};
use domain::error::Invalid;
use engine::ingest::IngestError;
use engine::throttle::Throttled;
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use store::StoreError;

/// The type of a text that is no JSON.
pub(crate) const NOT_JSON: &str = "value_error.jsondecode";

/// One answer that is an error.
#[derive(Debug)]
pub(crate) struct Problem(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    body: Body,
    retry_after_secs: Option<u64>,
    close: bool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Body {
    Coded(Coded),
    Fields(FieldFaults),
}

/// What went wrong, for programs and for people.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HttpErrorOut")]
pub(crate) struct Coded {
    /// Stable, for programs.
    code: &'static str,
    /// For people; may change.
    detail: String,
}

/// What is wrong, field by field.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HttpValidationError")]
pub(crate) struct FieldFaults {
    detail: Vec<FieldFault>,
}

/// A field and the rule that it breaks.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ValidationError")]
struct FieldFault {
    /// Where it is: `body`, `query` or `header`, then names.
    loc: Vec<String>,
    /// The rule, for people.
    msg: String,
    /// Its kind, for programs.
    r#type: &'static str,
}

impl Problem {
    /// An error with a code.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let body = Body::Coded(Coded { code, detail: detail.into() });
        Self(Box::new(Inner { status, body, retry_after_secs: None, close: false }))
    }

    /// 400.
    pub(crate) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 401.
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_failed", detail)
    }

    /// 403.
    pub(crate) fn forbidden() -> Self {
        let detail = "This operation needs a token of the organisation";
        Self::new(StatusCode::FORBIDDEN, "insufficient access", detail)
    }

    /// 403 for a token that may only look.
    pub(crate) fn read_only() -> Self {
        let detail = "This token may only read, and no secrets";
        Self::new(StatusCode::FORBIDDEN, "insufficient access", detail)
    }

    /// 403 for a token that was made without the capability.
    pub(crate) fn incapable() -> Self {
        let detail = "This token was made without the capability for this";
        Self::new(StatusCode::FORBIDDEN, "insufficient access", detail)
    }

    /// 404.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// 409.
    pub(crate) fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 413; the connection is closed, since the rest of the body is not read.
    pub(crate) fn too_large(bytes_max: usize) -> Self {
        Self::larger("body", bytes_max).closing()
    }

    /// 413 for a body that was read: its payload is too large.
    pub(crate) fn payload_too_large(bytes_max: usize) -> Self {
        Self::larger("payload", bytes_max)
    }

    fn larger(what: &str, bytes_max: usize) -> Self {
        let detail = format!("The {what} is larger than {bytes_max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", detail)
    }

    /// 503: too much is waiting.
    pub(crate) fn overloaded() -> Self {
        let detail = "Too much is waiting: try again shortly";
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail);
        problem.0.retry_after_secs = Some(domain::limits::OVERLOADED_RETRY_SECS);
        problem
    }

    /// 429: a second's worth of requests is used up.
    pub(crate) fn rate_limited(per_s: u32) -> Self {
        let detail = format!("This token may make {per_s} requests a second: try again shortly");
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
        problem.0.retry_after_secs = Some(1);
        problem
    }

    /// 429: the application has posted a second's worth of messages.
    fn throttled(Throttled { per_s, wait }: Throttled) -> Self {
        let detail =
            format!("This application may post {per_s} messages a second: try again shortly");
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
        problem.0.retry_after_secs = Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        problem
    }

    /// 422 for one field.
    pub(crate) fn field(loc: &[&str], msg: impl Into<String>, kind: &'static str) -> Self {
        let loc = loc.iter().map(|part| (*part).to_owned()).collect();
        Self::invalid([Invalid { loc, rule: msg.into(), kind }])
    }

    /// 422 for each of these.
    pub(crate) fn invalid(faults: impl IntoIterator<Item = Invalid>) -> Self {
        let fields = faults.into_iter().map(|fault| FieldFault {
            loc: fault.loc,
            msg: fault.rule,
            r#type: fault.kind,
        });
        let body = Body::Fields(FieldFaults { detail: fields.collect() });
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self(Box::new(Inner { status, body, retry_after_secs: None, close: false }))
    }

    /// Closes the connection after the answer.
    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.0.close = true;
        self
    }

    /// Its JSON.
    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0.body).unwrap_or_else(|_| b"{}".to_vec())
    }

    /// The status.
    #[cfg(test)]
    pub(crate) const fn status(&self) -> StatusCode {
        self.0.status
    }
}

impl From<Invalid> for Problem {
    fn from(fault: Invalid) -> Self {
        Self::invalid([fault])
    }
}

impl From<StoreError> for Problem {
    fn from(fault: StoreError) -> Self {
        match fault {
            StoreError::Missing(_) => Self::not_found("Entity not found"),
            StoreError::Conflict(what) => {
                Self::conflict("conflict", format!("An entity with this {what} exists already"))
            }
            StoreError::Overloaded => Self::overloaded(),
            StoreError::Unavailable(cause) => {
                tracing::error!(%cause, "the storage is unavailable");
                let detail = "Nothing can be stored now: try again later";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "storage_unavailable", detail)
            }
            StoreError::Corrupt(cause) => {
                tracing::error!(%cause, "the storage is unusable");
                let detail = "The storage is unusable; the server's log says why";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
            }
        }
    }
}

impl From<IngestError> for Problem {
    fn from(fault: IngestError) -> Self {
        match fault {
            IngestError::Store(fault) => fault.into(),
            IngestError::Throttled(fault) => Self::throttled(fault),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Inner { status, retry_after_secs, close, .. } = *self.0;
        let mut response = (status, [JSON], self.text()).into_response();
        let headers = response.headers_mut();
        if let Some(secs) = retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        if close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The content type of every answer with a body.
pub(crate) const JSON: (header::HeaderName, HeaderValue) =
    (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));

#[cfg(test)]
mod tests {
    use super::*;

    async fn shape(problem: Problem) -> (u16, http::HeaderMap, serde_json::Value) {
        let response = problem.into_response();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 16).await.unwrap();
        (parts.status.as_u16(), parts.headers, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn coded_errors_have_a_code_and_a_detail() {
        let table = [
            (Problem::unauthenticated("x"), 401, "authentication_failed"),
            (Problem::forbidden(), 403, "insufficient access"),
            (Problem::not_found("x"), 404, "not_found"),
            (StoreError::Missing("endpoint").into(), 404, "not_found"),
            (StoreError::Conflict("uid").into(), 409, "conflict"),
            (StoreError::Unavailable("disk full".into()).into(), 503, "storage_unavailable"),
            (StoreError::Corrupt("page 3".into()).into(), 500, "internal"),
        ];
        for (problem, status, code) in table {
            let (got, headers, body) = shape(problem).await;
            assert_eq!((got, body["code"].as_str()), (status, Some(code)));
            assert!(body["detail"].is_string());
            assert_eq!(headers["content-type"], "application/json");
            assert!(!body.to_string().contains("page 3"), "no internal cause");
        }
    }

    #[tokio::test]
    async fn some_errors_say_more_in_headers() {
        let (status, headers, body) = shape(StoreError::Overloaded.into()).await;
        assert_eq!((status, body["code"].as_str()), (503, Some("overloaded")));
        assert_eq!(headers["retry-after"], "1");
        let (status, headers, _) = shape(Problem::too_large(1)).await;
        assert_eq!((status, &headers["connection"]), (413, &HeaderValue::from_static("close")));
    }

    #[tokio::test]
    async fn field_faults_are_listed() {
        let (status, _, body) = shape(Problem::field(&["query", "limit"], "too big", "x")).await;
        assert_eq!(status, 422);
        let expected = serde_json::json!({"detail": [{"loc": ["query", "limit"], "msg": "too big", "type": "x"}]});
        assert_eq!(body, expected);
    }
}
