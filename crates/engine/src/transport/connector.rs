//! From a target to an open connection: resolve once, ask the guard about every address, dial, TLS.
//!
//! In: the target and when to give up. Out: a stream, or the failure of the step that failed.
//! Never: dial an address that the guard has not let through, resolve a second time, use a proxy.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use domain::attempt::{Failure, FailureKind};
use domain::target::{Guard, Host, Target};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::dns::{Resolve, ResolveError};
use super::fault;
use super::stream::Stream;
use super::tls::Tls;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Opens connections.
pub(super) struct Connector {
    pub(super) guard: Guard,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) tls: Tls,
}

impl Connector {
    /// Opens a connection to `target` before `limit`.
    pub(super) async fn connect(&self, target: &Target, limit: Instant) -> Result<Stream, Failure> {
        let host = target.host_for_dns();
        let addresses = self.permitted(self.addresses(host, limit).await?, target.port())?;
        let socket = dial(&addresses, limit).await?;
        // Requests are written whole; waiting for more to send would only delay them.
        let _best_effort = socket.set_nodelay(true);
        if !target.is_https() {
            return Ok(Stream::plain(socket));
        }
        timeout_at(limit, self.tls.open(host, socket))
            .await
            .unwrap_or_else(|_| Err(late(FailureKind::Tls, "the TLS handshake did not end")))
            .map(Stream::tls)
    }

    async fn addresses(&self, host: Host<'_>, limit: Instant) -> Result<Vec<IpAddr>, Failure> {
        let name = match host {
            Host::Ip(ip) => return Ok(vec![ip]),
            Host::Name(name) => name,
        };
        let answer = timeout_at(limit, self.resolver.resolve(name.to_owned()))
            .await
            .map_err(|_| late(FailureKind::Dns, "the host name was not resolved"))?;
        let (kind, text) = match answer {
            Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
            Ok(_) => (FailureKind::Dns, "the host name has no address".to_owned()),
            Err(ResolveError::Unresolved(text)) => (FailureKind::Dns, text),
            Err(ResolveError::Broken(text)) => (FailureKind::Internal, text),
        };
        Err(fault::failure(kind, text))
    }

    /// Those that may be dialled. Of a mixed answer the forbidden ones are passed over.
    fn permitted(&self, addresses: Vec<IpAddr>, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        let open: Vec<_> = addresses
            .into_iter()
            .map(|ip| SocketAddr::new(ip.to_canonical(), port))
            .filter(|&address| self.guard.permits(address))
            .take(ADDRESSES_MAX)
            .collect();
        if open.is_empty() {
            // The owner of an endpoint must not learn what a name resolves to in here.
            return Err(fault::failure(
                FailureKind::Forbidden,
                "the host is not on the public internet; \
                 the operator can allow it in `allowed_targets`",
            ));
        }
        Ok(open)
    }
}

/// Tries the addresses in turn, each with its share of the time left.
async fn dial(addresses: &[SocketAddr], limit: Instant) -> Result<TcpStream, Failure> {
    let mut last = late(FailureKind::Connect, "no connection");
    for (tried, &address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = now + limit.saturating_duration_since(now) / left;
        last = match timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => fault::connecting(&error, address.is_ipv6()),
            Err(_) => late(FailureKind::Connect, "no connection"),
        };
        if last.kind == FailureKind::Internal {
            break;
        }
    }
    Err(last)
}

fn late(kind: FailureKind, what: &str) -> Failure {
    fault::failure(kind, format!("{what} in time"))
}
