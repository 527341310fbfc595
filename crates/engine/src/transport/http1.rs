//! The transport that really sends: HTTP/1.1 over kept connections, one deadline over everything.
//!
//! In: an `Outbound`. Out: a `Sent`. A request leaves once; only if a *kept* connection dies before
//! any byte of an answer came is it sent once more, on a new connection, within the same deadline.
//! Never: follow redirects, send twice on new connections, decompress, or change the headers it was
//! given beyond adding `host` and, for an empty body, `content-length`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use domain::attempt::{Answer, Failure, FailureKind, Outcome};
use domain::endpoint::Endpoint;
use domain::limits;
use domain::proxy::Proxy;
use domain::target::{Guard, Target};
use http::{Request, StatusCode};
use http_body_util::Full;
use resilience::Clock;
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::{self, Head, Limits};
use super::connector::Connector;
use super::dns::Resolve;
use super::fault;
use super::link::Link;
use super::message::{self, Spare};
use super::pool::{Bounds, Pool};
use super::tls::Tls;
use super::{Check, Checking, Outbound, Sending, Sent, Transport};

pub use super::tls::Roots;

/// What an [`HttpTransport`] is built from.
#[derive(Clone)]
pub struct HttpOptions {
    /// Which addresses may be dialled.
    pub guard: Guard,
    /// Names to addresses.
    pub resolver: Arc<dyn Resolve>,
    /// For dates in `Retry-After` and in certificates.
    pub clock: Arc<dyn Clock>,
    /// Whom to trust.
    pub roots: Roots,
    /// Through what.
    pub proxy: Option<Proxy>,
    /// Bytes of an answer's body that are read.
    pub read_bytes_max: usize,
    /// Bytes of an answer's body that are kept.
    pub keep_bytes_max: usize,
    /// Idle connections kept to one origin.
    pub idle_per_origin_max: usize,
    /// Idle connections kept in all.
    pub idle_total_max: usize,
    /// How long a connection may be idle.
    pub idle_max: Duration,
}

impl HttpOptions {
    /// The usual bounds.
    pub fn new(guard: Guard, resolver: Arc<dyn Resolve>, clock: Arc<dyn Clock>) -> Self {
        Self {
            guard,
            resolver,
            clock,
            roots: Roots::Platform,
            proxy: None,
            read_bytes_max: limits::RESPONSE_BYTES_READ_MAX,
            keep_bytes_max: limits::RESPONSE_BYTES_KEPT_MAX,
            idle_per_origin_max: 256,
            idle_total_max: 1_024,
            idle_max: Duration::from_secs(30),
        }
    }
}

/// Sends over HTTP/1.1. Cloning it shares the connections.
#[derive(Clone)]
pub struct HttpTransport(Arc<Inner>);

struct Inner {
    connector: Connector,
    pool: Arc<Pool>,
    clock: Arc<dyn Clock>,
    limits: Limits,
}

impl HttpTransport {
    /// Starts without a connection; must be called on a runtime, since idle connections are swept.
    pub fn new(options: HttpOptions) -> Self {
        let HttpOptions { guard, resolver, clock, roots, proxy, .. } = options;
        let tls = Tls::new(roots, Arc::clone(&clock));
        Self(Arc::new(Inner {
            connector: Connector { guard, resolver, tls, proxy },
            pool: Pool::start(Bounds {
                per_origin_max: options.idle_per_origin_max,
                total_max: options.idle_total_max,
                idle_max: options.idle_max,
            }),
            clock,
            limits: Limits {
                read_max: options.read_bytes_max,
                keep_max: options.keep_bytes_max.min(options.read_bytes_max),
            },
        }))
    }

    /// Connections that wait for a request.
    #[cfg(test)]
    fn idle(&self) -> usize {
        self.0.pool.len()
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Outbound) -> Sending {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let started = Instant::now();
            let (outcome, resent) = inner.send(request, started).await;
            Sent { outcome, took: started.elapsed(), resent }
        })
    }

    fn check(&self, question: Check) -> Checking {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.check(question).await.unwrap_or(false) })
    }
}

/// The deadline of one send, set once.
type Deadline<'a> = Pin<&'a mut Sleep>;

/// What one exchange came to, if there was no answer.
enum Lost {
    /// The connection died and no byte of an answer had come.
    Unheard(Failure),
    Failed(Failure),
}

impl Inner {
    async fn send(&self, request: Outbound, started: Instant) -> (Outcome, bool) {
        let Outbound { endpoint, headers, body, deadline, connect_timeout } = request;
        let target = &endpoint.spec.target;
        let Some(mut request) = message::request(target, headers, body) else {
            let text = "the URL cannot be written into a request";
            return (Outcome::Failed(fault::failure(FailureKind::Connect, text)), false);
        };
        let end = started + deadline;
        let mut deadline = std::pin::pin!(sleep_until(end));
        let mut resent = false;
        if let Some(link) = self.pool.take(message::origin(target)) {
            let spare = Spare::of(&request);
            match self.exchange(link, request, of(&endpoint), deadline.as_mut()).await {
                Ok(answer) => return (Outcome::Answered(answer), false),
                Err(Lost::Failed(failure)) => return (Outcome::Failed(failure), false),
                Err(Lost::Unheard(_)) => {
                    request = spare.request();
                    resent = true;
                }
            }
        }
        let limit = end.min(Instant::now() + connect_timeout);
        let exchanged = match self.open(target, limit).await {
            Ok(link) => self.exchange(link, request, of(&endpoint), deadline).await,
            Err(failure) => Err(Lost::Failed(failure)),
        };
        let outcome = match exchanged {
            Ok(answer) => Outcome::Answered(answer),
            Err(Lost::Unheard(failure) | Lost::Failed(failure)) => Outcome::Failed(failure),
        };
        (outcome, resent)
    }

    /// Over a connection of its own, so that no answer to a delivery is waited for.
    async fn check(&self, question: Check) -> Option<bool> {
        let Check { target, headers, deadline, connect_timeout } = question;
        let request = message::question(&target, headers)?;
        let end = Instant::now() + deadline;
        let deadline = std::pin::pin!(sleep_until(end));
        let limit = end.min(Instant::now() + connect_timeout);
        let link = self.open(&target, limit).await.ok()?;
        let answer = self.exchange(link, request, (&target, None), deadline).await.ok()?;
        Some((200..300).contains(&answer.status))
    }

    async fn open(&self, target: &Target, limit: Instant) -> Result<Link, Failure> {
        let stream = self.connector.connect(target, limit).await?;
        Link::open(stream).await.map_err(|error| fault::exchange(&error))
    }

    /// Sends on `link`, reads the answer, and keeps the connection if it can carry another request.
    /// Names of headers are spelled as the endpoint, if one is named, has them.
    async fn exchange(
        &self,
        mut link: Link,
        request: Request<Full<Bytes>>,
        (target, spelled): (&Target, Option<&Arc<Endpoint>>),
        mut deadline: Deadline<'_>,
    ) -> Result<Answer, Lost> {
        let head = within(deadline.as_mut(), link.exchange(request, spelled)).await;
        let response = match head {
            Some(Ok(response)) => response,
            Some(Err(error)) => {
                let lost = if link.heard() { Lost::Failed } else { Lost::Unheard };
                return Err(lost(fault::exchange(&error)));
            }
            None => {
                let text = "no complete answer in time";
                return Err(Lost::Failed(fault::failure(FailureKind::Timeout, text)));
            }
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let text = "the peer switched protocols unasked";
            return Err(Lost::Failed(fault::failure(FailureKind::Reset, text)));
        }
        let head = Head::of(&response, target, &*self.clock);
        let body = answer::body(&mut link, response.into_body(), self.limits, deadline).await;
        self.pool.put(message::origin(target), link);
        Ok(head.with(body))
    }
}

/// Where deliveries to an endpoint go, and who spells their headers.
fn of(endpoint: &Arc<Endpoint>) -> (&Target, Option<&Arc<Endpoint>>) {
    (&endpoint.spec.target, Some(endpoint))
}

/// Runs `work` until the deadline; `None` if that was first.
async fn within<F: Future>(mut deadline: Deadline<'_>, work: F) -> Option<F::Output> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => deadline.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests;
