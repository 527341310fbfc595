//! Whether a request's identifier is sent along, and in which header.
//!
//! Never: decide on the identifier.

use http::header::HeaderName;

const DEFAULT: HeaderName = HeaderName::from_static("x-correlation-id");

/// What one level, adapter or request, says about it.
#[derive(Clone, Debug, Default)]
pub(super) enum Correlation {
    /// Nothing.
    #[default]
    Inherit,
    /// It is sent, in this header if one is given.
    On(Option<HeaderName>),
    /// It is not sent.
    Off,
}

/// The header to send it in, if it is sent: the request's word goes before the adapter's.
pub(super) fn header(adapter: &Correlation, request: &Correlation) -> Option<HeaderName> {
    let inherited = match adapter {
        Correlation::On(name) => Some(name.clone().unwrap_or(DEFAULT)),
        Correlation::Inherit | Correlation::Off => None,
    };
    match request {
        Correlation::Off => None,
        Correlation::Inherit => inherited,
        Correlation::On(name) => name.clone().or(inherited).or(Some(DEFAULT)),
    }
}
