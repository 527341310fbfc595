//! The name by which a request's receiver is known to a registry of breakers.
//!
//! In: the head of a request. Out: its host in lower case and its port, such as `api.test:443`.
//! Never: carry a path, a query or credentials; be empty, which no breaker can be called.

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

/// The key of requests that name no receiver at all. No host has it, since it has no port.
const NO_HOST: &str = "no-host";

/// Host and port: of the URI, else of the `Host` header. A port that is not given is that of the
/// URI's scheme, 80 where there is none.
pub(crate) fn host_key(parts: &Parts) -> String {
    let default = if parts.uri.scheme_str() == Some("https") { 443 } else { 80 };
    let named = || parts.headers.get(HOST).and_then(|value| value.as_bytes().try_into().ok());
    let authority: Option<Authority> = parts.uri.authority().cloned().or_else(named);
    match authority.filter(|authority| !authority.host().is_empty()) {
        Some(authority) => {
            let port = authority.port_u16().unwrap_or(default);
            format!("{}:{port}", authority.host().to_ascii_lowercase())
        }
        None => NO_HOST.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn key(uri: &str, host: Option<&str>) -> String {
        let mut request = Request::get(uri);
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        host_key(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn one_receiver_has_one_key_however_it_is_named() {
        for (uri, host) in [
            ("http://h/", None),
            ("http://H:80/x?y", None),
            ("http://user:secret@h/", None),
            ("/", Some("h")),
            ("/x", Some("H:80")),
            ("*", Some("h:")),
            ("http://h/", Some("other")),
        ] {
            assert_eq!(key(uri, host), "h:80", "{uri} {host:?}");
        }
        assert_eq!(key("https://h/", None), "h:443");
        assert_eq!(key("/", Some("h:443")), "h:443");
        assert_eq!(key("h:443", None), "h:443", "the form of CONNECT");
        assert_eq!(key("http://[::1]/", None), "[::1]:80");
        assert_eq!(key("/", Some("[::1]:8080")), "[::1]:8080");
    }

    #[test]
    fn those_that_name_no_receiver_share_a_key() {
        for host in [None, Some(""), Some(":80"), Some("a b"), Some("a/b"), Some("\u{e9}")] {
            assert_eq!(key("/", host), NO_HOST, "{host:?}");
        }
    }
}
