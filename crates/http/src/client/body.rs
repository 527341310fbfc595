//! The body of a request as it goes to the transport, and of an answer as it comes from there.
//!
//! Never: buffer.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::errors::BoxError;
use crate::replay::ReplayBody;

/// Bytes in memory, or a stream.
pub struct Body(Form);

enum Form {
    Whole(Bytes),
    /// Locked only so that a body may be shared where nobody reads it; reading needs it mutable.
    Stream(Mutex<UnsyncBoxBody<Bytes, BoxError>>),
}

impl Body {
    /// No bytes.
    pub const fn empty() -> Self {
        Self(Form::Whole(Bytes::new()))
    }

    /// Anything that is a body.
    pub fn stream<B>(body: B) -> Self
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let plain = ReplayBody::passed_on(Box::pin(body.map_err(Into::<BoxError>::into)));
        Self(Form::Stream(Mutex::new(plain.boxed_unsync())))
    }

    /// The bytes, if they are in memory.
    pub const fn as_bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Form::Whole(bytes) => Some(bytes),
            Form::Stream(_) => None,
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self(Form::Whole(bytes.into()))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Form::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Form::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Form::Stream(body) => {
                let body = body.get_mut().unwrap_or_else(PoisonError::into_inner);
                Pin::new(body).poll_frame(cx)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Form::Whole(bytes) => bytes.is_empty(),
            Form::Stream(body) => {
                body.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Form::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Form::Stream(body) => body.lock().unwrap_or_else(PoisonError::into_inner).size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Whole(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Form::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}
