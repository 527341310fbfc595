//! The way out: one signed request to one address, one deadline over everything.
//!
//! Never: retry (but for one resend on a dead reused connection), follow redirects, or judge the
//! answer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::attempt::Outcome;
use domain::endpoint::Endpoint;
use domain::target::Target;
use http::HeaderMap;

mod answer;
mod connector;
pub mod dns;
mod fault;
pub mod http1;
mod layer;
mod link;
mod message;
mod pool;
mod proxy;
pub mod scripted;
mod spelled;
mod stream;
mod tls;

/// A request, ready to be written.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// Where to; its target names the address.
    pub endpoint: Arc<Endpoint>,
    /// Every header but `host` and `content-length`.
    pub headers: HeaderMap,
    /// The body, byte for byte.
    pub body: Bytes,
    /// From now to the last body byte.
    pub deadline: Duration,
    /// Part of it that connecting may take.
    pub connect_timeout: Duration,
}

/// A question whether a receiver is well.
#[derive(Clone, Debug)]
pub struct Check {
    /// Where to ask.
    pub target: Target,
    /// Every header but `host`.
    pub headers: HeaderMap,
    /// From now to the last body byte.
    pub deadline: Duration,
    /// Part of it that connecting may take.
    pub connect_timeout: Duration,
}

/// A question under way: whether it was answered 2xx.
pub type Checking = Pin<Box<dyn Future<Output = bool> + Send>>;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Answer or failure.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// Sent once more because a reused connection died before any answer byte.
    pub resent: bool,
}

/// A send under way. Dropping it aborts the send.
pub type Sending = Pin<Box<dyn Future<Output = Sent> + Send>>;

/// Sends requests.
pub trait Transport: Send + Sync {
    /// Makes one attempt; a refused connection is a result like any other, so nothing here is an
    /// error. It ends by `deadline`, whatever the receiver does; one that does not is broken off.
    fn send(&self, request: Outbound) -> Sending;

    /// Asks once, by GET; whatever goes wrong is a no.
    fn check(&self, question: Check) -> Checking {
        let _unanswered = question;
        Box::pin(std::future::ready(false))
    }
}
