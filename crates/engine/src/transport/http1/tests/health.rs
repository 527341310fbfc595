//! Questions whether a receiver is well: by GET, guarded, and answered by the status alone.
//!
//! Never: a body of a question.

use std::time::Duration;

use domain::target::{Guard, Target};
use http::HeaderMap;

use super::support::*;
use crate::transport::dns::StaticResolver;
use crate::transport::http1::HttpTransport;
use crate::transport::{Check, Transport as _};

async fn ask(transport: &HttpTransport, url: &str) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert("x-key", "k".parse().unwrap());
    let target = Target::parse("url", url, false).unwrap();
    let (deadline, connect_timeout) = (Duration::from_secs(5), Duration::from_secs(5));
    transport.check(Check { target, headers, deadline, connect_timeout }).await
}

#[tokio::test]
async fn only_2xx_is_a_yes_and_no_redirect_is_followed() {
    let canary = Peer::answering(OK).await;
    let elsewhere = canary.url();
    let transport = transport();
    for (status, well) in [(200, true), (204, true), (301, false), (404, false), (503, false)] {
        let answer =
            format!("HTTP/1.1 {status} X\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
        let peer = Peer::answering(answer).await;
        assert_eq!(ask(&transport, &peer.url()).await, well, "{status}");
        let hits = peer.hits();
        assert_eq!(hits.len(), 1);
        assert_eq!(hits[0].header("x-key"), Some("k"));
        assert_eq!(hits[0].header("content-length"), None, "there is no body");
    }
    assert_eq!(canary.accepted(), 0);
}

#[tokio::test]
async fn ss_08_the_guard_stands_before_it_too() {
    let canary = Peer::answering(OK).await;
    let transport = HttpTransport::new(options(Guard::new(Vec::new()), StaticResolver::new()));
    assert!(!ask(&transport, &canary.url()).await);
    assert_eq!(canary.accepted(), 0);
}
