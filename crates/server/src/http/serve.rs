//! Connections: accepted, bounded, served, and ended when the server stops.
//!
//! In: a listener and a router. Out: when it returns, every answer that was begun has been given or
//! its time is up. Paths are served with any slashes at their ends; browsers of any origin
//! may call. When there are as many connections as there may be, one that idles makes room.
//! Never: know a route.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use resilience::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service as _;

use super::bare;
use super::connections::{HEAD_BYTES_MAX, Marks, Phase, Seat, Table};
use super::problem::Problem;
use super::unread::{self, Lent};
use super::watched::Watched;

/// Answers that were begun may take so long once the server stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// After a failed accept, which is mostly for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A client that was refused in the middle of its head may send so long until it has read why.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// What is served, and what all connections share.
pub(crate) struct Serving {
    /// Routes to the handlers.
    pub(crate) router: Router,
    /// Connections at once.
    pub(crate) connections_max: usize,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
}

/// Serves until `stop` is true.
pub(crate) async fn serve(listener: TcpListener, what: Serving, mut stop: watch::Receiver<bool>) {
    let Serving { router, connections_max, clock } = what;
    let table = Table::new(connections_max, Arc::clone(&clock));
    let sweeping = tokio::spawn(Arc::clone(&table).keep_swept());
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told(&mut stop) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(fault) => {
                tracing::warn!(%fault, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let seat = tokio::select! {
            seat = table.seat() => seat,
            () = told(&mut stop) => break,
        };
        let (router, stop, clock) = (router.clone(), stop.clone(), Arc::clone(&clock));
        connections.spawn(connection(stream, router, seat, stop, clock));
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _late = tokio::time::timeout(DRAIN_TIME_MAX, ended).await;
    sweeping.abort();
}

/// Waits until the server is told to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _told_or_gone = stop.wait_for(|stop| *stop).await.is_ok();
}

async fn connection(
    stream: TcpStream,
    router: Router,
    seat: Seat,
    mut stop: watch::Receiver<bool>,
    clock: Arc<dyn Clock>,
) {
    let _slower = stream.set_nodelay(true);
    let marks = Arc::clone(seat.marks());
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&marks)));
    let service =
        hyper::service::service_fn(move |request| answer(router.clone(), request, marks.clone()));
    let mut served = hyper::server::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(io, service);
    let mut leaving = false;
    let ended = loop {
        tokio::select! {
            ended = &mut served => break ended,
            () = told(&mut stop), if !leaving => {}
            phase = seat.told_to_leave() => match phase {
                Phase::Head => {
                    let stream = served.into_parts().io.into_inner().into_inner();
                    return refuse(stream, &bare::head_timeout(clock.now())).await;
                }
                // Told twice: nobody takes the end of its last answer.
                Phase::Idle if leaving => return,
                Phase::Idle | Phase::Busy => {}
            },
        }
        leaving = true;
        Pin::new(&mut served).graceful_shutdown();
    };
    if let Err(fault) = ended {
        tracing::debug!(%fault, "a connection ended badly");
        if fault.is_parse() {
            refuse(served.into_parts().io.into_inner().into_inner(), &[]).await;
        }
    }
}

/// Sends the last bytes, then throws away what still comes: a connection that is closed on a client
/// that still sends is reset, and the client never sees why.
async fn refuse(mut stream: TcpStream, last: &[u8]) {
    let refused = async {
        stream.write_all(last).await?;
        stream.shutdown().await?;
        let mut rest = [0; 4_096];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _done_or_late = tokio::time::timeout(LINGER_MAX, refused).await;
}

/// The body of an answer; once it has been taken, the connection idles.
struct Taken {
    body: axum::body::Body,
    marks: Arc<Marks>,
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.marks.end();
    }
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    marks: Arc<Marks>,
) -> Result<http::Response<Taken>, Infallible> {
    marks.begin();
    let (request, unread) = unread::lend(request);
    let mut response = routed(router, request).await?;
    unread.settle(&mut response).await;
    Ok(response.map(|body| Taken { body, marks }))
}

async fn routed(mut router: Router, mut request: Request<Lent>) -> Result<Response, Infallible> {
    // The HTTP library looks at what it has read, which may be twice as much.
    if head_bytes(&request) > HEAD_BYTES_MAX {
        return Ok(bare::head_too_large().closing().into_response());
    }
    if !names_one_host(request.version(), request.headers()) {
        let detail = "The request must have one `host` header, with a host and perhaps a port";
        return Ok(Problem::bad_request("generic_error", detail).closing().into_response());
    }
    if let Some(trimmed) = without_slash(request.uri()) {
        *request.uri_mut() = trimmed;
    }
    if !request.headers().contains_key(header::ORIGIN) {
        return router.call(request).await;
    }
    let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        router.call(request).await?
    };
    allow_origin(&mut response, asked);
    Ok(response)
}

/// The head of a request, as it is written without needless spaces.
fn head_bytes<B>(request: &Request<B>) -> usize {
    let target = request.uri();
    let authority = target.authority().map_or(0, |it| "http://".len() + it.as_str().len());
    let path = target.path_and_query().map_or(0, |it| it.as_str().len());
    let line = request.method().as_str().len() + authority + path + "  HTTP/1.1\r\n".len();
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().len() + value.len() + ": \r\n".len()
    };
    line + request.headers().iter().map(header).sum::<usize>() + "\r\n".len()
}

/// Whether a request says for which host it is as RFC 9112 section 3.2 asks.
fn names_one_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => {
            // An empty one is for a target without a host.
            host.is_empty()
                || Authority::try_from(host.as_bytes())
                    .is_ok_and(|host| !host.as_str().contains('@'))
        }
        (Some(_), Some(_)) => false,
    }
}

/// The same target without slashes at the end of its path, and with one at its beginning (a client
/// that was given an address with a slash at its end sends two); `None` when it is so already.
fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let trimmed = path.trim_matches('/');
    if trimmed.is_empty() || trimmed.len() + 1 == path.len() {
        return None;
    }
    let target = match uri.query() {
        Some(query) => format!("/{trimmed}?{query}"),
        None => format!("/{trimmed}"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Tokens are in a header that no browser adds by itself, so any origin may call.
fn allow_origin(response: &mut Response, asked: Option<HeaderValue>) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if let Some(asked) = asked {
        let methods = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_host() {
        let table: [(Version, &[&str], bool); 10] = [
            (Version::HTTP_11, &["h"], true),
            (Version::HTTP_11, &["h.example:8071"], true),
            (Version::HTTP_11, &["[::1]:8071"], true),
            (Version::HTTP_11, &[""], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &["h", "h"], false),
            (Version::HTTP_11, &["a b"], false),
            (Version::HTTP_11, &["u@h"], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &["h", "i"], false),
        ];
        for (version, hosts, expected) in table {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_static(host));
            }
            assert_eq!(names_one_host(version, &headers), expected, "{version:?} {hosts:?}");
        }
    }

    #[test]
    fn slashes_at_the_ends_of_a_path_make_no_difference() {
        let table = [
            ("/api/v1/app/", Some("/api/v1/app")),
            ("/api/v1/app//?limit=1/", Some("/api/v1/app?limit=1/")),
            ("http://h:1/a/?b", Some("http://h:1/a?b")),
            ("//api/v1/app", Some("/api/v1/app")),
            ("//api/v1/app/?x", Some("/api/v1/app?x")),
            ("/api/v1/app", None),
            ("/api/v1/app?x=/", None),
            ("/", None),
            ("//", None),
        ];
        for (text, expected) in table {
            let trimmed = without_slash(&text.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(trimmed.as_deref(), expected, "{text}");
        }
    }
}
