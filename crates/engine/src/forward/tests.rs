//! Two nodes on one store, connected over real sockets with real TLS: what is forwarded, what is
//! not, and what becomes of a post whose answer never comes.
//!
//! Never: a wait for time; the clock is stopped where time matters.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use domain::application::AppSnapshot;
use domain::nodes::owners::Owners;
use futures_util::{SinkExt as _, StreamExt as _};
use proptest::prelude::*;
use resilience::ManualClock;
use store::conformance::world::World;
use store::conformance::{START, samples};
use store::memory::MemoryStore;
use store::nodes::{PeerAddress, Peers};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use super::wire::{Frames, Post};
use super::*;

const HERE: NodeId = NodeId(1);
const THERE: NodeId = NodeId(2);
const KEY: IngestKey = IngestKey { scope: [5; 16], body: [6; 16] };

/// An inbox that counts.
struct Counted {
    inbox: Arc<dyn Inbox>,
    posts: AtomicUsize,
}

impl Counted {
    fn new(inbox: &Arc<dyn Inbox>) -> Arc<Self> {
        Arc::new(Self { inbox: Arc::clone(inbox), posts: AtomicUsize::new(0) })
    }

    fn posts(&self) -> usize {
        self.posts.load(Ordering::SeqCst)
    }
}

impl Inbox for Counted {
    fn accept(&self, message: NewMessage) -> Reply<'static, Accepted> {
        self.posts.fetch_add(1, Ordering::SeqCst);
        self.inbox.accept(message)
    }

    fn used(&self, key: IngestKey) -> Reply<'static, Option<Accepted>> {
        self.inbox.used(key)
    }

    fn probe(&self) -> Reply<'static, ()> {
        self.inbox.probe()
    }
}

/// One store, and the node that takes a post.
struct Rig {
    world: World,
    app: AppSnapshot,
    here: Arc<Counted>,
    near: Near,
    identity: Arc<Identity>,
    /// What this node reads of the others.
    peers: watch::Sender<Arc<Peers>>,
    keeps: JoinHandle<()>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.keeps.abort();
    }
}

fn roster(world: &World) -> Arc<Roster> {
    Arc::new(Roster::new(Arc::clone(&world.stores.directory)))
}

fn everything_is(owner: NodeId, nodes: Vec<(NodeId, PeerAddress)>) -> Arc<Peers> {
    Arc::new(Peers { owners: Owners::new(&[Some(owner); 256]), nodes })
}

impl Rig {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::new(Arc::clone(&clock) as _);
        let world = World::new(Box::new(store), clock);
        let app = world.app(2).await;
        let here = Counted::new(&world.stores.inbox);
        let (peers, reads) = watch::channel(everything_is(HERE, Vec::new()));
        let links = Arc::new(Links::new(Among { me: HERE, peers: reads }));
        let identity = Arc::new(Identity::generate().unwrap());
        let keeps = tokio::spawn(Arc::clone(&links).keep(Arc::clone(&identity)));
        let near = Near { links, here: Arc::<Counted>::clone(&here), counts: Counts::new() };
        Self { world, app, here, near, identity, peers, keeps }
    }

    /// What the other node reads of this one.
    fn as_seen(&self) -> Arc<Peers> {
        let at = "127.0.0.1:1".to_owned();
        let fingerprint = self.identity.fingerprint();
        everything_is(THERE, vec![(HERE, PeerAddress { at, fingerprint })])
    }

    /// The other node owns everything, and is reached there.
    fn learn(&self, at: String, fingerprint: [u8; 32]) {
        let address = PeerAddress { at, fingerprint };
        self.peers.send(everything_is(THERE, vec![(THERE, address)])).unwrap();
    }

    /// Waits until there is a connection.
    async fn connected(&self) {
        while !self.is_connected() {
            yield_now().await;
        }
    }

    fn is_connected(&self) -> bool {
        self.near.links.to(THERE).is_some_and(|link| link.is_up())
    }

    fn message(&self) -> NewMessage {
        self.world.message(&self.app)
    }

    async fn post(&self, message: NewMessage) -> Accepted {
        self.near.accept(message).await.unwrap()
    }

    /// Keys of the messages that were committed since the last time.
    fn kept(&self) -> Vec<u64> {
        let fresh = self.world.told.take_fresh();
        let mut keys: Vec<u64> = fresh.iter().map(|fresh| fresh.pending.message.0).collect();
        keys.dedup();
        keys
    }
}

/// A node that commits what it is forwarded.
struct There {
    inbox: Arc<Counted>,
    at: String,
    identity: Arc<Identity>,
    peers: watch::Sender<Arc<Peers>>,
    answers: JoinHandle<()>,
}

impl There {
    async fn of(rig: &Rig, sees: Arc<Peers>) -> Self {
        let inbox = Counted::new(&rig.world.stores.inbox);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let identity = Arc::new(Identity::generate().unwrap());
        let (peers, reads) = watch::channel(sees);
        let among = Among { me: THERE, peers: reads };
        let answering =
            Answering::new(among, roster(&rig.world), Arc::<Counted>::clone(&inbox) as _);
        let answers = tokio::spawn(answering.run(listener, Arc::clone(&identity)));
        Self { inbox, at, identity, peers, answers }
    }

    async fn connected(rig: &Rig) -> Self {
        let there = Self::of(rig, rig.as_seen()).await;
        rig.learn(there.at.clone(), there.identity.fingerprint());
        rig.connected().await;
        there
    }
}

impl Drop for There {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// A node that says what a test wants it to say.
async fn far(rig: &Rig) -> (Frames<TlsStream<TcpStream>>, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let identity = Identity::generate().unwrap();
    let acceptor = identity.acceptor(Box::new(|_| true)).unwrap();
    rig.learn(listener.local_addr().unwrap().to_string(), identity.fingerprint());
    let (socket, _) = listener.accept().await.unwrap();
    let mut frames = wire::frames(acceptor.accept(socket).await.unwrap());
    frames.send(wire::Answer { number: 0, new: None }.encoded()).await.unwrap();
    rig.connected().await;
    (frames, listener)
}

/// Stops the clock until it is dropped; from then on the clock goes on by itself when all wait.
struct Still(#[expect(dead_code, reason = "dropping it tells")] std::sync::mpsc::Sender<()>);

impl Still {
    fn hold() -> Self {
        let (sender, dropped) = std::sync::mpsc::channel();
        // A stopped clock does not go on by itself while something blocks.
        tokio::task::spawn_blocking(move || dropped.recv());
        tokio::time::pause();
        Self(sender)
    }
}

fn id(accepted: &Accepted) -> PublicId {
    match accepted {
        Accepted::New { id, .. } => *id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_post_is_committed_by_the_node_that_serves_its_endpoints() {
    let rig = Rig::new().await;
    // As long as nobody is known it is committed here.
    let first = id(&rig.post(rig.message()).await);
    let there = There::connected(&rig).await;
    let second = id(&rig.post(rig.message()).await);
    let keyed = NewMessage { key: Some(KEY), ..rig.message() };
    let third = id(&rig.post(keyed.clone()).await);
    assert_eq!((rig.here.posts(), there.inbox.posts()), (1, 2));
    assert_eq!(rig.kept(), [first, second, third].map(|id| id.key()));
    // What was posted before is found by whoever is asked.
    let again = rig.post(keyed.clone()).await;
    assert!(matches!(&again, Accepted::Repeated(message) if message.id == third), "{again:?}");
    let other = NewMessage { key: Some(IngestKey { body: [7; 16], ..KEY }), ..keyed };
    assert_eq!(rig.post(other).await, Accepted::BodyDiffers);
    let stale = NewMessage { app_version: rig.app.app.version + 1, ..rig.message() };
    assert_eq!(rig.post(stale).await, Accepted::Stale);
    assert_eq!(rig.here.posts(), 4, "what is not new is decided here");
    // A large payload would keep others waiting.
    let mut large = rig.message();
    large.spec.payload = vec![b' '; PAYLOAD_MAX + 1].into();
    id(&rig.post(large).await);
    assert_eq!((rig.here.posts(), there.inbox.posts()), (5, 5));
    // What this node serves is its own.
    rig.peers.send_modify(|peers| *peers = everything_is(HERE, peers.nodes.clone()));
    id(&rig.post(rig.message()).await);
    assert_eq!((rig.here.posts(), there.inbox.posts()), (6, 5));
}

#[tokio::test]
async fn many_posts_at_once_have_each_its_own_answer() {
    let rig = Rig::new().await;
    let there = There::connected(&rig).await;
    let posts: Vec<_> = (0..2_000).map(|_| rig.near.accept(rig.message())).collect();
    let mut ids = Vec::new();
    for post in posts {
        ids.push(id(&post.await.unwrap()).key());
    }
    ids.sort_unstable();
    assert_eq!((ids, there.inbox.posts()), (rig.kept(), 2_000));
}

#[tokio::test]
async fn only_nodes_that_the_database_knows_are_listened_to() {
    let rig = Rig::new().await;
    let there = There::of(&rig, everything_is(THERE, Vec::new())).await;
    let connector = rig.identity.connector(Box::new(|_| true)).unwrap();
    assert!(link::dial(&there.at, &connector).await.is_err());
    // Once it is known it is; and no longer when it is not any more.
    there.peers.send(rig.as_seen()).unwrap();
    let mut stream = link::dial(&there.at, &connector).await.unwrap();
    there.peers.send(everything_is(THERE, Vec::new())).unwrap();
    assert!(!matches!(stream.next().await, Some(Ok(_))));
    // Nor is a node asked that shows another certificate than the database says.
    let strict = rig.identity.connector(Box::new(|shown| *shown == [0; 32])).unwrap();
    there.peers.send(rig.as_seen()).unwrap();
    assert!(link::dial(&there.at, &strict).await.is_err());
    // Whatever else comes in ends its connection and nothing else.
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xFF; 600], &[]] {
        let mut socket = TcpStream::connect(&there.at).await.unwrap();
        socket.write_all(said).await.unwrap();
        drop(socket);
    }
    for said in [&b"\xFF\xFF\xFF\xFF"[..], b"\x07"] {
        let mut stream = link::dial(&there.at, &connector).await.unwrap();
        stream.send(Bytes::from_static(said)).await.unwrap();
        assert!(!matches!(stream.next().await, Some(Ok(_))), "{said:?}");
    }
    rig.learn(there.at.clone(), there.identity.fingerprint());
    rig.connected().await;
    id(&rig.post(rig.message()).await);
    assert_eq!(there.inbox.posts(), 1);
}

#[tokio::test]
async fn a_post_whose_answer_is_lost_is_one_message() {
    let rig = Rig::new().await;
    for key in [None, Some(IngestKey { scope: [8; 16], ..KEY })] {
        let (mut frames, _listener) = far(&rig).await;
        let message = NewMessage { key, ..rig.message() };
        let posts = tokio::spawn(rig.near.accept(message));
        // It is committed there, and then the connection ends.
        let post = Post::read(frames.next().await.unwrap().unwrap()).unwrap();
        let message = post.message(rig.app.endpoints.clone()).unwrap();
        let there = id(&rig.world.stores.inbox.accept(message).await.unwrap());
        drop(frames);
        let here = posts.await.unwrap().unwrap();
        match key {
            None => assert_eq!(id(&here), there),
            Some(_) => {
                assert!(matches!(&here, Accepted::Repeated(message) if message.id == there));
            }
        }
        assert_eq!(rig.kept(), [there.key()]);
    }
}

#[tokio::test]
async fn a_post_that_was_not_committed_there_is_committed_here() {
    let rig = Rig::new().await;
    let (frames, _listener) = far(&rig).await;
    let posts = tokio::spawn(rig.near.accept(rig.message()));
    while rig.is_connected() && !rig.near.links.to(THERE).unwrap().is_asked() {
        yield_now().await;
    }
    drop(frames);
    let here = id(&posts.await.unwrap().unwrap());
    assert_eq!((rig.kept(), rig.here.posts()), (vec![here.key()], 1));
}

#[tokio::test]
async fn a_silent_node_keeps_one_post_waiting_and_no_later_one() {
    let rig = Rig::new().await;
    let (mut frames, _listener) = far(&rig).await;
    let still = Still::hold();
    let begun = Instant::now();
    let first = tokio::spawn(rig.near.accept(rig.message()));
    let asked = Post::read(frames.next().await.unwrap().unwrap()).unwrap();
    tokio::time::advance(Duration::from_millis(251)).await;
    let before = Instant::now();
    id(&rig.post(rig.message()).await);
    assert_eq!((rig.here.posts(), Instant::now()), (1, before), "at once");
    assert!(!first.is_finished());
    drop(still);
    id(&first.await.unwrap().unwrap());
    assert!(begun.elapsed() >= ANSWER_MAX, "{:?}", begun.elapsed());
    assert_eq!((rig.here.posts(), rig.kept().len()), (2, 2));
    // Its connection is given up.
    assert!(!matches!(frames.next().await, Some(Ok(_))), "{asked:?}");
}

#[tokio::test]
async fn a_node_that_answers_others_late_is_not_silent() {
    let rig = Rig::new().await;
    let (mut frames, _listener) = far(&rig).await;
    let _still = Still::hold();
    let _first = tokio::spawn(rig.near.accept(rig.message()));
    frames.next().await.unwrap().unwrap();
    for round in 1..=5 {
        tokio::time::advance(Duration::from_millis(200)).await;
        let posts = tokio::spawn(rig.near.accept(rig.message()));
        let post = Post::read(frames.next().await.unwrap().unwrap()).unwrap();
        let new = wire::New { key: round, accepted_at_us: 0 };
        frames.send(wire::Answer { number: post.number, new: Some(new) }.encoded()).await.unwrap();
        assert_eq!(id(&posts.await.unwrap().unwrap()).key(), round);
    }
    assert_eq!(rig.here.posts(), 0, "all were forwarded, though the first one waits");
}

#[tokio::test]
async fn what_is_forwarded_arrives_as_it_was() {
    let rig = Rig::new().await;
    let bare = NewMessage { key: Some(KEY), ..rig.message() };
    let full = NewMessage {
        spec: samples::full_message(),
        edited_from: Some(PublicId::from_bytes([9; 20])),
        ..bare.clone()
    };
    for message in [bare, full] {
        let frame = Post::of(3, &message).unwrap().encoded();
        let post = Post::read(frame.as_ref().into()).unwrap();
        let keys: Vec<i64> = message.targets.iter().map(|target| target.key.0).collect();
        assert_eq!((post.number, &post.endpoints), (3, &keys));
        let read = post.message(message.targets.clone()).unwrap();
        assert_eq!((read.app, read.app_version), (message.app, message.app_version));
        assert_eq!((&read.spec, read.random), (&message.spec, message.random));
        assert_eq!((read.key, read.edited_from), (message.key, message.edited_from));
    }
    assert_eq!(Post::of(1, &rig.message()), None, "without a key it might be committed twice");
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(post) = Post::read(bytes.as_slice().into()) {
            let _read = post.message(Vec::new());
        }
        let _read = wire::Answer::read(bytes.as_slice().into());
    }
}
