//! The name by which a request's receiver is known to a registry of breakers.
//!
//! Never: carry a path, a query or credentials.

use http::header::HOST;
use http::request::Parts;

/// Host and port, the port of the scheme if none is given; empty if the request names no host.
pub(crate) fn host_key(parts: &Parts) -> String {
    if let Some(host) = parts.uri.host() {
        let default = if parts.uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = parts.uri.port_u16().unwrap_or(default);
        return format!("{}:{port}", host.to_ascii_lowercase());
    }
    let named = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
    named.unwrap_or_default().to_ascii_lowercase()
}
