//! TL-01 and the faults of certificates, each by its name.

use std::sync::Arc;

use domain::attempt::FailureKind;
use domain::proxy::Proxy;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;

use super::support::*;
use crate::transport::Transport as _;
use crate::transport::dns::StaticResolver;
use crate::transport::http1::{HttpTransport, Roots};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "Test root");
    span(&mut params, 2020, 2040);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Valid from the start of one year to the start of another; the clock shows 2027.
fn span(params: &mut CertificateParams, from: i32, until: i32) {
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    span(&mut params, 2020, 2040);
    params.distinguished_name.push(rcgen::DnType::CommonName, "A receiver");
    params
}

fn certified(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<CertifiedKey> {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    Arc::new(CertifiedKey::from_der(vec![certificate], key, &ring::default_provider()).unwrap())
}

fn issued(params: CertificateParams, by: &Issuer) -> Arc<CertifiedKey> {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    certified(certificate.der().clone(), &key)
}

fn self_signed(params: CertificateParams) -> Arc<CertifiedKey> {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    certified(certificate.der().clone(), &key)
}

/// Which certificate to show for which SNI; `None` stands for none sent.
#[derive(Debug)]
struct ByName(Vec<(Option<&'static str>, Arc<CertifiedKey>)>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = self.0.iter().find(|(name, _)| *name == hello.server_name());
        found.map(|(_, key)| Arc::clone(key))
    }
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

async fn peer(certificates: impl ResolvesServerCert + 'static) -> Peer {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Peer::start(move |caller| {
        let acceptor = acceptor.clone();
        async move {
            let (socket, rest) = caller.split();
            let session = acceptor.accept(socket).await.ok()?;
            assert_eq!(session.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            rest.map(session).always(OK).await
        }
    })
    .await
}

fn trusting(root: &Issuer) -> HttpTransport {
    let resolver =
        StaticResolver::new().with("one.example", &[LOOPBACK]).with("two.example", &[LOOPBACK]);
    let mut options = options(open_guard(), resolver);
    options.roots = Roots::Only(vec![root.der().clone()]);
    HttpTransport::new(options)
}

fn url(peer: &Peer, host: &str) -> String {
    format!("https://{host}:{}/hook", peer.address.port())
}

#[tokio::test]
async fn tl_01_sni_host_and_verified_name_are_the_configured_host() {
    let root = authority();
    let mut literal = CertificateParams::new([]).unwrap();
    span(&mut literal, 2020, 2040);
    literal.subject_alt_names.push(SanType::IpAddress(LOOPBACK));
    let peer = peer(ByName(vec![
        (Some("one.example"), issued(params("one.example"), &root)),
        (Some("two.example"), issued(params("two.example"), &root)),
        (None, issued(literal, &root)),
    ]))
    .await;
    let transport = trusting(&root);
    for host in ["one.example", "two.example", "127.0.0.1"] {
        for _ in 0..2 {
            assert_eq!(status(&send(&transport, &url(&peer, host)).await), 200, "{host}");
        }
        let hit = peer.hits().pop().unwrap();
        assert_eq!(hit.header("host"), Some(&*format!("{host}:{}", peer.address.port())));
    }
    assert_eq!((peer.hits().len(), peer.accepted()), (6, 3), "sessions are kept as well");
}

/// A proxy under TLS that makes ways.
async fn tls_proxy(certificate: Arc<CertifiedKey>) -> Peer {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(certificate)));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Peer::start(move |caller| {
        let acceptor = acceptor.clone();
        async move {
            let (socket, rest) = caller.split();
            let mut caller = rest.map(acceptor.accept(socket).await.ok()?);
            let hit = caller.request().await?;
            let mut there = TcpStream::connect(hit.head.split(' ').nth(1)?).await.ok()?;
            caller.say(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            copy_bidirectional(&mut caller.stream, &mut there).await.ok().map(drop)
        }
    })
    .await
}

#[tokio::test]
async fn tl_01_tls_inside_tls_with_a_proxy_is_verified_for_both_names() {
    let root = authority();
    let peer = peer(Always(issued(params("one.example"), &root))).await;
    let plain = Peer::answering(OK).await;
    let mut request = outbound(&url(&peer, "one.example"));
    // More than the buffers of both layers hold.
    request.body = vec![b'x'; 1 << 20].into();
    let proxy = tls_proxy(issued(params("proxy.example"), &root)).await;
    let transport = proxied(&root, "proxy.example", &proxy);
    assert_eq!(status(&transport.send(request).await), 200);
    assert_eq!(status(&send(&transport, &plain.url()).await), 200);
    let told: Vec<_> = proxy.hits().iter().map(|hit| hit.head.clone()).collect();
    assert!(told[0].starts_with(&format!("CONNECT {} ", peer.address)), "{told:?}");
    assert!(told[1].starts_with(&format!("CONNECT {} ", plain.address)), "{told:?}");
    let sent = send(&transport, &url(&peer, "two.example")).await;
    assert_eq!(failure(&sent, FailureKind::Tls).text, "the certificate is for another name");
    // The proxy's own certificate is a matter between it and us.
    let other = tls_proxy(issued(params("two.example"), &root)).await;
    let sent = send(&proxied(&root, "proxy.example", &other), &plain.url()).await;
    let text = &failure(&sent, FailureKind::Internal).text;
    assert_eq!(text, "the proxy cannot be reached: the certificate is for another name");
}

fn proxied(root: &Issuer, host: &str, proxy: &Peer) -> HttpTransport {
    let mut resolver = StaticResolver::new();
    for name in ["one.example", "two.example", "proxy.example"] {
        resolver = resolver.with(name, &[LOOPBACK]);
    }
    let mut options = options(open_guard(), resolver);
    options.roots = Roots::Only(vec![root.der().clone()]);
    let url = format!("https://{host}:{}", proxy.address.port());
    options.proxy = Some(Proxy::parse(&url).unwrap());
    HttpTransport::new(options)
}

#[tokio::test]
async fn tl_01_faults_of_certificates_are_named() {
    let root = authority();
    let (mut expired, mut early) = (params("one.example"), params("one.example"));
    span(&mut expired, 2020, 2026);
    span(&mut early, 2028, 2040);
    let mut own_authority = params("one.example");
    own_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for (certificate, fault) in [
        (issued(expired, &root), "the certificate has expired"),
        (issued(early, &root), "the certificate is not yet valid"),
        (issued(params("two.example"), &root), "the certificate is for another name"),
        (
            issued(params("one.example"), &authority_of_others()),
            "the certificate has an unknown issuer",
        ),
        (self_signed(params("one.example")), "the certificate is self-signed"),
        (self_signed(own_authority), "the certificate is self-signed"),
    ] {
        let peer = peer(Always(certificate)).await;
        let sent = send(&trusting(&root), &url(&peer, "one.example")).await;
        assert_eq!(failure(&sent, FailureKind::Tls).text, fault);
        assert_eq!(peer.hits().len(), 0);
    }
}

fn authority_of_others() -> Issuer {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "Another root");
    span(&mut params, 2020, 2040);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[tokio::test]
async fn tl_01_other_faults_of_the_handshake() {
    let root = authority();
    let transport = trusting(&root);
    let plain = Peer::start(|mut caller| async move {
        caller.say(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
        caller.hang().await
    })
    .await;
    let closing = Peer::start(|_caller| async { None }).await;
    let refusing = peer(ByName(Vec::new())).await;
    for (peer, fault) in [
        (&plain, "does not speak TLS"),
        (&closing, "TLS handshake"),
        (&refusing, "refused the TLS handshake"),
    ] {
        let sent = send(&transport, &url(peer, "one.example")).await;
        let text = &failure(&sent, FailureKind::Tls).text;
        assert!(text.contains(fault), "{text}");
    }
    let mut options = options(open_guard(), StaticResolver::new());
    options.roots = Roots::Only(Vec::new());
    let sent = send(&HttpTransport::new(options), &url(&plain, "127.0.0.1")).await;
    assert!(failure(&sent, FailureKind::Tls).text.contains("no root certificates"));
}

#[tokio::test]
async fn tl_01_a_silent_handshake_ends_with_the_connect_timeout() {
    let root = authority();
    let silent = Peer::start(|mut caller| async move { caller.hang().await }).await;
    let mut request = outbound(&url(&silent, "one.example"));
    request.connect_timeout = SHORT;
    let sent = crate::transport::Transport::send(&trusting(&root), request).await;
    assert!(failure(&sent, FailureKind::Tls).text.contains("in time"));
    assert!(sent.took < LONG);
}
