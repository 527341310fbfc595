//! By which of its addresses this machine reaches the database.
//!
//! Never: send anything.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{UdpSocket, lookup_host};
use tokio_postgres::config::Host;

use super::link::config;

const PORT: u16 = 5432;

/// The address of this machine from which a connection to the first server that the URL names
/// comes; of the machine itself where that is a socket in the file system.
///
/// # Errors
///
/// When the URL names no server, or there is no way to it.
pub async fn address_towards(url: &str) -> io::Result<IpAddr> {
    let config = config(url).map_err(io::Error::other)?;
    let port = config.get_ports().first().copied().unwrap_or(PORT);
    let to = match (config.get_hostaddrs().first(), config.get_hosts().first()) {
        (Some(address), _) => SocketAddr::new(*address, port),
        (None, Some(Host::Tcp(name))) => {
            let mut found = lookup_host((name.as_str(), port)).await?;
            found.next().ok_or(io::ErrorKind::NotFound)?
        }
        #[cfg(unix)]
        (None, Some(Host::Unix(_))) => return Ok(Ipv4Addr::LOCALHOST.into()),
        (None, None) => return Err(io::ErrorKind::NotFound.into()),
    };
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a datagram socket chooses a way and says nothing.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(to).await?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_on_this_machine_is_reached_by_the_address_that_is_its_own() {
        for url in ["postgres://a@127.0.0.1:1/b", "postgres:///b?host=/run/postgresql"] {
            assert_eq!(address_towards(url).await.unwrap(), IpAddr::from([127, 0, 0, 1]), "{url}");
        }
        assert_eq!(
            address_towards("postgres://a@[::1]/b").await.unwrap(),
            IpAddr::from(Ipv6Addr::LOCALHOST)
        );
        assert!(address_towards("postgres://").await.is_err());
    }
}
