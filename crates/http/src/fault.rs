//! What kind of failure an error is, whoever made it.
//!
//! In: an error. Out: an [`ErrorKind`]. Clients wrap what happened in several layers of their own
//! (a refused connection lies four sources deep), so the whole chain is looked at and the deepest
//! error that tells counts.
//! Never: judge what follows from it.

mod foreign;

use std::error::Error;
use std::io;

use resilience::{ErrorKind, Rejected};

use self::foreign::Clue;
use crate::errors::{BulkheadFull, TimedOut};

/// A chain longer than this is a circle.
const DEPTH_MAX: usize = 32;

/// The kind of failure that this error or one of its sources is.
///
/// ```
/// use http_adapter::resilience::ErrorKind;
/// use std::io;
///
/// let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
/// assert_eq!(http_adapter::fault_of(&refused), ErrorKind::ConnectionRefused);
/// ```
pub fn fault_of(error: &(dyn Error + 'static)) -> ErrorKind {
    let mut found = Clue::default();
    let mut next = Some(error);
    for _ in 0..DEPTH_MAX {
        let Some(error) = next else { break };
        let clue = clue(error);
        found.kind = clue.kind.or(found.kind);
        found.connecting |= clue.connecting;
        found.not_sent |= clue.not_sent;
        next = inside(error);
    }
    match found.kind.unwrap_or(ErrorKind::Other) {
        ErrorKind::Timeout if found.connecting => ErrorKind::ConnectTimeout,
        // Bytes that make no sense while the channel is set up are not the peer's HTTP.
        ErrorKind::Protocol if found.connecting => ErrorKind::Tls,
        ErrorKind::ConnectionReset if found.connecting => ErrorKind::NotSent,
        kind if found.not_sent && !kind.is_not_sent() => ErrorKind::NotSent,
        kind => kind,
    }
}

/// The error that lies deepest.
#[cfg(feature = "client")]
pub(crate) fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    std::iter::successors(Some(error), |error| inside(*error))
        .take(DEPTH_MAX)
        .last()
        .unwrap_or(error)
}

/// What an error wraps. An I/O error hides what it was made from behind that one's own source.
fn inside<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn clue(error: &(dyn Error + 'static)) -> Clue {
    let known = own(error).or_else(|| error.downcast_ref().and_then(io_kind));
    match known {
        Some(kind) => Clue { kind: Some(kind), ..Clue::default() },
        None => foreign::clue(error),
    }
}

fn own(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    if error.is::<Rejected>() {
        Some(ErrorKind::CircuitOpen)
    } else if error.is::<TimedOut>() || error.is::<tokio::time::error::Elapsed>() {
        Some(ErrorKind::Timeout)
    } else if error.is::<BulkheadFull>() {
        Some(ErrorKind::Overloaded)
    } else {
        None
    }
}

fn io_kind(error: &io::Error) -> Option<ErrorKind> {
    match ErrorKind::of_io(error) {
        ErrorKind::Other => None,
        kind => Some(kind),
    }
}

#[cfg(test)]
mod tests;
