//! Where an endpoint's messages go: a URL that was parsed once, and who may be dialled.
//!
//! In: the text a caller gave. Out: everything a sender needs of it, always from the same parse, so
//! that the host which is checked is the host which is dialled.
//! Never: resolve or dial; show more than the origin in logs and errors: a URL is a credential.

mod guard;

use std::fmt;
use std::net::IpAddr;

use url::{Position, Url};

pub use guard::Guard;
pub(crate) use guard::canonical;

use crate::error::Invalid;
use crate::limits::URL_BYTES_MAX;

/// The URL of an endpoint.
///
/// It is what the WHATWG parser makes of the text (scheme and host in lower case, default port and
/// fragment dropped, a `/` for an empty path) and is sent as it stands: `%2F`, `+` and the rest of
/// path and query stay as they were spelled.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
}

/// The host of a target, as a resolver and a dialler want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// To be resolved.
    Name(&'a str),
    /// To be dialled as it is, whatever form it was written in.
    Ip(IpAddr),
}

/// Only the origin; path and query may hold a token.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.origin())
    }
}

impl Target {
    /// Reads the URL in `field`. A fragment is dropped: it is never sent.
    ///
    /// What it returns for [`Target::as_str`] it reads back to an equal value.
    pub fn parse(field: &str, text: &str, https_only: bool) -> Result<Self, Invalid> {
        let refuse = |rule: &str| Err(Invalid::new(field, rule));
        let too_long = || Invalid::new(field, format!("must be at most {URL_BYTES_MAX} bytes"));
        if text.len() > URL_BYTES_MAX {
            return Err(too_long());
        }
        if text.chars().any(char::is_control) {
            return refuse("must not contain control characters");
        }
        if text.split(['?', '#']).next().is_some_and(|head| head.contains('\\')) {
            return refuse("must not contain a backslash before the query");
        }
        let mut url = Url::parse(text).map_err(|fault| Invalid::new(field, in_words(fault)))?;
        match url.scheme() {
            "https" => {}
            "http" if https_only => return refuse("must begin with https://"),
            "http" => {}
            _ => return refuse("must begin with http:// or https://"),
        }
        if authority(text).contains('@') || !url.username().is_empty() || url.password().is_some() {
            return refuse(
                "must not hold a user name or password: send credentials in a header, \
                 for example `authorization`",
            );
        }
        if let Some(rule) = host_fault(&url) {
            return refuse(rule);
        }
        url.set_fragment(None);
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(too_long());
        }
        if http::Uri::try_from(url.as_str()).is_err() {
            return refuse("holds characters that cannot be sent in a request");
        }
        Ok(Self { url })
    }

    /// The whole URL: a credential, for the store, the wire and its owner.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// `scheme://host:port`, for logs and errors; the port is always there.
    pub fn origin(&self) -> String {
        format!("{}://{}:{}", self.url.scheme(), self.host_text(), self.port())
    }

    /// Whether it is sent over TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host: a name to resolve, or an address.
    pub fn host_for_dns(&self) -> Host<'_> {
        match self.url.host() {
            Some(url::Host::Ipv4(four)) => Host::Ip(IpAddr::V4(four)),
            Some(url::Host::Ipv6(six)) => Host::Ip(IpAddr::V6(six)),
            Some(url::Host::Domain(name)) => Host::Name(name),
            // Parsing has refused a URL without a host; an empty name resolves to nothing.
            None => Host::Name(""),
        }
    }

    /// The `host` header: brackets around IPv6, the port unless it is the scheme's own.
    pub fn host_header(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host_text()),
            None => self.host_text().to_owned(),
        }
    }

    /// The port to dial.
    pub fn port(&self) -> u16 {
        let usual = if self.is_https() { 443 } else { 80 };
        self.url.port().unwrap_or(usual)
    }

    /// What goes into the request line.
    pub fn path_and_query(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }

    fn host_text(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// The part that the parser will take for user-info, host and port.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or("", |(_, rest)| rest).trim_start_matches('/');
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// What is wrong with host and port, apart from their syntax.
fn host_fault(url: &Url) -> Option<&'static str> {
    if url.port() == Some(0) {
        return Some("must not have port 0");
    }
    match url.host() {
        None => Some("must have a host"),
        Some(url::Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            let fits = |label: &str| (1..=63).contains(&label.len());
            (name.len() > 253 || !name.split('.').all(fits))
                .then_some("must have a host name of labels of 1 to 63 characters, 253 in all")
        }
        Some(_) => None,
    }
}

/// The parser's finding; its own texts do not repeat the input.
fn in_words(fault: url::ParseError) -> String {
    match fault {
        url::ParseError::RelativeUrlWithoutBase => "must begin with http:// or https://".into(),
        url::ParseError::EmptyHost => "must have a host".into(),
        other => format!("must be a URL: {other}"),
    }
}

#[cfg(test)]
mod tests;
