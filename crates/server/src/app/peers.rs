//! Where this node takes posts that other nodes forward, and what they know it by.
//!
//! Never: fail a start because of an address that nobody named.

use engine::forward::{Forwarding, Identity};
use store::nodes::PeerAddress;
use store::postgres;
use tokio::net::TcpListener;

use crate::config::{Database, NodePort, Settings};

/// The open port, and what the others are told of it; `None` where nothing is forwarded.
pub(super) async fn open(settings: &Settings) -> Result<Option<(Forwarding, PeerAddress)>, String> {
    let Database::Postgres(url) = &settings.database else { return Ok(None) };
    let bound = match &settings.nodes.port {
        NodePort::Off => return Ok(None),
        NodePort::Auto => match bind_beside(url.reveal()).await {
            Ok(listener) => listener,
            Err(fault) => {
                tracing::warn!(%fault, "no posts are forwarded: set node_listen_address");
                return Ok(None);
            }
        },
        NodePort::At(at) => TcpListener::bind(at).await.map_err(|fault| {
            format!(
                "cannot listen on {at}: {fault}; set node_listen_address to a free port of an address \
                 of this machine"
            )
        })?,
    };
    let identity = Identity::generate().map_err(|fault| fault.to_string())?;
    let at = match &settings.nodes.address {
        Some(named) => named.clone(),
        None => bound.local_addr().map_err(|fault| fault.to_string())?.to_string(),
    };
    let address = PeerAddress { at, fingerprint: identity.fingerprint() };
    Ok(Some((Forwarding { listener: bound, identity }, address)))
}

/// A free port at the address by which this machine reaches the database.
async fn bind_beside(url: &str) -> std::io::Result<TcpListener> {
    TcpListener::bind((postgres::address_towards(url).await?, 0)).await
}
