//! TLS and HTTP/2 on the wire: the client that the adapter makes against a server of rustls and h2
//! that follows a script.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_adapter::resilience::{ErrorKind, State, StopReason, Trip};
use http_adapter::{HttpAdapter, HttpAdapterBuilder, HttpError, Reqwest};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::support::{Held, SECOND, breaker, calls, waits};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn certificate(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

/// What the server does with one connection.
enum Turn {
    /// Closes it before the handshake is over.
    Cut,
    /// Answers requests over HTTP/2, or the first over HTTP/1.1 if that was agreed on.
    Serve(Vec<Step>),
    /// Waits for a request over HTTP/2, then says that it goes away: which stream was the last that
    /// it took, and why. Then it closes.
    GoAway { last: u32, reason: h2::Reason },
}

enum Step {
    Answer(http::Response<()>),
    Reset(h2::Reason),
}

fn answer(status: u16) -> Step {
    Step::Answer(http::Response::builder().status(status).body(()).unwrap())
}

/// What the server saw.
#[derive(Debug, PartialEq)]
enum Seen {
    /// A handshake that came to an end, and the protocol agreed on.
    Connection(Option<Vec<u8>>),
    Request,
}

struct Server {
    address: SocketAddr,
    roots: RootCertStore,
    seen: UnboundedReceiver<Seen>,
}

impl Server {
    /// Known by `certificate`, which `issuer` signed, speaking these protocols.
    async fn start(
        issuer: &Issuer,
        certificate: CertificateParams,
        spoken: &[&str],
        script: Vec<Turn>,
    ) -> Self {
        let key = KeyPair::generate().unwrap();
        let chain = vec![certificate.signed_by(&key, issuer).unwrap().der().clone()];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        tls.alpn_protocols = spoken.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(issuer.der().clone()).unwrap();
        let (tell, seen) = unbounded_channel();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(async move {
            for turn in script {
                let (stream, _) = listener.accept().await.unwrap();
                if matches!(turn, Turn::Cut) {
                    continue;
                }
                if let Ok(stream) = acceptor.accept(stream).await {
                    let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                    let _ = tell.send(Seen::Connection(agreed));
                    tokio::spawn(serve(stream, turn, tell.clone()));
                }
            }
        });
        Self { address, roots, seen }
    }

    /// One that is trusted and speaks HTTP/2.
    async fn trusted(script: Vec<Turn>) -> Self {
        Self::start(&authority("Test root"), certificate("localhost"), &["h2", "http/1.1"], script)
            .await
    }

    fn adapter(&self) -> HttpAdapterBuilder {
        let client = Reqwest::trusting(self.roots.clone()).unwrap();
        let base = format!("https://localhost:{}/v1", self.address.port());
        HttpAdapter::builder(base).transport(client)
    }

    fn seen(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

async fn serve(stream: TlsStream<TcpStream>, turn: Turn, tell: UnboundedSender<Seen>) {
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    match turn {
        Turn::Serve(steps) if is_h2 => serve_h2(stream, steps, &tell).await,
        Turn::Serve(_) => serve_http1(stream, &tell).await,
        Turn::GoAway { last, reason } => go_away(stream, last, reason, &tell).await,
        Turn::Cut => {}
    }
}

async fn serve_h2(stream: TlsStream<TcpStream>, steps: Vec<Step>, tell: &UnboundedSender<Seen>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let mut steps = steps.into_iter();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let _ = tell.send(Seen::Request);
        match steps.next() {
            Some(Step::Answer(head)) => {
                let mut body = respond.send_response(head, false).unwrap();
                body.send_data(Bytes::from_static(b"done"), true).unwrap();
            }
            Some(Step::Reset(reason)) => respond.send_reset(reason),
            None => return,
        }
    }
}

async fn serve_http1(mut stream: TlsStream<TcpStream>, tell: &UnboundedSender<Seen>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let _ = tell.send(Seen::Request);
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone";
    stream.write_all(answer).await.unwrap();
    stream.shutdown().await.unwrap();
}

/// By hand: h2's own server takes every stream that it reads.
async fn go_away(
    mut stream: TlsStream<TcpStream>,
    last: u32,
    reason: h2::Reason,
    tell: &UnboundedSender<Seen>,
) {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: u8 = 1;
    stream.write_all(&SETTINGS).await.unwrap();
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == HEADERS {
            break;
        }
    }
    let _ = tell.send(Seen::Request);
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.to_be_bytes());
    frame.extend_from_slice(&u32::from(reason).to_be_bytes());
    stream.write_all(&frame).await.unwrap();
    stream.shutdown().await.unwrap();
}

/// The client offers both, and speaks what the server takes.
#[tokio::test(start_paused = true)]
async fn a_server_chooses_what_is_spoken() {
    let _held = Held::new();
    for (spoken, chosen) in [
        (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
        (&["http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let script = vec![Turn::Serve(vec![answer(200)])];
        let issuer = authority("Test root");
        let mut server = Server::start(&issuer, certificate("localhost"), spoken, script).await;
        let api = server.adapter().build().unwrap();
        assert_eq!(api.get("x").send().await.unwrap().body(), "done", "{spoken:?}");
        let chosen = chosen.map(<[u8]>::to_vec);
        assert_eq!(server.seen(), [Seen::Connection(chosen), Seen::Request]);
    }
}

fn assert_refused(error: &HttpError, told: &str) {
    assert_eq!(error.fault(), Some(ErrorKind::Tls), "{error:?}");
    assert!(error.to_string().contains(told), "{error}");
    assert!(error.is_not_sent() && !error.is_retryable());
    let info = error.info().unwrap();
    assert_eq!((info.calls, info.stop), (1, Some(StopReason::NotRetryable)));
}

/// Faults of certificates are told by name, are not retried, and count against the receiver.
#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_not_accepted_is_named_and_not_retried() {
    let _held = Held::new();
    let issuer = authority("Test root");
    let mut expired = certificate("localhost");
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    for (certificate, told) in
        [(certificate("other.test"), "not valid for name"), (expired, "expired")]
    {
        let script = (0..3).map(|_| Turn::Serve(Vec::new())).collect();
        let mut server = Server::start(&issuer, certificate, &["h2"], script).await;
        let one = breaker("one").trip(Trip::consecutive(1)).build().unwrap();
        let api = server.adapter().retry(calls(3)).breaker(one.clone()).build().unwrap();
        assert_refused(&api.get("x").send().await.unwrap_err(), told);
        assert!(matches!(one.state(), State::Open { .. }));
        assert!(!server.seen().contains(&Seen::Request));
    }
    // An authority that nobody knows, for this client and for the one with the platform's roots.
    let script = (0..2).map(|_| Turn::Serve(Vec::new())).collect();
    let server = Server::start(&issuer, certificate("localhost"), &["h2"], script).await;
    let mut roots = RootCertStore::empty();
    roots.add(authority("Another root").der().clone()).unwrap();
    for client in [Reqwest::trusting(roots).unwrap(), Reqwest::new().unwrap()] {
        let api = server.adapter().transport(client).retry(calls(3)).build().unwrap();
        assert_refused(&api.get("x").send().await.unwrap_err(), "UnknownIssuer");
    }
}

/// A POST without a key is made again after these ends: nothing was done with it.
#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_sent_again_whatever_its_method() {
    let _held = Held::new();
    let go_away = |reason| Turn::GoAway { last: 0, reason };
    let good = || Turn::Serve(vec![answer(200)]);
    let refused = vec![Step::Reset(h2::Reason::REFUSED_STREAM), answer(200)];
    for (script, connections) in [
        (vec![Turn::Serve(refused)], 1),
        (vec![go_away(h2::Reason::NO_ERROR), good()], 2),
        (vec![go_away(h2::Reason::ENHANCE_YOUR_CALM), good()], 2),
        (vec![Turn::Cut, good()], 1),
    ] {
        let mut server = Server::trusted(script).await;
        let (observer, mut waits) = waits();
        let api = server.adapter().retry(calls(2)).observer(observer).build().unwrap();
        let sent = tokio::spawn(api.post("x").text("body").send());
        // So that the wait for a retry that never comes ends with the request.
        drop(api);
        tokio::time::advance(waits.recv().await.unwrap()).await;
        let response = sent.await.unwrap().unwrap();
        assert_eq!((response.body().as_ref(), response.info().unwrap().calls), (&b"done"[..], 2));
        let seen = server.seen();
        assert_eq!(seen.iter().filter(|seen| **seen != Seen::Request).count(), connections);
    }
}

/// After these the receiver may have acted on it: a POST without a key is not made again.
#[tokio::test(start_paused = true)]
async fn what_may_have_been_acted_on_is_not_sent_again_blindly() {
    let _held = Held::new();
    let taken = |reason| Turn::GoAway { last: 1, reason };
    for turn in [
        Turn::Serve(vec![Step::Reset(h2::Reason::INTERNAL_ERROR)]),
        Turn::Serve(vec![Step::Reset(h2::Reason::CANCEL)]),
        taken(h2::Reason::NO_ERROR),
        taken(h2::Reason::INTERNAL_ERROR),
    ] {
        let server = Server::trusted(vec![turn]).await;
        let api = server.adapter().retry(calls(2)).build().unwrap();
        let error = api.post("x").send().await.unwrap_err();
        assert_eq!(error.fault(), Some(ErrorKind::ConnectionReset), "{error:?}");
        assert!(error.is_retryable() && !error.is_not_sent());
        assert_eq!(error.info().unwrap().stop, Some(StopReason::UnsafeMethod));
    }
}

/// RA-01 and its neighbours over HTTP/2: the wish is followed, on the same connection.
#[tokio::test(start_paused = true)]
async fn a_wish_is_followed_over_http2() {
    let _held = Held::new();
    let mut busy = http::Response::builder().status(503).header("retry-after", "7");
    busy = busy.header("x-other", "1");
    let steps = vec![Step::Answer(busy.body(()).unwrap()), answer(200)];
    let mut server = Server::trusted(vec![Turn::Serve(steps)]).await;
    let (observer, mut waits) = waits();
    let api = server.adapter().retry(calls(2)).observer(observer).build().unwrap();
    let sent = tokio::spawn(api.get("x").send());
    drop(api);
    let wait = waits.recv().await.unwrap();
    assert!((SECOND * 7..SECOND * 8).contains(&wait), "{wait:?}");
    // Timers go by whole milliseconds.
    tokio::time::advance(wait + SECOND / 1_000).await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), response.info().unwrap().calls), (200, 2));
    let connections = [Seen::Connection(Some(b"h2".to_vec())), Seen::Request, Seen::Request];
    assert_eq!(server.seen(), connections);
}
