//! One HTTP/1.1 keep-alive connection of the load generator: write a request, read its answer.
//!
//! In: the bytes of a whole request. Out: the status and the body, borrowed until the next call.
//! Opens a new connection only when the last answer announced the end of the old one.
//! Never: repeat a request; the caller knows what a lost connection means.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fault::{Fault, Result};
use crate::wire;

/// An answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// Whether the status is 2xx.
    pub(crate) const fn is_ok(&self) -> bool {
        self.status / 100 == 2
    }

    /// Status and body for a message to people.
    pub(crate) fn text(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(500)]);
        format!("status {} {body}", self.status)
    }
}

/// A connection.
pub(crate) struct Conn {
    addr: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    used: usize,
    closed: bool,
}

impl Conn {
    /// Connects.
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr)
            .await
            .map_err(|error| Fault::new(format!("connecting to {addr}: {error}")))?;
        stream.set_nodelay(true)?;
        Ok(Self { addr, stream, buffer: vec![0; 4096], filled: 0, used: 0, closed: false })
    }

    /// Sends one request and waits for its answer.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        if self.closed {
            *self = Self::open(self.addr).await?;
        }
        self.stream.write_all(request).await?;
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        let head = loop {
            if let Some(head) = wire::answer_head(&self.buffer[..self.filled])? {
                break head;
            }
            self.fill().await?;
        };
        let end = head.len + head.body_len;
        while self.filled < end {
            self.fill().await?;
        }
        self.closed = head.close;
        self.used = end;
        Ok(Answer { status: head.status, body: &self.buffer[head.len..end] })
    }

    async fn fill(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match self.stream.read(&mut self.buffer[self.filled..]).await? {
            0 => Err(Fault::new("the server closed the connection before its answer was whole")),
            read => {
                self.filled += read;
                Ok(())
            }
        }
    }
}
