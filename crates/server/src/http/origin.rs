//! Where this server is, for links that it hands out.
//!
//! In: what is set, and where it listens. Out: the beginning of a link.
//! Never: a name that only the request says: what follows it in a link may be a token.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

/// Where this server is.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    public: Option<String>,
    listening: SocketAddr,
}

impl Origin {
    /// At this address; `public` is how others reach it, if that is set.
    pub(crate) const fn new(public: Option<String>, listening: SocketAddr) -> Self {
        Self { public, listening }
    }

    /// The beginning of a link. Without `public_url` the request's own `host` is taken if it is
    /// this machine's, and `https` if a proxy on it says so.
    pub(crate) fn of(&self, host: Option<&str>, is_https: bool) -> String {
        if let Some(public) = &self.public {
            return public.clone();
        }
        let scheme = if is_https { "https" } else { "http" };
        let asked = host.and_then(|host| Url::parse(&format!("{scheme}://{host}")).ok());
        match asked.filter(|url| self.is_here(url)) {
            Some(url) => url.origin().ascii_serialization(),
            None if self.listening.ip().is_unspecified() => {
                format!("http://localhost:{}", self.listening.port())
            }
            None => format!("http://{}", self.listening),
        }
    }

    fn is_here(&self, url: &Url) -> bool {
        let is_here = |ip: IpAddr| ip.is_loopback() || ip == self.listening.ip();
        url.username().is_empty()
            && url.password().is_none()
            && match url.host() {
                Some(Host::Domain(name)) => name == "localhost",
                Some(Host::Ipv4(ip)) => is_here(ip.into()),
                Some(Host::Ipv6(ip)) => is_here(ip.into()),
                None => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_or_this_machine_is_named() {
        // listening, the request's host, whether a proxy says https, the link
        let table = [
            ("127.0.0.1:8071", Some("127.0.0.1:8071"), false, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", Some("localhost:9"), true, "https://localhost:9"),
            ("127.0.0.1:8071", Some("evil.example"), false, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", Some("evil.example"), true, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", Some("127.0.0.1@evil.example"), false, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", Some("a@127.0.0.1"), false, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", Some("127.0.0.1/x?y#z"), false, "http://127.0.0.1"),
            ("127.0.0.1:8071", Some("localhost.evil.example"), false, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", Some("10.0.0.1"), false, "http://127.0.0.1:8071"),
            ("10.0.0.1:80", Some("10.0.0.1"), false, "http://10.0.0.1"),
            ("127.0.0.1:8071", Some(""), false, "http://127.0.0.1:8071"),
            ("127.0.0.1:8071", None, false, "http://127.0.0.1:8071"),
            ("0.0.0.0:8071", Some("evil.example"), false, "http://localhost:8071"),
            ("[::1]:8071", Some("[::1]:8071"), false, "http://[::1]:8071"),
        ];
        for (listening, host, is_https, link) in table {
            let origin = Origin::new(None, listening.parse().unwrap());
            assert_eq!(origin.of(host, is_https), link, "{listening} {host:?}");
            let set = Some("https://peyk.example/x".to_owned());
            let origin = Origin::new(set.clone(), listening.parse().unwrap());
            assert_eq!(Some(origin.of(host, is_https)), set);
        }
    }
}
