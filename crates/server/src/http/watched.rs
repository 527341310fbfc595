//! The bytes of one connection: marked as they come and go, and bare answers completed.
//!
//! Never: hold back or reorder a byte of an answer of ours.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::bare;
use super::connections::Marks;

/// A connection that is watched.
pub(super) struct Watched {
    stream: TcpStream,
    marks: Arc<Marks>,
    /// What is still to be sent in place of what was given to be sent.
    instead: Option<Bytes>,
}

impl Watched {
    pub(super) const fn new(stream: TcpStream, marks: Arc<Marks>) -> Self {
        Self { stream, marks, instead: None }
    }

    /// The connection alone.
    pub(super) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Sends something else in place of `bytes`, if they are a bare answer; says when it is sent.
    fn poll_instead(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<()>>> {
        if self.instead.is_none() {
            self.instead = Some(bare::completed(bytes)?.into());
        }
        let rest = self.instead.as_mut()?;
        while !rest.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(sent)) => rest.advance(sent),
                Poll::Ready(Err(fault)) => return Some(Poll::Ready(Err(fault))),
                Poll::Pending => return Some(Poll::Pending),
            }
        }
        self.instead = None;
        Some(Poll::Ready(Ok(())))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        if into.filled().len() > before {
            self.marks.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(sent) = self.poll_instead(cx, bytes) {
            return sent.map_ok(|()| bytes.len());
        }
        let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.marks.written();
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // The head of an answer is one piece, and a bare answer is only a head.
        let head = pieces.first().map_or(&[][..], |piece| piece);
        if let Some(sent) = self.poll_instead(cx, head) {
            return sent.map_ok(|()| head.len());
        }
        let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, pieces))?;
        self.marks.written();
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
