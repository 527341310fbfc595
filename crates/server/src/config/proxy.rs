//! The proxy that deliveries go through, and what goes past it.
//!
//! In: settings as written. Out: a proxy, or nothing where no URL is named.
//! Never: reach it, or repeat its URL, which may hold a password.

use domain::proxy::{Exceptions, Proxy};

use super::error::ConfigError;
use super::reader::Reader;

/// Reads it; exceptions are checked even where there is nothing to except from.
pub(super) fn read(read: &Reader<'_>) -> Result<Option<Proxy>, ConfigError> {
    let exceptions = Exceptions::parse(read.list("proxy.except"))
        .map_err(|fault| read.fault("proxy.except", &format!("is wrong: {}", fault.rule)))?;
    let Some(url) = read.optional("proxy.url") else { return Ok(None) };
    let proxy = Proxy::parse(url).map_err(|fault| read.fault("proxy.url", &fault.rule))?;
    Ok(Some(proxy.except(exceptions)))
}
