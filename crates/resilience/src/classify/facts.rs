//! The facts about a call that a judgement needs, without the types of any HTTP library.
//!
//! Never: own text, judge.

use std::error::Error;
use std::fmt;
use std::io;

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say all")]
pub enum Method {
    Get,
    Head,
    Put,
    Delete,
    Options,
    Trace,
    Post,
    Patch,
    Connect,
    /// Any other.
    Other,
}

impl Method {
    /// From its name as it stands on the wire.
    pub fn from_name(name: &str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "POST" => Self::Post,
            "PATCH" => Self::Patch,
            "CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }

    /// Whether doing it twice is the same as doing it once (RFC 9110, 9.2.2).
    pub const fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace => true,
            Self::Post | Self::Patch | Self::Connect | Self::Other => false,
        }
    }
}

/// What was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// How.
    pub method: Method,
    /// Whether it carries an idempotency key.
    pub has_key: bool,
    /// Whether its body can be sent again.
    pub replayable: bool,
}

impl Call {
    /// A call that can be repeated as often as one likes.
    pub const SAFE: Self = Self { method: Method::Get, has_key: false, replayable: true };

    /// A call with a body that can be sent again, and no key.
    pub const fn new(method: Method) -> Self {
        Self { method, has_key: false, replayable: true }
    }

    /// The same, with or without an idempotency key.
    #[must_use]
    pub const fn keyed(mut self, has_key: bool) -> Self {
        self.has_key = has_key;
        self
    }

    /// The same, with a body that can or cannot be sent again.
    #[must_use]
    pub const fn replayable(mut self, replayable: bool) -> Self {
        self.replayable = replayable;
        self
    }

    /// Whether doing it twice is harmless.
    pub const fn may_repeat(&self) -> bool {
        self.has_key || self.method.is_idempotent()
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With an answer of this status.
    Status(u16),
    /// Without one.
    Failed(ErrorKind),
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nobody listens there.
    ConnectionRefused,
    /// The connection broke while it was in use.
    ConnectionReset,
    /// No connection came about in time: nothing was sent.
    ConnectTimeout,
    /// No answer came in time.
    Timeout,
    /// The name was not resolved.
    Dns,
    /// No route leads there.
    HostUnreachable,
    /// The peer turned the stream away unread: HTTP/2 `REFUSED_STREAM`, or a `GOAWAY` before it.
    StreamRefused,
    /// The connection broke before anything of the request was written to it: while it was set up,
    /// or while the request waited for it.
    NotSent,
    /// The secure channel could not be set up: a certificate that is not trusted, or no parameters
    /// in common.
    Tls,
    /// The peer broke the protocol.
    Protocol,
    /// The caller gave up.
    Cancelled,
    /// A circuit breaker let nothing through.
    CircuitOpen,
    /// A bound of the caller's own was reached, such as that of a bulkhead.
    Overloaded,
    /// The answer was there but not acceptable, or the request could not be built.
    Invalid,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// The kind of an I/O error, from its kind alone.
    ///
    /// ```
    /// use resilience::classify::ErrorKind;
    /// use std::io;
    ///
    /// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    /// assert_eq!(ErrorKind::of_io(&refused), ErrorKind::ConnectionRefused);
    /// ```
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Self::ConnectionReset,
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                Self::HostUnreachable
            }
            io::ErrorKind::InvalidData => Self::Protocol,
            _ => Self::Other,
        }
    }

    /// The kind of the first I/O error in a chain of causes: libraries wrap it, so that the error
    /// at hand rarely is one itself.
    pub fn of_cause(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref() {
                return Some(Self::of_io(io));
            }
            cause = error.source();
        }
        None
    }

    /// Whether the receiver certainly saw nothing of the request. Sending it again is then the
    /// first time, whatever its method.
    ///
    /// ```
    /// use resilience::classify::ErrorKind;
    ///
    /// assert!(ErrorKind::ConnectionRefused.is_not_sent());
    /// assert!(!ErrorKind::ConnectionReset.is_not_sent(), "it may have been acted on");
    /// ```
    pub const fn is_not_sent(self) -> bool {
        match self {
            Self::ConnectionRefused
            | Self::ConnectTimeout
            | Self::Dns
            | Self::StreamRefused
            | Self::NotSent
            | Self::Tls
            | Self::CircuitOpen
            | Self::Overloaded => true,
            Self::ConnectionReset
            | Self::Timeout
            | Self::HostUnreachable
            | Self::Protocol
            | Self::Cancelled
            | Self::Invalid
            | Self::Other => false,
        }
    }

    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConnectionRefused => "connection refused",
            Self::ConnectionReset => "connection reset",
            Self::ConnectTimeout => "no connection in time",
            Self::Timeout => "no answer in time",
            Self::Dns => "name not resolved",
            Self::HostUnreachable => "host unreachable",
            Self::StreamRefused => "stream refused",
            Self::NotSent => "connection broken before the request",
            Self::Tls => "no secure channel",
            Self::Protocol => "protocol error",
            Self::Cancelled => "cancelled",
            Self::CircuitOpen => "circuit open",
            Self::Overloaded => "too many calls",
            Self::Invalid => "not acceptable",
            Self::Other => "other error",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
