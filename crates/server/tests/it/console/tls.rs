//! The commands over TLS: to a server behind a proxy that ends it, and to a PostgreSQL that has it.
//!
//! Never: a certificate that is trusted by anything but these tests.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use testparts::Postgres;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

use super::run::{Ended, peyk_with};
use crate::support::Server;

/// A certificate of loopback, its key, and the root that it is trusted by.
struct Certified {
    certificate: String,
    key: String,
    root: String,
}

impl Certified {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "Root of a test");
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &root).unwrap();
        Self { certificate: certificate.pem(), key: key.serialize_pem(), root: root.pem() }
    }

    /// Ends TLS in front of a server; the address to go to.
    async fn in_front_of(&self, server: &Server) -> String {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let (tls, to) = (TlsAcceptor::from(Arc::new(config)), server.address().to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, to) = (tls.clone(), to.clone());
                tokio::spawn(async move {
                    // Who does not trust the certificate hangs up.
                    let Ok(mut caller) = tls.accept(stream).await else { return };
                    let mut server = TcpStream::connect(to).await.unwrap();
                    let _ended = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
                });
            }
        });
        address
    }

    /// A file with the root, in the directory of a server.
    fn root_file(&self, server: &Server) -> PathBuf {
        let path = server.dir().join("root.pem");
        std::fs::write(&path, &self.root).unwrap();
        path
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_tls_is_asked_if_its_certificate_is_trusted() {
    let (server, certified) = (Server::start().await, Certified::new());
    let address = certified.in_front_of(&server).await;
    let root = certified.root_file(&server);
    let made = peyk_with(&server, &["app", "create", "--name", "A", "--uid", "a"], |command| {
        command.env("PEYK_SERVER", &address).env("SSL_CERT_FILE", &root);
    });
    assert!(made.ok().contains("app_"));
    server.get("/app/a").await.expect(200);

    let strange = peyk_with(&server, &["app", "list"], |command| {
        let other = server.dir().join("other.pem");
        std::fs::write(&other, Certified::new().root).unwrap();
        command.env("PEYK_SERVER", &address).env("SSL_CERT_FILE", other);
    });
    assert_eq!(strange.code, 3, "{strange:?}");
    assert!(strange.err.contains("certificate"), "{}", strange.err);
    let plain = peyk_with(&server, &["app", "list"], |command| {
        command.env("PEYK_SERVER", address.replace("https", "http"));
    });
    assert_eq!(plain.code, 3, "{plain:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_with_tls_is_read_if_its_certificate_is_trusted() {
    let (server, certified) = (Server::start().await, Certified::new());
    let postgres = Postgres::start_with_tls(&certified.certificate, &certified.key);
    let url = postgres.fresh_database();
    postgres.sql(&url, include_str!("svix.sql"));
    let root = certified.root_file(&server);
    let import = |mode: &str, trusts: bool| -> Ended {
        let from = format!("{url}?sslmode={mode}");
        let arguments = ["import", "svix", "--dry-run", "--org", "org_a", "--from", &from];
        peyk_with(&server, &arguments, |command| {
            if trusts {
                command.env("SSL_CERT_FILE", &root);
            }
        })
    };
    for mode in ["require", "prefer"] {
        let read = import(mode, true);
        assert!(read.out.contains("endpoints"), "{mode}: {read:?}");
        let strange = import(mode, false);
        assert_eq!(strange.code, 3, "{mode}: {strange:?}");
        assert!(strange.err.contains("?sslmode=disable"), "{}", strange.err);
    }
    assert!(import("disable", false).out.contains("endpoints"));
    // `require` is no word for a server without TLS, so that what was read above was read over it.
    let without = Postgres::start();
    let from = format!("{}?sslmode=require", without.fresh_database());
    let refused = peyk_with(&server, &["import", "svix", "--from", &from], |_| {});
    assert_eq!(refused.code, 3, "{refused:?}");
}
