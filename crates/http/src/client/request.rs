//! One request, option by option, until it is sent.
//!
//! Never: share anything with another request; what cannot be built is told by `send`.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http_body::Body as HttpBody;
use resilience::{CircuitBreaker, ConfigError, Retry};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::Body;
use super::correlation::Correlation;
use super::error::HttpError;
use super::interceptor::Interceptor;
use super::job::Draft;
use super::payload::Expected;
use super::response::Response;
use super::send;
use super::settings::Settings;
use super::validate::{Verdict, at_once};
use crate::errors::BoxError;

/// A request to be sent, whose answer's body will be a `T`.
#[must_use = "nothing is sent before send()"]
pub struct RequestBuilder<T = Bytes> {
    draft: Draft,
    expected: Expected<T>,
}

impl RequestBuilder {
    pub(super) fn new(settings: Arc<Settings>, method: Method, endpoint: String) -> Self {
        Self { draft: Draft::new(settings, method, endpoint), expected: Expected::bytes() }
    }

    /// Expects JSON; a body that does not parse is an error.
    pub fn decode_json<U: DeserializeOwned>(self) -> RequestBuilder<U> {
        RequestBuilder { draft: self.draft, expected: self.expected.json() }
    }

    /// Expects text in UTF-8.
    pub fn decode_text(self) -> RequestBuilder<String> {
        RequestBuilder { draft: self.draft, expected: self.expected.text() }
    }

    /// Sends it and expects JSON.
    pub async fn send_json<U: DeserializeOwned + Send + Sync>(
        self,
    ) -> Result<Response<U>, HttpError> {
        self.decode_json().send().await
    }
}

impl<T> RequestBuilder<T> {
    /// A header; several of one name are all sent.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = self.name("header", "must have a valid name", name);
        let value = self.value("header", "must have a valid value", value);
        if let (Some(name), Some(value)) = (name, value) {
            self.draft.headers.append(name, value);
        }
        self
    }

    /// Parameters added to the query, of anything that serialises to pairs.
    pub fn query(mut self, query: &(impl Serialize + ?Sized)) -> Self {
        let pairs = serde_urlencoded::to_string(query).map_err(BoxError::from);
        if let Some(pairs) = self.draft.noted(pairs) {
            self.draft.query.extend(url::form_urlencoded::parse(pairs.as_bytes()).into_owned());
        }
        self
    }

    /// A body in JSON.
    pub fn json(mut self, body: &(impl Serialize + ?Sized)) -> Self {
        let json = serde_json::to_vec(body).map_err(BoxError::from);
        let json = self.draft.noted(json).unwrap_or_default();
        self.typed("application/json", json.into())
    }

    /// A body in the encoding of HTML forms.
    pub fn form(mut self, body: &(impl Serialize + ?Sized)) -> Self {
        let form = serde_urlencoded::to_string(body).map_err(BoxError::from);
        let form = self.draft.noted(form).unwrap_or_default();
        self.typed("application/x-www-form-urlencoded", form.into())
    }

    /// A body of plain text.
    pub fn text(self, body: impl Into<String>) -> Self {
        self.typed("text/plain; charset=utf-8", body.into().into())
    }

    /// A body in XML, sent as it is.
    pub fn xml(self, body: impl Into<String>) -> Self {
        self.typed("text/xml; charset=utf-8", body.into().into())
    }

    /// A body of any bytes, sent as they are.
    pub fn bytes(self, body: impl Into<Bytes>) -> Self {
        self.typed("application/octet-stream", Body::from(body.into()))
    }

    /// A body that is read while it is sent. Only one of known length up to the limit can be sent
    /// again.
    pub fn stream<B>(self, body: B) -> Self
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.typed("application/octet-stream", Body::stream(body))
    }

    /// A content type set as a header goes before the body's own.
    fn typed(mut self, content_type: &'static str, body: Body) -> Self {
        self.draft.content_type = Some(HeaderValue::from_static(content_type));
        self.draft.body = body;
        self
    }

    /// A demand on the answer; all are asked in order, and the first that refuses ends it.
    pub fn validate(
        mut self,
        check: impl Fn(&Response<T>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.expected.decoded.push(at_once(check));
        self
    }

    /// A demand on the answer that takes time to check.
    pub fn validate_async(
        mut self,
        check: impl for<'a> Fn(&'a Response<T>) -> Verdict<'a> + Send + Sync + 'static,
    ) -> Self {
        self.expected.decoded.push(Box::new(check));
        self
    }

    /// The time for each attempt, in place of the adapter's; above zero.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.rule(!timeout.is_zero(), "timeout", "must be above zero");
        self.draft.attempt_timeout = Some(timeout);
        self
    }

    /// The time for all attempts together, in place of the adapter's; above zero.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.rule(!timeout.is_zero(), "total_timeout", "must be above zero");
        self.draft.total_timeout = Some(timeout);
        self
    }

    /// Retries under this policy, in place of the adapter's.
    pub fn retry_override(mut self, retry: Retry) -> Self {
        self.draft.retry = Some(Some(retry));
        self
    }

    /// One attempt, whatever the adapter's policy.
    pub fn without_retry(mut self) -> Self {
        self.draft.retry = Some(None);
        self
    }

    /// Goes through this breaker, in place of the adapter's. One that other requests share too:
    /// made for one request it would never open.
    pub fn breaker_override(mut self, breaker: CircuitBreaker) -> Self {
        self.draft.breakers = Some(Some(breaker.into()));
        self
    }

    /// Goes through no breaker.
    pub fn without_breaker(mut self) -> Self {
        self.draft.breakers = Some(None);
        self
    }

    /// Leaves out the adapter's interceptors, and credentials, of this type.
    pub fn without_interceptor<I: Interceptor>(mut self) -> Self {
        self.draft.left_out.push(TypeId::of::<I>());
        self
    }

    /// Its idempotency key, in place of a random one; not empty.
    pub fn idempotency_key(mut self, key: &str) -> Self {
        if let Some(value) = self.value("idempotency_key", "must be a valid header value", key) {
            let name = self.draft.settings.keys.header.clone();
            self.draft.headers.insert(name, value);
        }
        self
    }

    /// Sends its identifier along, in the adapter's header or `x-correlation-id`.
    pub fn with_correlation_id(mut self) -> Self {
        self.draft.correlation = Correlation::On(None);
        self
    }

    /// Sends its identifier along, in this header.
    pub fn with_correlation_header(mut self, name: &str) -> Self {
        let option = "with_correlation_header";
        if let Some(name) = self.name(option, "must be a valid header name", name) {
            self.draft.correlation = Correlation::On(Some(name));
        }
        self
    }

    /// Does not send its identifier along.
    pub fn without_correlation_id(mut self) -> Self {
        self.draft.correlation = Correlation::Off;
        self
    }

    /// Its content type, in place of the body's own.
    pub fn content_type(mut self, value: &str) -> Self {
        if let Some(value) = self.value("content_type", "must be a valid header value", value) {
            self.draft.headers.insert(CONTENT_TYPE, value);
        }
        self
    }

    /// Notes an option that breaks a rule; `send` tells of the first.
    fn rule(&mut self, holds: bool, option: &'static str, rule: &'static str) {
        self.draft.noted(ConfigError::unless(holds, option, rule).map_err(BoxError::from));
    }

    fn name(&mut self, option: &'static str, rule: &'static str, name: &str) -> Option<HeaderName> {
        let name = HeaderName::from_bytes(name.as_bytes());
        self.draft.noted(name.map_err(|_| ConfigError::new(option, rule).into()))
    }

    fn value(
        &mut self,
        option: &'static str,
        rule: &'static str,
        value: &str,
    ) -> Option<HeaderValue> {
        let value = HeaderValue::from_str(value);
        self.draft.noted(value.map_err(|_| ConfigError::new(option, rule).into()))
    }

    /// Sends it. Dropping the future at any point ends it: the place in the bulkhead is free again,
    /// a retry that was paid for and not made goes back into the budget, and the breaker counts
    /// nothing.
    pub async fn send(self) -> Result<Response<T>, HttpError>
    where
        T: Send + Sync,
    {
        send::send(self.draft, self.expected).await
    }
}

impl<T> fmt::Debug for RequestBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder").field("method", &self.draft.method).finish_non_exhaustive()
    }
}
