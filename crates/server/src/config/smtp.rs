//! The mail server that letters to owners go through.
//!
//! In: settings as written. Out: all that is needed to reach it, or nothing where no host is named.
//! Never: reach it; whether it answers is found out by the first letter.

use domain::email::EmailAddress;
use url::Host;

use super::error::ConfigError;
use super::hidden::Hidden;
use super::reader::Reader;

/// Whether what is said to it is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmtpTls {
    /// After a word in the clear.
    StartTls,
    /// From the first byte.
    Tls,
    /// Not at all.
    None,
}

/// A mail server.
#[derive(Clone, Debug)]
pub(crate) struct Smtp {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: SmtpTls,
    /// User and password.
    pub(crate) credentials: Option<(String, Hidden)>,
    pub(crate) from: EmailAddress,
}

impl Smtp {
    /// Reads it, if a host is named.
    pub(super) fn read(read: &Reader<'_>) -> Result<Option<Self>, ConfigError> {
        let tls = read.choice(
            "smtp.tls",
            &[("starttls", SmtpTls::StartTls), ("tls", SmtpTls::Tls), ("none", SmtpTls::None)],
        )?;
        let port = u16::try_from(read.in_range("smtp.port", &(0..=u64::from(u16::MAX)))?);
        let usual = match tls {
            SmtpTls::StartTls => 587,
            SmtpTls::Tls => 465,
            SmtpTls::None => 25,
        };
        let port = port.ok().filter(|port| *port != 0).unwrap_or(usual);
        let Some(host) = read.optional("smtp.host") else { return Ok(None) };
        let rule = "must be a host name or an address, without a port";
        let host = Host::parse(host).map_err(|_| read.fault("smtp.host", rule))?;
        let is_here = match &host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let credentials = credentials(read)?;
        if credentials.is_some() && tls == SmtpTls::None && !is_here {
            let rule = "must be starttls or tls where there is a password, except on this machine";
            return Err(read.fault("smtp.tls", rule));
        }
        let from = read.text("smtp.from")?;
        let from = EmailAddress::parse("from", from)
            .map_err(|fault| read.fault("smtp.from", &fault.rule))?;
        let host = match host {
            Host::Domain(name) => name,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Ok(Some(Self { host, port, tls, credentials, from }))
    }
}

fn credentials(read: &Reader<'_>) -> Result<Option<(String, Hidden)>, ConfigError> {
    match (read.optional("smtp.username"), read.optional("smtp.password")) {
        (None, None) => Ok(None),
        (Some(user), Some(password)) => Ok(Some((user.to_owned(), Hidden(password.to_owned())))),
        (Some(_), None) => Err(read.fault("smtp.username", "needs smtp.password beside it")),
        (None, Some(_)) => Err(read.fault("smtp.password", "needs smtp.username beside it")),
    }
}
