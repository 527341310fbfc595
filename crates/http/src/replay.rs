//! A request body that can be sent again if it is small, and once if not.
//!
//! A body of known length up to the limit is read before the first attempt and kept. One that is
//! larger, or whose length nobody knows, is passed on as it comes: waiting for its end could be
//! waiting for the answer that its sender waits for.
//! Never: hold more than the limit, send a body that differs from attempt to attempt.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// What the service below a retry gets as the body of a request.
#[derive(Debug)]
pub struct ReplayBody<B: Body> {
    ready: VecDeque<Frame<Bytes>>,
    rest: Option<Pin<Box<B>>>,
    broken: Option<B::Error>,
}

impl<B: Body> ReplayBody<B> {
    const fn of(ready: VecDeque<Frame<Bytes>>) -> Self {
        Self { ready, rest: None, broken: None }
    }

    /// A body that is passed on as it comes, its data as [`Bytes`].
    pub(crate) fn passed_on(body: Pin<Box<B>>) -> Self {
        Self { ready: VecDeque::new(), rest: Some(body), broken: None }
    }
}

impl<B: Body> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if let Some(frame) = this.ready.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match &mut this.rest {
            Some(rest) => rest.as_mut().poll_frame(cx).map_ok(plain),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty()
            && self.broken.is_none()
            && self.rest.as_ref().is_none_or(|rest| rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let ready: usize = self.ready.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let ready = u64::try_from(ready).unwrap_or(u64::MAX);
        let rest =
            self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), |rest| rest.size_hint());
        let mut hint = SizeHint::new();
        if self.broken.is_none()
            && let Some(upper) = rest.upper()
        {
            hint.set_upper(upper.saturating_add(ready));
        }
        hint.set_lower(rest.lower().saturating_add(ready));
        hint
    }
}

// Nothing in it is pinned in place.
impl<B: Body> Unpin for ReplayBody<B> {}

/// The body of one request over all its attempts.
pub(crate) enum Replay<B: Body> {
    /// Kept, and sent as often as needed.
    Kept { data: Bytes, trailers: Option<Box<HeaderMap>> },
    /// Sent once.
    Once(Option<ReplayBody<B>>),
}

impl<B: Body> Replay<B> {
    pub(crate) const fn is_replayable(&self) -> bool {
        matches!(self, Self::Kept { .. })
    }

    /// The body of the next attempt; none if there can be no further one.
    pub(crate) fn next(&mut self) -> Option<ReplayBody<B>> {
        let (data, trailers) = match self {
            Self::Kept { data, trailers } => (data, trailers),
            Self::Once(body) => return body.take(),
        };
        let data = (!data.is_empty()).then(|| Frame::data(data.clone()));
        let trailers = trailers.clone().map(|trailers| Frame::trailers(*trailers));
        Some(ReplayBody::of(data.into_iter().chain(trailers).collect()))
    }
}

/// Reads a body for keeping.
pub(crate) struct Gather<B: Body> {
    body: Option<Pin<Box<B>>>,
    data: BytesMut,
    first: Bytes,
    trailers: Option<Box<HeaderMap>>,
    bytes_max: u64,
}

impl<B: Body> Gather<B> {
    /// Begins to read, or says at once what becomes of the body.
    pub(crate) fn begin(body: B, bytes_max: u64) -> Result<Self, Replay<B>> {
        if body.is_end_stream() {
            return Err(Replay::Kept { data: Bytes::new(), trailers: None });
        }
        let keeps = body.size_hint().exact().is_some_and(|bytes| bytes <= bytes_max);
        let body = Box::pin(body);
        if !keeps {
            return Err(Replay::Once(Some(ReplayBody::passed_on(body))));
        }
        Ok(Self {
            body: Some(body),
            data: BytesMut::new(),
            first: Bytes::new(),
            trailers: None,
            bytes_max,
        })
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Replay<B>> {
        while let Some(body) = &mut self.body {
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match plain(frame).into_data() {
                    Ok(data) => self.keep(data),
                    Err(other) => self.trailers = other.into_trailers().ok().map(Box::new),
                },
                // The transport meets the same error at the same place.
                Some(Err(error)) => return Poll::Ready(self.pass_on(Some(error))),
                None => break,
            }
            if self.len() > self.bytes_max {
                return Poll::Ready(self.pass_on(None));
            }
        }
        self.body = None;
        Poll::Ready(Replay::Kept { data: self.joined(), trailers: self.trailers.take() })
    }

    /// One piece, the usual case, is kept as it is.
    fn keep(&mut self, data: Bytes) {
        if self.first.is_empty() && self.data.is_empty() {
            self.first = data;
        } else {
            if self.data.is_empty() {
                self.data.extend_from_slice(&self.first);
            }
            self.data.extend_from_slice(&data);
        }
    }

    fn len(&self) -> u64 {
        u64::try_from(self.data.len().max(self.first.len())).unwrap_or(u64::MAX)
    }

    fn joined(&mut self) -> Bytes {
        let first = std::mem::take(&mut self.first);
        if self.data.is_empty() { first } else { self.data.split().freeze() }
    }

    /// What was read and what is left, for one attempt.
    fn pass_on(&mut self, broken: Option<B::Error>) -> Replay<B> {
        let ready = VecDeque::from([Frame::data(self.joined())]);
        let rest = self.body.take().filter(|_| broken.is_none());
        Replay::Once(Some(ReplayBody { ready, rest, broken }))
    }
}

fn plain<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

#[cfg(test)]
mod tests;
