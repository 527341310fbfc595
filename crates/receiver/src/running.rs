//! What a handler may know about the record it runs under.
//!
//! The layer puts a [`Running`] among the extensions of each request that it lets through.
//! Never: the means to change a record other than its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Response};

use crate::store::LeaseToken;
use crate::stored::StoredResponse;

/// The record that the present request runs under.
#[derive(Clone, Debug)]
pub struct Running {
    token: LeaseToken,
    record_ttl: Duration,
    kept: Arc<[HeaderName]>,
}

impl Running {
    pub(crate) fn new(token: LeaseToken, record_ttl: Duration, kept: Arc<[HeaderName]>) -> Self {
        Self { token, record_ttl, kept }
    }

    /// The right to complete it, with the fencing number for resources that take one.
    #[must_use]
    pub fn token(&self) -> &LeaseToken {
        &self.token
    }

    /// How long the response will be remembered.
    #[must_use]
    pub fn record_ttl(&self) -> Duration {
        self.record_ttl
    }

    /// What is recorded of this response.
    #[must_use]
    pub fn keep(&self, response: &Response<Bytes>) -> StoredResponse {
        let (parts, body) = response.clone().into_parts();
        StoredResponse::keep(&parts, &body, &self.kept)
    }
}
