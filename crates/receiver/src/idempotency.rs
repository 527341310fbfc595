//! The layer that lets one request per key reach the handler.
//!
//! In comes a request; its body is read whole, its key and fingerprint are taken, and from then on
//! it is handled in a task of its own: a caller that hangs up does not cut a handler off.
//!
//! Never: a decision about a record, see `run`.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower_layer::Layer;
use tower_service::Service;

use crate::body::{BoxError, ResponseBody, read};
use crate::key::ScopedKey;
use crate::problem::Problem;
use crate::run::Run;
use crate::settings::{Missing, Settings};
use crate::store::IdempotencyStore;

/// Answers every repeat of a request with its first response.
pub struct IdempotencyLayer<St> {
    store: Arc<St>,
    settings: Arc<Settings>,
}

impl<St> IdempotencyLayer<St> {
    pub(crate) fn new(store: St, settings: Settings) -> Self {
        Self { store: Arc::new(store), settings: Arc::new(settings) }
    }

    /// The store, for example to [`forget`](IdempotencyStore::forget) a key.
    pub fn store(&self) -> &Arc<St> {
        &self.store
    }
}

impl<St> Clone for IdempotencyLayer<St> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), settings: Arc::clone(&self.settings) }
    }
}

impl<St> fmt::Debug for IdempotencyLayer<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyLayer").field("settings", &self.settings).finish()
    }
}

impl<S, St> Layer<S> for IdempotencyLayer<St> {
    type Service = IdempotencyService<S, St>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotencyService { layer: self.clone(), inner }
    }
}

/// The service that [`IdempotencyLayer`] makes.
#[derive(Debug)]
pub struct IdempotencyService<S, St> {
    layer: IdempotencyLayer<St>,
    inner: S,
}

impl<S: Clone, St> Clone for IdempotencyService<S, St> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), inner: self.inner.clone() }
    }
}

impl<S, St, B, R> Service<Request<B>> for IdempotencyService<S, St>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    St: IdempotencyStore,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Into<BoxError>,
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
            let (run, request) = match layer.prepare(request).await {
                Ok(Prepared::Keyed(run, request)) => (run, request),
                Ok(Prepared::Unkeyed(request)) => {
                    return Ok(inner.call(request).await?.map(ResponseBody::Right));
                }
                Err(problem) => return Ok(problem.response()),
            };
            match tokio::spawn(run.serve(inner, request)).await {
                Ok(answer) => answer,
                // The runtime is going down, or this crate has a fault.
                Err(_) => Ok(Problem::HandlerFailed.response()),
            }
        })
    }
}

/// A request with its body in hand.
enum Prepared<St> {
    Keyed(Run<St>, Request<Full<Bytes>>),
    Unkeyed(Request<Full<Bytes>>),
}

impl<St> IdempotencyLayer<St> {
    async fn prepare<B>(&self, request: Request<B>) -> Result<Prepared<St>, Problem>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let settings = &self.settings;
        let (parts, body) = request.into_parts();
        let body = read(body, settings.body_bytes_max).await?;
        let keyed = settings.methods.contains(&parts.method);
        let key = if keyed {
            asked(|| settings.key.read(&parts, &body))?.map_err(|_| Problem::KeyMalformed)?
        } else {
            None
        };
        match key {
            Some(key) => {
                let scope = asked(|| (settings.scope)(&parts))?;
                if scope.contains('\0') {
                    // PostgreSQL keeps none, and what all stores refuse is one thing to know.
                    return Err(Problem::KeyMalformed);
                }
                let key = ScopedKey { scope, key };
                let fingerprint = settings.fingerprint.of(&parts, &body);
                let (store, settings) = (Arc::clone(&self.store), Arc::clone(settings));
                let run = Run { store, settings, key, fingerprint };
                Ok(Prepared::Keyed(run, Request::from_parts(parts, Full::new(body))))
            }
            None if keyed && settings.missing == Missing::Reject400 => Err(Problem::KeyMissing),
            None => Ok(Prepared::Unkeyed(Request::from_parts(parts, Full::new(body)))),
        }
    }
}

/// Asks a function of the setting; one that panics fails the request, not its connection.
fn asked<T>(question: impl FnOnce() -> T) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(question)).map_err(|_| {
        tracing::error!("scope or key source panicked");
        Problem::HandlerFailed
    })
}
