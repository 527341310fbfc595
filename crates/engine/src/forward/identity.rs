//! Who a node is to the others: a certificate of its own, made at its start, whose fingerprint
//! stands in the node's row in the database.
//!
//! Both sides show one and check the other's, so that only those who can write to the database take
//! part, and nobody on the way reads a payload.
//! Never: ask an authority, or let a key out of the process.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig,
    SignatureScheme, version,
};
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The protocol, and its version: nodes that speak another one have nothing to do with each other.
const PROTOCOL: &[u8] = b"peyk-forward/1";
/// What a certificate is made out to; its fingerprint is what is checked.
pub(super) const NAME: &str = "peyk";

/// No certificate could be made.
#[derive(Debug, thiserror::Error)]
#[error("no certificate for other nodes: {0}")]
pub struct NoIdentity(String);

/// A certificate and its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// Says whether a certificate with this fingerprint is one of those that are known.
pub(super) type IsKnown = Box<dyn Fn(&[u8; 32]) -> bool + Send + Sync>;

impl Identity {
    /// A new one.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Self, NoIdentity> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
        let made = made.map_err(|fault| NoIdentity(fault.to_string()))?;
        let certificate = made.cert.der().clone();
        Ok(Self { certificate, key: made.signing_key.serialize_der().into() })
    }

    /// SHA-256 of the certificate.
    pub fn fingerprint(&self) -> [u8; 32] {
        fingerprint(&self.certificate)
    }

    /// Dials nodes that are known.
    pub(super) fn connector(&self, is_known: IsKnown) -> Result<TlsConnector, rustls::Error> {
        let verifier = Arc::new(Verifier::new(is_known));
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = config.with_client_auth_cert(self.chain(), self.key())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Arc::new(config).into())
    }

    /// Answers nodes that are known.
    pub(super) fn acceptor(&self, is_known: IsKnown) -> Result<TlsAcceptor, rustls::Error> {
        let verifier = Arc::new(Verifier::new(is_known));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(verifier);
        let mut config = config.with_single_cert(self.chain(), self.key())?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // A session would outlive what is known of its node.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config).into())
    }

    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key().into()
    }
}

/// SHA-256 of a certificate.
pub(super) fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Trusts certificates by their fingerprint, whoever issued them.
struct Verifier {
    is_known: IsKnown,
    provider: CryptoProvider,
}

impl Verifier {
    fn new(is_known: IsKnown) -> Self {
        Self { is_known, provider: ring::default_provider() }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match (self.is_known)(&fingerprint(certificate)) {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}
