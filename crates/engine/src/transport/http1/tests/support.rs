//! Peers made of raw sockets, and the shortest way to a transport and a request.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::attempt::{Answer, Failure, FailureKind, Outcome};
use domain::endpoint::Endpoint;
use domain::target::Guard;
use http::HeaderMap;
use resilience::{ManualClock, Timestamp};
use store::conformance::samples;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::transport::dns::StaticResolver;
use crate::transport::http1::{HttpOptions, HttpTransport, Roots};
use crate::transport::{Outbound, Sent, Transport};

/// Generous: whatever ends sooner by itself must not notice it.
pub(super) const LONG: Duration = Duration::from_secs(20);
/// For peers that never end.
pub(super) const SHORT: Duration = Duration::from_millis(400);
/// What the clock shows.
pub(super) const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A request as a peer read it.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    /// 0 for the first connection that the peer accepted.
    pub(super) connection: usize,
}

impl Hit {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

/// One connection, as a peer sees it.
pub(super) struct Caller<S = TcpStream> {
    pub(super) stream: S,
    pub(super) index: usize,
    hits: Arc<Mutex<Vec<Hit>>>,
    unread: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Caller<S> {
    /// Reads one whole request; `None` when the other side has closed.
    pub(super) async fn request(&mut self) -> Option<Hit> {
        let head_len = loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            self.fill().await?;
        };
        let head: Vec<u8> = self.unread.drain(..head_len).collect();
        let head = String::from_utf8(head).unwrap();
        let mut hit = Hit { head, body: Vec::new(), connection: self.index };
        let body_len: usize = hit.header("content-length").map_or(0, |text| text.parse().unwrap());
        while self.unread.len() < body_len {
            self.fill().await?;
        }
        hit.body = self.unread.drain(..body_len).collect();
        self.hits.lock().unwrap().push(hit.clone());
        Some(hit)
    }

    async fn fill(&mut self) -> Option<()> {
        let read = self.stream.read_buf(&mut self.unread).await.ok()?;
        (read > 0).then_some(())
    }

    /// Writes; nobody may be listening any more.
    pub(super) async fn say(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()
    }

    /// Answers every request alike until the other side closes.
    pub(super) async fn always(&mut self, answer: &[u8]) -> Option<()> {
        loop {
            self.request().await?;
            self.say(answer).await?;
        }
    }

    /// Writes `bytes` again and again, each after a moment.
    pub(super) async fn drip(&mut self, bytes: &[u8]) -> Option<()> {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        loop {
            ticks.tick().await;
            self.say(bytes).await?;
        }
    }

    /// Keeps the connection open until the other side closes it.
    pub(super) async fn hang(&mut self) -> Option<()> {
        loop {
            self.fill().await?;
        }
    }
}

/// A peer that listens.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    hits: Arc<Mutex<Vec<Hit>>>,
    accepted: Arc<AtomicUsize>,
}

impl Peer {
    /// Runs `each` for every connection.
    pub(super) async fn start<F, Fut>(each: F) -> Self
    where
        F: Fn(Caller) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<()>> + Send,
    {
        Self::at((Ipv4Addr::LOCALHOST, 0).into(), each).await.unwrap()
    }

    pub(super) async fn at<F, Fut>(address: SocketAddr, each: F) -> std::io::Result<Self>
    where
        F: Fn(Caller) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<()>> + Send,
    {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let hits = Arc::default();
        let accepted = Arc::new(AtomicUsize::new(0));
        let peer = Self { address, hits: Arc::clone(&hits), accepted: Arc::clone(&accepted) };
        let each = Arc::new(each);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let index = accepted.fetch_add(1, Ordering::SeqCst);
                let caller = Caller { stream, index, hits: Arc::clone(&hits), unread: Vec::new() };
                let each = Arc::clone(&each);
                tokio::spawn(async move { each(caller).await });
            }
        });
        Ok(peer)
    }

    /// A peer that answers each request with `answer`.
    pub(super) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut caller| {
            let answer = answer.clone();
            async move { caller.always(&answer).await }
        })
        .await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(super) fn hits(&self) -> Vec<Hit> {
        self.hits.lock().unwrap().clone()
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl<S> Caller<S> {
    /// The same connection under another layer.
    pub(super) fn map<T>(self, stream: T) -> Caller<T> {
        Caller { stream, index: self.index, hits: self.hits, unread: self.unread }
    }

    pub(super) fn split(self) -> (S, Caller<()>) {
        let rest = Caller { stream: (), index: self.index, hits: self.hits, unread: self.unread };
        (self.stream, rest)
    }
}

/// Loopback is open, nothing else that is closed by default.
pub(super) fn open_guard() -> Guard {
    let rules = ["127.0.0.0/8", "::1"].map(|rule| Guard::parse_rule(rule).unwrap());
    Guard::new(rules.to_vec())
}

pub(super) fn options(guard: Guard, resolver: StaticResolver) -> HttpOptions {
    let mut options = HttpOptions::new(guard, Arc::new(resolver), Arc::new(ManualClock::new(NOW)));
    options.roots = Roots::Only(Vec::new());
    options
}

pub(super) fn transport() -> HttpTransport {
    HttpTransport::new(options(open_guard(), StaticResolver::new()))
}

pub(super) fn endpoint(url: &str) -> Arc<Endpoint> {
    Arc::new(samples::stored_endpoint(samples::endpoint_to(url)))
}

pub(super) fn outbound(url: &str) -> Outbound {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "msg_1".parse().unwrap());
    headers.insert("content-type", "application/json".parse().unwrap());
    Outbound {
        endpoint: endpoint(url),
        headers,
        body: Bytes::from_static(b"{\"a\":1}"),
        deadline: LONG,
        connect_timeout: LONG,
    }
}

/// Sends the usual request to `url`.
pub(super) async fn send(transport: &HttpTransport, url: &str) -> Sent {
    transport.send(outbound(url)).await
}

/// Sends the usual request to a peer that never ends.
pub(super) async fn send_briefly(transport: &HttpTransport, url: &str) -> Sent {
    let sent = transport.send(Outbound { deadline: SHORT, ..outbound(url) }).await;
    assert!(sent.took >= SHORT && sent.took < LONG, "{sent:?}");
    sent
}

pub(super) fn answer(sent: &Sent) -> &Answer {
    match &sent.outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Failed(failure) => panic!("no answer but {failure:?}"),
    }
}

pub(super) fn status(sent: &Sent) -> u16 {
    answer(sent).status
}

/// The failure, which must be of `kind`.
pub(super) fn failure(sent: &Sent, kind: FailureKind) -> &Failure {
    match &sent.outcome {
        Outcome::Failed(failure) if failure.kind == kind => failure,
        other => panic!("not a {} failure but {other:?}", kind.name()),
    }
}

pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
