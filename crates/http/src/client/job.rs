//! A request as the caller wrote it, and the job that comes of it with all defaults in.
//!
//! Never: send.

use std::any::TypeId;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use resilience::{Call, CircuitBreaker, Class, Clock, Retry, RetryAfter, TokioSleeper};

use super::address::join;
use super::body::Body;
use super::context::Context;
use super::correlation::{self, Correlation};
use super::error::{HttpError, HttpErrorKind};
use super::ids::random_id;
use super::interceptor::DynInterceptor;
use super::settings::Settings;
use crate::errors::BoxError;
use crate::replay::{Gather, Replay};
use crate::source::Breakers;

/// What a caller wrote.
pub(super) struct Draft {
    pub(super) settings: Arc<Settings>,
    pub(super) method: Method,
    endpoint: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
    pub(super) content_type: Option<HeaderValue>,
    pub(super) body: Body,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) total_timeout: Option<Duration>,
    pub(super) retry: Option<Option<Retry>>,
    pub(super) breakers: Option<Option<Breakers>>,
    pub(super) left_out: Vec<TypeId>,
    pub(super) correlation: Correlation,
    /// The first thing that cannot be sent.
    wrong: Option<BoxError>,
}

impl Draft {
    pub(super) fn new(settings: Arc<Settings>, method: Method, endpoint: String) -> Self {
        Self {
            settings,
            method,
            endpoint,
            query: Vec::new(),
            headers: HeaderMap::new(),
            content_type: None,
            body: Body::empty(),
            attempt_timeout: None,
            total_timeout: None,
            retry: None,
            breakers: None,
            left_out: Vec::new(),
            correlation: Correlation::Inherit,
            wrong: None,
        }
    }

    /// The value, or a note of what is wrong with it.
    pub(super) fn noted<T>(&mut self, value: Result<T, BoxError>) -> Option<T> {
        value.map_err(|error| self.wrong.get_or_insert(error)).ok()
    }

    /// The URL, and the context for whatever happens from here on.
    fn locate(&mut self) -> Result<(Uri, Context), HttpError> {
        let settings = Arc::clone(&self.settings);
        let (id, no_id) = match random_id() {
            Ok(id) => (id, None),
            Err(error) => (String::new(), Some(error)),
        };
        let joined = join(&settings.base, &self.endpoint, &self.query);
        // What cannot be joined has no other address than the base.
        let at = joined.as_ref().unwrap_or(&settings.base);
        let context = Context::new(self.method.clone(), at, id);
        let refuse =
            |error: BoxError| HttpError::new(HttpErrorKind::Request, context.clone(), error);
        if let Some(error) = self.wrong.take().or(no_id) {
            return Err(refuse(error));
        }
        let url = joined.map_err(|rule| refuse(rule.into()))?;
        let uri =
            url.as_str().parse().map_err(|error: http::uri::InvalidUri| refuse(error.into()))?;
        Ok((uri, context))
    }

    /// The adapter's headers, then the request's own in their place.
    fn all_headers(&mut self, context: &Context) -> Result<HeaderMap, BoxError> {
        let mut headers = self.settings.headers.clone();
        for name in self.headers.keys() {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        if let Some(value) = self.content_type.take() {
            headers.entry(CONTENT_TYPE).or_insert(value);
        }
        let sent_in: Option<HeaderName> =
            correlation::header(&self.settings.correlation, &self.correlation);
        if let Some(name) = sent_in {
            headers.insert(name, HeaderValue::from_str(context.correlation_id())?);
        }
        Ok(headers)
    }
}

/// A request with everything in that is the same for all its attempts.
pub(super) struct Job {
    pub(super) settings: Arc<Settings>,
    pub(super) sleeper: TokioSleeper,
    pub(super) context: Context,
    pub(super) retry: Retry,
    pub(super) breaker: Option<CircuitBreaker>,
    pub(super) total_timeout: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) interceptors: Vec<Arc<dyn DynInterceptor>>,
    pub(super) call: Call,
    /// Attempts begun.
    pub(super) attempts: u32,
    /// Requests handed to the transport.
    pub(super) sent: u32,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    source: Source,
}

/// The body over all attempts.
enum Source {
    Kept(Bytes),
    Once(Option<Body>),
}

impl Job {
    pub(super) fn new(mut draft: Draft) -> Result<Self, HttpError> {
        let (uri, context) = draft.locate()?;
        let refuse =
            |error: BoxError| HttpError::new(HttpErrorKind::Request, context.clone(), error);
        let mut headers = draft.all_headers(&context).map_err(refuse)?;
        let settings = draft.settings;
        let keyed = settings.keys.apply(&draft.method, &mut headers).map_err(refuse)?;
        let breakers = draft.breakers.unwrap_or_else(|| settings.breakers.clone());
        let breaker = breakers
            .map(|breakers| breakers.get(|| settings.host.clone()))
            .transpose()
            .map_err(|wrong| refuse(wrong.into()))?;
        let left_out = draft.left_out;
        let interceptors = settings.interceptors.iter();
        let interceptors =
            interceptors.filter(|one| !left_out.contains(&one.kind())).map(Arc::clone).collect();
        let total_timeout = draft.total_timeout.unwrap_or(settings.total_timeout);
        let attempt_timeout = draft.attempt_timeout.unwrap_or(settings.attempt_timeout);
        let once = || settings.once.clone();
        Ok(Self {
            retry: draft
                .retry
                .map_or_else(|| settings.retry.clone(), |policy| policy.unwrap_or_else(once)),
            breaker,
            total_timeout,
            attempt_timeout: attempt_timeout.min(total_timeout),
            interceptors,
            call: Call::new((&draft.method).into()).keyed(keyed),
            attempts: 0,
            sent: 0,
            method: draft.method,
            uri,
            headers,
            source: Source::Once(Some(draft.body)),
            sleeper: TokioSleeper::new(),
            settings,
            context,
        })
    }

    /// Keeps the body if it is small enough to be sent again.
    pub(super) async fn keep_body(&mut self) {
        let Source::Once(body) = &mut self.source else { return };
        let bytes_max = self.settings.replay_bytes_max;
        self.source = Source::of(body.take().unwrap_or_default(), bytes_max).await;
        self.call = self.call.replayable(matches!(self.source, Source::Kept(_)));
    }

    /// A fresh copy for the next attempt.
    pub(super) fn request(&mut self) -> Request<Body> {
        let body = match &mut self.source {
            Source::Kept(bytes) => bytes.clone().into(),
            Source::Once(body) => body.take().unwrap_or_default(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// The same error with its judgement, for policies and for whoever asks it.
    pub(super) fn judged(&self, error: HttpError) -> HttpError {
        let hint = error.response().map_or(RetryAfter::Absent, |response| {
            RetryAfter::from_headers(response.headers(), self.sleeper.now())
        });
        let class = self.settings.classify.classify(&self.call, error.answer(), hint);
        error.with_class(class)
    }

    /// The judgement of an answer that was taken.
    pub(super) fn class_of(&self, status: http::StatusCode) -> Class {
        self.settings.classify.classify(&self.call, status.into(), RetryAfter::Absent)
    }
}

impl Source {
    async fn of(body: Body, bytes_max: u64) -> Self {
        if let Some(bytes) = body.as_bytes() {
            let fits = u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= bytes_max);
            return if fits { Self::Kept(bytes.clone()) } else { Self::Once(Some(body)) };
        }
        let mut replay = match Gather::begin(body, bytes_max) {
            Ok(mut gather) => poll_fn(|cx| gather.poll(cx)).await,
            Err(replay) => replay,
        };
        match replay {
            Replay::Kept { data, trailers: None } => Self::Kept(data),
            _ => Self::Once(replay.next().map(Body::stream)),
        }
    }
}
