//! The way out through a proxy: which one it is, and what goes past it.
//!
//! In: the texts that an operator wrote. Out: all that a dialler needs of them.
//! Never: resolve, dial, or show the user and the password.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::Invalid;
use crate::target::Host;

mod exceptions;

pub use exceptions::Exceptions;

/// What a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1 `CONNECT`.
    Http,
    /// The same under TLS.
    Https,
    /// SOCKS version 5.
    Socks5,
}

/// Who we are to a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user, not empty.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// What it speaks.
    pub scheme: Scheme,
    host: url::Host,
    /// Its port.
    pub port: u16,
    /// Who we are to it.
    pub credentials: Option<Credentials>,
    /// What does not go through it.
    pub exceptions: Exceptions,
}

const FORM: &str = "must be http://, https:// or socks5://, then [user:password@]host[:port], \
                    and nothing more";
/// Bytes of a user or a password in SOCKS5.
const SOCKS_TEXT_BYTES: std::ops::RangeInclusive<usize> = 1..=255;

impl Proxy {
    /// Reads its URL. Nothing goes past it yet.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |rule: &str| Invalid::new("url", rule);
        let scheme = match text.split_once("://") {
            Some(("http", _)) => Scheme::Http,
            Some(("https", _)) => Scheme::Https,
            Some(("socks5", _)) => Scheme::Socks5,
            _ => return Err(refuse(FORM)),
        };
        // The parser would drop some of these in silence.
        if text.chars().any(|it| it.is_control() || it.is_whitespace() || it == '\\') {
            return Err(refuse(FORM));
        }
        let url = Url::parse(text).map_err(|_| refuse(FORM))?;
        let is_bare = matches!(url.path(), "" | "/") && !text.contains(['?', '#']);
        let host = url.host_str().filter(|host| is_bare && !host.is_empty());
        // Of a scheme that it does not know the parser takes any host for a name.
        let host = host.and_then(|host| url::Host::parse(host).ok());
        let host = host.ok_or_else(|| refuse(FORM))?;
        let port = url.port().unwrap_or(match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Socks5 => 1080,
        });
        if port == 0 {
            return Err(refuse("must not have port 0"));
        }
        let credentials = credentials(&url, scheme).map_err(refuse)?;
        Ok(Self { scheme, host, port, credentials, exceptions: Exceptions::default() })
    }

    /// The same, but for these exceptions.
    #[must_use]
    pub fn except(mut self, exceptions: Exceptions) -> Self {
        self.exceptions = exceptions;
        self
    }

    /// Its host: a name to resolve, or an address.
    pub fn host(&self) -> Host<'_> {
        match &self.host {
            url::Host::Domain(name) => Host::Name(name),
            url::Host::Ipv4(four) => Host::Ip((*four).into()),
            url::Host::Ipv6(six) => Host::Ip((*six).into()),
        }
    }
}

fn credentials(url: &Url, scheme: Scheme) -> Result<Option<Credentials>, &'static str> {
    let decoded = |text| percent_decode_str(text).collect::<Vec<u8>>();
    let (user, password) = (decoded(url.username()), url.password().map(decoded));
    if user.is_empty() {
        return match password {
            Some(_) => Err("must have a user name before the password"),
            None => Ok(None),
        };
    }
    let password = password.unwrap_or_default();
    let fits = |text: &[u8]| SOCKS_TEXT_BYTES.contains(&text.len());
    if scheme == Scheme::Socks5 {
        if !fits(&user) || !fits(&password) {
            return Err("must have a user name and a password of 1 to 255 bytes for SOCKS5");
        }
    } else if user.contains(&b':') {
        return Err("must not have a colon in the user name: HTTP cannot say it");
    }
    Ok(Some(Credentials { user, password }))
}

#[cfg(test)]
mod tests;
