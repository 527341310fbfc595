//! Joining of base URL, endpoint and query.

use url::Url;

use super::*;

fn joined(base: &str, endpoint: &str, query: &[(&str, &str)]) -> Result<String, &'static str> {
    let query: Vec<_> =
        query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    join(&Url::parse(base).unwrap(), endpoint, &query).map(Into::into)
}

/// T20: neither the base's path nor a query in the endpoint is lost. AD8, AD13, RB1, RB2.
#[test]
fn t20_every_part_is_kept() {
    for (base, endpoint, query, whole) in [
        ("https://h/api/v1", "/users", &[][..], "https://h/api/v1/users"),
        ("https://h/api/v1/", "users", &[], "https://h/api/v1/users"),
        ("https://h/api/v1", "", &[], "https://h/api/v1"),
        ("https://h", "users", &[], "https://h/users"),
        ("https://h", "users?page=2", &[("q", "a b")], "https://h/users?page=2&q=a+b"),
        (
            "https://h/v1?key=k",
            "users?page=2",
            &[("q", "&")],
            "https://h/v1/users?key=k&page=2&q=%26",
        ),
        ("https://h", "users?", &[], "https://h/users"),
        ("https://h", "users#top", &[("q", "1")], "https://h/users?q=1"),
        ("https://h/v1", "jobs:batchGet", &[], "https://h/v1/jobs:batchGet"),
        ("https://h/v1", "a%2Fb", &[], "https://h/v1/a%2Fb"),
    ] {
        assert_eq!(joined(base, endpoint, query).as_deref(), Ok(whole), "{base} + {endpoint}");
    }
}

#[test]
fn no_endpoint_leaves_the_base() {
    for endpoint in ["https://evil/x", "http://evil", "../admin", "a/../../b", "%2e%2e/x", "..\\x"]
    {
        let refused = joined("https://h/api/v1", endpoint, &[]);
        assert!(refused.is_err(), "{endpoint} gave {refused:?}");
    }
    assert_eq!(joined("https://h/v1", "//evil/x", &[]).as_deref(), Ok("https://h/v1/evil/x"));
    assert_eq!(joined("https://h/v1", "a/../b", &[]).as_deref(), Ok("https://h/v1/b"));
}

#[test]
fn a_base_is_an_http_url_without_credentials() {
    assert!(base("https://h/v1").is_ok());
    for wrong in ["", "h", "ftp://h", "mailto:a@b", "https://user:pass@h"] {
        assert!(base(wrong).is_err(), "{wrong}");
    }
}
