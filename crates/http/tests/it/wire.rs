//! Over real sockets: reqwest and hyper's client against a server that follows a script.
//!
//! The clock is paused and held, so that it moves only when a test moves it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::spawn;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_adapter::resilience::{ErrorKind, RetryInfo, StopReason};
use http_adapter::{HttpAdapter, HttpAdapterBuilder, HttpErrorKind, RetryLayer, fault_of};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tower::{ServiceBuilder, ServiceExt};

use crate::support::{Held, SECOND, breaker, calls, waits};

/// What the server does with one request.
pub(crate) enum Step {
    /// Reads it whole and answers.
    Answer(String),
    /// Reads it whole, answers with a part of a body, and closes.
    Break,
    /// Reads it whole and is silent until the client closes.
    Silence,
    /// Reads the head alone and answers.
    Early(String),
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Step {
    let length = body.len();
    Step::Answer(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}

/// What the server saw: a new connection, or a request's body.
#[derive(Debug, PartialEq)]
enum Seen {
    Connection,
    Request(Vec<u8>),
}

pub(crate) struct Server {
    address: SocketAddr,
    seen: UnboundedReceiver<Seen>,
}

impl Server {
    pub(crate) fn start(script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = unbounded_channel();
        spawn(move || {
            let mut script = script.into_iter().peekable();
            while script.peek().is_some() {
                let (stream, _) = listener.accept().unwrap();
                let _ = tell.send(Seen::Connection);
                serve(&stream, &mut script, &tell);
            }
        });
        Self { address, seen }
    }

    pub(crate) fn adapter(&self) -> HttpAdapterBuilder {
        HttpAdapter::builder(format!("http://{}/v1", self.address))
    }

    fn connections(&mut self) -> usize {
        let seen = std::iter::from_fn(|| self.seen.try_recv().ok());
        seen.filter(|seen| *seen == Seen::Connection).count()
    }
}

/// One connection, until it or the script ends.
fn serve(
    mut stream: &TcpStream,
    script: &mut impl Iterator<Item = Step>,
    tell: &UnboundedSender<Seen>,
) {
    let mut reader = BufReader::new(stream);
    while let Some(length) = head(&mut reader) {
        let Some(step) = script.next() else { return };
        if let Step::Early(answer) = step {
            stream.write_all(answer.as_bytes()).unwrap();
            return;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let _ = tell.send(Seen::Request(body));
        match step {
            Step::Answer(answer) => stream.write_all(answer.as_bytes()).unwrap(),
            Step::Silence => return drop(reader.read_to_end(&mut Vec::new())),
            Step::Break | Step::Early(_) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart").unwrap();
                return;
            }
        }
    }
}

/// Reads a head; the length of its body.
fn head(reader: &mut impl BufRead) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            return Some(length);
        }
    }
}

/// 503 with a wish, then 200: the wish is followed, the connection used again, the body the same.
#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_wants() {
    let _held = Held::new();
    let filler = "x".repeat(20_000);
    let script =
        vec![answer("503 Busy", "retry-after: 7\r\n", &filler), answer("200 OK", "", "done")];
    let mut server = Server::start(script);
    let (observer, mut waits) = waits();
    let api = server.adapter().retry(calls(2)).observer(observer).build().unwrap();
    let body = "é".repeat(32 << 10);
    let sent = tokio::spawn(api.put("x").text(body.clone()).send());
    let wait = waits.recv().await.unwrap();
    assert!((SECOND * 7..SECOND * 8).contains(&wait), "{wait:?}");
    // Timers go by whole milliseconds.
    tokio::time::advance(wait + Duration::from_millis(1)).await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!((response.body().as_ref(), response.info().unwrap().calls), (b"done".as_ref(), 2));
    assert_eq!(server.seen.recv().await, Some(Seen::Connection));
    for _ in 0..2 {
        assert_eq!(server.seen.recv().await, Some(Seen::Request(body.clone().into_bytes())));
    }
    assert_eq!(server.connections(), 0, "one connection was enough");
}

/// T14: nobody listens; told as such through reqwest and through hyper's client, and retried.
#[tokio::test(start_paused = true)]
async fn t14_a_refused_connection_is_found_behind_real_clients() {
    let _held = Held::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let api = HttpAdapter::builder(format!("http://{address}")).build().unwrap();
    let error = api.post("x?key=hidden").send().await.unwrap_err();
    assert_eq!(error.fault(), Some(ErrorKind::ConnectionRefused));
    assert!(error.is_retryable());
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert!(!format!("{error} {error:?}").contains("hidden"), "T16: {error}");
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let request = Request::get(format!("http://{address}")).body(Full::default()).unwrap();
    let error = client.request(request).await.unwrap_err();
    assert_eq!(fault_of(&error), ErrorKind::ConnectionRefused);
    let unknown = HttpAdapter::builder("http://no-such-host.invalid").build().unwrap();
    let error = unknown.get("x").send().await.unwrap_err();
    assert_eq!(error.fault(), Some(ErrorKind::Dns), "{error:?}");
}

/// A body that breaks off is a failed attempt, not half an answer.
#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_retried() {
    let _held = Held::new();
    let mut server = Server::start(vec![Step::Break, answer("200 OK", "", "whole")]);
    let (observer, mut waits) = waits();
    let api = server.adapter().retry(calls(2)).observer(observer).build().unwrap();
    let sent = tokio::spawn(api.get("x").send());
    tokio::time::advance(waits.recv().await.unwrap()).await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!((response.body().as_ref(), response.info().unwrap().calls), (b"whole".as_ref(), 2));
    assert_eq!(server.connections(), 2);

    let server = Server::start(vec![Step::Break]);
    let error = server.adapter().build().unwrap().get("x").send().await.unwrap_err();
    assert_eq!(error.fault(), Some(ErrorKind::ConnectionReset), "{error:?}");
}

/// HR-01, FC6, FC7: a server that never answers costs one attempt's time.
#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_the_time_of_an_attempt() {
    let _held = Held::new();
    let mut server = Server::start(vec![Step::Silence, answer("200 OK", "", "late")]);
    let (observer, mut waits) = waits();
    let one = breaker("one").build().unwrap();
    let api = server.adapter().retry(calls(2)).observer(observer).breaker(one.clone());
    let api = api.attempt_timeout(SECOND * 3).build().unwrap();
    let sent = tokio::spawn(api.get("x").send());
    assert_eq!(server.seen.recv().await, Some(Seen::Connection));
    assert_eq!(server.seen.recv().await, Some(Seen::Request(Vec::new())));
    tokio::time::advance(SECOND * 3).await;
    tokio::time::advance(waits.recv().await.unwrap()).await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.info().unwrap().elapsed, Some(SECOND * 4));
    assert!(matches!(one.state(), resilience::State::Closed));
}

/// An answer that comes before the body is through ends the request; the body is not repeated.
#[tokio::test(start_paused = true)]
async fn an_early_answer_ends_a_streaming_request() {
    let _held = Held::new();
    let early = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\nconnection: close\r\n\r\nfull";
    let server = Server::start(vec![Step::Early(early.to_owned())]);
    let api = server.adapter().retry(calls(3)).build().unwrap();
    let error = api.put("x").stream(StreamBody::new(Endless)).send().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.status()),
        (HttpErrorKind::Status, Some(StatusCode::SERVICE_UNAVAILABLE))
    );
    assert_eq!(error.info().unwrap().stop, Some(StopReason::BodyNotReplayable));
    assert_eq!(error.response().unwrap().body(), "full");
}

/// A body whose end never comes.
struct Endless;

impl futures_core::Stream for Endless {
    type Item = Result<http_body::Frame<Bytes>, std::convert::Infallible>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Pending
    }
}

/// The retry layer over hyper's client: the failed answer is read, its connection used again.
#[tokio::test(start_paused = true)]
async fn the_layer_uses_the_connection_again() {
    let _held = Held::new();
    let filler = "x".repeat(200_000);
    for (drain, connections) in [(1 << 20, 1), (100, 2)] {
        let script = vec![answer("503 Busy", "", &filler), answer("200 OK", "", "done")];
        let mut server = Server::start(script);
        let (tell, mut dropped) = unbounded_channel();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let service = ServiceBuilder::new()
            .layer(RetryLayer::new(calls(2)).drain_on_retry(drain))
            .map_response(move |response: Response<Incoming>| {
                response.map(|body| Told { body, dropped: tell.clone() })
            })
            .service(client);
        let request = Request::put(format!("http://{}", server.address));
        let request = request.body(Full::new(Bytes::from_static(b"body"))).unwrap();
        let sent = tokio::spawn(service.oneshot(request));
        dropped.recv().await.unwrap();
        tokio::time::advance(SECOND).await;
        let response = sent.await.unwrap().unwrap();
        assert_eq!(response.extensions().get::<RetryInfo>().unwrap().calls, 2);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "done");
        assert_eq!(server.connections(), connections, "drained up to {drain}");
    }
}

/// A body that tells when it is dropped.
struct Told {
    body: Incoming,
    dropped: UnboundedSender<()>,
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.dropped.send(());
    }
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }
}

/// hyper's client is a transport too, and so is an axum router.
#[tokio::test(start_paused = true)]
async fn any_service_is_a_transport() {
    let _held = Held::new();
    let server = Server::start(vec![answer("200 OK", "", "hyper")]);
    let client = Client::builder(TokioExecutor::new()).build_http();
    let api = server.adapter().transport(client).build().unwrap();
    assert_eq!(api.get("x").send().await.unwrap().body(), "hyper");

    let router: axum::Router =
        axum::Router::new().route("/v1/x", axum::routing::post(|body: String| async { body }));
    let service = ServiceBuilder::new()
        .map_request(|request: Request<http_adapter::Body>| request.map(axum::body::Body::new))
        .service(router);
    let api = HttpAdapter::builder("http://in.process/v1").transport(service).build().unwrap();
    assert_eq!(api.post("x").text("echo").send().await.unwrap().body(), "echo");
}
