//! A circuit breaker as a tower layer, one for all requests or one for each receiver.
//!
//! A request that is not let through fails with [`Rejected`](resilience::Rejected) from its call:
//! `poll_ready` does not know yet which receiver it will be for, and must not hold others back.
//! Never: count what a caller cancelled, judge by the body.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::HeaderName;
use http::request::Parts;
use http::{Request, Response};
use pin_project_lite::pin_project;
use resilience::circuit::Permit;
use resilience::{BreakerRegistry, Call, CircuitBreaker, Classify, Clock, TokioSleeper, Vote};
use tower_layer::Layer;
use tower_service::Service;

use super::judge::Judge;
use crate::errors::BoxError;
use crate::host::host_key;
use crate::source::Breakers;

type Key = dyn Fn(&Parts) -> String + Send + Sync;

/// Guards a service with a circuit breaker.
///
/// ```
/// use http_adapter::CircuitBreakerLayer;
/// use http_adapter::resilience::{BreakerRegistry, CircuitBreaker, TokioSleeper};
///
/// let one = CircuitBreakerLayer::new(CircuitBreaker::builder("payments").build()?);
/// let per_host = CircuitBreakerLayer::registry(BreakerRegistry::new(
///     TokioSleeper::new(),
///     |host| CircuitBreaker::builder(host).clock(TokioSleeper::new()),
/// ));
/// # Ok::<(), http_adapter::resilience::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct CircuitBreakerLayer {
    breakers: Breakers,
    key: Arc<Key>,
    judge: Judge,
}

impl CircuitBreakerLayer {
    /// One breaker for all requests.
    pub fn new(breaker: CircuitBreaker) -> Self {
        Self::over(breaker.into())
    }

    /// One breaker for each host and port, such as `api.test:443`: of the URI, else of the `Host`
    /// header. The host is in lower case; a port that is not given is that of the URI's scheme, 80
    /// where there is none. Requests that name no receiver share the breaker `no-host`.
    pub fn registry(registry: BreakerRegistry) -> Self {
        Self::over(registry.into())
    }

    fn over(breakers: Breakers) -> Self {
        Self { breakers, key: Arc::new(host_key), judge: Judge::default() }
    }

    /// What a registry is asked for, which must not be empty; host and port if not set.
    #[must_use]
    pub fn key(mut self, key: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.key = Arc::new(key);
        self
    }

    /// Judges answers and errors; the library's table if not set.
    #[must_use]
    pub fn classify(mut self, classify: impl Classify + 'static) -> Self {
        self.judge.classify = Arc::new(classify);
        self
    }

    /// The header that makes a repeat of any method safe; `idempotency-key` if not set.
    #[must_use]
    pub fn key_header(mut self, name: HeaderName) -> Self {
        self.judge.key_header = name;
        self
    }
}

impl fmt::Debug for CircuitBreakerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerLayer")
            .field("breakers", &self.breakers)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for CircuitBreakerLayer {
    type Service = BreakerService<S>;

    fn layer(&self, inner: S) -> BreakerService<S> {
        BreakerService { inner, layer: self.clone() }
    }
}

/// A service behind a breaker.
#[derive(Clone, Debug)]
pub struct BreakerService<S> {
    inner: S,
    layer: CircuitBreakerLayer,
}

impl<S, B, R> Service<Request<B>> for BreakerService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = BreakerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let breaker = match self.layer.breakers.get(|| (self.layer.key)(&parts)) {
            Ok(breaker) => breaker,
            Err(wrong) => return BreakerFuture::refused(wrong),
        };
        let permit = match breaker.try_acquire_owned() {
            Ok(permit) => permit,
            Err(rejected) => return BreakerFuture::refused(rejected),
        };
        let call = self.layer.judge.call(&parts, true);
        let guard = Guard { permit, call, judge: self.layer.judge.clone() };
        let inner = self.inner.call(Request::from_parts(parts, body));
        BreakerFuture { state: State::Let { inner, guard: Some(guard) } }
    }
}

struct Guard {
    permit: Permit<'static>,
    call: Call,
    judge: Judge,
}

impl Guard {
    fn tell<R>(self, result: &Result<Response<R>, BoxError>) {
        let now = TokioSleeper::new().now();
        let (_, class) = self.judge.judge(&self.call, result, now);
        match (class.breaker, result) {
            (Vote::Failure, Err(error)) => self.permit.failure(&**error),
            (vote, _) => self.permit.record(vote),
        }
    }
}

pin_project! {
    /// The answer to a request that a breaker may have turned away.
    #[must_use = "futures do nothing unless polled"]
    pub struct BreakerFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F> {
        Let { #[pin] inner: F, guard: Option<Guard> },
        Refused { error: Option<BoxError> },
    }
}

impl<F> BreakerFuture<F> {
    fn refused(error: impl Into<BoxError>) -> Self {
        Self { state: State::Refused { error: Some(error.into()) } }
    }
}

impl<F, R, E> Future for BreakerFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Let { inner, guard } => {
                let result = ready!(inner.poll(cx)).map_err(Into::into);
                if let Some(guard) = guard.take() {
                    guard.tell(&result);
                }
                Poll::Ready(result)
            }
            StateProjection::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }
}

impl<F> fmt::Debug for BreakerFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerFuture").finish_non_exhaustive()
    }
}
