//! A port of loopback that nobody listens on.
//!
//! Between asking and using somebody else may take it; whoever starts a server then tries another.
//! Never: the same answer twice in a row by design.

use std::net::TcpListener;

/// Tries before a server that cannot start is given up.
pub(crate) const TRIES: usize = 5;

/// A port that was free a moment ago.
pub(crate) fn free() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}
