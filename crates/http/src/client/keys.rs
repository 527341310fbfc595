//! Idempotency keys: one for each request of a caller, the same on all its attempts.
//!
//! Never: replace a key that the caller set.

use std::fmt;
use std::sync::Arc;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use resilience::ConfigError;

use super::ids::random_id;
use crate::errors::BoxError;

type Make = dyn Fn() -> String + Send + Sync;

/// Which requests get a key of their own, and where it is sent.
///
/// A request that bears one may be retried whatever its method, so the receiver must honour it.
#[derive(Clone)]
pub struct IdempotencyKeys {
    pub(super) header: HeaderName,
    methods: Vec<Method>,
    make: Option<Arc<Make>>,
}

impl IdempotencyKeys {
    /// A random key for each request of these methods, in `idempotency-key`.
    pub fn auto(methods: impl IntoIterator<Item = Method>) -> Self {
        Self { methods: methods.into_iter().collect(), ..Self::manual() }
    }

    /// Only keys that the caller sets.
    pub(super) fn manual() -> Self {
        Self { header: HeaderName::from_static("idempotency-key"), methods: Vec::new(), make: None }
    }

    /// In this header.
    #[must_use]
    pub fn header(self, name: HeaderName) -> Self {
        Self { header: name, ..self }
    }

    /// Keys from here instead of random ones. A request for which this gives none that can be sent,
    /// an empty one for example, fails and is not sent.
    #[must_use]
    pub fn made_by(self, make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { make: Some(Arc::new(make)), ..self }
    }

    /// Adds a key if this request gets one, and says whether it has one now.
    pub(super) fn apply(&self, method: &Method, headers: &mut HeaderMap) -> Result<bool, BoxError> {
        if let Some(key) = headers.get(&self.header) {
            ConfigError::unless(!key.is_empty(), "idempotency_key", "must not be empty")?;
            return Ok(true);
        }
        if !self.methods.contains(method) {
            return Ok(false);
        }
        let key = self.make.as_ref().map_or_else(random_id, |make| Ok(make()))?;
        ConfigError::unless(!key.is_empty(), "made_by", "must not give an empty key")?;
        let key = HeaderValue::from_str(&key);
        let unfit = ConfigError::new("made_by", "must give what a header can hold");
        headers.insert(self.header.clone(), key.map_err(|_| unfit)?);
        Ok(true)
    }
}

impl fmt::Debug for IdempotencyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeys")
            .field("header", &self.header)
            .field("methods", &self.methods)
            .finish_non_exhaustive()
    }
}
