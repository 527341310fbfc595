//! Deliveries through real proxies, past them, and while there is none.
//!
//! The behaviours that users of other servers know by the tests
//! `test_message_delivery_via_http_proxy`, `test_message_delivery_via_socks5`,
//! `test_http_proxy_exceptions` and `test_socks5_proxy_exceptions`.
//! Never: a request that leaves loopback.

use serde_json::json;
use testparts::Proxy;

use crate::support::{Raw, Receiver, Server, Step, until};

const PASSWORD: &str = "S3CR3T";

/// A delivery goes through the proxy; while the proxy is away deliveries wait uncounted, and
/// nothing tells its password.
async fn delivers_and_waits(mut proxy: Proxy) {
    let url = proxy.url();
    let settings = [("PEYK_PROXY__URL", &*url), ("PEYK_LOG__LEVEL", "trace")];
    let (server, receiver) = (Server::with(&settings).await, Receiver::start().await);
    server.app_with("a", &receiver.url("/hook"), json!({})).await;
    let first = server.message("a", json!({"n": 1})).await;
    server.wait_delivered("a", &[first]).await;
    let host = receiver.url("").replace("http://", "");
    until("a line of the proxy", || async { proxy.said().contains(&host).then_some(()) }).await;
    proxy.stop();
    let second = server.message("a", json!({"n": 2})).await;
    until("a pause", || async { (server.metric("peyk_sending_paused").await > 0.0).then_some(()) })
        .await;
    assert!(server.attempts("a", &second).await.is_empty(), "nothing is counted");
    assert_eq!(server.breaker("a").await["state"], "closed");
    proxy.restart();
    server.wait_delivered("a", &[second]).await;
    assert_eq!(receiver.hits().len(), 2);
    let log = server.log();
    assert!(log.contains("the proxy cannot be reached: connection refused"), "{log}");
    let metrics = server.send("GET", "/metrics", &[], "").await.text();
    assert!(!log.contains(PASSWORD) && !metrics.contains(PASSWORD));
}

#[tokio::test]
async fn rp_03_an_http_proxy_delivers_and_is_waited_for() {
    delivers_and_waits(Proxy::http(PASSWORD)).await;
}

#[tokio::test]
async fn rp_03_a_socks5_proxy_delivers_and_is_waited_for() {
    delivers_and_waits(Proxy::socks5(PASSWORD)).await;
}

#[tokio::test]
async fn rp_03_a_password_that_the_proxy_does_not_take_uses_up_no_attempt() {
    for proxy in [Proxy::http(PASSWORD), Proxy::socks5(PASSWORD)] {
        let url = proxy.url().replace(PASSWORD, "WR0NG");
        let server = Server::with(&[("PEYK_PROXY__URL", &url)]).await;
        let receiver = Receiver::start().await;
        server.app_with("a", &receiver.url("/"), json!({})).await;
        let id = server.message("a", json!({})).await;
        until("a line", || async {
            server.log().contains("the proxy does not take our credentials").then_some(())
        })
        .await;
        assert!(server.attempts("a", &id).await.is_empty());
        assert!(receiver.hits().is_empty() && !server.log().contains("WR0NG"));
    }
}

#[tokio::test]
async fn a_target_that_refuses_the_proxy_is_tried_again_and_is_dead_in_the_end() {
    for (proxy, said) in [
        (Proxy::http(PASSWORD), "the proxy answered 500"),
        (Proxy::socks5(PASSWORD), "the proxy could not connect to the host: connection refused"),
    ] {
        let server = Server::with(&[("PEYK_PROXY__URL", &proxy.url())]).await;
        server.app_with("a", "http://127.0.0.1:1/", json!({})).await;
        let id = server.message("a", json!({})).await;
        server.wait_dead("a", 1).await;
        for row in server.wait_attempts("a", &id, 3).await {
            assert_eq!(row["errorKind"], "connect");
            assert!(row["error"].as_str().unwrap().starts_with(said), "{row}");
        }
    }
}

#[tokio::test]
async fn exceptions_by_net_and_by_name_go_past_the_proxy() {
    let receiver = Receiver::start().await;
    let by_address = receiver.url("/");
    let by_name = by_address.replace("127.0.0.1", "localhost");
    for scheme in ["http", "socks5"] {
        for (except, url, past) in [
            ("127.0.0.0/8, ::1", &by_address, true),
            ("127.0.0.0/8, ::1", &by_name, true),
            ("localhost", &by_name, true),
            (".localhost, 10.0.0.0/8", &by_name, false),
            ("localhost", &by_address, false),
        ] {
            let canary = Raw::start(|_| vec![Step::send("no")]).await;
            let proxy = canary.url("").replacen("http", scheme, 1);
            let settings = [
                ("PEYK_PROXY__URL", &*proxy),
                ("PEYK_PROXY__EXCEPT", except),
                ("PEYK_ALLOWED_TARGETS", "127.0.0.0/8,::1"),
            ];
            let server = Server::with(&settings).await;
            server.app_with("a", url, json!({})).await;
            let id = server.message("a", json!({})).await;
            if past {
                server.wait_delivered("a", &[id]).await;
                assert_eq!(canary.connections(), 0, "{except} {url}");
            } else {
                until("a connection", || async { (canary.connections() > 0).then_some(()) }).await;
                assert!(server.attempts("a", &id).await.iter().all(|row| row["status"] != 0));
            }
        }
    }
}

#[tokio::test]
async fn ss_05_a_proxy_is_no_way_round_the_guard() {
    let (proxy, receiver) = (Proxy::http(PASSWORD), Receiver::start().await);
    let url = proxy.url();
    let settings = [("PEYK_PROXY__URL", &*url), ("PEYK_ALLOWED_TARGETS", "")];
    let server = Server::with(&settings).await;
    let by_name = receiver.url("/").replace("127.0.0.1", "localhost");
    for (app, url) in [("a", receiver.url("/")), ("b", by_name)] {
        server.app_with(app, &url, json!({})).await;
        server.message(app, json!({})).await;
        let dead = server.wait_dead(app, 1).await.remove(0);
        assert_eq!(dead["reason"], "forbidden_target");
    }
    assert!(receiver.hits().is_empty());
    assert!(!proxy.said().contains("CONNECT"), "{}", proxy.said());
}
