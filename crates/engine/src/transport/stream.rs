//! The bytes of one connection, plain or under TLS, and an ear that notices when the peer speaks.
//!
//! In: a dialled socket. Out: what hyper reads and writes.
//! Never: dial, close early, or change anything but control characters in heads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Tells whether a byte of the answer has come in since the last request.
#[derive(Clone, Debug, Default)]
pub(super) struct Ear(Arc<AtomicBool>);

impl Ear {
    /// Forgets what was heard: a new request is about to be written.
    pub(super) fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether any byte has come in.
    pub(super) fn heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where the status stands in `HTTP/1.1 200 OK`.
const STATUS_COLUMN: usize = 9;

enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// One connection.
pub(super) struct Stream {
    wire: Wire,
    ear: Ear,
}

impl Stream {
    /// Over a bare socket.
    pub(super) fn plain(socket: TcpStream) -> Self {
        Self::over(Wire::Plain(socket))
    }

    /// Over TLS.
    pub(super) fn tls(session: TlsStream<TcpStream>) -> Self {
        Self::over(Wire::Tls(Box::new(session)))
    }

    /// The ear of this connection.
    pub(super) fn ear(&self) -> Ear {
        self.ear.clone()
    }

    fn over(wire: Wire) -> Self {
        Self { wire, ear: Ear::default() }
    }

    fn listen(&self, bytes: &mut [u8]) {
        let first = !bytes.is_empty() && !self.ear.0.swap(true, Ordering::Relaxed);
        if first && bytes.contains(&0) {
            clean_heads(bytes);
        }
    }
}

/// Replaces control characters in the head of an answer, and in interim ones before it.
///
/// A NUL in a header or among the words after the status makes the parser refuse the whole answer,
/// though its status is plain to see. Bodies stay as they are. Looking at what the first read
/// brings is enough for any head but one that comes in pieces.
fn clean_heads(bytes: &mut [u8]) {
    let mut status_line = true;
    let mut interim = false;
    for line in bytes.split_inclusive_mut(|&byte| byte == b'\n') {
        if line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            if !status_line && !interim {
                return;
            }
            status_line = true;
            continue;
        }
        if status_line {
            interim = line.get(STATUS_COLUMN) == Some(&b'1');
            status_line = false;
        }
        for byte in line {
            if byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r' | b'\n') {
                *byte = b'?';
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(match &mut self.wire {
            Wire::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Wire::Tls(session) => Pin::new(session).poll_read(cx, buf),
        })?;
        self.listen(&mut buf.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Wire::Tls(session) => Pin::new(session).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Wire::Tls(session) => Pin::new(session).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Wire::Tls(session) => Pin::new(session).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Wire::Tls(session) => Pin::new(session).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain(socket) => socket.is_write_vectored(),
            Wire::Tls(session) => session.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hr_05_control_characters_of_heads_are_replaced_and_bodies_left_alone() {
        let text =
            b"\r\nHTTP/1.1 103 a\0\r\nx: \x01\r\n\r\nHTTP/1.1 200 b\0\xff\nx:\t\0\n\r\nbody\0\n\0";
        let read = b"\r\nHTTP/1.1 103 a?\r\nx: ?\r\n\r\nHTTP/1.1 200 b?\xff\nx:\t?\n\r\nbody\0\n\0";
        let mut bytes = *text;
        clean_heads(&mut bytes);
        assert_eq!(&bytes, read);
    }
}
