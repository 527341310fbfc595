//! reqwest as a transport.
//!
//! Never: retry or follow a redirect behind the policy's back, in the client made here.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use reqwest::redirect;
use tower_service::Service;

use super::body::Body;
use crate::errors::BoxError;

/// A reqwest client as a service of `http` requests.
///
/// [`Reqwest::new`] makes one whose own retries and redirects are off, so that an attempt is one
/// request on the wire. A client of your own (`Reqwest::from(client)`) keeps its settings; give it
/// `.retry(reqwest::retry::never())`.
#[derive(Clone, Debug)]
pub struct Reqwest {
    client: reqwest::Client,
}

impl Reqwest {
    /// A client without retries, redirects and proxy settings of its own. With the feature `rustls`
    /// it trusts the platform's root certificates; with `http2` it speaks that where the server
    /// does.
    pub fn new() -> Result<Self, BoxError> {
        #[cfg(feature = "rustls")]
        return Self::trusting(platform_roots());
        #[cfg(not(feature = "rustls"))]
        Ok(Self { client: plain().build()? })
    }

    /// The same, with these root certificates in place of the platform's: for an authority of your
    /// own.
    #[cfg(feature = "rustls")]
    pub fn trusting(roots: rustls::RootCertStore) -> Result<Self, BoxError> {
        Ok(Self { client: plain().tls_backend_preconfigured(tls(roots)?).build()? })
    }
}

fn plain() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .retry(reqwest::retry::never())
        .redirect(redirect::Policy::none())
        .no_proxy()
}

impl From<reqwest::Client> for Reqwest {
    fn from(client: reqwest::Client) -> Self {
        Self { client }
    }
}

#[cfg(feature = "rustls")]
fn platform_roots() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    // Single certificates of the platform that cannot be read do no harm to the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// ring and these roots, without settings that the whole process shares. What is spoken is offered
/// here: reqwest leaves a configuration that it is given as it is.
#[cfg(feature = "rustls")]
fn tls(roots: rustls::RootCertStore) -> Result<rustls::ClientConfig, BoxError> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let spoken: [&[u8]; 2] = [b"h2", b"http/1.1"];
    let from = usize::from(cfg!(not(feature = "http2")));
    tls.alpn_protocols = spoken.iter().skip(from).map(|name| name.to_vec()).collect();
    Ok(tls)
}

impl Service<Request<Body>> for Reqwest {
    type Response = Response<reqwest::Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<reqwest::Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let request = request.map(|body| match body.as_bytes() {
            Some(bytes) => reqwest::Body::from(bytes.clone()),
            None => reqwest::Body::wrap(body),
        });
        let client = self.client.clone();
        Box::pin(async move {
            let request =
                reqwest::Request::try_from(request).map_err(reqwest::Error::without_url)?;
            // The URL would show a key in its query wherever the error is shown.
            let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            Ok(response.into())
        })
    }
}
