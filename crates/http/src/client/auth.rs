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

use super::body::Body;
use super::context::Context;
use super::interceptor::{Flow, Interceptor};
use crate::errors::BoxError;

type Asked = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

/// Where a token comes from.
#[derive(Clone)]
struct Source(Arc<dyn Fn() -> Asked + Send + Sync>);

impl Source {
    fn fixed(token: String) -> Self {
        Self(Arc::new(move || {
            let token = token.clone();
            Box::pin(async move { Ok(token) })
        }))
    }

    fn asked<F, Fut, E>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Arc::new(move || {
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
    /// Always this token.
    pub fn token(token: impl Into<String>) -> Self {
        Self(Source::fixed(token.into()))
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
        let token = (self.0.0)().await?;
        request.headers_mut().insert(AUTHORIZATION, sensitive(&format!("Bearer {token}"))?);
        Ok(())
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(…)")
    }
}

/// `Authorization: Basic …`.
#[derive(Clone)]
pub struct Basic(String);

impl Basic {
    /// A user, and a password that may be empty.
    pub fn new(user: &str, password: &str) -> Self {
        Self(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
    }
}

impl Interceptor for Basic {
    async fn on_request(&self, request: &mut Request<Body>, _: &Context) -> Flow {
        request.headers_mut().insert(AUTHORIZATION, sensitive(&self.0)?);
        Ok(())
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
    /// Always this key, in the header `x-api-key` unless told otherwise.
    pub fn new(key: impl Into<String>) -> Self {
        Self { source: Source::fixed(key.into()), place: Place::Header("x-api-key".to_owned()) }
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
        let key = (self.source.0)().await?;
        match &self.place {
            Place::Header(name) => {
                let name = HeaderName::from_bytes(name.as_bytes())?;
                request.headers_mut().insert(name, sensitive(&key)?);
            }
            Place::Query(name) => *request.uri_mut() = with_query(request.uri(), name, &key)?,
        }
        Ok(())
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
