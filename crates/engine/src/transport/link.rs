//! One HTTP/1.1 connection, driven by the send that uses it: no task of its own.
//!
//! In: a stream, then one request at a time. Out: the answer's head, its body piece by piece, and
//! whether the connection is clean enough to carry another request.
//! Never: retry, time out, or outlive its owner; dropping it closes the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use domain::endpoint::Endpoint;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::spelled::Spelling;
use super::stream::{Ear, Stream};

/// Bytes of an answer's head that are read before it counts as no HTTP.
const HEAD_BYTES_MAX: usize = 64 << 10;

type Driver = Pin<Box<Connection<TokioIo<Stream>, Full<Bytes>>>>;

/// A connection.
pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection is over.
    driver: Option<Driver>,
    ear: Ear,
    spelling: Spelling,
}

impl Link {
    /// Prepares a connection; nothing is written yet.
    ///
    /// The parser is lenient: nobody sits between the peer and us whom it could confuse, and an
    /// answer refused for a stray header would be sent again although it said 200.
    pub(super) async fn open(stream: Stream) -> hyper::Result<Self> {
        let (ear, spelling) = (stream.ear(), stream.spelling());
        let (sender, connection) = Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self { sender, driver: Some(Box::pin(connection)), ear, spelling })
    }

    /// Writes a request, whose headers this endpoint spells if there is one, and waits for the
    /// final status and all headers; 1xx are skipped.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        endpoint: Option<&Arc<Endpoint>>,
    ) -> hyper::Result<Response<Incoming>> {
        self.ear.reset();
        self.spelling.set(endpoint);
        let mut answer = std::pin::pin!(self.sender.send_request(request));
        let driver = &mut self.driver;
        std::future::poll_fn(|cx| {
            drive(driver, cx);
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// Whether a byte of the answer to the last request has come in.
    pub(super) fn heard(&self) -> bool {
        self.ear.heard()
    }

    /// The next piece of a body.
    pub(super) fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        // Asking wakes the driver, and a piece wakes who asked; both are this task, which is awake.
        let asleep = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(piece) = Pin::new(&mut *body).poll_frame(asleep) {
            return Poll::Ready(piece);
        }
        drive(&mut self.driver, cx);
        Pin::new(body).poll_frame(cx)
    }

    /// Whether the connection stands, has nothing left to read, and can take a request.
    ///
    /// Reads what has come in unasked: an end of file or surplus bytes end the connection here, so
    /// that they never answer the next request.
    pub(super) fn is_idle(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Moves bytes. When the connection is over the driver goes, which fails a request still in it.
fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    if let Some(connection) = driver
        && connection.as_mut().poll(cx).is_ready()
    {
        *driver = None;
    }
}
