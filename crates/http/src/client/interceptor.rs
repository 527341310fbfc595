//! Code of the caller that runs around each attempt.
//!
//! All hooks run in the order in which the interceptors were added. Each attempt has a fresh copy
//! of the request: what a hook adds is not added twice.
//! Never: skip a hook of one interceptor because another failed to need it.

use std::any::TypeId;
use std::pin::Pin;

use bytes::Bytes;
use http::Request;
use resilience::ConfigError;

use super::body::Body;
use super::context::Context;
use super::error::HttpError;
use super::response::Response;
use crate::errors::BoxError;

/// What a hook gives: nothing, or an error that takes the way of all errors.
pub type Flow = Result<(), BoxError>;

/// Hooks around each attempt; implement those that you need.
///
/// ```
/// use http_adapter::{Body, Context, Flow, Interceptor};
///
/// struct Version;
///
/// impl Interceptor for Version {
///     async fn on_request(&self, request: &mut http::Request<Body>, _: &Context) -> Flow {
///         request.headers_mut().insert("x-version", "7".parse()?);
///         Ok(())
///     }
/// }
/// ```
pub trait Interceptor: Send + Sync + 'static {
    /// Before the request is sent.
    fn on_request(
        &self,
        request: &mut Request<Body>,
        context: &Context,
    ) -> impl Future<Output = Flow> + Send {
        let _ = (request, context);
        async { Ok(()) }
    }

    /// After an answer of status 2xx, before it is decoded and validated.
    fn on_response(&self, response: &mut Response<Bytes>) -> impl Future<Output = Flow> + Send {
        let _ = response;
        async { Ok(()) }
    }

    /// After all validators have passed, also if there are none. The body is as it was received.
    fn on_response_validated(
        &self,
        response: &Response<Bytes>,
    ) -> impl Future<Output = Flow> + Send {
        let _ = response;
        async { Ok(()) }
    }

    /// After anything failed in this attempt; what it gives is what counts from here on.
    fn on_error(
        &self,
        error: HttpError,
        context: &Context,
    ) -> impl Future<Output = HttpError> + Send {
        let _ = context;
        async { error }
    }

    /// Whether its own options hold together; the adapter's `build()` asks it.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The same as an object.
pub(super) trait DynInterceptor: Send + Sync {
    fn kind(&self) -> TypeId;
    fn fault(&self) -> Result<(), ConfigError>;
    fn request<'a>(&'a self, to: &'a mut Request<Body>, context: &'a Context) -> Boxed<'a, Flow>;
    fn response<'a>(&'a self, response: &'a mut Response<Bytes>) -> Boxed<'a, Flow>;
    fn validated<'a>(&'a self, response: &'a Response<Bytes>) -> Boxed<'a, Flow>;
    fn error<'a>(&'a self, error: HttpError, context: &'a Context) -> Boxed<'a, HttpError>;
}

impl<I: Interceptor> DynInterceptor for I {
    fn kind(&self) -> TypeId {
        TypeId::of::<I>()
    }

    fn fault(&self) -> Result<(), ConfigError> {
        self.check()
    }

    fn request<'a>(&'a self, to: &'a mut Request<Body>, context: &'a Context) -> Boxed<'a, Flow> {
        Box::pin(self.on_request(to, context))
    }

    fn response<'a>(&'a self, response: &'a mut Response<Bytes>) -> Boxed<'a, Flow> {
        Box::pin(self.on_response(response))
    }

    fn validated<'a>(&'a self, response: &'a Response<Bytes>) -> Boxed<'a, Flow> {
        Box::pin(self.on_response_validated(response))
    }

    fn error<'a>(&'a self, error: HttpError, context: &'a Context) -> Boxed<'a, HttpError> {
        Box::pin(self.on_error(error, context))
    }
}
