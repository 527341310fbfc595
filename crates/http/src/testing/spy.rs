//! An observer and an interceptor that write down what they hear.
//!
//! Never: change anything.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use resilience::RetryInfo;

use crate::client::{
    Body, Context, Flow, HttpError, HttpErrorKind, HttpObserver, Interceptor, Response,
};

/// A list that several hands write to.
#[derive(Debug)]
struct Log<E>(Arc<Mutex<Vec<E>>>);

impl<E> Clone for Log<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E> Default for Log<E> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<E: Clone> Log<E> {
    fn note(&self, event: E) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn all(&self) -> Vec<E> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What an observer heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObserverEvent {
    /// An attempt began.
    Start {
        /// Which, from 1.
        attempt: u32,
    },
    /// An attempt failed and another one follows.
    Retry {
        /// Which failed, from 1.
        attempt: u32,
        /// How.
        kind: HttpErrorKind,
        /// The wait.
        delay: Duration,
    },
    /// The request succeeded.
    Success {
        /// The answer's status.
        status: StatusCode,
        /// Requests on the wire.
        calls: u32,
        /// The time of all attempts and waits.
        elapsed: Duration,
    },
    /// The request failed.
    Failure {
        /// How.
        kind: HttpErrorKind,
        /// The time of all attempts and waits.
        elapsed: Duration,
    },
}

/// Writes down what an observer hears. Clones write to the same list.
#[derive(Clone, Debug, Default)]
pub struct SpyObserver(Log<ObserverEvent>);

impl SpyObserver {
    /// Everything so far, in order.
    pub fn events(&self) -> Vec<ObserverEvent> {
        self.0.all()
    }

    /// Forgets it.
    pub fn reset(&self) {
        self.0.clear();
    }
}

impl HttpObserver for SpyObserver {
    fn on_start(&self, context: &Context) {
        self.0.note(ObserverEvent::Start { attempt: context.attempt() });
    }

    fn on_retry(&self, attempt: u32, error: &HttpError, delay: Duration) {
        self.0.note(ObserverEvent::Retry { attempt, kind: error.kind(), delay });
    }

    fn on_success(&self, response: &Response<Bytes>, info: &RetryInfo) {
        self.0.note(ObserverEvent::Success {
            status: response.status(),
            calls: info.calls,
            elapsed: info.elapsed.unwrap_or_default(),
        });
    }

    fn on_failure(&self, error: &HttpError, elapsed: Duration) {
        self.0.note(ObserverEvent::Failure { kind: error.kind(), elapsed });
    }
}

/// What an interceptor was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterceptorEvent {
    /// A request to this path.
    Request(String),
    /// An answer of this status.
    Response(StatusCode),
    /// The same after all validators.
    Validated(StatusCode),
    /// An error of this kind.
    Error(HttpErrorKind),
}

/// Writes down what an interceptor is shown. Clones write to the same list.
#[derive(Clone, Debug, Default)]
pub struct SpyInterceptor(Log<InterceptorEvent>);

impl SpyInterceptor {
    /// Everything so far, in order.
    pub fn events(&self) -> Vec<InterceptorEvent> {
        self.0.all()
    }

    /// Forgets it.
    pub fn reset(&self) {
        self.0.clear();
    }
}

impl Interceptor for SpyInterceptor {
    async fn on_request(&self, request: &mut Request<Body>, _: &Context) -> Flow {
        self.0.note(InterceptorEvent::Request(request.uri().path().to_owned()));
        Ok(())
    }

    async fn on_response(&self, response: &mut Response<Bytes>) -> Flow {
        self.0.note(InterceptorEvent::Response(response.status()));
        Ok(())
    }

    async fn on_response_validated(&self, response: &Response<Bytes>) -> Flow {
        self.0.note(InterceptorEvent::Validated(response.status()));
        Ok(())
    }

    async fn on_error(&self, error: HttpError, _: &Context) -> HttpError {
        self.0.note(InterceptorEvent::Error(error.kind()));
        error
    }
}
