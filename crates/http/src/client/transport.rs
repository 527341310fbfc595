//! What carries one attempt over the wire: any tower service of `http` requests.
//!
//! Never: retry, follow, wait for more than its service.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use http::{Request, Response};
use http_body::Body as HttpBody;
use tower_service::Service;

use super::body::Body;
use crate::errors::BoxError;

type Sent = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

/// Sends a request and gives the answer, whatever its status.
pub(super) trait Transport: Send + Sync + 'static {
    /// Sends it, once.
    fn send(&self, request: Request<Body>) -> Sent;
}

/// A service behind a lock that is held for a clone only: services need not be `Sync`.
pub(super) struct ServiceTransport<S>(Mutex<S>);

impl<S> ServiceTransport<S> {
    pub(super) const fn new(service: S) -> Self {
        Self(Mutex::new(service))
    }
}

impl<S, R> Transport for ServiceTransport<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    R: HttpBody + Send + 'static,
    R::Error: Into<BoxError>,
{
    fn send(&self, request: Request<Body>) -> Sent {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            Ok(response.map(Body::stream))
        })
    }
}
