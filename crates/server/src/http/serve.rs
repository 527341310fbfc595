//! Connections: accepted, bounded, served, and ended when the server stops.
//!
//! In: a listener and a router. Out: when it returns, every answer that was begun has been given or
//! its time is up. Paths are served with and without a slash at their end; browsers of any origin
//! may call.
//! Never: know a route.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower_service::Service as _;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 4_096;
/// The head of the next request must arrive within this; an idle connection is closed then.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Answers that were begun may take so long once the server stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// After a failed accept, which is mostly for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is true.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let permit = tokio::select! {
            permit = Arc::clone(&room).acquire_owned() => permit,
            () = told(&mut stop) => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told(&mut stop) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, router, stop).await;
                    drop(permit);
                });
            }
            Err(fault) => {
                tracing::warn!(%fault, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _late = tokio::time::timeout(DRAIN_TIME_MAX, ended).await;
}

/// Waits until the server is told to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _told_or_gone = stop.wait_for(|stop| *stop).await.is_ok();
}

async fn connection(stream: TcpStream, router: Router, mut stop: watch::Receiver<bool>) {
    let _slower = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request| answer(router.clone(), request));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = told(&mut stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(fault) = ended {
        tracing::debug!(%fault, "a connection ended badly");
    }
}

async fn answer(
    mut router: Router,
    mut request: Request<Incoming>,
) -> Result<Response, Infallible> {
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

/// The same target without slashes at the end of its path; `None` when there are none.
fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() || trimmed.len() == path.len() {
        return None;
    }
    let target = match uri.query() {
        Some(query) => format!("{trimmed}?{query}"),
        None => trimmed.to_owned(),
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
    fn slashes_at_the_end_of_a_path_make_no_difference() {
        let table = [
            ("/api/v1/app/", Some("/api/v1/app")),
            ("/api/v1/app//?limit=1/", Some("/api/v1/app?limit=1/")),
            ("http://h:1/a/?b", Some("http://h:1/a?b")),
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
