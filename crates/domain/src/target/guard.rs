//! Which addresses may be dialled: global unicast ones, and what the operator allows by name.
//!
//! In: the exact socket address about to be dialled. Out: yes or no.
//! Never: judge a name or a URL; between a check of those and the dialling the answer may change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::error::Invalid;

/// IPv4 ranges that are not global unicast, from the IANA special-purpose registry.
const CLOSED_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),       // this network; 0.0.0.0 reaches the local machine
    v4([10, 0, 0, 0], 8),      // private
    v4([100, 64, 0, 0], 10),   // carrier-grade NAT
    v4([127, 0, 0, 0], 8),     // loopback
    v4([169, 254, 0, 0], 16),  // link-local, cloud metadata
    v4([172, 16, 0, 0], 12),   // private
    v4([192, 0, 0, 0], 24),    // protocol assignments
    v4([192, 0, 2, 0], 24),    // documentation
    v4([192, 88, 99, 0], 24),  // 6to4 relays
    v4([192, 168, 0, 0], 16),  // private
    v4([198, 18, 0, 0], 15),   // benchmarks
    v4([198, 51, 100, 0], 24), // documentation
    v4([203, 0, 113, 0], 24),  // documentation
    v4([224, 0, 0, 0], 4),     // multicast
    v4([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// All global unicast IPv6 addresses lie in here. Outside it are unspecified, loopback,
/// v4-compatible, discard, SRv6, unique local, link-local, site-local and multicast.
const OPEN_V6: Ipv6Net = v6([0x2000, 0, 0], 3);

/// IPv6 ranges inside [`OPEN_V6`] that are closed all the same.
const CLOSED_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0], 23),     // protocol assignments: Teredo, benchmarks, ORCHID
    v6([0x2001, 0xdb8, 0], 32), // documentation
    v6([0x2002, 0, 0], 16),     // 6to4, which carries any IPv4 address
    v6([0x3fff, 0, 0], 20),     // documentation
];

/// The well-known NAT64 prefix: behind it the IPv4 address decides. The local-use prefix
/// `64:ff9b:1::/48` lies outside [`OPEN_V6`] and stays closed.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0], 96);

/// Where clouds keep credentials of the machine, and an entry of the allow-list must name exactly.
const METADATA: [IpAddr; 8] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6([a, b, c]: [u16; 3], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// Who may be dialled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    allowed: Vec<(IpNet, Option<u16>)>,
}

impl Guard {
    /// A guard that lets through global unicast and, beyond that, what `allowed` names: a net, and
    /// one port of it or all.
    pub fn new(allowed: Vec<(IpNet, Option<u16>)>) -> Self {
        let allowed = allowed.into_iter().map(|(net, port)| (canonical(net), port)).collect();
        Self { allowed }
    }

    /// Reads one entry of the allow-list: `NET`, `NET:PORT` for IPv4, `[NET]:PORT` for IPv6.
    ///
    /// `NET` is a CIDR or one address: `127.0.0.0/8`, `::1`, `127.0.0.1/32:8055`, `[::1/128]:8055`.
    /// Bits beyond the prefix are refused, so that nobody opens a net where one host was meant.
    pub fn parse_rule(text: &str) -> Result<(IpNet, Option<u16>), Invalid> {
        let refuse = |why: &str| Invalid::new("allowed_targets", format!("`{text}` {why}"));
        let form =
            || refuse("is none of 127.0.0.0/8, 127.0.0.1/32:8055, ::1/128 and [::1/128]:8055");
        let (net, port) = split_port(text.trim()).ok_or_else(form)?;
        let net = match net.parse::<IpAddr>() {
            Ok(ip) => IpNet::from(ip),
            Err(_) => net.parse::<IpNet>().map_err(|_| form())?,
        };
        if net != net.trunc() {
            return Err(refuse("has bits beyond its prefix: name the net's first address, or /32"));
        }
        let port = match port {
            None => None,
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                let port = digits.parse().ok().filter(|&port| port != 0);
                Some(port.ok_or_else(|| refuse("has no port from 1 to 65535"))?)
            }
            Some(_) => return Err(form()),
        };
        Ok((net, port))
    }

    /// Whether `addr` may be dialled.
    pub fn permits(&self, addr: SocketAddr) -> bool {
        let ip = addr.ip().to_canonical();
        self.allowed
            .iter()
            .any(|(net, port)| opens(*net, ip) && port.is_none_or(|port| port == addr.port()))
            || is_global_unicast(ip)
    }
}

fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (net, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Some((net, None)),
            port => port.map(|port| (net, Some(port))),
        };
    }
    // More than one colon is an IPv6 net without a port.
    match text.split_once(':') {
        Some((net, port)) if !port.contains(':') => Some((net, Some(port))),
        _ => Some((text, None)),
    }
}

/// Whether an entry opens `ip`: a wide one does not open where credentials lie.
fn opens(net: IpNet, ip: IpAddr) -> bool {
    net.contains(&ip) && (net.prefix_len() == net.max_prefix_len() || !METADATA.contains(&ip))
}

/// A net of v4-mapped addresses as the IPv4 net that it dials.
pub(crate) fn canonical(net: IpNet) -> IpNet {
    if let IpNet::V6(six) = net
        && let Some(four) = six.addr().to_ipv4_mapped()
        && let Some(bits) = six.prefix_len().checked_sub(96)
        && let Ok(four) = Ipv4Net::new(four, bits)
    {
        return IpNet::V4(four);
    }
    net
}

fn is_global_unicast(ip: IpAddr) -> bool {
    if METADATA.contains(&ip) {
        return false;
    }
    match ip {
        IpAddr::V4(four) => !CLOSED_V4.iter().any(|net| net.contains(&four)),
        IpAddr::V6(six) if NAT64.contains(&six) => {
            let [.., a, b, c, d] = six.octets();
            is_global_unicast(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        IpAddr::V6(six) => {
            OPEN_V6.contains(&six) && !CLOSED_V6.iter().any(|net| net.contains(&six))
        }
    }
}

#[cfg(test)]
mod tests;
