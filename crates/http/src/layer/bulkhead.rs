//! A bulkhead as a tower layer.
//!
//! A place is held until the answer's body is read or dropped: a receiver that drips its body uses
//! the caller up as one that is slow to begin.
//! Never: hold a ready service while waiting for a place, which would keep others from it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::bulkhead::{Bulkhead, BulkheadPermit};
use crate::errors::{BoxError, BulkheadFull};

/// Bounds how many requests are on their way at once, over all services of the layer.
#[derive(Clone, Debug)]
pub struct BulkheadLayer {
    bulkhead: Bulkhead,
}

impl BulkheadLayer {
    /// Requests take their places in this bulkhead.
    pub const fn new(bulkhead: Bulkhead) -> Self {
        Self { bulkhead }
    }
}

impl<S> Layer<S> for BulkheadLayer {
    type Service = BulkheadService<S>;

    fn layer(&self, inner: S) -> BulkheadService<S> {
        BulkheadService { inner, bulkhead: self.bulkhead.clone() }
    }
}

/// A service with so many places.
#[derive(Clone, Debug)]
pub struct BulkheadService<S> {
    inner: S,
    bulkhead: Bulkhead,
}

impl<S, B, R> Service<Request<B>> for BulkheadService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
    R: Body,
{
    type Response = Response<HeldBody<R>>;
    type Error = BoxError;
    type Future = BulkheadFuture<S, B>;

    /// Always ready: the place is taken by the call, and the service below asked after that.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (place, step) = match self.bulkhead.try_acquire() {
            Some(place) => (Some(place), Step::Ready),
            None => match self.bulkhead.line_up() {
                Ok(line) => (None, Step::Line { line: Box::pin(line) }),
                Err(full) => (None, Step::Full { full }),
            },
        };
        BulkheadFuture { service: self.inner.clone(), request: Some(request), place, step }
    }
}

type Line = Pin<Box<dyn Future<Output = Result<BulkheadPermit, BulkheadFull>> + Send>>;

pin_project! {
    /// The answer to a request that may have to wait for a place.
    #[must_use = "futures do nothing unless polled"]
    pub struct BulkheadFuture<S: Service<Request<B>>, B> {
        service: S,
        request: Option<Request<B>>,
        place: Option<BulkheadPermit>,
        #[pin]
        step: Step<S::Future>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<F> {
        Line { line: Line },
        Full { full: BulkheadFull },
        Ready,
        Call { #[pin] call: F },
    }
}

impl<S, B, R> Future for BulkheadFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    R: Body,
{
    type Output = Result<Response<HeldBody<R>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.step.as_mut().project() {
                StepProjection::Line { line } => {
                    *this.place = Some(ready!(line.as_mut().poll(cx))?);
                    this.step.set(Step::Ready);
                }
                StepProjection::Full { full } => return Poll::Ready(Err((*full).into())),
                StepProjection::Ready => {
                    ready!(this.service.poll_ready(cx)).map_err(Into::into)?;
                    let Some(request) = this.request.take() else { return Poll::Pending };
                    let call = this.service.call(request);
                    this.step.set(Step::Call { call });
                }
                StepProjection::Call { call } => {
                    let response = ready!(call.poll(cx)).map_err(Into::into)?;
                    let place = this.place.take();
                    return Poll::Ready(Ok(response.map(|body| HeldBody::new(body, place))));
                }
            }
        }
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for BulkheadFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkheadFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of an answer, which holds the request's place until it is read.
    #[derive(Debug)]
    pub struct HeldBody<R> {
        #[pin]
        body: R,
        place: Option<BulkheadPermit>,
    }
}

impl<R: Body> HeldBody<R> {
    fn new(body: R, place: Option<BulkheadPermit>) -> Self {
        let place = place.filter(|_| !body.is_end_stream());
        Self { body, place }
    }
}

impl<R: Body> Body for HeldBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
            *this.place = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
