//! What goes past a proxy: addresses by net, hosts by name.
//!
//! In: entries as an operator wrote them. Out: whether a host at an address goes direct.
//! Never: let a part of a name count as the whole.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::error::Invalid;
use crate::target::{Host, canonical};

/// What goes direct.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    nets: Vec<IpNet>,
    names: Vec<String>,
    /// With the dot in front.
    suffixes: Vec<String>,
}

impl Exceptions {
    /// Reads entries: a CIDR or an address; a name, for that host alone; `.name`, for all hosts
    /// below that name.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, Invalid> {
        let mut all = Self::default();
        for entry in entries {
            all.add(entry.as_ref().trim()).map_err(|rule| Invalid::new("except", rule))?;
        }
        Ok(all)
    }

    /// Whether `host`, about to be dialled at `address`, goes direct.
    pub fn cover(&self, host: Host<'_>, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_named = match host {
            Host::Ip(_) => false,
            Host::Name(name) => {
                let name = name.trim_end_matches('.');
                let is_below = |suffix: &String| name.ends_with(suffix.as_str());
                self.names.iter().any(|own| own == name) || self.suffixes.iter().any(is_below)
            }
        };
        is_named || self.nets.iter().any(|net| net.contains(&address))
    }

    fn add(&mut self, entry: &str) -> Result<(), String> {
        let form = || format!("`{entry}` is none of 10.0.0.0/8, ::1, host.example and .example");
        let net = match entry.parse::<IpAddr>() {
            Ok(address) => Some(address.into()),
            Err(_) => entry.parse::<IpNet>().ok(),
        };
        if let Some(net) = net {
            if net != net.trunc() {
                return Err(format!(
                    "`{entry}` has bits beyond its prefix: name the net's first address"
                ));
            }
            self.nets.push(canonical(net));
            return Ok(());
        }
        let below = entry.strip_prefix('.');
        let name = below.unwrap_or(entry);
        let is_plain = |it: char| it.is_alphanumeric() || matches!(it, '-' | '.' | '_');
        if name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(form());
        }
        let Ok(url::Host::Domain(name)) = url::Host::parse(name) else { return Err(form()) };
        let name = name.trim_end_matches('.');
        match below {
            Some(_) => self.suffixes.push(format!(".{name}")),
            None => self.names.push(name.to_owned()),
        }
        Ok(())
    }
}
