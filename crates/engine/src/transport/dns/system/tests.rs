//! HC-09 against a name server of our own on loopback.

use std::net::SocketAddr;

use tokio::net::UdpSocket;

use super::*;

const NXDOMAIN: u8 = 3;
const SERVFAIL: u8 = 2;

/// Answers A queries for `found.test`, and everything else by the first label of its name.
async fn name_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut query = [0; 1_500];
        loop {
            let (len, from) = socket.recv_from(&mut query).await.unwrap();
            if let Some(reply) = reply(&query[..len]) {
                socket.send_to(&reply, from).await.unwrap();
            }
        }
    });
    address
}

/// The reply to a query of one question; `None` for silence.
fn reply(query: &[u8]) -> Option<Vec<u8>> {
    let mut end = 12;
    while query[end] != 0 {
        end += usize::from(query[end]) + 1;
    }
    let label = std::str::from_utf8(&query[13..][..usize::from(query[12])]).unwrap().to_owned();
    let question = &query[12..end + 5];
    let is_a = query[end + 1..end + 3] == [0, 1];
    let (code, addresses): (u8, &[[u8; 4]]) = match &*label {
        "found" if is_a => (0, &[[192, 0, 2, 1], [192, 0, 2, 2]]),
        "under_score" if is_a => (0, &[[192, 0, 2, 3]]),
        "found" | "empty" | "under_score" => (0, &[]),
        "servfail" => (SERVFAIL, &[]),
        "silent" => return None,
        _ => (NXDOMAIN, &[]),
    };
    let mut reply = query[..2].to_vec();
    reply.extend([0x81, 0x80 | code, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    reply.extend(question);
    for address in addresses {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4]);
        reply.extend(address);
    }
    Some(reply)
}

fn source(server: SocketAddr, timeout: Duration) -> SystemSource {
    let mut config = NameServerConfig::udp(server.ip());
    config.connections[0].port = server.port();
    let config = ResolverConfig::from_name_servers(vec![config]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().timeout = timeout;
    SystemSource::build(builder)
}

#[tokio::test]
async fn hc_09_what_a_name_server_says_is_about_the_name() {
    let source = source(name_server().await, Duration::from_secs(20));
    let found = source.lookup("found.test".to_owned()).await.unwrap();
    let addresses: Vec<IpAddr> =
        ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(found.addresses, addresses);
    assert!(found.ttl <= Duration::from_secs(30) && found.ttl > Duration::from_secs(20));
    for name in ["found.test.", "under_score.test"] {
        assert!(source.lookup(name.to_owned()).await.is_ok(), "{name}");
    }
    for (name, text) in [
        ("unknown.test", "the host name does not exist"),
        ("empty.test", "the host name has no address"),
        ("servfail.test", "the name server could not resolve the host name"),
        (&*format!("{}.test", "l".repeat(64)), "the host name cannot be resolved"),
    ] {
        let error = source.lookup(name.to_owned()).await.unwrap_err();
        assert_eq!(error, unresolved(text), "{name}");
    }
}

#[tokio::test]
async fn hc_09_silence_is_about_the_name() {
    let source = source(name_server().await, Duration::from_millis(50));
    let error = source.lookup("silent.test".to_owned()).await.unwrap_err();
    assert_eq!(error, unresolved("the name server did not answer in time"));
}

#[tokio::test]
async fn hc_09_that_no_name_server_can_be_reached_is_about_us() {
    let unreachable = std::io::Error::from(std::io::ErrorKind::NetworkUnreachable);
    for error in [NetError::Io(Arc::new(unreachable)), NetError::NoConnections, NetError::Busy] {
        let ours = ResolveError::Broken("the name server cannot be reached".to_owned());
        assert_eq!(explain(&error), ours);
    }
    let error = SystemSource(None).lookup("found.test".to_owned()).await.unwrap_err();
    assert!(matches!(error, ResolveError::Broken(_)));
}

#[tokio::test]
async fn localhost_needs_no_name_server() {
    let found = SystemSource::new().lookup("localhost".to_owned()).await.unwrap();
    assert!(!found.addresses.is_empty());
    assert!(found.addresses.iter().all(IpAddr::is_loopback), "{found:?}");
}
