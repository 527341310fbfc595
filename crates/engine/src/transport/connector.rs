//! From a target to an open connection: resolve once, ask the guard about every address, dial or
//! have a proxy dial, TLS.
//!
//! In: the target and when to give up. Out: a stream, or the failure of the step that failed.
//! Never: reach an address that the guard has not let through, by a proxy neither; resolve a second
//! time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use domain::attempt::{Failure, FailureKind};
use domain::proxy::{Proxy, Scheme};
use domain::target::{Guard, Host, Target};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::dns::{Resolve, ResolveError};
use super::fault;
use super::layer::Layer;
use super::proxy;
use super::stream::{Stream, Way};
use super::tls::Tls;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// A proxy that was given less time than this is not blamed: a target whose name is slow to resolve
/// would otherwise bring about a fault of ours.
const PROXY_WAIT_MIN: Duration = Duration::from_secs(1);

/// Opens connections.
pub(super) struct Connector {
    pub(super) guard: Guard,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) tls: Tls,
    pub(super) proxy: Option<Proxy>,
}

impl Connector {
    /// Opens a connection to `target` before `limit`.
    pub(super) async fn connect(&self, target: &Target, limit: Instant) -> Result<Stream, Failure> {
        let host = target.host_for_dns();
        let addresses = self.permitted(self.addresses(host, limit).await?, target.port())?;
        let way = self.reach(host, &addresses, limit).await?;
        if !target.is_https() {
            return Ok(Stream::over(Layer::Plain(way)));
        }
        self.secured(host, way, limit).await.map(Stream::over)
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
        let open: Vec<_> =
            at(addresses, port).filter(|&address| self.guard.permits(address)).collect();
        if open.is_empty() {
            // The owner of an endpoint must not learn what a name resolves to in here.
            return Err(fault::failure(
                FailureKind::Forbidden,
                "the host is not on the public internet; \
                 the operator can allow it in `allowed_targets`",
            ));
        }
        Ok(open.into_iter().take(ADDRESSES_MAX).collect())
    }

    /// Tries the addresses of `host` in turn, each with its share of the time left.
    async fn reach(
        &self,
        host: Host<'_>,
        addresses: &[SocketAddr],
        limit: Instant,
    ) -> Result<Way, Failure> {
        let mut last = late(FailureKind::Connect, "no connection");
        for (tried, &address) in addresses.iter().enumerate() {
            let left = addresses.len() - tried;
            let proxy = self.proxy.as_ref();
            let reached = match proxy.filter(|it| !it.exceptions.cover(host, address.ip())) {
                None => dial(address, share(limit, left)).await.map(Layer::Plain),
                Some(proxy) => self.reach_through(proxy, address, (left, limit)).await,
            };
            last = match reached {
                Ok(way) => return Ok(way),
                Err(failure) => failure,
            };
            if last.kind == FailureKind::Internal {
                break;
            }
        }
        Err(last)
    }

    /// Has `proxy` dial. The address is shared out of the time that the proxy has for it; reaching
    /// the proxy may take all that is left.
    async fn reach_through(
        &self,
        proxy: &Proxy,
        address: SocketAddr,
        (left, limit): (usize, Instant),
    ) -> Result<Way, Failure> {
        let time = limit.saturating_duration_since(Instant::now());
        let mut way = self.reach_proxy(proxy, limit).await.map_err(|failure| {
            let is_ours = time >= PROXY_WAIT_MIN || failure.kind == FailureKind::Internal;
            let kind = if is_ours { FailureKind::Internal } else { FailureKind::Connect };
            fault::failure(kind, format!("the proxy cannot be reached: {}", failure.text))
        })?;
        timeout_at(share(limit, left), proxy::ask(&mut way, proxy, address))
            .await
            .unwrap_or_else(|_| {
                Err(late(FailureKind::Connect, "the proxy did not connect to the host"))
            })
            .map(|()| way)
    }

    /// A connection to the proxy itself. It is the operator's, so that the guard is not asked.
    async fn reach_proxy(&self, proxy: &Proxy, limit: Instant) -> Result<Way, Failure> {
        let addresses = self.addresses(proxy.host(), limit).await?;
        let addresses: Vec<_> = at(addresses, proxy.port).take(ADDRESSES_MAX).collect();
        let mut dialled = Err(late(FailureKind::Connect, "no connection"));
        for (tried, &address) in addresses.iter().enumerate() {
            dialled = dial(address, share(limit, addresses.len() - tried)).await;
            if dialled.is_ok() {
                break;
            }
        }
        let socket = dialled?;
        match proxy.scheme {
            Scheme::Http | Scheme::Socks5 => Ok(Layer::Plain(socket)),
            Scheme::Https => self.secured(proxy.host(), socket, limit).await,
        }
    }

    async fn secured<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: Host<'_>,
        way: S,
        limit: Instant,
    ) -> Result<Layer<S>, Failure> {
        timeout_at(limit, self.tls.open(host, way))
            .await
            .unwrap_or_else(|_| Err(late(FailureKind::Tls, "the TLS handshake did not end")))
    }
}

fn at(addresses: Vec<IpAddr>, port: u16) -> impl Iterator<Item = SocketAddr> {
    addresses.into_iter().map(move |ip| SocketAddr::new(ip.to_canonical(), port))
}

/// When the first of so many that are `left` must be done.
fn share(limit: Instant, left: usize) -> Instant {
    let now = Instant::now();
    now + limit.saturating_duration_since(now) / u32::try_from(left).unwrap_or(u32::MAX)
}

async fn dial(address: SocketAddr, limit: Instant) -> Result<TcpStream, Failure> {
    let socket = timeout_at(limit, TcpStream::connect(address))
        .await
        .map_err(|_| late(FailureKind::Connect, "no connection"))?
        .map_err(|error| fault::connecting(&error, address.is_ipv6()))?;
    // Requests are written whole; waiting for more to send would only delay them.
    let _best_effort = socket.set_nodelay(true);
    Ok(socket)
}

fn late(kind: FailureKind, what: &str) -> Failure {
    fault::failure(kind, format!("{what} in time"))
}
