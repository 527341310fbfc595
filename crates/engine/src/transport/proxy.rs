//! Asks a proxy for a way to an address.
//!
//! In: an open connection to the proxy, the address. Out: the same connection, which now leads
//! there, or whose fault it is that it does not.
//! Never: name a host to the proxy, which would then look it up past the guard; dial; keep time.

use std::net::SocketAddr;

use domain::attempt::Failure;
use domain::proxy::{Proxy, Scheme};

use super::stream::Way;

mod connect;
mod refusal;
mod socks;

/// Asks for a way to `address`.
pub(super) async fn ask(way: &mut Way, proxy: &Proxy, address: SocketAddr) -> Result<(), Failure> {
    let credentials = proxy.credentials.as_ref();
    match proxy.scheme {
        Scheme::Http | Scheme::Https => connect::ask(way, address, credentials).await,
        Scheme::Socks5 => socks::ask(way, address, credentials).await,
    }
}
