//! Tables of endpoint descriptions.
//!
//! Never: a store.

use domain::policy::RetryOn;

use super::*;
use crate::config::raw::Raw;

fn settings() -> Settings {
    Settings::from_raw(&Raw::defaults().unwrap()).unwrap()
}

fn read(json: &str, old: Option<&EndpointSpec>) -> Result<EndpointSpec, Problem> {
    spec_of(Fields::parse(json.as_bytes()).unwrap(), old, &settings())
}

const ALL: &str = r#"{"url":"https://H.example","description":"d","uid":"u","version":3,"disabled":true,
    "eventTypes":["b","a","b"],"channels":["c"],"throttleRate":9,"metadata":{"k":"v"},
    "headers":{"X-A":"1"},"retryPolicy":{"strategy":"schedule","schedule":["5s","5m"],"attemptsMax":3,
    "ageMax":"1h","retryOn":["408","5xx"],"retryAfter":"at_least"},
    "breaker":{"failures":2,"openFor":"500ms","unknown":1e999},"timeout":"30s","ordered":"strict",
    "contactEmail":"ops@h.example","unknown":-1e999}"#;

#[test]
fn a_create_reads_every_field() {
    let spec = read(ALL, None).unwrap();
    assert_eq!(spec.target.as_str(), "https://h.example/");
    assert_eq!((spec.version, spec.disabled), (3, Some(Disabled::ByOwner)));
    assert_eq!(spec.event_types.unwrap(), ["a", "b"]);
    assert_eq!(spec.headers, [("X-A".to_owned(), "1".to_owned())]);
    assert_eq!(spec.retry.strategy, Some(Strategy::Schedule));
    assert_eq!(spec.retry.retry_on, Some(RetryOn::Listed(vec![(408, 408), (500, 599)])));
    assert_eq!(spec.breaker.open_for, Some(Duration::from_millis(500)));
    assert_eq!((spec.timeout, spec.ordering), (Some(Duration::from_secs(30)), Ordering::Strict));
    assert_eq!(spec.contact_email.unwrap().as_str(), "ops@h.example");
}

#[test]
fn what_is_not_given_is_the_default() {
    let spec = read(r#"{"url":"http://h.example/a?b=%2F"}"#, None).unwrap();
    assert_eq!(spec.target.as_str(), "http://h.example/a?b=%2F");
    assert_eq!((spec.version, spec.disabled, spec.event_types), (1, None, None));
    assert_eq!(
        (spec.retry, spec.breaker),
        (RetryOverrides::default(), BreakerOverrides::default())
    );
    assert_eq!((spec.ordering, &*spec.metadata), (Ordering::Unordered, "{}"));
}

#[test]
fn a_patch_keeps_changes_and_clears() {
    let old = read(ALL, None).unwrap();
    let same = read("{}", Some(&old)).unwrap();
    assert_eq!(format!("{same:?}"), format!("{old:?}"));
    let cleared = read(
        r#"{"uid":null,"eventTypes":null,"channels":null,"throttleRate":null,"metadata":null,
        "headers":null,"retryPolicy":null,"breaker":null,"timeout":null,"ordered":null,
        "contactEmail":null,"disabled":false}"#,
        Some(&old),
    )
    .unwrap();
    let fresh = read(r#"{"url":"https://h.example","description":"d","version":3}"#, None).unwrap();
    assert_eq!(format!("{cleared:?}"), format!("{fresh:?}"));
    let changed = read(r#"{"retryPolicy":{"base":"1s"}}"#, Some(&old)).unwrap();
    assert_eq!(changed.retry.attempts_max, None, "a policy is replaced whole");
    for json in [r#"{"url":null}"#, r#"{"disabled":null}"#, r#"{"version":null}"#] {
        assert!(read(json, Some(&old)).is_err(), "{json}");
    }
    let gone = EndpointSpec { disabled: Some(Disabled::Gone), ..old };
    assert_eq!(read(r#"{"disabled":true}"#, Some(&gone)).unwrap().disabled, Some(Disabled::Gone));
    assert_eq!(read(r#"{"uid":"x"}"#, Some(&gone)).unwrap().disabled, Some(Disabled::Gone));
}

#[test]
fn spans_of_a_breaker_fit_each_other_and_the_server() {
    let said = |breaker: &str| {
        let json = format!(r#"{{"url":"https://h.example","breaker":{breaker}}}"#);
        read(&json, None).map_err(|problem| format!("{problem:?}"))
    };
    for fits in [
        r#"{"openFor":"10m"}"#,
        r#"{"openForMax":"30s"}"#,
        r#"{"openFor":"1h","openForMax":"1h"}"#,
        r#"{"openFor":"1s","openForMax":"2s"}"#,
    ] {
        assert!(said(fits).is_ok(), "{fits}");
    }
    let fault = said(r#"{"openFor":"11m"}"#).unwrap_err();
    assert!(fault.contains("must not be above openForMax, which is 10m"), "{fault}");
    let fault = said(r#"{"openForMax":"1s"}"#).unwrap_err();
    assert!(fault.contains("must not be below openFor, which is 30s"), "{fault}");
}

#[test]
fn an_empty_schedule_is_one_send() {
    let json = r#"{"url":"https://h.example","retryPolicy":{"strategy":"schedule","schedule":[]}}"#;
    let spec = read(json, None).unwrap();
    assert_eq!(spec.retry.schedule, Some(Vec::new()));
}

#[test]
fn what_is_wrong_is_named() {
    let table = [
        ("", "url"),
        (r#""url":"ftp://h""#, "url"),
        (r#""url":"https://u:p@h.example/""#, "url"),
        (r#""url":"https://h.example","uid":"ep_1""#, "uid"),
        (r#""url":"https://h.example","version":0"#, "version"),
        (r#""url":"https://h.example","eventTypes":[]"#, "eventTypes"),
        (r#""url":"https://h.example","filterTypes":["a b"]"#, "filterTypes"),
        (r#""url":"https://h.example","channels":[]"#, "channels"),
        (r#""url":"https://h.example","headers":{"Host":"x"}"#, "headers"),
        (r#""url":"https://h.example","headers":{"X":1}"#, "headers"),
        (r#""url":"https://h.example","timeout":"31s""#, "timeout"),
        (r#""url":"https://h.example","timeout":10"#, "timeout"),
        (r#""url":"https://h.example","ordered":"yes""#, "ordered"),
        (r#""url":"https://h.example","contactEmail":"Ops <ops@h.example>""#, "contactEmail"),
        (
            r#""url":"https://h.example","contactEmail":"a@h.example\r\nBcc: b@h.example""#,
            "contactEmail",
        ),
        (r#""url":"https://h.example","contactEmail":["a@h.example"]"#, "contactEmail"),
        (r#""url":"https://h.example","retryPolicy":{"base":"5"}"#, "base"),
        (r#""url":"https://h.example","retryPolicy":{"base":"2h"}"#, "cap"),
        (r#""url":"https://h.example","retryPolicy":{"strategy":"schedule"}"#, "schedule"),
        (
            r#""url":"https://h.example","retryPolicy":{"strategy":"schedule","schedule":null}"#,
            "schedule",
        ),
        (r#""url":"https://h.example","retryPolicy":{"attemptsMax":0}"#, "attemptsMax"),
        (r#""url":"https://h.example","rateLimit":1,"throttleRate":2"#, "rateLimit"),
        (r#""url":"https://h.example","retryPolicy":{"ageMax":"0s"}"#, "ageMax"),
        (r#""url":"https://h.example","retryPolicy":{"retryOn":[200]}"#, "retryOn"),
        (r#""url":"https://h.example","retryPolicy":7"#, "retryPolicy"),
        (r#""url":"https://h.example","breaker":{"failures":1001}"#, "failures"),
        (r#""url":"https://h.example","retryPolicy":{"base":"2s","cap":"1s"}"#, "cap"),
        (r#""url":"https://h.example","retryPolicy":{"cap":"1s"}"#, "cap"),
        (r#""url":"https://h.example","retryPolicy":{"schedule":["5s"]}"#, "schedule"),
        (r#""url":"https://h.example","breaker":{"openFor":"0s"}"#, "openFor"),
        (r#""url":"https://h.example","breaker":{"openFor":"2m","openForMax":"1m"}"#, "openFor"),
        (r#""url":"https://h.example","breaker":{"openFor":"11m"}"#, "openFor"),
        (r#""url":"https://h.example","breaker":{"openForMax":"29s"}"#, "openForMax"),
    ];
    for (json, field) in table {
        let problem = read(&format!("{{{json}}}"), None).unwrap_err();
        assert_eq!(problem.status().as_u16(), 422, "{json}");
        assert!(format!("{problem:?}").contains(&format!("{field:?}")), "{json}: {problem:?}");
    }
}
