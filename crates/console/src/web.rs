//! The way out over HTTP and TLS, for the API and for what `listen` forwards.
//!
//! Never: follow a redirect, use a proxy, or leave a certificate unchecked.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A client with a pool of connections.
pub(crate) type Web = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Longer than this connecting to one address may not take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client. The roots of the system are only read for `https`.
pub(crate) fn client(for_https: bool) -> Web {
    let mut http = HttpConnector::new();
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.enforce_http(false);
    http.set_nodelay(true);
    let roots = if for_https { system_roots() } else { RootCertStore::empty() };
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls(roots))
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    legacy::Client::builder(TokioExecutor::new()).build(https)
}

/// TLS that trusts these.
pub(crate) fn tls(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

/// TLS to a PostgreSQL server, for whoever connects to one; used where the server has it.
pub fn database_tls() -> MakeRustlsConnect {
    MakeRustlsConnect::new(tls(system_roots()))
}

/// The authorities that the system trusts.
pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read is one that nothing is trusted for.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
