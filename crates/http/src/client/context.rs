//! What an error and an observer may say about a request.
//!
//! Never: headers, bodies, the query or user information of the URL: they carry credentials.

use std::fmt;
use std::sync::Arc;

use http::Method;
use serde::Serialize;
use url::Url;

/// Which request it was. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
    attempt: u32,
}

#[derive(Debug)]
struct Inner {
    method: Method,
    url: String,
    correlation_id: String,
}

impl Context {
    pub(super) fn new(method: Method, url: &Url, correlation_id: String) -> Self {
        let mut shown = url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        // Both fail only for URLs without a host, which have no user either.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        Self { inner: Arc::new(Inner { method, url: shown.into(), correlation_id }), attempt: 0 }
    }

    pub(super) fn at_attempt(&self, attempt: u32) -> Self {
        Self { inner: Arc::clone(&self.inner), attempt }
    }

    /// Its method.
    pub fn method(&self) -> &Method {
        &self.inner.method
    }

    /// Its URL without query.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Its identifier: random, and the same for all attempts, whether it is sent along or not.
    pub fn correlation_id(&self) -> &str {
        &self.inner.correlation_id
    }

    /// Which attempt it was, from 1; 0 before the first.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.inner.method, self.inner.url)
    }
}

impl Serialize for Context {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut shown = serializer.serialize_struct("Context", 4)?;
        shown.serialize_field("method", self.inner.method.as_str())?;
        shown.serialize_field("url", &self.inner.url)?;
        shown.serialize_field("correlation_id", &self.inner.correlation_id)?;
        shown.serialize_field("attempt", &self.attempt)?;
        shown.end()
    }
}
