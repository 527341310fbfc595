//! Tables of proxies and exceptions: what is read, what is refused, what goes direct.

use std::net::IpAddr;

use super::*;

fn rule(text: &str) -> String {
    let fault = Proxy::parse(text).unwrap_err();
    assert_eq!(fault.loc, ["body", "url"]);
    fault.rule
}

#[test]
fn a_url_of_a_proxy_is_read() {
    for (text, scheme, host, port) in [
        ("http://proxy.example:3128", Scheme::Http, "Name(\"proxy.example\")", 3128),
        ("http://Proxy.Example/", Scheme::Http, "Name(\"proxy.example\")", 80),
        ("https://10.0.0.1", Scheme::Https, "Ip(10.0.0.1)", 443),
        ("socks5://127.0.0.1", Scheme::Socks5, "Ip(127.0.0.1)", 1080),
        ("socks5://[::1]:9050", Scheme::Socks5, "Ip(::1)", 9050),
        ("socks5://Proxy.Example:1", Scheme::Socks5, "Name(\"proxy.example\")", 1),
    ] {
        let proxy = Proxy::parse(text).unwrap();
        assert_eq!(
            (proxy.scheme, &*format!("{:?}", proxy.host()), proxy.port),
            (scheme, host, port)
        );
        assert_eq!(proxy.credentials, None);
    }
}

#[test]
fn user_and_password_are_read_without_escapes_and_not_shown() {
    let said = |text: &str| {
        let proxy = Proxy::parse(text).unwrap();
        assert!(!format!("{proxy:?}").contains("5ECRET"), "{proxy:?}");
        let both = proxy.credentials.unwrap();
        (both.user, both.password)
    };
    let pair =
        |user: &str, password: &str| (user.as_bytes().to_vec(), password.as_bytes().to_vec());
    assert_eq!(said("http://us%3Der:5ECRET%40%2f+@p"), pair("us=er", "5ECRET@/+"));
    assert_eq!(said("https://5ECRET@p"), pair("5ECRET", ""));
    assert_eq!(said("socks5://a%3a:5ECRET@p"), pair("a:", "5ECRET"));
    assert_eq!(said("socks5://%ff:5ECRET@p"), (vec![0xff], b"5ECRET".to_vec()));
}

#[test]
fn what_is_no_proxy_is_refused_by_its_rule_and_not_repeated() {
    for text in [
        "",
        "p:3128",
        "ftp://p",
        "socks4://p",
        "socks5h://p",
        "http:p",
        "http://",
        "http://:80",
        "socks5://",
        "http://p/path",
        "http://p?q",
        "http://p#f",
        "http://p:99999",
        "http://p p",
        "http://p\t",
        "socks5://[::1",
        "http://u:5ECRET#1@p",
    ] {
        assert_eq!(rule(text), FORM, "{text}");
    }
    assert_eq!(rule("http://p:0"), "must not have port 0");
    assert!(rule("http://:5ECRET@p").contains("before the password"));
    assert!(rule("http://a%3Ab:5ECRET@p").contains("colon"));
    for text in ["socks5://u@p", "socks5://u:@p", &format!("socks5://u:{}@p", "x".repeat(256))] {
        assert!(rule(text).contains("1 to 255 bytes"), "{text}");
    }
}

#[test]
fn exceptions_are_whole_nets_and_whole_names() {
    let entries =
        ["10.0.0.0/8", "fd00::/8", "::ffff:192.0.2.0/120", "192.0.2.77", "One.example", ".Corp"];
    let all = Exceptions::parse(&entries).unwrap();
    let elsewhere: IpAddr = [203, 0, 113, 1].into();
    for (host, direct) in [
        ("one.example", true),
        ("one.example.", true),
        ("a.one.example", false),
        ("one.example.net", false),
        ("someone.example", false),
        ("a.corp", true),
        ("a.b.corp.", true),
        ("corp", false),
        ("acorp", false),
    ] {
        assert_eq!(all.cover(Host::Name(host), elsewhere), direct, "{host}");
    }
    for (address, direct) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("11.0.0.1", false),
        ("fd12::1", true),
        ("fe00::1", false),
        ("192.0.2.9", true),
        ("192.0.3.9", false),
    ] {
        let address = address.parse().unwrap();
        assert_eq!(all.cover(Host::Ip(address), address), direct, "{address}");
        assert_eq!(all.cover(Host::Name("x.example"), address), direct, "{address} by a name");
    }
    assert!(!Exceptions::default().cover(Host::Name("one.example"), elsewhere));
}

#[test]
fn an_entry_that_is_neither_is_refused_by_name() {
    for entry in
        ["", ".", "..a", "*.a", "a:80", "10.0.0.0/33", "[::1]", "http://a", "127.1", "a b", "a/8"]
    {
        let fault = Exceptions::parse(&[entry]).unwrap_err();
        assert_eq!(fault.loc, ["body", "except"]);
        assert!(fault.rule.starts_with(&format!("`{entry}` is none of")), "{fault}");
    }
    let fault = Exceptions::parse(&["a", "10.0.0.1/8"]).unwrap_err();
    assert!(fault.rule.starts_with("`10.0.0.1/8` has bits beyond"), "{fault}");
}
