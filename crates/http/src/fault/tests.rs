//! Kinds of errors, however deep they lie.

use std::time::Duration;

use super::*;
use crate::errors::BoxError;

#[derive(Debug, thiserror::Error)]
#[error("wrapped")]
struct Wrapped(#[source] BoxError);

fn deep(error: impl Into<BoxError>) -> ErrorKind {
    let inner = Wrapped(error.into());
    fault_of(&Wrapped(io::Error::other(inner).into()))
}

/// T14: what matters lies behind several sources. NF1 to NF10 in spirit.
#[test]
fn t14_the_whole_chain_is_looked_at() {
    for (kind, expected) in [
        (io::ErrorKind::ConnectionRefused, ErrorKind::ConnectionRefused),
        (io::ErrorKind::ConnectionReset, ErrorKind::ConnectionReset),
        (io::ErrorKind::TimedOut, ErrorKind::Timeout),
        (io::ErrorKind::HostUnreachable, ErrorKind::HostUnreachable),
        (io::ErrorKind::NetworkUnreachable, ErrorKind::HostUnreachable),
        (io::ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset),
        (io::ErrorKind::Other, ErrorKind::Other),
    ] {
        assert_eq!(deep(io::Error::from(kind)), expected, "{kind:?}");
    }
    assert_eq!(deep(TimedOut::new(Duration::from_secs(1))), ErrorKind::Timeout);
    let unresolved = "failed to lookup address information: Name or service not known";
    assert_eq!(deep(io::Error::other(unresolved)), ErrorKind::Dns);
    assert_eq!(deep("anything"), ErrorKind::Other);
}

#[test]
fn what_fails_before_the_connection_stands_was_not_sent() {
    #[derive(Debug, thiserror::Error)]
    #[error("tcp connect error")]
    struct Connecting(#[source] io::Error);
    let timeout = Connecting(io::Error::from(io::ErrorKind::TimedOut));
    assert_eq!(fault_of(&timeout), ErrorKind::ConnectTimeout);
    let garbage = Connecting(io::Error::from(io::ErrorKind::InvalidData));
    assert_eq!(fault_of(&garbage), ErrorKind::Tls);
    let cut = Connecting(io::Error::from(io::ErrorKind::ConnectionReset));
    assert_eq!(fault_of(&cut), ErrorKind::NotSent);
    #[derive(Debug, thiserror::Error)]
    #[error("client error (Canceled)")]
    struct Canceled(#[source] io::Error);
    let waiting = Canceled(io::Error::from(io::ErrorKind::BrokenPipe));
    assert_eq!(fault_of(&waiting), ErrorKind::NotSent, "it waited for a connection that broke");
    let refused = Connecting(io::Error::from(io::ErrorKind::ConnectionRefused));
    assert_eq!(fault_of(&refused), ErrorKind::ConnectionRefused);
}

#[test]
fn a_bound_of_our_own_is_told_as_such() {
    assert_eq!(deep(BulkheadFull::new(1, 0)), ErrorKind::Overloaded);
}

#[cfg(feature = "http2")]
#[test]
fn a_refused_stream_was_not_sent() {
    let refused = h2::Error::from(h2::Reason::REFUSED_STREAM);
    assert_eq!(deep(refused), ErrorKind::StreamRefused);
    assert_ne!(deep(h2::Error::from(h2::Reason::INTERNAL_ERROR)), ErrorKind::StreamRefused);
}
