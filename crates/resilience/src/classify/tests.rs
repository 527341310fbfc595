//! The table row by row.

use std::time::Duration;

use super::*;

const GET: Call = Call::new(Method::Get);
const POST: Call = Call::new(Method::Post);

fn status(call: &Call, status: u16) -> Class {
    DefaultClassify.classify(call, Answer::Status(status), RetryAfter::Absent)
}

fn error(kind: ErrorKind) -> Class {
    DefaultClassify.classify(&POST, Answer::Failed(kind), RetryAfter::Absent)
}

#[test]
fn statuses() {
    use Retryability::{Never, NotSent, Transient};
    use Vote::{Failure, Ignore, Success};
    let rows: [(&[u16], Retryability, Vote); 8] = [
        (&[200, 201, 204, 301, 304, 399], Never, Success),
        (&[400, 401, 403, 404, 409, 410, 418, 422, 423, 431, 451, 499], Never, Ignore),
        (&[408, 500, 502, 503, 504], Transient, Failure),
        (&[425], NotSent, Failure),
        (&[429], NotSent, Ignore),
        (&[501], Never, Ignore),
        (&[505, 508, 511, 599], Never, Failure),
        (&[0, 100, 103, 600, 999], Never, Ignore),
    ];
    for (statuses, retry, breaker) in rows {
        for code in statuses {
            assert_eq!(status(&POST, *code), Class::of(retry, breaker), "{code}");
            assert_eq!(status(&GET, *code), Class::of(retry, breaker), "{code}");
        }
    }
}

#[test]
fn errors() {
    use ErrorKind as Kind;
    use Retryability::{Never, NotSent, Transient};
    use Vote::{Failure, Ignore};
    let rows: [(&[ErrorKind], Retryability, Vote); 4] = [
        (
            &[
                Kind::ConnectionRefused,
                Kind::ConnectTimeout,
                Kind::Dns,
                Kind::StreamRefused,
                Kind::NotSent,
            ],
            NotSent,
            Failure,
        ),
        (&[Kind::ConnectionReset, Kind::Timeout], Transient, Failure),
        (&[Kind::HostUnreachable, Kind::Tls, Kind::Protocol], Never, Failure),
        (
            &[Kind::Cancelled, Kind::CircuitOpen, Kind::Overloaded, Kind::Invalid, Kind::Other],
            Never,
            Ignore,
        ),
    ];
    for (kinds, retry, breaker) in rows {
        for kind in kinds {
            assert_eq!(error(*kind), Class::of(retry, breaker), "{kind}");
            assert!(retry != NotSent || kind.is_not_sent(), "{kind}");
            assert!(retry != Transient || !kind.is_not_sent(), "{kind}");
        }
    }
}

#[test]
fn ra_09_only_what_may_be_retried_carries_a_hint() {
    let hint = RetryAfter::Wait(Duration::from_secs(60));
    let of = |code| DefaultClassify.classify(&GET, Answer::Status(code), hint).retry_after;
    for code in [408, 425, 429, 500, 502, 503, 504] {
        assert_eq!(of(code), hint, "{code}");
    }
    for code in [200, 202, 301, 404, 410] {
        assert_eq!(of(code), RetryAfter::Absent, "{code}");
    }
}

#[test]
fn methods_by_name() {
    let idempotent = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"];
    assert!(idempotent.iter().all(|name| Method::from_name(name).is_idempotent()));
    let others = ["POST", "PATCH", "CONNECT", "get", "", "PURGE"];
    assert!(others.iter().all(|name| !Method::from_name(name).is_idempotent()));
}

#[derive(Debug)]
struct Wrapped(std::io::Error);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("request failed")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn t14_a_refused_connection_is_found_behind_its_wrapper() {
    let wrapped = Wrapped(std::io::ErrorKind::ConnectionRefused.into());
    assert_eq!(ErrorKind::of_cause(&wrapped), Some(ErrorKind::ConnectionRefused));
    assert_eq!(ErrorKind::of_cause(&std::fmt::Error), None);
}

#[test]
fn an_outcome_shows_its_error_by_type() {
    let wrapped = Wrapped(std::io::ErrorKind::TimedOut.into());
    let outcome = Outcome::transient().with_error(&wrapped);
    assert!(outcome.error_as::<Wrapped>().is_some());
    assert!(outcome.error_as::<std::fmt::Error>().is_none());
}
