//! The server's way to here.
//!
//! Never: a name resolved; what an address says must do.

use std::net::SocketAddr;

use url::{Host, Url};

use crate::failure::Failure;

/// The address by which the server comes here.
pub(super) fn reachable(server: &Url, public: Option<Url>, at: SocketAddr) -> Result<Url, Failure> {
    if let Some(public) = public {
        return Ok(public);
    }
    if !is_loopback(server) && at.ip().is_loopback() {
        let host = server.host_str().unwrap_or_default();
        let said = format!("the server at {host} cannot reach {at}: say --public-url or --bind");
        return Err(Failure::Usage(said));
    }
    let mut at = at;
    if at.ip().is_unspecified() {
        if !is_loopback(server) {
            let said = "--public-url must say by which address the server reaches this machine";
            return Err(Failure::Usage(said.to_owned()));
        }
        at.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    Url::parse(&format!("http://{at}/"))
        .map_err(|fault| Failure::Other(format!("cannot name {at}: {fault}")))
}

/// Whether a URL leads to this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_must_have_a_way_here() {
        let url = |text: &str| Url::parse(text).unwrap();
        let near: SocketAddr = "127.0.0.1:99".parse().unwrap();
        let any: SocketAddr = "0.0.0.0:99".parse().unwrap();
        let lan: SocketAddr = "192.168.0.7:99".parse().unwrap();
        let here = url("http://localhost:8071");
        let far = url("https://peyk.example.com");
        let is = |server, public, at| reachable(server, public, at).unwrap().to_string();
        assert_eq!(is(&here, None, near), "http://127.0.0.1:99/");
        assert_eq!(is(&here, None, any), "http://127.0.0.1:99/");
        assert_eq!(is(&far, None, lan), "http://192.168.0.7:99/");
        assert_eq!(is(&far, Some(url("https://t.example/x")), near), "https://t.example/x");
        for at in [near, any] {
            assert!(matches!(reachable(&far, None, at), Err(Failure::Usage(_))), "{at}");
        }
    }
}
