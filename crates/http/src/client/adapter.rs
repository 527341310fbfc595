//! The adapter itself: a handle from which requests are begun.
//!
//! Never: know a policy.

use std::fmt;
use std::sync::Arc;

use http::Method;

use super::request::RequestBuilder;
use super::settings::Settings;

/// A client for one API. Clones share everything: connections, breakers, budget, bulkhead.
#[derive(Clone)]
pub struct HttpAdapter {
    settings: Arc<Settings>,
}

impl HttpAdapter {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings) }
    }

    /// A request to `endpoint`, relative to the base URL; its query is kept.
    pub fn request(&self, method: Method, endpoint: impl Into<String>) -> RequestBuilder {
        RequestBuilder::new(Arc::clone(&self.settings), method, endpoint.into())
    }

    /// `GET`.
    pub fn get(&self, endpoint: impl Into<String>) -> RequestBuilder {
        self.request(Method::GET, endpoint)
    }

    /// `HEAD`.
    pub fn head(&self, endpoint: impl Into<String>) -> RequestBuilder {
        self.request(Method::HEAD, endpoint)
    }

    /// `POST`.
    pub fn post(&self, endpoint: impl Into<String>) -> RequestBuilder {
        self.request(Method::POST, endpoint)
    }

    /// `PUT`.
    pub fn put(&self, endpoint: impl Into<String>) -> RequestBuilder {
        self.request(Method::PUT, endpoint)
    }

    /// `PATCH`.
    pub fn patch(&self, endpoint: impl Into<String>) -> RequestBuilder {
        self.request(Method::PATCH, endpoint)
    }

    /// `DELETE`.
    pub fn delete(&self, endpoint: impl Into<String>) -> RequestBuilder {
        self.request(Method::DELETE, endpoint)
    }
}

impl fmt::Debug for HttpAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAdapter")
            .field("base", &self.settings.base.as_str())
            .field("order", &self.settings.order)
            .finish_non_exhaustive()
    }
}
