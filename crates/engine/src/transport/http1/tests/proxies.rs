//! The way out through proxies: what they are told, what goes past them, and whose fault it is when
//! they refuse. The proxies are scripted, byte for byte.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::attempt::FailureKind;
use domain::proxy::{Exceptions, Proxy};
use domain::target::{Guard, Target};
use http::HeaderMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

use super::support::*;
use crate::transport::dns::{Resolve, ResolveError, Resolving, StaticResolver};
use crate::transport::http1::HttpTransport;
use crate::transport::{Check, Transport as _};

const MADE: &[u8] = b"HTTP/1.1 200 Connection established\r\ncontent-length: 99\r\n\r\n";

/// A proxy for `CONNECT` that makes the way.
async fn tunnels() -> Peer {
    Peer::start(|mut caller| async move {
        let hit = caller.request().await?;
        let mut there = TcpStream::connect(hit.head.split(' ').nth(1)?).await.ok()?;
        // In two pieces, after an interim answer.
        caller.say(b"HTTP/1.1 103 Early\r\n\r\n").await?;
        caller.say(&MADE[..20]).await?;
        caller.say(&MADE[20..]).await?;
        copy_bidirectional(&mut caller.stream, &mut there).await.ok().map(drop)
    })
    .await
}

type Heard = Arc<Mutex<Vec<Vec<u8>>>>;

/// A SOCKS5 proxy that makes the way, and what it was told: greeting, proof, request.
async fn socks(method: u8) -> (Peer, Heard) {
    let heard = Heard::default();
    let kept = Arc::clone(&heard);
    let peer = Peer::start(move |mut caller| {
        let heard = Arc::clone(&kept);
        async move {
            let stream = &mut caller.stream;
            let mut head = [0; 2];
            stream.read_exact(&mut head).await.ok()?;
            let mut methods = vec![0; head[1].into()];
            stream.read_exact(&mut methods).await.ok()?;
            stream.write_all(&[5, method]).await.ok()?;
            heard.lock().unwrap().push([&head[..], &methods].concat());
            if method == 2 {
                let mut proof = [0; 9];
                stream.read_exact(&mut proof).await.ok()?;
                heard.lock().unwrap().push(proof.to_vec());
                stream.write_all(&[1, u8::from(proof != *b"\x01\x02me\x045ECR")]).await.ok()?;
            }
            let mut request = [0; 10];
            stream.read_exact(&mut request[..4]).await.ok()?;
            let there: SocketAddr = if request[3] == 4 {
                let (ip, port) = (stream.read_u128().await.ok()?, stream.read_u16().await.ok()?);
                (Ipv6Addr::from(ip), port).into()
            } else {
                stream.read_exact(&mut request[4..]).await.ok()?;
                let [.., a, b, c, d, high, low] = request;
                ([a, b, c, d], u16::from_be_bytes([high, low])).into()
            };
            heard.lock().unwrap().push(there.to_string().into_bytes());
            let mut there = TcpStream::connect(there).await.ok()?;
            // Bound to a name, as some proxies say.
            stream.write_all(b"\x05\x00\x00\x03\x03a.b\x00\x50").await.ok()?;
            copy_bidirectional(stream, &mut there).await.ok().map(drop)
        }
    })
    .await;
    (peer, heard)
}

fn through(url: &str, except: &[&str], resolver: StaticResolver) -> HttpTransport {
    let mut options = options(open_guard(), resolver);
    options.proxy = Some(Proxy::parse(url).unwrap().except(Exceptions::parse(except).unwrap()));
    HttpTransport::new(options)
}

fn over(scheme: &str, proxy: &Peer) -> HttpTransport {
    let resolver = StaticResolver::new().with("name.example", &[LOOPBACK]);
    through(&format!("{scheme}{}", proxy.address), &[], resolver)
}

fn named(peer: &Peer) -> String {
    format!("http://name.example:{}/hook", peer.address.port())
}

#[tokio::test]
async fn a_plain_target_is_tunnelled_and_the_proxy_is_told_its_address_only() {
    let (peer, proxy) = (Peer::answering(OK).await, tunnels().await);
    let transport = over("http://me:5ECR@", &proxy);
    for _ in 0..2 {
        assert_eq!(status(&send(&transport, &named(&peer)).await), 200);
    }
    let tunnels = proxy.hits();
    assert_eq!(tunnels.len(), 1, "it is kept");
    let expected = format!(
        "CONNECT {0} HTTP/1.1\r\nhost: {0}\r\nproxy-authorization: Basic bWU6NUVDUg==\r\n\r\n",
        peer.address
    );
    assert_eq!(tunnels[0].head, expected);
    let hits = peer.hits();
    assert_eq!((hits.len(), hits[1].connection), (2, 0));
    let host = format!("name.example:{}", peer.address.port());
    assert_eq!(hits[0].header("host"), Some(&*host));
    assert!(hits[0].head.starts_with("POST /hook HTTP/1.1\r\n"), "{}", hits[0].head);
    assert!(!hits[0].head.contains("proxy-"), "{}", hits[0].head);
}

#[tokio::test]
async fn socks5_is_told_the_address_with_and_without_a_password() {
    let peer = Peer::answering(OK).await;
    let there = peer.address.to_string().into_bytes();
    let (proxy, heard) = socks(0).await;
    assert_eq!(status(&send(&over("socks5://", &proxy), &named(&peer)).await), 200);
    assert_eq!(*heard.lock().unwrap(), [vec![5, 1, 0], there.clone()]);
    let (proxy, heard) = socks(2).await;
    assert_eq!(status(&send(&over("socks5://me:5ECR@", &proxy), &named(&peer)).await), 200);
    let proof = b"\x01\x02me\x045ECR".to_vec();
    assert_eq!(*heard.lock().unwrap(), [vec![5, 2, 0, 2], proof, there]);
    let sent = send(&over("socks5://me:0THER@", &proxy), &named(&peer)).await;
    let wrong = failure(&sent, FailureKind::Internal);
    assert!(wrong.text.contains("credentials"), "{}", wrong.text);
    assert!(!wrong.text.contains("0THER"));
}

#[tokio::test]
async fn an_ipv6_target_is_told_as_such() {
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let Ok(peer) = Peer::at(six, |mut caller| async move { caller.always(OK).await }).await else {
        return; // This machine has no IPv6.
    };
    let url = format!("http://[::1]:{}/hook", peer.address.port());
    let http = tunnels().await;
    assert_eq!(status(&send(&over("http://", &http), &url).await), 200);
    assert!(http.hits()[0].head.starts_with(&format!("CONNECT {} HTTP/1.1", peer.address)));
    let (socks, heard) = socks(0).await;
    assert_eq!(status(&send(&over("socks5://", &socks), &url).await), 200);
    assert_eq!(heard.lock().unwrap()[1], peer.address.to_string().into_bytes());
}

#[tokio::test]
async fn exceptions_by_net_and_by_name_go_past_the_proxy() {
    let peer = Peer::answering(OK).await;
    let http = tunnels().await;
    let (socks, _) = socks(0).await;
    let literal = peer.url();
    for (scheme, proxy) in [("http", &http), ("socks5", &socks)] {
        for (except, url, past) in [
            (&["127.0.0.0/8"][..], &literal, true),
            (&["127.0.0.0/8"], &named(&peer), true),
            (&["name.example"], &named(&peer), true),
            (&["::1", ".example"], &named(&peer), true),
            (&["name.example"], &literal, false),
            (&[".name.example", "10.0.0.0/8"], &named(&peer), false),
        ] {
            let resolver = StaticResolver::new().with("name.example", &[LOOPBACK]);
            let url_of_proxy = format!("{scheme}://{}", proxy.address);
            let transport = through(&url_of_proxy, except, resolver);
            let before = proxy.accepted();
            assert_eq!(status(&send(&transport, url).await), 200, "{except:?}");
            let used = proxy.accepted() - before;
            assert_eq!(used, usize::from(!past), "{scheme} {except:?} {url}");
        }
    }
}

/// Another answer each time: first one that the guard lets through.
struct Rebinding(Mutex<Vec<IpAddr>>);

impl Resolve for Rebinding {
    fn resolve(&self, _name: String) -> Resolving {
        let next = self.0.lock().unwrap().pop();
        let none = || ResolveError::Unresolved("asked too often".to_owned());
        Box::pin(std::future::ready(next.map(|ip| vec![ip]).ok_or_else(none)))
    }
}

#[tokio::test]
async fn ss_05_the_proxy_is_no_way_round_the_guard() {
    let canary = Peer::answering(OK).await;
    let proxy = tunnels().await;
    let resolver = || {
        StaticResolver::new()
            .with("name.example", &[LOOPBACK])
            .with("mixed.example", &["10.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()])
    };
    // What goes past the proxy is guarded just so.
    for except in [&[][..], &["127.0.0.0/8", ".example"]] {
        let mut options = options(Guard::new(Vec::new()), resolver());
        let url = format!("http://{}", proxy.address);
        options.proxy =
            Some(Proxy::parse(&url).unwrap().except(Exceptions::parse(except).unwrap()));
        let transport = HttpTransport::new(options);
        for url in [canary.url(), named(&canary), "http://mixed.example/".to_owned()] {
            let sent = send(&transport, &url).await;
            assert!(failure(&sent, FailureKind::Forbidden).text.contains("`allowed_targets`"));
        }
    }
    assert_eq!((canary.accepted(), proxy.accepted()), (0, 0));
}

#[tokio::test]
async fn ss_07_the_address_that_the_guard_saw_is_the_one_the_proxy_is_told() {
    let (peer, proxy) = (Peer::answering(OK).await, tunnels().await);
    let forbidden: IpAddr = [10, 0, 0, 1].into();
    let mut options = options(open_guard(), StaticResolver::new());
    options.resolver = Arc::new(Rebinding(Mutex::new(vec![forbidden, LOOPBACK])));
    options.proxy = Some(Proxy::parse(&format!("http://{}", proxy.address)).unwrap());
    let transport = HttpTransport::new(options);
    assert_eq!(status(&send(&transport, &named(&peer)).await), 200);
    let head = &proxy.hits()[0].head;
    assert!(head.starts_with(&format!("CONNECT {} ", peer.address)), "{head}");
    assert!(!head.contains("name.example"));
}

#[tokio::test]
async fn the_second_address_is_tried_by_the_proxy_too() {
    let (peer, proxy) = (Peer::answering(OK).await, tunnels().await);
    let resolver =
        StaticResolver::new().with("name.example", &["127.0.0.2".parse().unwrap(), LOOPBACK]);
    let transport = through(&format!("http://{}", proxy.address), &[], resolver);
    assert_eq!(status(&send(&transport, &named(&peer)).await), 200);
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn rp_03_a_refusal_is_ours_only_if_no_target_can_bring_it_about() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(9_000)).into_bytes();
    let lines = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(70)).into_bytes();
    for (answer, kind, text) in [
        (&b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n"[..], "ours", "credentials (407)"),
        (b"HTTP/1.1 407 Request rejected by proxy\r\n\r\n", "theirs", "let us connect"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "theirs", "let us connect to the host (403)"),
        (b"HTTP/1.1 502 Bad\r\ncontent-length: 3\r\n\r\nbad", "theirs", "could not connect"),
        (b"HTTP/1.1 504 Late\r\n\r\n", "theirs", "could not connect to the host (504)"),
        (b"HTTP/1.1 405 What\r\n\r\n", "ours", "opens no tunnels"),
        (b"HTTP/1.1 200 OK\r\nx: y", "theirs", "closed the connection"),
        (b"", "theirs", "closed the connection"),
        (b"SSH-2.0-x\r\n", "ours", "no HTTP proxy"),
        (&long, "ours", "no HTTP proxy"),
        (&lines, "ours", "no HTTP proxy"),
        (b"HTTP/1.1 200 OK\r\n\r\n220 mail", "reset", "spoke before"),
    ] {
        let answer = answer.to_vec();
        let proxy = Peer::start(move |mut caller| {
            let answer = answer.clone();
            async move {
                caller.request().await?;
                caller.say(&answer).await
            }
        })
        .await;
        let kind = match kind {
            "ours" => FailureKind::Internal,
            "theirs" => FailureKind::Connect,
            _ => FailureKind::Reset,
        };
        let sent = send(&over("http://me:5ECRET@", &proxy), "http://127.0.0.1:9/").await;
        let said = &failure(&sent, kind).text;
        assert!(said.contains(text), "{said:?} has no {text:?}");
        assert!(!said.contains("5ECRET") && !said.contains("127.") && !said.contains('\n'));
    }
}

#[tokio::test]
async fn rp_03_refusals_of_socks5_are_told_apart() {
    for (answers, kind, text) in [
        (&[&b"\x05\xff"[..]][..], FailureKind::Internal, "asks for credentials"),
        (&[b"\x04\x00"], FailureKind::Internal, "no SOCKS5 proxy"),
        (&[b"HTTP/1.1 400 Bad\r\n\r\n"], FailureKind::Internal, "no SOCKS5 proxy"),
        (&[b"\x05\x00", b"\x05\x04\0\x01\0\0\0\0\0\0"], FailureKind::Connect, "host unreachable"),
        (&[b"\x05\x00", b"\x05\x02\0\x01\0\0\0\0\0\0"], FailureKind::Connect, "let us connect"),
        (&[b"\x05\x00", b"\x05\x07\0\x01"], FailureKind::Internal, "reply 7"),
        (&[b"\x05\x00", b"\x05\x00\0\x09"], FailureKind::Internal, "no SOCKS5 proxy"),
        (&[b"\x05\x00", b"\x05\x00\0\x01\0"], FailureKind::Connect, "closed the connection"),
        (&[], FailureKind::Connect, "closed the connection"),
    ] {
        let answers: Vec<_> = answers.iter().map(|bytes| bytes.to_vec()).collect();
        let proxy = Peer::start(move |mut caller| {
            let answers = answers.clone();
            async move {
                for answer in answers {
                    let mut said = [0; 64];
                    caller.stream.read(&mut said).await.ok().filter(|read| *read > 0)?;
                    caller.say(&answer).await?;
                }
                // All is read, so that the close does not overtake the answer.
                caller.stream.shutdown().await.ok()?;
                caller.hang().await
            }
        })
        .await;
        let sent = send(&over("socks5://", &proxy), "http://127.0.0.1:9/").await;
        let said = &failure(&sent, kind).text;
        assert!(said.contains(text), "{said:?} has no {text:?}");
    }
}

#[tokio::test]
async fn rp_03_a_proxy_that_cannot_be_reached_is_our_fault() {
    let resolver = StaticResolver::new().with("proxy.example", &["127.0.0.2".parse().unwrap()]);
    for url in ["http://127.0.0.1:1", "socks5://127.0.0.1:1", "http://none.example:1"] {
        let resolver = StaticResolver::new();
        let sent = send(&through(url, &[], resolver), "http://127.0.0.1:9/").await;
        let text = &failure(&sent, FailureKind::Internal).text;
        assert!(text.starts_with("the proxy cannot be reached: "), "{text}");
        assert!(!text.contains("example") && !text.contains("127."), "{text}");
    }
    // Not where there was hardly time for it: that a target may bring about.
    let mut request = outbound("http://127.0.0.1:9/");
    request.connect_timeout = SHORT;
    let sent = through("http://proxy.example:1", &[], resolver).send(request).await;
    failure(&sent, FailureKind::Connect);
}

#[tokio::test]
async fn a_proxy_that_is_silent_or_drips_ends_with_the_connect_timeout() {
    let silent = Peer::start(|mut caller| async move { caller.hang().await }).await;
    let drips = Peer::start(|mut caller| async move {
        caller.request().await?;
        caller.say(b"HTTP/1.1 200 OK\r\n").await?;
        caller.drip(b"x").await
    })
    .await;
    for (scheme, proxy) in [("http://", &silent), ("socks5://", &silent), ("http://", &drips)] {
        let mut request = outbound("http://127.0.0.1:9/");
        request.connect_timeout = SHORT;
        let sent = over(scheme, proxy).send(request).await;
        let text = &failure(&sent, FailureKind::Connect).text;
        assert_eq!(text, "the proxy did not connect to the host in time");
        assert!(sent.took >= SHORT && sent.took < LONG, "{sent:?}");
    }
}

#[tokio::test]
async fn questions_go_through_the_proxy_too() {
    let (peer, proxy) = (Peer::answering(OK).await, tunnels().await);
    let target = Target::parse("url", &named(&peer), false).unwrap();
    let (deadline, connect_timeout) = (Duration::from_secs(9), Duration::from_secs(9));
    let question = Check { target, headers: HeaderMap::new(), deadline, connect_timeout };
    assert!(over("http://", &proxy).check(question).await);
    assert_eq!((proxy.accepted(), peer.accepted()), (1, 1));
}
