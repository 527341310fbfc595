//! Credentials, asked for on every attempt: a token that ran out during a wait is not sent again.
//!
//! They are interceptors that run after all others. What they set is marked sensitive.
//! Never: cache a token, show one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Request, Uri};
use resilience::ConfigError;

use super::body::Body;
use super::context::Context;
use super::interceptor::{Flow, Interceptor};
use crate::errors::BoxError;

type Asked = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

/// Where a token comes from.
#[derive(Clone)]
enum Source {
    Fixed(String),
    Asked(Arc<dyn Fn() -> Asked + Send + Sync>),
}

impl Source {
    /// The token for one attempt.
    async fn token(&self) -> Result<String, BoxError> {
        let token = match self {
            Self::Fixed(token) => token.clone(),
            Self::Asked(provider) => provider().await?,
        };
        if token.is_empty() { Err("the credentials are empty".into()) } else { Ok(token) }
    }

    /// What is wrong with a fixed token; what a provider gives is seen when it gives it.
    fn check(&self, option: &'static str, in_header: bool) -> Result<(), ConfigError> {
        let Self::Fixed(token) = self else { return Ok(()) };
        ConfigError::unless(!token.is_empty(), option, "must not be empty")?;
        let fits = !in_header || HeaderValue::from_str(token).is_ok();
        ConfigError::unless(fits, option, "must be a valid header value")
    }

    fn asked<F, Fut, E>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::Asked(Arc::new(move || {
            let asked = provider();
            Box::pin(async move { asked.await.map_err(Into::into) })
        }))
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, BoxError> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

/// `Authorization: Bearer …`.
#[derive(Clone)]
pub struct Bearer(Source);

impl Bearer {
    /// Always this token. One that is empty, or that no header can hold, is refused by the
    /// adapter's `build()`.
    pub fn token(token: impl Into<String>) -> Self {
        Self(Source::Fixed(token.into()))
    }

    /// What the provider gives, asked for each attempt.
    pub fn provider<F, Fut, E>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Source::asked(provider))
    }
}

impl Interceptor for Bearer {
    async fn on_request(&self, request: &mut Request<Body>, _: &Context) -> Flow {
        let token = self.0.token().await?;
        request.headers_mut().insert(AUTHORIZATION, sensitive(&format!("Bearer {token}"))?);
        Ok(())
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.0.check("Bearer::token", true)
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

/// `Authorization: Basic …`.
#[derive(Clone)]
pub struct Basic {
    value: String,
    fault: Result<(), ConfigError>,
}

impl Basic {
    /// A user without `:`, which ends it (RFC 7617), and a password that may be empty; neither with
    /// control characters. The adapter's `build()` refuses others.
    pub fn new(user: &str, password: &str) -> Self {
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let plain = !user.chars().chain(password.chars()).any(char::is_control);
        let rules = [
            (!user.contains(':'), "must have no : in the user"),
            (plain, "must have no control characters"),
        ];
        let unless = |(holds, rule)| ConfigError::unless(holds, "Basic::new", rule);
        Self { value, fault: rules.into_iter().try_for_each(unless) }
    }
}

impl Interceptor for Basic {
    async fn on_request(&self, request: &mut Request<Body>, _: &Context) -> Flow {
        request.headers_mut().insert(AUTHORIZATION, sensitive(&self.value)?);
        Ok(())
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.fault
    }
}

impl fmt::Debug for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Basic(…)")
    }
}

/// A key in a header or in the query.
#[derive(Clone)]
pub struct ApiKey {
    source: Source,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Header(String),
    Query(String),
}

impl ApiKey {
    /// Always this key, in the header `x-api-key` unless told otherwise. One that is empty, or that
    /// its place cannot hold, is refused by the adapter's `build()`, and so is such a place.
    pub fn new(key: impl Into<String>) -> Self {
        Self { source: Source::Fixed(key.into()), place: Place::Header("x-api-key".to_owned()) }
    }

    /// What the provider gives, asked for each attempt.
    pub fn provider<F, Fut, E>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self { source: Source::asked(provider), ..Self::new("") }
    }

    /// In this header.
    #[must_use]
    pub fn in_header(self, name: impl Into<String>) -> Self {
        Self { place: Place::Header(name.into()), ..self }
    }

    /// In this parameter of the query. Queries are logged by many; prefer a header.
    #[must_use]
    pub fn in_query(self, name: impl Into<String>) -> Self {
        Self { place: Place::Query(name.into()), ..self }
    }
}

impl Interceptor for ApiKey {
    async fn on_request(&self, request: &mut Request<Body>, _: &Context) -> Flow {
        let key = self.source.token().await?;
        match &self.place {
            Place::Header(name) => {
                let name = HeaderName::from_bytes(name.as_bytes())?;
                request.headers_mut().insert(name, sensitive(&key)?);
            }
            Place::Query(name) => *request.uri_mut() = with_query(request.uri(), name, &key)?,
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ConfigError> {
        match &self.place {
            Place::Header(name) => {
                let fits = HeaderName::from_bytes(name.as_bytes()).is_ok();
                ConfigError::unless(fits, "ApiKey::in_header", "must be a valid header name")?;
            }
            Place::Query(name) => {
                ConfigError::unless(!name.is_empty(), "ApiKey::in_query", "must not be empty")?;
            }
        }
        self.source.check("ApiKey::new", matches!(self.place, Place::Header(_)))
    }
}

fn with_query(uri: &Uri, name: &str, value: &str) -> Result<Uri, BoxError> {
    let mut url = url::Url::parse(&uri.to_string())?;
    url.query_pairs_mut().append_pair(name, value);
    Ok(url.as_str().parse()?)
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
