//! Bodies that no handler read: what is refused for its path or its token is answered before that.
//!
//! Left alone, the HTTP library closes the connection without a word if such a body has not arrived
//! yet, and the client loses the request that it sends next.
//! Never: keep what it reads.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::oneshot;

/// The rest of a body is read to its end if it is no longer than this,
const REST_BYTES_MAX: u64 = 64 << 10;
/// and arrives within this; else the connection is closed, and the answer says so.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// The body of a request; it comes back when it is dropped before its end.
pub(super) struct Lent {
    body: Option<Incoming>,
    back: Option<oneshot::Sender<Incoming>>,
}

/// Where a body comes back to.
pub(super) struct Unread {
    back: oneshot::Receiver<Incoming>,
    /// The client sends only once it is asked to.
    expects: bool,
}

/// Lends the body of a request.
pub(super) fn lend(request: Request<Incoming>) -> (Request<Lent>, Unread) {
    let (back, returned) = oneshot::channel();
    let expects = request.headers().contains_key(header::EXPECT);
    let request = request.map(|body| Lent { body: Some(body), back: Some(back) });
    (request, Unread { back: returned, expects })
}

impl Unread {
    /// Once there is an answer: reads what is left, or says that the connection ends.
    pub(super) async fn settle(mut self, response: &mut Response) {
        let Ok(body) = self.back.try_recv() else { return };
        let short = body.size_hint().upper().is_some_and(|most| most <= REST_BYTES_MAX);
        if self.expects || !short || !read_out(body).await {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
    }
}

/// Whether a body came to its end.
async fn read_out(mut body: Incoming) -> bool {
    let reading = async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(REST_TIME_MAX, reading).await.unwrap_or(false)
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(cx));
        // A body without a length does not know that this was its end.
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let unfinished = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Some(back)) = (unfinished, self.back.take()) {
            let _nobody_waits = back.send(body);
        }
    }
}
