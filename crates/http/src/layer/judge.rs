//! From a request and what came of it to the plain facts that the policies judge.
//!
//! Never: look at a body.

use std::sync::Arc;

use http::Response;
use http::header::HeaderName;
use http::request::Parts;
use resilience::{Answer, Call, Class, Classify, DefaultClassify, RetryAfter, Timestamp};

use crate::errors::BoxError;
use crate::fault::fault_of;

/// The header that makes a repeat harmless.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A classifier, and what it needs to know of a request.
#[derive(Clone)]
pub(super) struct Judge {
    pub(super) classify: Arc<dyn Classify>,
    pub(super) key_header: HeaderName,
}

impl Default for Judge {
    fn default() -> Self {
        Self { classify: Arc::new(DefaultClassify), key_header: KEY }
    }
}

impl Judge {
    /// What is called.
    pub(super) fn call(&self, parts: &Parts, replayable: bool) -> Call {
        let key = parts.headers.get(&self.key_header);
        let keyed = key.is_some_and(|key| !key.is_empty());
        Call::new((&parts.method).into()).keyed(keyed).replayable(replayable)
    }

    /// How it ended and what that means.
    pub(super) fn judge<B>(
        &self,
        call: &Call,
        result: &Result<Response<B>, BoxError>,
        now: Timestamp,
    ) -> (Answer, Class) {
        let (answer, hint) = match result {
            Ok(response) => {
                (response.status().into(), RetryAfter::from_headers(response.headers(), now))
            }
            Err(error) => (Answer::Failed(fault_of(&**error)), RetryAfter::Absent),
        };
        (answer, self.classify.classify(call, answer, hint))
    }
}
