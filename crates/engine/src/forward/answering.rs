//! Takes posts from other nodes, commits them, and says so.
//!
//! Never: forward a post, answer before the commit, or listen to whom the database does not know.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::endpoint::Endpoint;
use domain::ids::{AppKey, EndpointKey};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, SinkExt, StreamExt as _};
use store::inbox::Inbox;
use store::nodes::{Among, Peers};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::identity::{Identity, fingerprint};
use super::wire::{Answer, Frames, New, Post, frames};
use crate::roster::Roster;

/// A handshake that takes longer is given up.
const HANDSHAKE_MAX: Duration = Duration::from_secs(3);
/// Connections, those included that still shake hands.
const CONNECTIONS_MAX: usize = 512;
/// Posts of one connection that are under way; no more are read meanwhile.
const POSTS_MAX: usize = 4_096;
/// No connection could be taken: pause before the next.
const PAUSE: Duration = Duration::from_millis(100);

/// Commits posts for others.
pub(super) struct Answering {
    among: Among,
    roster: Arc<Roster>,
    inbox: Arc<dyn Inbox>,
}

impl Answering {
    pub(super) fn new(among: Among, roster: Arc<Roster>, inbox: Arc<dyn Inbox>) -> Arc<Self> {
        Arc::new(Self { among, roster, inbox })
    }

    /// Takes connections for ever; dropping it ends them.
    pub(super) async fn run(self: Arc<Self>, listener: TcpListener, identity: Arc<Identity>) {
        let peers = self.among.peers.clone();
        let is_known = move |shown: &[u8; 32]| peers.borrow().knows(shown);
        let acceptor = match identity.acceptor(Box::new(is_known)) {
            Ok(acceptor) => acceptor,
            Err(fault) => return tracing::warn!(%fault, "no posts are taken from other nodes"),
        };
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((socket, _)) => {
                    let (answering, acceptor) = (Arc::clone(&self), acceptor.clone());
                    connections.spawn(async move {
                        let ended = answering.serve(socket, acceptor).await;
                        tracing::debug!(?ended, "a connection of another node ended");
                        drop(permit);
                    });
                }
                Err(fault) => {
                    tracing::warn!(%fault, "a connection of another node was not taken");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, socket: TcpStream, acceptor: TlsAcceptor) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let shakes = timeout(HANDSHAKE_MAX, acceptor.accept(socket));
        let stream = shakes.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let shown = shown.map(|shown| fingerprint(shown));
        let mut peers = self.among.peers.clone();
        let forgotten = async {
            let is_stranger = |peers: &Arc<Peers>| shown.is_none_or(|shown| !peers.knows(&shown));
            drop(peers.wait_for(is_stranger).await);
        };
        tokio::select! {
            ended = self.answer(frames(stream)) => ended,
            () = forgotten => Ok(()),
        }
    }

    /// Answers each post once it is committed, in whatever order that is.
    async fn answer<S>(&self, mut stream: Frames<S>) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        stream.send(Answer { number: 0, new: None }.encoded()).await?;
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(answer) = under_way.next(), if !under_way.is_empty() => {
                    let mut next: Option<Answer> = Some(answer);
                    while let Some(answer) = next {
                        stream.feed(answer.encoded()).await?;
                        next = under_way.next().now_or_never().flatten();
                    }
                    SinkExt::<Bytes>::flush(&mut stream).await?;
                }
                frame = stream.next(), if under_way.len() < POSTS_MAX => match frame {
                    Some(frame) => under_way.push(self.commit(post(frame?)?)),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Commits a post, if it is new and as it was thought to be.
    async fn commit(&self, post: Post) -> Answer {
        let number = post.number;
        let new = match self.targets(&post).await.and_then(|targets| post.message(targets)) {
            Some(message) => self.inbox.accept(message).await.ok().as_ref().and_then(New::of),
            None => None,
        };
        Answer { number, new }
    }

    /// The endpoints that it names, as they are at the version that it names.
    async fn targets(&self, post: &Post) -> Option<Vec<Arc<Endpoint>>> {
        let snapshot = self.roster.at(AppKey(post.app), post.app_version).await.ok()??;
        let mut named: Vec<_> = post.endpoints.iter().copied().map(EndpointKey).collect();
        named.sort_unstable();
        named.dedup();
        let is_named = |endpoint: &&Arc<Endpoint>| named.binary_search(&endpoint.key).is_ok();
        let targets: Vec<_> = snapshot.endpoints.iter().filter(is_named).map(Arc::clone).collect();
        (targets.len() == named.len()).then_some(targets)
    }
}

fn post(frame: BytesMut) -> io::Result<Post> {
    Post::read(frame).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
