//! A timeout as a tower layer, that does not end at the head of the answer.
//!
//! Head and body together must arrive within the time: a body that drips for ever is a hung call
//! too. The error is [`TimedOut`], which the retry layer knows.
//! Never: run on after the future or the body is dropped.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use resilience::{ConfigError, Sleeper, TokioSleeper};
use tokio::time::Sleep;
use tower_layer::Layer;
use tower_service::Service;

use crate::errors::{BoxError, TimedOut};

/// Gives each call below it so much time, the answer's body included.
///
/// ```
/// use std::time::Duration;
/// use http_adapter::TimeoutLayer;
///
/// let layer = TimeoutLayer::new(Duration::from_secs(10))?;
/// assert!(TimeoutLayer::new(Duration::ZERO).is_err());
/// # Ok::<(), http_adapter::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer {
    after: Duration,
}

impl TimeoutLayer {
    /// Calls end after this, which is above zero.
    pub fn new(after: Duration) -> Result<Self, ConfigError> {
        ConfigError::unless(!after.is_zero(), "timeout", "must be above zero")?;
        Ok(Self { after })
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = TimeoutService<S>;

    fn layer(&self, inner: S) -> TimeoutService<S> {
        TimeoutService { inner, after: self.after }
    }
}

/// A service whose calls end in time.
#[derive(Clone, Debug)]
pub struct TimeoutService<S> {
    inner: S,
    after: Duration,
}

impl<S, B, R> Service<Request<B>> for TimeoutService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    R: Body,
    R::Error: Into<BoxError>,
{
    type Response = Response<DeadlineBody<R>>;
    type Error = BoxError;
    type Future = TimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let deadline = Deadline::new(self.after);
        TimeoutFuture { inner: self.inner.call(request), deadline: Some(deadline) }
    }
}

/// Boxed, so that it can move from the head to the body.
#[derive(Debug)]
struct Deadline {
    sleep: Pin<Box<Sleep>>,
    after: Duration,
}

impl Deadline {
    fn new(after: Duration) -> Self {
        Self { sleep: Box::pin(TokioSleeper::new().sleep(after)), after }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<BoxError> {
        self.sleep.as_mut().poll(cx).map(|()| TimedOut::new(self.after).into())
    }
}

pin_project! {
    /// The answer to a call that ends in time.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutFuture<F> {
        #[pin]
        inner: F,
        deadline: Option<Deadline>,
    }
}

impl<F, R, E> Future for TimeoutFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<DeadlineBody<R>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.inner.poll(cx) {
            let deadline = this.deadline.take();
            let wrap = |response: Response<R>| response.map(|body| DeadlineBody { body, deadline });
            return Poll::Ready(result.map(wrap).map_err(Into::into));
        }
        match this.deadline {
            Some(deadline) => deadline.poll(cx).map(Err),
            None => Poll::Pending,
        }
    }
}

pin_project! {
    /// The body of an answer, which must be complete in time.
    #[derive(Debug)]
    pub struct DeadlineBody<R> {
        #[pin]
        body: R,
        deadline: Option<Deadline>,
    }
}

impl<R> Body for DeadlineBody<R>
where
    R: Body,
    R::Error: Into<BoxError>,
{
    type Data = R::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, BoxError>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match this.deadline {
            Some(deadline) => deadline.poll(cx).map(|error| Some(Err(error))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
