//! The bytes of one connection, plain or under TLS, and an ear that notices when the peer speaks.
//!
//! In: a way to the peer. Out: what hyper reads and writes.
//! Never: dial, close early, or change anything but control characters in heads that come, and the
//! case of names in those that go.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::layer::Layer;
use super::spelled::Spelling;

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

/// A dialled socket, or TLS with a proxy over one.
pub(super) type Way = Layer<TcpStream>;

/// One connection.
pub(super) struct Stream {
    wire: Layer<Way>,
    ear: Ear,
    spelling: Spelling,
    /// What is left of a head that was respelled.
    head: VecDeque<u8>,
}

impl Stream {
    /// Over a way to the peer, or over TLS with the peer.
    pub(super) fn over(wire: Layer<Way>) -> Self {
        let (ear, spelling) = Default::default();
        Self { wire, ear, spelling, head: VecDeque::new() }
    }

    /// The ear of this connection.
    pub(super) fn ear(&self) -> Ear {
        self.ear.clone()
    }

    /// How the names of the next request are spelled.
    pub(super) fn spelling(&self) -> Spelling {
        self.spelling.clone()
    }

    /// Writes what is left of a respelled head, of which `bytes` is what hyper has; `None`: there
    /// is none.
    fn poll_head(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if let Some(head) = self.spelling.head(bytes) {
            self.head = head.into();
        }
        if self.head.is_empty() {
            return None;
        }
        let left = &*self.head.make_contiguous();
        let left = &left[..left.len().min(bytes.len())];
        let written = Pin::new(&mut self.wire).poll_write(cx, left);
        if let Poll::Ready(Ok(count)) = written {
            self.head.drain(..count);
        }
        Some(written)
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
        ready!(Pin::new(&mut self.wire).poll_read(cx, buf))?;
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
        if let Some(written) = self.poll_head(cx, bytes) {
            return written;
        }
        Pin::new(&mut self.wire).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        if let Some(written) = first.and_then(|first| self.poll_head(cx, first)) {
            return written;
        }
        Pin::new(&mut self.wire).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
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
