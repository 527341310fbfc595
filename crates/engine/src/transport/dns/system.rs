//! Resolves as the system is configured to, but without threads: name servers and the hosts file.
//!
//! In: a host name. Out: its addresses and their time to live.
//! Never: ask servers that the system does not name, or cache; `cache` does.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use tokio::time::Instant;

use super::ResolveError;
use super::cache::{CachedResolver, Found, Lookup, Source};

/// Silence for so long has the same server asked again, or another, within the time to connect.
const SERVER_TIMEOUT_MAX: Duration = Duration::from_secs(2);

/// Looks names up as the system is configured to.
pub struct SystemSource(Option<Arc<TokioResolver>>);

impl SystemSource {
    /// Reads the system's configuration. Without one the local machine is asked, as libc does.
    pub fn new() -> Self {
        Self::build(TokioResolver::builder_tokio().unwrap_or_else(|error| {
            tracing::warn!(%error, "no DNS configuration, asking the server on this machine");
            let local = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
            TokioResolver::builder_with_config(
                ResolverConfig::from_name_servers(vec![local]),
                TokioRuntimeProvider::default(),
            )
        }))
    }

    fn build(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Self {
        let options = builder.options_mut();
        options.timeout = options.timeout.min(SERVER_TIMEOUT_MAX);
        options.cache_size = 0;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        match builder.build() {
            Ok(resolver) => Self(Some(Arc::new(resolver))),
            Err(error) => {
                tracing::error!(%error, "no resolver: host names cannot be resolved");
                Self(None)
            }
        }
    }

    /// The same with a memory.
    pub fn cached() -> CachedResolver<Self> {
        CachedResolver::new(Self::new())
    }
}

impl Default for SystemSource {
    fn default() -> Self {
        Self::new()
    }
}

impl Source for SystemSource {
    fn lookup(&self, name: String) -> Lookup {
        let resolver = self.0.clone();
        Box::pin(async move {
            let resolver =
                resolver.ok_or_else(|| ResolveError::Broken("there is no resolver".to_owned()))?;
            // Relaxed: names in the field have underscores.
            let name = Name::from_str_relaxed(&name)
                .map_err(|_| unresolved("the host name cannot be resolved"))?;
            let answer = resolver.lookup_ip(name).await.map_err(|error| explain(&error))?;
            let addresses: Vec<_> = answer.iter().collect();
            let ttl = answer.valid_until().saturating_duration_since(Instant::now().into_std());
            Ok(Found { addresses, ttl })
        })
    }
}

fn unresolved(text: &str) -> ResolveError {
    ResolveError::Unresolved(text.to_owned())
}

/// A server's answer, or its silence, is about the name; that no server can be reached is about us.
fn explain(error: &NetError) -> ResolveError {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => unresolved("the host name does not exist"),
            _ => unresolved("the host name has no address"),
        },
        NetError::Dns(_) => unresolved("the name server could not resolve the host name"),
        NetError::Timeout => unresolved("the name server did not answer in time"),
        NetError::Proto(_) => unresolved("the name server's answer cannot be read"),
        NetError::Busy | NetError::NoConnections | NetError::Io(_) => {
            ResolveError::Broken("the name server cannot be reached".to_owned())
        }
        _ => unresolved("the host name could not be resolved"),
    }
}

#[cfg(test)]
mod tests;
