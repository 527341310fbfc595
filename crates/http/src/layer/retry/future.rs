//! The attempts of one request, one after the other.
//!
//! Dropped at any point it stops there; a retry that was paid for and not made is paid back.
//! Never: decide; poll a service that was not found ready.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::course::{Course, Verdict};
use crate::errors::{Answered, BoxError, GaveUp};
use crate::replay::{Gather, Replay, ReplayBody};

pin_project! {
    /// The answer to a request that may be retried.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<S, B, R>
    where
        S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
        B: Body,
    {
        service: S,
        course: Course,
        replay: Option<Replay<B>>,
        // What the last attempt came to.
        before: Option<BoxError>,
        #[pin]
        step: Step<S::Future, B, R>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<F, B: Body, R> {
        Gather { gather: Gather<B> },
        Ready,
        Call { #[pin] call: F },
        Wait { #[pin] sleep: Sleep, #[pin] drain: Option<R>, left: u64 },
    }
}

impl<S, B, R> RetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    B: Body,
{
    pub(super) fn new(service: S, body: B, course: Course) -> Self {
        let (replay, step) = match Gather::begin(body, course.settings.replay_bytes_max) {
            Ok(gather) => (None, Step::Gather { gather }),
            Err(replay) => (Some(replay), Step::Ready),
        };
        Self { service, course, replay, before: None, step }
    }
}

impl<S, B, R> Future for RetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    R: Body,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.step.as_mut().project() {
                StepProjection::Gather { gather } => {
                    *this.replay = Some(ready!(gather.poll(cx)));
                    this.step.set(Step::Ready);
                }
                StepProjection::Ready => {
                    ready!(this.service.poll_ready(cx)).map_err(Into::into)?;
                    let replay = this.replay.as_mut();
                    let Some(request) = replay.and_then(|replay| this.course.request(replay))
                    else {
                        // Unreachable: a body that is gone is judged not replayable.
                        return Poll::Ready(Err("the request body is gone".into()));
                    };
                    let clone = this.service.clone();
                    let call = std::mem::replace(this.service, clone).call(request);
                    this.step.set(Step::Call { call });
                }
                StepProjection::Call { call } => {
                    let result = ready!(call.poll(cx)).map_err(Into::into);
                    let replayable = this.replay.as_ref().is_some_and(Replay::is_replayable);
                    match this.course.judge(&result, replayable) {
                        Verdict::Done(info) => {
                            return Poll::Ready(match result {
                                Ok(mut response) => {
                                    response.extensions_mut().insert(info);
                                    Ok(response)
                                }
                                Err(error) => {
                                    Err(GaveUp::new(error, this.before.take(), info).into())
                                }
                            });
                        }
                        Verdict::Again(delay) => {
                            let sleep = this.course.sleep(delay);
                            let (before, drain) = came_to(result);
                            *this.before = Some(before);
                            let left = this.course.settings.drain_bytes_max;
                            this.step.set(Step::Wait { sleep, drain, left });
                        }
                    }
                }
                StepProjection::Wait { sleep, drain, left } => {
                    poll_drain(drain, left, cx);
                    ready!(sleep.poll(cx));
                    this.step.set(Step::Ready);
                }
            }
        }
    }
}

/// What an attempt came to, and a body to be read.
fn came_to<R>(result: Result<Response<R>, BoxError>) -> (BoxError, Option<R>) {
    match result {
        Ok(response) => (Answered::new(response.status()).into(), Some(response.into_body())),
        Err(error) => (error, None),
    }
}

/// Reads on while the wait lasts; a receiver that drips its body costs no more than that.
fn poll_drain<R: Body>(mut drain: Pin<&mut Option<R>>, left: &mut u64, cx: &mut Context<'_>) {
    while let Some(body) = drain.as_mut().as_pin_mut() {
        match body.poll_frame(cx) {
            Poll::Pending => return,
            Poll::Ready(Some(Ok(frame))) => {
                let read = frame.data_ref().map_or(0, Buf::remaining);
                match left.checked_sub(u64::try_from(read).unwrap_or(u64::MAX)) {
                    Some(rest) => *left = rest,
                    None => drain.set(None),
                }
            }
            Poll::Ready(Some(Err(_)) | None) => drain.set(None),
        }
    }
}

impl<S, B, R> fmt::Debug for RetryFuture<S, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    B: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").finish_non_exhaustive()
    }
}
