//! TLS towards receivers and a proxy: the platform's roots; the configured host is SNI and the name
//! to verify.
//!
//! In: a way to the peer and its host. Out: a session, or the fault by name.
//! Never: skip a check, verify the dialled address in place of the name, or read the clock itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::attempt::{Failure, FailureKind};
use domain::target::Host;
use resilience::Clock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;

use super::fault;
use super::layer::Layer;

/// Receivers whose sessions are remembered for a shorter handshake.
const SESSIONS_MAX: usize = 1_024;

/// Whom to trust.
#[derive(Clone, Debug, Default)]
pub enum Roots {
    /// The platform's roots.
    #[default]
    Platform,
    /// These and no others.
    Only(Vec<CertificateDer<'static>>),
}

/// Opens TLS sessions.
pub(super) struct Tls {
    /// `None` without any root to trust.
    connector: Option<TlsConnector>,
}

impl Tls {
    pub(super) fn new(roots: Roots, clock: Arc<dyn Clock>) -> Self {
        Self { connector: config(roots, clock).map(|config| TlsConnector::from(Arc::new(config))) }
    }

    /// Shakes hands as `host`; a literal address sends no SNI and must stand in the certificate.
    pub(super) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: Host<'_>,
        socket: S,
    ) -> Result<Layer<S>, Failure> {
        let refuse = |text: &str| fault::failure(FailureKind::Tls, text);
        let connector = self
            .connector
            .as_ref()
            .ok_or_else(|| refuse("the sending machine has no root certificates"))?;
        let name = match host {
            Host::Ip(ip) => ServerName::IpAddress(ip.into()),
            // The dot that ends a fully qualified name is never part of a certificate.
            Host::Name(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|_| refuse("the host is not a name that a certificate can hold"))?,
        };
        let session = connector.connect(name, socket).await;
        let session = session.map_err(|error| fault::handshake(&error))?;
        Ok(Layer::Tls(Box::new(session)))
    }
}

fn config(roots: Roots, clock: Arc<dyn Clock>) -> Option<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(trusted(roots));
    let checker =
        WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build().ok()?;
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(WallClock(clock)))
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier(checker)))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
    Some(config)
}

fn trusted(roots: Roots) -> RootCertStore {
    let certificates = match roots {
        Roots::Only(certificates) => certificates,
        Roots::Platform => {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "cannot read some of the platform's root certificates");
            }
            if found.certs.is_empty() {
                tracing::warn!("no root certificates found: every https endpoint will fail");
            }
            found.certs
        }
    };
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    store
}

/// The injected clock, as rustls wants it.
struct WallClock(Arc<dyn Clock>);

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}

impl rustls::time_provider::TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        let secs = u64::try_from(self.0.now().as_secs()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(secs)))
    }
}

/// The usual checks and nothing less; only where they find no trusted issuer does it look whether
/// the certificate issued itself, to give the fault its name.
#[derive(Debug)]
struct Verifier(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .map_err(|error| match error {
                rustls::Error::InvalidCertificate(
                    CertificateError::UnknownIssuer | CertificateError::Other(_),
                ) if names_itself_as_issuer(end_entity) == Some(true) => {
                    CertificateError::Other(OtherError(Arc::new(fault::SelfSigned))).into()
                }
                other => other,
            })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Whether issuer and subject of a certificate are the same bytes; `None` if it cannot be read.
fn names_itself_as_issuer(certificate: &[u8]) -> Option<bool> {
    const EXPLICIT_VERSION: u8 = 0xa0;
    let (_, certificate, _) = der(certificate)?;
    let (_, mut fields, _) = der(certificate)?;
    if fields.first() == Some(&EXPLICIT_VERSION) {
        fields = der(fields)?.2;
    }
    let (_, _serial, rest) = der(fields)?;
    let (_, _algorithm, rest) = der(rest)?;
    let (_, issuer, rest) = der(rest)?;
    let (_, _validity, rest) = der(rest)?;
    let (_, subject, _) = der(rest)?;
    Some(issuer == subject)
}

/// Splits DER into the tag and content of its first value, and what follows.
fn der(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut len = usize::from(first);
    if first >= 0x80 {
        let (digits, tail) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > size_of::<u32>() {
            return None;
        }
        len = digits.iter().fold(0, |len, &digit| (len << 8) | usize::from(digit));
        rest = tail;
    }
    let (content, tail) = rest.split_at_checked(len)?;
    Some((tag, content, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn der_is_read_within_its_bounds() {
        assert_eq!(der(&[0x30, 2, 1, 2, 3]), Some((0x30, &[1, 2][..], &[3][..])));
        assert_eq!(der(&[0x30, 0x81, 1, 7]), Some((0x30, &[7][..], &[][..])));
        for broken in [&[][..], &[0x30], &[0x30, 2, 1], &[0x30, 0x82, 1], &[0x30, 0xff, 1]] {
            assert_eq!(der(broken), None, "{broken:?}");
        }
        assert_eq!(names_itself_as_issuer(&[0x30, 0]), None);
    }
}
