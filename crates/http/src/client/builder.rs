//! An adapter, option by option.
//!
//! Never: correct an option silently, panic on one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body::Body as HttpBody;
use resilience::{Classify, ConfigError, DefaultClassify, Retry, RetryPolicy};
use tower_service::Service;
use url::Url;

use super::adapter::HttpAdapter;
use super::address;
use super::body::Body;
use super::correlation::Correlation;
use super::interceptor::{DynInterceptor, Interceptor};
use super::keys::IdempotencyKeys;
use super::observer::{HttpObserver, Observers};
use super::settings::{Order, Settings};
use super::transport::{ServiceTransport, Transport};
use crate::bulkhead::Bulkhead;
use crate::errors::BoxError;
use crate::source::Breakers;

const TOTAL_TIMEOUT: Duration = Duration::from_secs(30);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const REPLAY_BYTES: u64 = 64 << 10;
const DRAIN_BYTES: usize = 64 << 10;
const RESPONSE_BYTES: usize = 16 << 20;

/// What an [`HttpAdapter`] is built from; every option has a default but the base URL.
#[must_use = "nothing is built before build()"]
pub struct HttpAdapterBuilder {
    base: String,
    transport: Option<Box<dyn Transport>>,
    retry: Option<Retry>,
    breakers: Option<Breakers>,
    order: Order,
    bulkhead: Option<Bulkhead>,
    classify: Arc<dyn Classify>,
    total_timeout: Duration,
    attempt_timeout: Duration,
    headers: HeaderMap,
    interceptors: Vec<Arc<dyn DynInterceptor>>,
    credentials: Vec<Arc<dyn DynInterceptor>>,
    observers: Observers,
    correlation: Correlation,
    keys: IdempotencyKeys,
    replay_bytes_max: u64,
    drain_bytes_max: usize,
    response_bytes_max: usize,
    wrong: Option<ConfigError>,
}

impl HttpAdapter {
    /// An adapter for the API below this URL, such as `https://api.example.com/v1`.
    pub fn builder(base: impl Into<String>) -> HttpAdapterBuilder {
        HttpAdapterBuilder {
            base: base.into(),
            transport: None,
            retry: None,
            breakers: None,
            order: Order::default(),
            bulkhead: None,
            classify: Arc::new(DefaultClassify),
            total_timeout: TOTAL_TIMEOUT,
            attempt_timeout: ATTEMPT_TIMEOUT,
            headers: HeaderMap::new(),
            interceptors: Vec::new(),
            credentials: Vec::new(),
            observers: Observers::default(),
            correlation: Correlation::default(),
            keys: IdempotencyKeys::manual(),
            replay_bytes_max: REPLAY_BYTES,
            drain_bytes_max: DRAIN_BYTES,
            response_bytes_max: RESPONSE_BYTES,
            wrong: None,
        }
    }
}

impl HttpAdapterBuilder {
    /// What sends the requests: any cloneable service of `http` requests. With the feature
    /// `reqwest` a client of its own if not set.
    pub fn transport<S, R>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        R: HttpBody + Send + 'static,
        R::Error: Into<BoxError>,
    {
        self.transport = Some(Box::new(ServiceTransport::new(service)));
        self
    }

    /// A reqwest client of your own; give it `.retry(reqwest::retry::never())`, or its retries come
    /// on top.
    #[cfg(feature = "reqwest")]
    pub fn reqwest(self, client: reqwest::Client) -> Self {
        self.transport(super::reqwest::Reqwest::from(client))
    }

    /// When and how often failed requests are made again; never if not set.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// A circuit breaker, its options, or a registry with one for each host; none if not set.
    pub fn breaker(mut self, breakers: impl Into<Breakers>) -> Self {
        self.breakers = Some(breakers.into());
        self
    }

    /// Which of retry and breaker goes around the other; retry if not set.
    pub const fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// How many attempts run at once; any number if not set.
    pub fn bulkhead(mut self, bulkhead: Bulkhead) -> Self {
        self.bulkhead = Some(bulkhead);
        self
    }

    /// Judges answers and errors for retry and breaker; the library's table if not set.
    pub fn classify(mut self, classify: impl Classify + 'static) -> Self {
        self.classify = Arc::new(classify);
        self
    }

    /// The time for a request with all its attempts and waits; 30 s if not set.
    pub const fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// The time for one attempt, its wait for a place and the answer's body included; 10 s if not
    /// set, and never more than the total.
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// A header of every request; the request's own goes before it. Not the idempotency key, which
    /// is a request's own.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(_), _) => self.note("header", "must have a valid name"),
            (_, Err(_)) => self.note("header", "must have a valid value"),
        }
        self
    }

    /// Code around each attempt; may be called again.
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.interceptors.push(Arc::new(interceptor));
        self
    }

    /// Credentials: an interceptor that runs after all others; may be called again.
    pub fn auth(mut self, credentials: impl Interceptor) -> Self {
        self.credentials.push(Arc::new(credentials));
        self
    }

    /// Who watches; may be called again.
    pub fn observer(mut self, observer: impl HttpObserver) -> Self {
        self.observers.add(Arc::new(observer));
        self
    }

    /// Sends each request's identifier in this header; not sent if not set.
    pub fn correlation_id(mut self, header: &str) -> Self {
        match HeaderName::from_bytes(header.as_bytes()) {
            Ok(name) => self.correlation = Correlation::On(Some(name)),
            Err(_) => self.note("correlation_id", "must be a valid header name"),
        }
        self
    }

    /// Which requests get an idempotency key; none but those that bring one if not set.
    pub fn idempotency_keys(mut self, keys: IdempotencyKeys) -> Self {
        self.keys = keys;
        self
    }

    /// A body up to this is kept for another attempt, a larger one is sent once; 64 KiB if not set.
    pub const fn max_replay_body(mut self, bytes: u64) -> Self {
        self.replay_bytes_max = bytes;
        self
    }

    /// Of a failed answer up to this is read: it is what the error shows, and what lets the
    /// connection be used again; 64 KiB if not set.
    pub const fn drain_on_retry(mut self, bytes: usize) -> Self {
        self.drain_bytes_max = bytes;
        self
    }

    /// A longer answer of status 2xx is an error; 16 MiB if not set.
    pub const fn max_response_body(mut self, bytes: usize) -> Self {
        self.response_bytes_max = bytes;
        self
    }

    fn note(&mut self, option: &'static str, rule: &'static str) {
        self.wrong.get_or_insert_with(|| ConfigError::new(option, rule));
    }

    /// Checks all options and gives the adapter.
    pub fn build(self) -> Result<HttpAdapter, ConfigError> {
        self.wrong.map_or(Ok(()), Err)?;
        let base = address::base(&self.base).map_err(|rule| ConfigError::new("base URL", rule))?;
        ConfigError::unless(!self.total_timeout.is_zero(), "total_timeout", "must be above zero")?;
        ConfigError::unless(
            !self.attempt_timeout.is_zero(),
            "attempt_timeout",
            "must be above zero",
        )?;
        ConfigError::unless(
            self.response_bytes_max > 0,
            "max_response_body",
            "must be above zero",
        )?;
        ConfigError::unless(
            !self.headers.contains_key(&self.keys.header),
            "header",
            "must not be the idempotency key, which would be one for all requests",
        )?;
        let host = host_of(&base);
        if let Some(breakers) = &self.breakers {
            breakers.get(|| host.clone())?;
        }
        let once = once()?;
        let mut interceptors = self.interceptors;
        interceptors.extend(self.credentials);
        interceptors.iter().try_for_each(|one| one.fault())?;
        Ok(HttpAdapter::new(Settings {
            base,
            host,
            transport: self.transport.map_or_else(own_transport, Ok)?,
            retry: self.retry.unwrap_or_else(|| once.clone()),
            once,
            breakers: self.breakers,
            order: self.order,
            bulkhead: self.bulkhead,
            classify: self.classify,
            total_timeout: self.total_timeout,
            attempt_timeout: self.attempt_timeout,
            headers: self.headers,
            interceptors,
            observers: self.observers,
            correlation: self.correlation,
            keys: self.keys,
            replay_bytes_max: self.replay_bytes_max,
            drain_bytes_max: self.drain_bytes_max,
            response_bytes_max: self.response_bytes_max,
        }))
    }
}

/// The policy of those that want none: one call, judged and counted like all.
fn once() -> Result<Retry, ConfigError> {
    RetryPolicy::fixed(Duration::from_secs(1)).max_calls(1).build()
}

/// As a registry that is shared with tower layers knows it.
fn host_of(base: &Url) -> String {
    let host = base.host_str().unwrap_or_default();
    format!("{host}:{}", base.port_or_known_default().unwrap_or_default())
}

#[cfg(feature = "reqwest")]
fn own_transport() -> Result<Box<dyn Transport>, ConfigError> {
    let client = super::reqwest::Reqwest::new();
    let failed = |_| ConfigError::new("transport", "must be given where reqwest cannot be set up");
    Ok(Box::new(ServiceTransport::new(client.map_err(failed)?)))
}

#[cfg(not(feature = "reqwest"))]
fn own_transport() -> Result<Box<dyn Transport>, ConfigError> {
    Err(ConfigError::new("transport", "must be given without the feature reqwest"))
}

impl fmt::Debug for HttpAdapterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAdapterBuilder").finish_non_exhaustive()
    }
}
