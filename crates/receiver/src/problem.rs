//! The layers' own answers, as problem details (RFC 9457).
//!
//! Never: a value from the request in one, or why a signature was refused.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::Full;

use crate::body::{ReadError, ResponseBody};

/// What went wrong, in the caller's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Unauthorized,
    BodyTooLarge,
    BodyUnreadable,
    KeyMissing,
    KeyMalformed,
    KeyReused,
    /// Status, and when to come back.
    InProgress(StatusCode, Duration),
    OutcomeUnknown,
    /// Status, and when to come back.
    LeaseLost(StatusCode, Duration),
    StoreUnavailable,
    HandlerFailed,
    ResponseTooLarge,
}

impl Problem {
    pub(crate) fn response<B>(self) -> Response<ResponseBody<B>> {
        self.whole().map(ResponseBody::Left)
    }

    /// The response with its body in one piece.
    pub(crate) fn whole(self) -> Response<Full<Bytes>> {
        self.whole_bytes().map(Full::new)
    }

    /// The response with its body as bytes.
    pub(crate) fn whole_bytes(self) -> Response<Bytes> {
        let (status, code, detail) = self.text();
        let title = status.canonical_reason().unwrap_or_default();
        // Every text is a constant of this file without a character that JSON would escape.
        let detail = if detail.is_empty() {
            String::new()
        } else {
            format!(r#","code":"{code}","detail":"{detail}""#)
        };
        let status_code = status.as_u16();
        let body =
            format!(r#"{{"type":"about:blank","title":"{title}","status":{status_code}{detail}}}"#);
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        if let Self::InProgress(_, retry_after) | Self::LeaseLost(_, retry_after) = self {
            response.headers_mut().insert(RETRY_AFTER, whole_secs(retry_after));
        }
        response
    }

    /// Status, code, detail. Without a detail neither code nor detail is sent.
    fn text(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", ""),
            Self::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                "the body is longer than this endpoint reads",
            ),
            Self::BodyUnreadable => {
                (StatusCode::BAD_REQUEST, "body_unreadable", "the body ended before it was read")
            }
            Self::KeyMissing => (
                StatusCode::BAD_REQUEST,
                "idempotency_key_missing",
                "this endpoint needs an idempotency key",
            ),
            Self::KeyMalformed => (
                StatusCode::BAD_REQUEST,
                "idempotency_key_malformed",
                "the idempotency key must be sent once, as a quoted string or a bare token of 1 \
                 to 255 printable ASCII characters",
            ),
            Self::KeyReused => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                "this idempotency key was used for a different request",
            ),
            Self::InProgress(status, _) => (
                status,
                "request_in_progress",
                "the first request with this key is still being handled",
            ),
            Self::OutcomeUnknown => (
                StatusCode::CONFLICT,
                "outcome_unknown",
                "the first request with this key was cut off and may have taken effect; somebody \
                 has to look",
            ),
            Self::LeaseLost(status, _) => (
                status,
                "lease_lost",
                "another request with this key took over while this one was being handled",
            ),
            Self::StoreUnavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "idempotency_store_unavailable",
                "repeats cannot be told apart at the moment; try again",
            ),
            Self::HandlerFailed => {
                (StatusCode::INTERNAL_SERVER_ERROR, "handler_failed", "the request failed")
            }
            Self::ResponseTooLarge => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "response_too_large",
                "the request was handled, but its response is too large to be recorded",
            ),
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooLarge => Self::BodyTooLarge,
            ReadError::Broken(_) => Self::BodyUnreadable,
        }
    }
}

/// Rounded up, and never 0: a caller that need not wait would come back at once.
fn whole_secs(span: Duration) -> HeaderValue {
    let secs = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    HeaderValue::from(secs.max(1))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_refused_signature_is_not_explained() {
        let body = Problem::Unauthorized.whole().collect().await.unwrap().to_bytes();
        assert_eq!(body, r#"{"type":"about:blank","title":"Unauthorized","status":401}"#);
    }

    #[tokio::test]
    async fn other_problems_have_a_code_and_a_sentence() {
        let retry_after = Duration::from_millis(1_001);
        let response = Problem::InProgress(StatusCode::CONFLICT, retry_after).whole();
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let body = response.collect().await.unwrap().to_bytes();
        let expected = r#"{"type":"about:blank","title":"Conflict","status":409,"code":"request_in_progress","detail":"the first request with this key is still being handled"}"#;
        assert_eq!(body, expected);
        assert_eq!(whole_secs(Duration::ZERO), "1");
    }
}
