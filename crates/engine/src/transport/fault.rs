//! What went wrong, in the words of the domain: a kind, and a sentence for the endpoint's owner.
//!
//! In: errors of sockets, TLS and HTTP. Out: a `Failure`.
//! Never: put an address, a path, a query or bytes of the peer into a text; decide about retries.

use std::error::Error;
use std::{fmt, io};

use domain::attempt::{Failure, FailureKind};
use rustls::{AlertDescription, CertificateError};
use tokio_rustls::rustls;

/// Too little memory for one more socket.
#[cfg(target_os = "linux")]
const ENOBUFS: i32 = 105;
#[cfg(not(target_os = "linux"))]
const ENOBUFS: i32 = 55;
/// Too many descriptors in this process.
const EMFILE: i32 = 24;
/// Too many descriptors in the machine.
const ENFILE: i32 = 23;

/// A failure in words that are known beforehand.
pub(super) fn failure(kind: FailureKind, text: impl Into<String>) -> Failure {
    Failure { kind, text: text.into() }
}

/// No connection to an address; `over_ipv6` tells which.
pub(super) fn connecting(error: &io::Error, over_ipv6: bool) -> Failure {
    if is_ours(error, over_ipv6) {
        let text = format!("this machine has no socket left: {}", in_words(error));
        return failure(FailureKind::Internal, text);
    }
    failure(FailureKind::Connect, in_words(error))
}

/// Whether this machine, not the peer, is why there is no connection.
///
/// Without IPv6 the system has no local address for it, and says the same as when all ports are
/// used up. That is the peer's lack of IPv4, and must not stop sending to everyone else.
fn is_ours(error: &io::Error, over_ipv6: bool) -> bool {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => !over_ipv6,
        io::ErrorKind::OutOfMemory => true,
        _ => matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS)),
    }
}

/// The TLS handshake failed.
pub(super) fn handshake(error: &io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let text = match inner {
        Some(rustls::Error::InvalidCertificate(fault)) => certificate(fault).to_owned(),
        Some(rustls::Error::AlertReceived(alert)) => alerted(*alert),
        Some(rustls::Error::InvalidMessage(_) | rustls::Error::InappropriateMessage { .. }) => {
            "the peer does not speak TLS on this port".to_owned()
        }
        Some(rustls::Error::PeerIncompatible(_)) => {
            "no TLS version or cipher in common with the peer".to_owned()
        }
        Some(_) => "the TLS handshake failed".to_owned(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the connection was closed during the TLS handshake".to_owned()
        }
        None => format!("{} during the TLS handshake", in_words(error)),
    };
    failure(FailureKind::Tls, text)
}

fn alerted(alert: AlertDescription) -> String {
    format!("the peer refused the TLS handshake: {alert:?}")
}

/// Marks the certificate fault of the same name.
#[derive(Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed")
    }
}

impl Error for SelfSigned {}

fn certificate(fault: &CertificateError) -> &'static str {
    use CertificateError as Fault;
    match fault {
        Fault::Expired | Fault::ExpiredContext { .. } => "the certificate has expired",
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "the certificate is not yet valid",
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            "the certificate is for another name"
        }
        Fault::UnknownIssuer => "the certificate has an unknown issuer",
        Fault::Other(other) if other.0.is::<SelfSigned>() => "the certificate is self-signed",
        Fault::Revoked => "the certificate has been revoked",
        Fault::InvalidPurpose | Fault::InvalidPurposeContext { .. } => {
            "the certificate is not one for servers"
        }
        Fault::BadEncoding => "the certificate cannot be read",
        Fault::BadSignature => "the certificate's signature is wrong",
        _ => "the certificate is not valid",
    }
}

/// The connection broke before the final status and headers were in, or what came is not HTTP.
pub(super) fn exchange(error: &hyper::Error) -> Failure {
    let text = if error.is_parse_too_large() {
        "the headers of the answer are too many or too long".to_owned()
    } else if error.is_parse() {
        "the answer is not HTTP/1.1".to_owned()
    } else if let Some(cause) = io_cause(error) {
        format!("{} before an answer came", in_words(cause))
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        "the connection was closed before an answer came".to_owned()
    } else {
        "the connection broke before an answer came".to_owned()
    };
    failure(FailureKind::Reset, text)
}

fn io_cause(error: &hyper::Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}

fn in_words(error: &io::Error) -> String {
    let text = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => "connection reset",
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => "connection closed",
        io::ErrorKind::HostUnreachable => "host unreachable",
        io::ErrorKind::NetworkUnreachable => "network unreachable",
        io::ErrorKind::NetworkDown => "network down",
        io::ErrorKind::TimedOut => "connection timed out",
        io::ErrorKind::AddrNotAvailable => "no local address to connect from",
        kind => match error.raw_os_error() {
            Some(code) => return format!("system error {code}"),
            None => return kind.to_string(),
        },
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_faults_are_told_from_the_peers() {
        for code in [EMFILE, ENFILE, ENOBUFS] {
            let fault = connecting(&io::Error::from_raw_os_error(code), false);
            assert_eq!(fault.kind, FailureKind::Internal, "{}", fault.text);
        }
        let no_address = io::Error::from(io::ErrorKind::AddrNotAvailable);
        assert_eq!(connecting(&no_address, false).kind, FailureKind::Internal);
        assert_eq!(connecting(&no_address, true).kind, FailureKind::Connect);
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::NetworkUnreachable] {
            assert_eq!(connecting(&kind.into(), false).kind, FailureKind::Connect);
        }
    }
}
