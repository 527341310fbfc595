//! A transport that answers as it was told and remembers what it was asked.
//!
//! Replies come from the endpoint's queue, its standing reply, the queue for all, the standing
//! reply for all, in this order.
//! Never: touch a network.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Full};
use tower_service::Service;

use crate::errors::BoxError;

/// What a mock answers.
#[derive(Clone, Debug)]
pub struct MockReply(Form);

#[derive(Clone, Debug)]
enum Form {
    Answer { status: StatusCode, headers: HeaderMap, body: Bytes },
    Fault(io::ErrorKind),
    Silence,
}

impl MockReply {
    /// An answer of this status; 500 if there is no such status.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self(Form::Answer { status, headers: HeaderMap::new(), body: body.into() })
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        if let Form::Answer { headers, .. } = &mut self.0 {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        self
    }

    /// An error of the network.
    pub const fn fault(kind: io::ErrorKind) -> Self {
        Self(Form::Fault(kind))
    }

    /// No answer, ever.
    pub const fn silence() -> Self {
        Self(Form::Silence)
    }
}

/// A request that a mock was sent.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// Its method.
    pub method: Method,
    /// Its URL.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its whole body.
    pub body: Bytes,
}

impl RecordedCall {
    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

#[derive(Default)]
struct Script {
    once: VecDeque<MockReply>,
    always: Option<MockReply>,
}

impl Script {
    fn next(&mut self) -> Option<MockReply> {
        self.once.pop_front().or_else(|| self.always.clone())
    }
}

#[derive(Default)]
struct State {
    for_all: Script,
    by_path: HashMap<String, Script>,
    calls: Vec<RecordedCall>,
}

impl State {
    fn script(&mut self, path: Option<&str>) -> &mut Script {
        match path {
            Some(path) => self.by_path.entry(path.to_owned()).or_default(),
            None => &mut self.for_all,
        }
    }

    fn reply(&mut self, path: &str) -> Option<MockReply> {
        let own = self.by_path.get_mut(path).and_then(Script::next);
        own.or_else(|| self.for_all.next())
    }
}

/// A scripted transport. Clones are the same one, so keep one to look at.
#[derive(Clone, Default)]
pub struct MockTransport(Arc<Mutex<State>>);

impl MockTransport {
    /// Nothing to answer with yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The standing reply for everything.
    pub fn reply(&self, status: u16, body: impl Into<Bytes>) -> &Self {
        self.always(MockReply::new(status, body))
    }

    /// The reply to one request; several are used in order.
    pub fn reply_once(&self, status: u16, body: impl Into<Bytes>) -> &Self {
        self.once(MockReply::new(status, body))
    }

    /// Any standing reply.
    pub fn always(&self, reply: MockReply) -> &Self {
        self.state().for_all.always = Some(reply);
        self
    }

    /// Any reply to one request.
    pub fn once(&self, reply: MockReply) -> &Self {
        self.state().for_all.once.push_back(reply);
        self
    }

    /// The replies for one path, which go before those for all.
    pub fn on(&self, path: &str) -> MockEndpoint {
        MockEndpoint { mock: self.clone(), path: path.to_owned() }
    }

    /// A copy of what was asked so far.
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.state().calls.clone()
    }

    /// One of the calls, from 0.
    pub fn call(&self, index: usize) -> Option<RecordedCall> {
        self.state().calls.get(index).cloned()
    }

    /// Panics unless it was asked so often.
    #[track_caller]
    pub fn assert_called_times(&self, times: usize) {
        let called = self.calls().len();
        assert!(called == times, "called {called} times, not {times}");
    }

    /// Panics unless it was asked for this.
    #[track_caller]
    pub fn assert_called_with(&self, method: &Method, path: &str) {
        let calls = self.calls();
        let found = calls.iter().any(|call| call.method == method && call.uri.path() == path);
        assert!(found, "not called with {method} {path}, but with {calls:?}");
    }

    /// Panics if it was asked for anything.
    #[track_caller]
    pub fn assert_not_called(&self) {
        self.assert_called_times(0);
    }

    /// Forgets all replies and calls.
    pub fn reset(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MockTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockTransport").field("calls", &self.calls().len()).finish_non_exhaustive()
    }
}

/// The replies for one path of a [`MockTransport`].
#[derive(Clone, Debug)]
pub struct MockEndpoint {
    mock: MockTransport,
    path: String,
}

impl MockEndpoint {
    /// Its standing reply.
    pub fn always(&self, reply: MockReply) -> &Self {
        self.mock.state().script(Some(&self.path)).always = Some(reply);
        self
    }

    /// A reply to one request; several are used in order.
    pub fn once(&self, reply: MockReply) -> &Self {
        self.mock.state().script(Some(&self.path)).once.push_back(reply);
        self
    }
}

impl<B> Service<Request<B>> for MockTransport
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mock = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let reply = {
                let mut state = mock.state();
                let reply = state.reply(parts.uri.path());
                let (method, uri, headers) = (parts.method, parts.uri, parts.headers);
                state.calls.push(RecordedCall { method, uri, headers, body });
                reply
            };
            match reply.map(|reply| reply.0) {
                None => Err("no response configured".into()),
                Some(Form::Fault(kind)) => Err(io::Error::from(kind).into()),
                Some(Form::Silence) => pending().await,
                Some(Form::Answer { status, headers, body }) => {
                    let mut response = Response::new(Full::new(body));
                    *response.status_mut() = status;
                    *response.headers_mut() = headers;
                    Ok(response)
                }
            }
        })
    }
}
