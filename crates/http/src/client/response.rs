//! An answer of status 2xx, its body read and decoded.
//!
//! Never: hold a connection.

use std::fmt;

use http::{HeaderMap, StatusCode};
use resilience::RetryInfo;

use super::context::Context;

/// An answer with a body of type `T`.
#[derive(Clone)]
pub struct Response<T> {
    status: StatusCode,
    headers: HeaderMap,
    body: T,
    context: Context,
    info: Option<RetryInfo>,
}

impl<T> Response<T> {
    pub(super) const fn new(
        status: StatusCode,
        headers: HeaderMap,
        body: T,
        context: Context,
    ) -> Self {
        Self { status, headers, body, context, info: None }
    }

    /// Its status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its headers.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Its headers, to change.
    pub const fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// Its body.
    pub const fn body(&self) -> &T {
        &self.body
    }

    /// Its body, to change.
    pub const fn body_mut(&mut self) -> &mut T {
        &mut self.body
    }

    /// Its body alone.
    pub fn into_body(self) -> T {
        self.body
    }

    /// The request that it answers.
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// How often and how long it was tried; none before the request is over.
    pub const fn info(&self) -> Option<&RetryInfo> {
        self.info.as_ref()
    }

    /// The same answer with another body.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Response<U> {
        Response {
            status: self.status,
            headers: self.headers,
            body: change(self.body),
            context: self.context,
            info: self.info,
        }
    }

    pub(super) fn with_info(mut self, info: RetryInfo) -> Self {
        self.info = Some(info);
        self
    }
}

impl<T> fmt::Debug for Response<T> {
    /// Without headers and body, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("context", &self.context)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
