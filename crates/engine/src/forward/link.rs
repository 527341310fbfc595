//! One connection to another node, while there is one: posts go out, answers come in.
//!
//! Never: make a post wait for the connection. Where there is none, where too much waits, or where
//! the other node has said nothing for a moment, nothing is asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use store::inbox::NewMessage;
use store::nodes::PeerAddress;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

use super::identity::NAME;
use super::wire::{Answer, Frames, Post, frames};

/// A connection that is not there by then is given up.
const DIAL_MAX: Duration = Duration::from_secs(3);
/// Pauses between attempts to connect, doubling.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A node that is not reached for so long is told of in the log.
const TELL_AFTER: Duration = Duration::from_secs(3);
/// A node that owes an answer and says nothing for longer is asked nothing more until it does. One
/// that has much to do says something all the time.
const SILENT_MAX: Duration = Duration::from_millis(250);
/// Posts, and bytes of them, that wait for an answer.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Posts that are written together.
const TOGETHER_MAX: usize = 256;

/// The way to one node.
#[derive(Default)]
pub(super) struct Link {
    conn: RwLock<Option<Arc<Conn>>>,
}

/// A connection.
pub(super) struct Conn {
    queue: UnboundedSender<Bytes>,
    waiting: Mutex<Waiting>,
    /// It is to end.
    end: Notify,
}

/// What is asked and not answered.
struct Waiting {
    last: u64,
    /// When the last answer came.
    heard: Instant,
    bytes: usize,
    posts: BTreeMap<u64, Waits>,
    is_closed: bool,
}

struct Waits {
    since: Instant,
    bytes: usize,
    answer: oneshot::Sender<Answer>,
}

/// A post that was sent.
pub(super) struct Asked {
    /// Fails when the connection ends.
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) conn: Arc<Conn>,
}

impl Link {
    /// Sends a post; `None` if that is not possible at once.
    pub(super) fn ask(&self, message: &NewMessage) -> Option<Asked> {
        let conn = self.conn.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        let answer = conn.ask(message)?;
        Some(Asked { answer, conn })
    }

    /// Whether there is a connection.
    #[cfg(test)]
    pub(super) fn is_up(&self) -> bool {
        self.conn.read().unwrap().is_some()
    }

    /// Whether something waits for an answer.
    #[cfg(test)]
    pub(super) fn is_asked(&self) -> bool {
        let conn = self.conn.read().unwrap();
        conn.as_ref().is_some_and(|conn| !conn.waiting().posts.is_empty())
    }

    /// Connects, and connects again when that ends.
    pub(super) async fn keep(&self, to: &PeerAddress, connector: TlsConnector) -> Infallible {
        let address = &to.at;
        let mut missing: Option<Missing> = None;
        loop {
            let dialled = timeout(DIAL_MAX, dial(address, &connector)).await;
            match dialled.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    if missing.take().is_some_and(|missing| missing.told) {
                        tracing::info!(address, "another node is reached again");
                    }
                    let ended = self.run(stream).await;
                    tracing::debug!(address, %ended, "a connection to another node ended");
                    sleep(PAUSE_MIN).await;
                }
                Err(fault) => missing.get_or_insert_with(Missing::new).waits(address, &fault).await,
            }
        }
    }

    /// Asks and is answered until the connection ends.
    pub(super) async fn run<S>(&self, stream: Frames<S>) -> io::Error
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (queue, posts) = unbounded_channel();
        let waiting = Mutex::new(Waiting::new());
        let conn = Arc::new(Conn { queue, waiting, end: Notify::new() });
        let (sink, mut answers) = stream.split();
        let up = Up::new(self, conn);
        let reads = async {
            while let Some(frame) = answers.next().await {
                let Some(answer) = Answer::read(frame?) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                up.conn.hears(answer);
            }
            Err(io::ErrorKind::UnexpectedEof.into())
        };
        let ended: io::Result<Infallible> = tokio::select! {
            ended = reads => ended,
            ended = write(sink, posts) => ended,
            () = up.conn.end.notified() => Err(io::ErrorKind::TimedOut.into()),
        };
        match ended {
            Err(fault) => fault,
        }
    }

    fn set(&self, conn: Option<Arc<Conn>>) {
        *self.conn.write().unwrap_or_else(PoisonError::into_inner) = conn;
    }
}

/// A node that is not reached.
struct Missing {
    since: Instant,
    told: bool,
    pause: Duration,
}

impl Missing {
    fn new() -> Self {
        Self { since: Instant::now(), told: false, pause: PAUSE_MIN }
    }

    /// Waits until it is tried again. A node that ends is not there for a moment before it is gone:
    /// nothing is said of that.
    async fn waits(&mut self, address: &str, fault: &io::Error) {
        if !self.told && self.since.elapsed() >= TELL_AFTER {
            self.told = true;
            tracing::warn!(
                address,
                %fault,
                "another node is not reached: what is posted for it goes through the database"
            );
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

/// Connects, and waits until the other side says that it knows this one.
pub(super) async fn dial(
    at: &str,
    connector: &TlsConnector,
) -> io::Result<Frames<TlsStream<TcpStream>>> {
    let socket = TcpStream::connect(at).await?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let mut stream = frames(connector.connect(name, socket).await?);
    match stream.next().await {
        Some(frame) => match Answer::read(frame?) {
            Some(_) => Ok(stream),
            None => Err(io::ErrorKind::InvalidData.into()),
        },
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn write(
    mut sink: impl futures_util::Sink<Bytes, Error = io::Error> + Unpin,
    mut posts: UnboundedReceiver<Bytes>,
) -> io::Result<Infallible> {
    let mut together = Vec::with_capacity(TOGETHER_MAX);
    loop {
        if posts.recv_many(&mut together, TOGETHER_MAX).await == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Whoever is about to ask does so first, and goes with the others in one write.
        yield_now().await;
        while together.len() < TOGETHER_MAX
            && let Ok(post) = posts.try_recv()
        {
            together.push(post);
        }
        for post in together.drain(..) {
            sink.feed(post).await?;
        }
        sink.flush().await?;
    }
}

/// A link has a connection as long as this lives.
struct Up<'l> {
    link: &'l Link,
    conn: Arc<Conn>,
}

impl<'l> Up<'l> {
    fn new(link: &'l Link, conn: Arc<Conn>) -> Self {
        link.set(Some(Arc::clone(&conn)));
        Self { link, conn }
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.link.set(None);
        let mut waiting = self.conn.waiting();
        waiting.is_closed = true;
        // Whoever waits hears that nobody answers.
        waiting.posts.clear();
    }
}

impl Conn {
    /// It does not answer: it is of no more use.
    pub(super) fn leave(&self) {
        self.end.notify_one();
    }

    fn ask(&self, message: &NewMessage) -> Option<oneshot::Receiver<Answer>> {
        let now = Instant::now();
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut waiting = self.waiting();
            if !waiting.has_room(now) {
                return None;
            }
            let bytes = message.spec.payload.len();
            waiting.last += 1;
            waiting.bytes += bytes;
            let number = waiting.last;
            waiting.posts.insert(number, Waits { since: now, bytes, answer: sender });
            number
        };
        let sent = Post::of(number, message).map(|post| self.queue.send(post.encoded()));
        if matches!(sent, Some(Ok(()))) {
            return Some(answer);
        }
        self.waiting().take(number);
        None
    }

    fn hears(&self, answer: Answer) {
        let waits = {
            let mut waiting = self.waiting();
            waiting.heard = Instant::now();
            waiting.take(answer.number)
        };
        if let Some(waits) = waits {
            let _gone = waits.answer.send(answer);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn new() -> Self {
        let (heard, posts) = (Instant::now(), BTreeMap::new());
        Self { last: 0, heard, bytes: 0, posts, is_closed: false }
    }

    fn has_room(&self, now: Instant) -> bool {
        let is_silent = self.posts.first_key_value().is_some_and(|(_, oldest)| {
            now.duration_since(self.heard.max(oldest.since)) > SILENT_MAX
        });
        let is_full = self.posts.len() >= WAITING_MAX || self.bytes >= WAITING_BYTES_MAX;
        !(self.is_closed || is_silent || is_full)
    }

    fn take(&mut self, number: u64) -> Option<Waits> {
        let waits = self.posts.remove(&number)?;
        self.bytes -= waits.bytes;
        Some(waits)
    }
}
