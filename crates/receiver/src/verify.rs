//! The layer that lets only genuine webhooks through.
//!
//! In comes a request; its body is read whole, checked as it was sent, and passed on byte for
//! byte, with the [`Verified`] among the request's extensions.
//!
//! Never: a word to the caller about why; a handler that runs for a request that is not genuine.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use resilience::{Clock, SystemClock};
use tower_layer::Layer;
use tower_service::Service;
use webhook::{VerifyError, WebhookVerifier};

use crate::body::{BoxError, ResponseBody, read};
use crate::problem::Problem;

/// Verifies every request before the service behind it sees it.
#[derive(Clone)]
pub struct WebhookVerifyLayer {
    verifier: Arc<WebhookVerifier>,
    clock: Arc<dyn Clock>,
}

impl WebhookVerifyLayer {
    /// A layer that judges freshness by the machine's clock.
    pub fn new(verifier: WebhookVerifier) -> Self {
        Self { verifier: Arc::new(verifier), clock: Arc::new(SystemClock) }
    }

    /// The same layer with another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

impl fmt::Debug for WebhookVerifyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookVerifyLayer").field("verifier", &self.verifier).finish()
    }
}

impl<S> Layer<S> for WebhookVerifyLayer {
    type Service = WebhookVerifyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WebhookVerifyService { layer: self.clone(), inner }
    }
}

/// The service that [`WebhookVerifyLayer`] makes.
#[derive(Clone, Debug)]
pub struct WebhookVerifyService<S> {
    layer: WebhookVerifyLayer,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for WebhookVerifyService<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let layer = self.layer.clone();
        // The clone that is ready goes along, a fresh one stays.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        Box::pin(async move {
            match layer.genuine(request).await {
                Ok(request) => Ok(inner.call(request).await?.map(ResponseBody::Right)),
                Err(problem) => Ok(problem.response()),
            }
        })
    }
}

impl WebhookVerifyLayer {
    /// The same request with its body in hand, if it is genuine.
    async fn genuine<B>(&self, request: Request<B>) -> Result<Request<Full<Bytes>>, Problem>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let body = read(body, self.verifier.body_bytes_max()).await?;
        let now = self.clock.now().as_secs();
        match self.verifier.verify(&parts.headers, &body, now) {
            Ok(verified) => {
                parts.extensions.insert(verified);
                Ok(Request::from_parts(parts, Full::new(body)))
            }
            Err(why) => {
                tracing::debug!(%why, "webhook refused");
                Err(match why {
                    VerifyError::BodyTooLarge { .. } => Problem::BodyTooLarge,
                    _ => Problem::Unauthorized,
                })
            }
        }
    }
}
