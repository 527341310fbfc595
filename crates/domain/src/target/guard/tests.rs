//! Tests of the guard. Never: dial.

use proptest::prelude::*;

use super::*;

fn dial(guard: &Guard, text: &str, port: u16) -> bool {
    guard.permits(SocketAddr::new(text.parse().unwrap(), port))
}

fn guard(rules: &[&str]) -> Guard {
    Guard::new(rules.iter().map(|rule| Guard::parse_rule(rule).unwrap()).collect())
}

const PUBLIC: [&str; 8] = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00:1450:4001:80f::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
];

#[test]
fn global_unicast_is_let_through() {
    for text in PUBLIC {
        assert!(dial(&Guard::default(), text, 443), "{text}");
    }
}

#[test]
fn ss_04_transition_and_special_prefixes_are_refused() {
    let refused = [
        "2002:7f00:1::",
        "2002:808:808::1", // 6to4, of a private and of a public address
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::7f00:1",
        "64:ff9b::a3f:8110",  // NAT64 of private ones
        "64:ff9b::a83f:8110", // NAT64 of a metadata address outside the private ranges
        "64:ff9b:1::808:808",
        "64:ff9b:1:ffff::1", // NAT64 local use
        "::127.0.0.1",
        "::7f00:1",
        "::8.8.8.8", // v4-compatible
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:0:0",         // v4-mapped
        "::ffff:0:127.0.0.1", // v4-translated
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001::80ff:fffe", // Teredo, obfuscated client
        "2001:2::1",
        "2001:10::1",
        "2001:20::1", // benchmarks, ORCHID
        "2001:db8::1",
        "3fff::1",
        "3fff:fff::1", // documentation
        "fec0::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "febf::1", // local scopes
        "ff02::1",
        "ff0e::1",
        "100::1",
        "100:0:0:1::1",
        "5f00::1",
        "::1",
        "::",
        "1000::1",
        "100.64.0.1",
        "100.127.255.255",
        "192.0.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "0.0.0.0",
        "0.1.2.3",
        "10.1.2.3",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.255",
        "168.63.129.16",
    ];
    for text in refused {
        assert!(!dial(&Guard::default(), text, 443), "{text}");
    }
}

#[test]
fn ss_06_unspecified_and_link_local_are_refused() {
    for text in ["0.0.0.0", "::", "fe80::1", "169.254.1.1", "::ffff:0.0.0.0"] {
        assert!(!dial(&Guard::default(), text, 80), "{text}");
        assert!(!dial(&guard(&["127.0.0.0/8", "::1/128"]), text, 80), "{text}");
    }
}

#[test]
fn ss_09_an_entry_opens_its_addresses_and_its_port_only() {
    let one = guard(&["127.0.0.1/32:8055"]);
    assert!(dial(&one, "127.0.0.1", 8055));
    assert!(dial(&one, "::ffff:127.0.0.1", 8055), "the same address in another spelling");
    assert!(!dial(&one, "127.0.0.1", 5432));
    assert!(!dial(&one, "127.0.0.2", 8055));
    assert!(!dial(&one, "::1", 8055));
    assert!(!dial(&one, "::127.0.0.1", 8055));
    assert!(!dial(&one, "64:ff9b::7f00:1", 8055));
    assert!(!dial(&one, "2002:7f00:1::", 8055));
    assert!(dial(&one, "1.1.1.1", 5432), "global unicast stays open");
    let net = guard(&["10.0.0.0/8", "[fd00::/8]:443"]);
    assert!(dial(&net, "10.255.0.1", 1) && dial(&net, "fd00::1", 443));
    assert!(!dial(&net, "fd00::1", 80) && !dial(&net, "192.168.0.1", 1));
}

#[test]
fn metadata_stays_closed_unless_named() {
    let wide = guard(&["0.0.0.0/0", "::/0", "169.254.0.0/16", "fd00::/8"]);
    for ip in METADATA {
        assert!(!wide.permits(SocketAddr::new(ip, 80)), "{ip}");
        let named = guard(&[&ip.to_string()]);
        assert!(named.permits(SocketAddr::new(ip, 80)), "{ip}");
    }
    assert!(dial(&wide, "127.0.0.1", 80) && dial(&wide, "fe80::1", 80));
    assert!(!dial(&wide, "::ffff:169.254.169.254", 80));
}

#[test]
fn rules_are_read_in_each_documented_form() {
    let read = |text: &str| Guard::parse_rule(text).unwrap();
    assert_eq!(read("127.0.0.0/8"), ("127.0.0.0/8".parse().unwrap(), None));
    assert_eq!(read(" 127.0.0.1 "), ("127.0.0.1/32".parse().unwrap(), None));
    assert_eq!(read("127.0.0.1:80"), ("127.0.0.1/32".parse().unwrap(), Some(80)));
    assert_eq!(read("127.0.0.1/32:8055"), ("127.0.0.1/32".parse().unwrap(), Some(8055)));
    assert_eq!(read("::1/128"), ("::1/128".parse().unwrap(), None));
    assert_eq!(read("::1"), ("::1/128".parse().unwrap(), None));
    assert_eq!(read("[::1]"), ("::1/128".parse().unwrap(), None));
    assert_eq!(read("[::1/128]:8055"), ("::1/128".parse().unwrap(), Some(8055)));
    assert!(dial(&guard(&["::ffff:127.0.0.0/104"]), "127.9.9.9", 80));
}

#[test]
fn rules_that_could_mean_more_than_was_meant_are_refused() {
    let bad = [
        "",
        "localhost",
        "127.0.0.1/8",
        "fd00::1/8",
        "10.0.0.0/33",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:+80",
        "127.0.0.1:70000",
        "127.0.0.1:80-90",
        "[::1]80",
        "[::1",
        "::1/128:80/",
        "127.1",
        "0177.0.0.1",
        "*",
        "10.0.0.0/8,::1",
        "[::1]:",
    ];
    for text in bad {
        let fault = Guard::parse_rule(text).unwrap_err();
        assert!(fault.to_string().starts_with(&format!("allowed_targets: `{text}`")), "{fault}");
    }
}

proptest! {
    #[test]
    fn a_carried_private_address_never_gets_through(low in any::<u32>(), port in any::<u16>()) {
        let guard = Guard::default();
        let [a, b, c, d] = low.to_be_bytes();
        let four = Ipv4Addr::from([a, b, c, d]);
        let open = guard.permits(SocketAddr::new(four.into(), port));
        let mapped = guard.permits(SocketAddr::new(four.to_ipv6_mapped().into(), port));
        prop_assert_eq!(open, mapped);
        let nat = Ipv6Addr::from((0x64_ff9b_u128 << 96) | u128::from(low));
        prop_assert_eq!(open, guard.permits(SocketAddr::new(nat.into(), port)));
        if open {
            prop_assert!(!(four.is_private() || four.is_loopback() || four.is_link_local()));
            prop_assert!(!(four.is_multicast() || four.is_broadcast() || four.is_unspecified()));
            prop_assert!(!four.is_documentation());
        }
    }

    #[test]
    fn an_entry_opens_nothing_outside_its_net(low in any::<u128>(), port in any::<u16>()) {
        let rule = Guard::parse_rule("[fd00:1::/32]:8055").unwrap();
        let addr = SocketAddr::new(Ipv6Addr::from(low).into(), port);
        let inside = rule.0.contains(&addr.ip()) && port == 8055;
        let widened = Guard::new(vec![rule]).permits(addr);
        prop_assert_eq!(widened, inside || Guard::default().permits(addr));
    }
}
