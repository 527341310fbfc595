//! Group J and URLs of group I: what is dialled, what is not, and what is said about it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use domain::attempt::FailureKind;
use domain::target::Guard;

use super::support::*;
use crate::transport::dns::{ResolveError, StaticResolver};
use crate::transport::http1::HttpTransport;

fn guarded(rules: &[&str], resolver: StaticResolver) -> HttpTransport {
    let rules = rules.iter().map(|rule| Guard::parse_rule(rule).unwrap()).collect();
    HttpTransport::new(options(Guard::new(rules), resolver))
}

fn named(peer: &Peer, name: &str) -> String {
    format!("http://{name}:{}/p/T0KEN?key=S3CR3T", peer.address.port())
}

#[tokio::test]
async fn ss_01_redirects_are_reported_and_never_followed() {
    let canary = Peer::answering(OK).await;
    let port = canary.address.port();
    let transport = transport();
    for code in [301, 302, 303, 307, 308] {
        for (location, origin) in [
            ("http://169.254.169.254/latest?token=x", Some("http://169.254.169.254:80".to_owned())),
            (&format!("http://127.0.0.1:{port}/x"), Some(format!("http://127.0.0.1:{port}"))),
            ("//10.0.0.1/", Some("http://10.0.0.1:80".to_owned())),
            ("https://user:pw@h.example/T0KEN", Some("https://h.example:443".to_owned())),
            ("file:///etc/passwd", Some("file://".to_owned())),
            ("gopher://127.0.0.1:70/x", Some("gopher://127.0.0.1:70".to_owned())),
            ("http://[bad/", None),
        ] {
            let peer = Peer::answering(format!(
                "HTTP/1.1 {code} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
            let sent = send(&transport, &peer.url()).await;
            let answer = answer(&sent);
            assert_eq!((answer.status, &answer.redirect_origin), (code, &origin));
            assert_eq!(peer.hits().len(), 1);
        }
    }
    let peer =
        Peer::answering("HTTP/1.1 302 X\r\nlocation: /new\r\ncontent-length: 0\r\n\r\n").await;
    let sent = send(&transport, &peer.url()).await;
    assert_eq!(answer(&sent).redirect_origin, Some(format!("http://{}", peer.address)));
    let peer =
        Peer::answering("HTTP/1.1 200 X\r\nlocation: /new\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(answer(&send(&transport, &peer.url()).await).redirect_origin, None);
    assert_eq!(canary.accepted(), 0);
}

#[tokio::test]
async fn ss_05_every_spelling_of_loopback_is_refused_at_the_dial() {
    let canary = Peer::answering(OK).await;
    let transport = guarded(&[], StaticResolver::new().with("name.example", &[LOOPBACK]));
    for host in [
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0x7f.1",
        "127.0.0.1.",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "name.example",
    ] {
        let sent = send(&transport, &named(&canary, host)).await;
        failure(&sent, FailureKind::Forbidden);
    }
    assert_eq!(canary.accepted(), 0);
}

#[tokio::test]
async fn ss_06_of_a_mixed_answer_only_what_is_allowed_is_dialled() {
    let peer = Peer::answering(OK).await;
    let link_local: IpAddr = "fe80::1".parse().unwrap();
    let unspecified = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let zero = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let resolver = StaticResolver::new()
        .with("mixed.example", &[link_local, unspecified, zero, LOOPBACK])
        .with("zero.example", &[unspecified, zero]);
    let transport = guarded(&["127.0.0.1"], resolver);
    assert_eq!(status(&send(&transport, &named(&peer, "mixed.example")).await), 200);
    for host in ["zero.example", "0.0.0.0", "[::]", "[fe80::1]"] {
        failure(&send(&transport, &named(&peer, host)).await, FailureKind::Forbidden);
    }
    assert_eq!(peer.accepted(), 1);
}

#[tokio::test]
async fn ss_07_a_forbidden_second_address_is_no_fallback() {
    let canary = Peer::answering(OK).await;
    let dead: IpAddr = "127.0.0.2".parse().unwrap();
    let resolver = StaticResolver::new()
        .with("first.example", &[dead, LOOPBACK])
        .with("last.example", &[LOOPBACK, dead]);
    let transport = guarded(&["127.0.0.2"], resolver);
    for host in ["first.example", "last.example"] {
        let sent = send(&transport, &named(&canary, host)).await;
        failure(&sent, FailureKind::Connect);
    }
    assert_eq!(canary.accepted(), 0);
}

#[tokio::test]
async fn a_second_allowed_address_is_a_fallback() {
    let peer = Peer::answering(OK).await;
    let resolver =
        StaticResolver::new().with("h.example", &["127.0.0.2".parse().unwrap(), LOOPBACK]);
    let transport = guarded(&["127.0.0.0/8"], resolver);
    assert_eq!(status(&send(&transport, &named(&peer, "h.example")).await), 200);
}

#[tokio::test]
async fn ss_09_the_refusal_names_the_policy_and_a_rule_opens_one_port() {
    let (open, closed) = (Peer::answering(OK).await, Peer::answering(OK).await);
    let resolver = StaticResolver::new().with("inside.example", &[LOOPBACK]);
    let transport = guarded(&[&format!("127.0.0.1:{}", open.address.port())], resolver);
    assert_eq!(status(&send(&transport, &open.url()).await), 200);
    for url in [closed.url(), named(&closed, "inside.example")] {
        let sent = send(&transport, &url).await;
        let text = &failure(&sent, FailureKind::Forbidden).text;
        assert!(text.contains("`allowed_targets`"), "{text}");
        assert!(!text.contains("127."), "{text}");
    }
    assert_eq!(closed.accepted(), 0);
}

#[tokio::test]
async fn ur_01_an_ipv6_literal_is_dialled_and_keeps_its_brackets_in_host() {
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let Ok(peer) = Peer::at(six, |mut caller| async move { caller.always(OK).await }).await else {
        return; // This machine has no IPv6.
    };
    let port = peer.address.port();
    let sent = send(&transport(), &format!("http://[0:0::1]:{port}/a?b=%2F+c")).await;
    assert_eq!(status(&sent), 200);
    let hit = &peer.hits()[0];
    assert_eq!(hit.header("host"), Some(&*format!("[::1]:{port}")));
    assert!(hit.head.starts_with("POST /a?b=%2F+c HTTP/1.1\r\n"), "{}", hit.head);
}

#[tokio::test]
async fn ur_02_a_long_url_is_sent_byte_for_byte() {
    let peer = Peer::answering(OK).await;
    let path = format!("/p?sig=a%2Fb/c+d%2B&t={}", "k".repeat(8_000));
    let sent = send(&transport(), &format!("http://{}{path}", peer.address)).await;
    assert_eq!(status(&sent), 200);
    assert!(peer.hits()[0].head.starts_with(&format!("POST {path} HTTP/1.1\r\n")));
}

#[tokio::test]
async fn ur_03_no_failure_shows_path_query_or_address() {
    let plain = Peer::answering("nonsense\r\n").await;
    let closing = Peer::start(|mut caller| async move { caller.request().await.map(drop) }).await;
    let broken = ResolveError::Broken("the name server cannot be reached".to_owned());
    let resolver = StaticResolver::new()
        .with("loop.example", &[LOOPBACK])
        .with("inner.example", &["10.9.8.7".parse().unwrap()])
        .failing("broken.example", broken);
    let transport = guarded(&["127.0.0.0/8"], resolver);
    let tls = named(&plain, "loop.example").replace("http:", "https:");
    for url in [
        named(&plain, "loop.example"),
        named(&closing, "loop.example"),
        tls,
        named(&plain, "inner.example"),
        named(&plain, "broken.example"),
        named(&plain, "unknown.example"),
        "http://127.0.0.1:1/p/T0KEN?key=S3CR3T".to_owned(),
    ] {
        let shown = format!("{:?}", send(&transport, &url).await);
        assert!(shown.contains("Failed"), "{shown}");
        for secret in ["T0KEN", "S3CR3T", "10.9.8.7", "127.0.0.1", "key="] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
