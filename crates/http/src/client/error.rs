//! Why a request failed: one type for everything between the caller and the wire.
//!
//! Every error bears its [`Context`], and those of finished requests the [`RetryInfo`]. The
//! serialised form leaves out headers and bodies.
//! Never: show a credential, lose the source.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use resilience::{Answer, Class, ErrorKind, Rejected, RetryAfter, RetryInfo, Retryability, Vote};

use super::context::Context;
use super::response::Response;
use crate::errors::{BoxError, BulkheadFull};
use crate::fault::{fault_of, innermost};

/// At which point a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The answer's status is not 2xx.
    Status,
    /// The transport gave no whole answer.
    Transport,
    /// One attempt took too long.
    AttemptTimeout,
    /// All attempts together took too long.
    TotalTimeout,
    /// The circuit breaker let nothing through.
    CircuitOpen,
    /// The bulkhead and its queue were full.
    BulkheadFull,
    /// An interceptor or a source of credentials failed.
    Interceptor,
    /// The answer's body is larger than allowed.
    BodyTooLarge,
    /// The answer's body is not what was expected.
    Decode,
    /// A validator refused the answer.
    Validation,
    /// The request could not be built.
    Request,
    /// The caller dropped the request; only observers see this.
    Cancelled,
}

impl HttpErrorKind {
    /// Its name, as the serialised form spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Transport => "transport",
            Self::AttemptTimeout => "attempt_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::CircuitOpen => "circuit_open",
            Self::BulkheadFull => "bulkhead_full",
            Self::Interceptor => "interceptor",
            Self::BodyTooLarge => "body_too_large",
            Self::Decode => "decode",
            Self::Validation => "validation",
            Self::Request => "request",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A failed request.
pub struct HttpError(Box<Inner>);

struct Inner {
    kind: HttpErrorKind,
    context: Context,
    source: Option<BoxError>,
    response: Option<Response<Bytes>>,
    /// It failed before the transport had the request.
    before_sending: bool,
    class: Class,
    info: Option<RetryInfo>,
    before: Option<HttpError>,
}

impl HttpError {
    /// An error of this kind, for interceptors that replace one.
    pub fn new(kind: HttpErrorKind, context: Context, source: impl Into<BoxError>) -> Self {
        Self::of(kind, context, Some(source.into()))
    }

    pub(super) fn of(kind: HttpErrorKind, context: Context, source: Option<BoxError>) -> Self {
        let class = Class::REFUSED;
        Self(Box::new(Inner {
            kind,
            context,
            source,
            response: None,
            before_sending: false,
            class,
            info: None,
            before: None,
        }))
    }

    /// What an interceptor, a validator or a transport threw: its own errors stay what they are.
    pub(super) fn wrap(kind: HttpErrorKind, context: &Context, source: BoxError) -> Self {
        match source.downcast::<Self>() {
            Ok(error) => *error,
            Err(source) if source.is::<Rejected>() => {
                Self::of(HttpErrorKind::CircuitOpen, context.clone(), Some(source))
            }
            Err(source) if source.is::<BulkheadFull>() => {
                Self::of(HttpErrorKind::BulkheadFull, context.clone(), Some(source))
            }
            Err(source) => Self::of(kind, context.clone(), Some(source)),
        }
    }

    pub(super) fn with_response(mut self, response: Response<Bytes>) -> Self {
        self.0.response = Some(response);
        self
    }

    pub(super) fn before_sending(mut self, so: bool) -> Self {
        self.0.before_sending = so;
        self
    }

    /// With its judgement, in which our own faults say nothing about the receiver.
    pub(super) fn with_class(mut self, mut class: Class) -> Self {
        if self.0.before_sending || self.0.kind == HttpErrorKind::Interceptor {
            class.breaker = Vote::Ignore;
        }
        if self.0.before_sending && class.retry == Retryability::Transient {
            class.retry = Retryability::NotSent;
        }
        self.0.class = class;
        self
    }

    pub(super) fn with_info(mut self, info: RetryInfo) -> Self {
        self.0.info = Some(info);
        self
    }

    /// What the attempt before it came to.
    pub(super) fn with_before(mut self, before: Option<Self>) -> Self {
        self.0.before = before;
        self
    }

    pub(super) fn class(&self) -> Class {
        self.0.class
    }

    /// At which point it failed.
    pub fn kind(&self) -> HttpErrorKind {
        self.0.kind
    }

    /// The status of the answer, if there was one.
    pub fn status(&self) -> Option<StatusCode> {
        self.0.response.as_ref().map(Response::status)
    }

    /// The answer, if there was one, its body as bytes.
    pub fn response(&self) -> Option<&Response<Bytes>> {
        self.0.response.as_ref()
    }

    /// What kind of failure it was, as the policies see it; none if an answer's status tells.
    pub fn fault(&self) -> Option<ErrorKind> {
        match self.answer() {
            Answer::Failed(kind) => Some(kind),
            Answer::Status(_) => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.class.retry != Retryability::Never
    }

    /// Whether the receiver certainly did nothing with this attempt: it never left, or was turned
    /// away unread. Sending it again is then safe for any method; earlier attempts of the same
    /// request may have been acted on.
    pub fn is_not_sent(&self) -> bool {
        self.0.before_sending
            || self.0.class.retry == Retryability::NotSent
            || self.fault().is_some_and(ErrorKind::is_not_sent)
    }

    /// When the receiver, or the circuit breaker, wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.class.retry_after {
            RetryAfter::Wait(wait) => Some(wait),
            RetryAfter::Absent | RetryAfter::Unusable => self.rejected()?.retry_after,
        }
    }

    /// How often and how long it was tried, and why no longer; none while it is being tried.
    pub fn info(&self) -> Option<&RetryInfo> {
        self.0.info.as_ref()
    }

    /// The error of the last attempt that was made: this one, or where a breaker, a bulkhead or
    /// the total time ended the retries, the one before. None where no attempt had failed.
    pub fn last_error(&self) -> Option<&Self> {
        match self.0.kind {
            HttpErrorKind::CircuitOpen
            | HttpErrorKind::BulkheadFull
            | HttpErrorKind::TotalTimeout => self.0.before.as_ref(),
            _ => Some(self),
        }
    }

    /// The error of the attempt before, where this one is not of an attempt.
    fn behind(&self) -> Option<&Self> {
        self.last_error().filter(|last| !std::ptr::eq(*last, self))
    }

    /// Which request it was.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The circuit breaker's refusal, if that is what it was.
    pub fn rejected(&self) -> Option<&Rejected> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// The fact for the policies.
    pub(super) fn answer(&self) -> Answer {
        let fault = |error: &BoxError| fault_of(&**error);
        let kind = match self.0.kind {
            HttpErrorKind::Status => {
                return self.status().map_or(Answer::Failed(ErrorKind::Other), Answer::from);
            }
            HttpErrorKind::Transport | HttpErrorKind::Interceptor => {
                self.0.source.as_ref().map_or(ErrorKind::Other, fault)
            }
            HttpErrorKind::AttemptTimeout | HttpErrorKind::TotalTimeout => ErrorKind::Timeout,
            HttpErrorKind::CircuitOpen => ErrorKind::CircuitOpen,
            HttpErrorKind::BulkheadFull => ErrorKind::Overloaded,
            HttpErrorKind::Cancelled => ErrorKind::Cancelled,
            HttpErrorKind::BodyTooLarge
            | HttpErrorKind::Decode
            | HttpErrorKind::Validation
            | HttpErrorKind::Request => ErrorKind::Invalid,
        };
        Answer::Failed(kind)
    }

    fn reason(&self) -> String {
        match (self.0.kind, &self.0.source, self.status()) {
            (HttpErrorKind::Status, _, Some(status)) => status.to_string(),
            (HttpErrorKind::TotalTimeout, ..) => "no answer within the total time".to_owned(),
            (HttpErrorKind::Cancelled, ..) => "cancelled".to_owned(),
            (HttpErrorKind::Transport, Some(source), _) => told(source),
            (_, Some(source), _) => source.to_string(),
            (kind, None, _) => kind.as_str().to_owned(),
        }
    }
}

/// Clients tell the cause only in their sources.
fn told(source: &BoxError) -> String {
    let (text, kind) = (source.to_string(), fault_of(&**source));
    if kind == ErrorKind::Tls {
        // What is wrong with a certificate is known to the innermost error alone.
        return format!("{text} ({kind}: {})", innermost(&**source));
    }
    if kind == ErrorKind::Other || text.contains(kind.as_str()) {
        return text;
    }
    format!("{text} ({kind})")
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.context, self.reason())?;
        let Some(RetryInfo { calls, stop: Some(stop), .. }) = self.0.info else { return Ok(()) };
        write!(f, " (calls made: {calls}; gave up: {stop}")?;
        match self.behind() {
            Some(last) => write!(f, "; last error: {})", last.reason()),
            None => f.write_str(")"),
        }
    }
}

impl fmt::Debug for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpError")
            .field("kind", &self.0.kind)
            .field("status", &self.status())
            .field("context", &self.0.context)
            .field("info", &self.0.info)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

impl serde::Serialize for HttpError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let mut shown = serializer.serialize_struct("HttpError", 10)?;
        shown.serialize_field("kind", self.0.kind.as_str())?;
        shown.serialize_field("message", &self.reason())?;
        shown.serialize_field("status", &self.status().map(|status| status.as_u16()))?;
        shown.serialize_field("retryable", &self.is_retryable())?;
        shown.serialize_field("retry_after_ms", &self.retry_after().map(millis))?;
        shown.serialize_field("calls", &self.0.info.map(|info| info.calls))?;
        let elapsed = self.0.info.and_then(|info| info.elapsed);
        shown.serialize_field("elapsed_ms", &elapsed.map(millis))?;
        let stop = self.0.info.and_then(|info| info.stop);
        shown.serialize_field("gave_up", &stop.map(|stop| stop.as_str()))?;
        let last = self.behind().map(Self::reason);
        shown.serialize_field("last_error", &last)?;
        shown.serialize_field("request", &self.0.context)?;
        shown.end()
    }
}
