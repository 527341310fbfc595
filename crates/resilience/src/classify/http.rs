//! Conversions from the types of the `http` crate.
//!
//! Never: be needed; the judgement itself knows none of them.

use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::facts::{Answer, Method};
use crate::clock::Timestamp;
use crate::retry_after::{RetryAfter, parse};

impl From<&http::Method> for Method {
    fn from(method: &http::Method) -> Self {
        Self::from_name(method.as_str())
    }
}

impl From<http::StatusCode> for Answer {
    fn from(status: http::StatusCode) -> Self {
        Self::Status(status.as_u16())
    }
}

impl RetryAfter {
    /// Reads all `Retry-After` lines of an answer that arrived at `now`, by the wall clock.
    pub fn from_headers(headers: &HeaderMap, now: Timestamp) -> Self {
        parse(headers.get_all(RETRY_AFTER).iter().map(http::HeaderValue::as_bytes), now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_types_of_the_crate_are_read() {
        assert_eq!(Method::from(&http::Method::PATCH), Method::Patch);
        assert_eq!(Answer::from(http::StatusCode::IM_A_TEAPOT), Answer::Status(418));
        let mut headers = HeaderMap::new();
        assert_eq!(RetryAfter::from_headers(&headers, Timestamp::EPOCH), RetryAfter::Absent);
        for seconds in ["5", "60"] {
            headers.append(RETRY_AFTER, http::HeaderValue::from_static(seconds));
        }
        let asked = RetryAfter::from_headers(&headers, Timestamp::EPOCH);
        assert_eq!(asked, RetryAfter::Wait(Duration::from_secs(60)));
    }
}
