//! The errors of hyper, h2 and reqwest, where the features name them, and of what hides its types.
//!
//! Never: be the only way to a kind that the standard library's errors show too.

use std::error::Error;

use resilience::ErrorKind;

/// What one error of a chain tells.
#[derive(Clone, Copy, Default)]
pub(super) struct Clue {
    pub(super) kind: Option<ErrorKind>,
    /// It happened before the connection stood.
    pub(super) connecting: bool,
    /// Nothing of the request was written.
    pub(super) not_sent: bool,
}

pub(super) fn clue(error: &(dyn Error + 'static)) -> Clue {
    #[cfg(feature = "reqwest")]
    if let Some(error) = error.downcast_ref() {
        return of_reqwest(error);
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref() {
        return of_hyper(error);
    }
    #[cfg(feature = "http2")]
    if let Some(error) = error.downcast_ref() {
        return Clue { kind: of_h2(error), ..Clue::default() };
    }
    by_text(error)
}

/// Connectors keep these types to themselves, and the system's resolver gives no kind: what is left
/// is what they say. A wording that changes makes the kind less exact, never wrong.
fn by_text(error: &(dyn Error + 'static)) -> Clue {
    let text = error.to_string();
    let is_dns = text == "dns error" || text.starts_with("failed to lookup address information");
    let connecting = matches!(text.as_str(), "client error (Connect)" | "tcp connect error");
    let not_sent = text == "client error (Canceled)";
    Clue { kind: is_dns.then_some(ErrorKind::Dns), connecting, not_sent }
}

#[cfg(feature = "reqwest")]
fn of_reqwest(error: &reqwest::Error) -> Clue {
    let kind = if error.is_timeout() {
        Some(ErrorKind::Timeout)
    } else if error.is_builder() {
        Some(ErrorKind::Invalid)
    } else if error.is_redirect() {
        Some(ErrorKind::Protocol)
    } else {
        None
    };
    Clue { kind, connecting: error.is_connect(), ..Clue::default() }
}

#[cfg(feature = "hyper")]
fn of_hyper(error: &hyper::Error) -> Clue {
    // hyper gives these to requests that still wait for their connection, and to no others.
    let not_sent = error.is_canceled() || error.is_closed();
    let kind = if error.is_timeout() {
        Some(ErrorKind::Timeout)
    } else if error.is_incomplete_message() || not_sent {
        Some(ErrorKind::ConnectionReset)
    } else if error.is_parse() {
        Some(ErrorKind::Protocol)
    } else if error.is_user() {
        Some(ErrorKind::Invalid)
    } else {
        None
    };
    Clue { kind, not_sent, ..Clue::default() }
}

/// h2 gives a peer's `GOAWAY` to the streams above the last one that the peer processed, whatever
/// its reason; the others go on, and break with an I/O error if the peer then closes.
#[cfg(feature = "http2")]
fn of_h2(error: &h2::Error) -> Option<ErrorKind> {
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if refused || (error.is_remote() && error.is_go_away()) {
        Some(ErrorKind::StreamRefused)
    } else if let Some(io) = error.get_io() {
        Some(ErrorKind::of_io(io))
    } else if error.is_reset() || error.is_go_away() {
        Some(ErrorKind::ConnectionReset)
    } else {
        Some(ErrorKind::Protocol)
    }
}
