//! HC-09: what comes of a name that does not resolve.

use domain::attempt::FailureKind;

use super::support::*;
use crate::transport::dns::{Resolve, ResolveError, Resolving, StaticResolver};
use crate::transport::http1::HttpTransport;
use crate::transport::{Outbound, Transport};

#[tokio::test]
async fn hc_09_a_name_without_an_address_is_a_dns_failure_and_a_broken_resolver_is_ours() {
    let broken = ResolveError::Broken("the name server cannot be reached".to_owned());
    let servfail = ResolveError::Unresolved("the name server could not resolve it".to_owned());
    let resolver = StaticResolver::new()
        .with("empty.example", &[])
        .failing("broken.example", broken)
        .failing("servfail.example", servfail);
    let transport = HttpTransport::new(options(open_guard(), resolver));
    for (name, kind, text) in [
        ("unknown.example", FailureKind::Dns, "does not exist"),
        ("empty.example", FailureKind::Dns, "has no address"),
        ("servfail.example", FailureKind::Dns, "could not resolve"),
        ("broken.example", FailureKind::Internal, "cannot be reached"),
    ] {
        let sent = send(&transport, &format!("http://{name}/")).await;
        let failure = failure(&sent, kind);
        assert!(failure.text.contains(text), "{failure:?}");
    }
}

struct Silent;

impl Resolve for Silent {
    fn resolve(&self, _name: String) -> Resolving {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn hc_09_a_resolver_that_stays_silent_is_a_dns_failure_within_the_connect_timeout() {
    let mut options = options(open_guard(), StaticResolver::new());
    options.resolver = std::sync::Arc::new(Silent);
    let request = Outbound { connect_timeout: SHORT, ..outbound("http://h.example/") };
    let sent = HttpTransport::new(options).send(request).await;
    let failure = failure(&sent, FailureKind::Dns);
    assert!(failure.text.contains("in time"), "{failure:?}");
    assert!(sent.took >= SHORT && sent.took < LONG);
}

#[tokio::test]
async fn a_name_is_resolved_once_per_connection_and_sent_as_host() {
    let peer = Peer::answering(OK).await;
    let resolver = std::sync::Arc::new(StaticResolver::new().with("h.example", &[LOOPBACK]));
    let mut options = options(open_guard(), StaticResolver::new());
    options.resolver = std::sync::Arc::clone(&resolver) as _;
    let transport = HttpTransport::new(options);
    let port = peer.address.port();
    for _ in 0..3 {
        assert_eq!(status(&send(&transport, &format!("http://H.example:{port}/")).await), 200);
    }
    assert_eq!(resolver.asked(), ["h.example"]);
    assert_eq!(peer.hits()[2].header("host"), Some(&*format!("h.example:{port}")));
}
