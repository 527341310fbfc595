//! The readers of bodies against what is described of them: the same fields, required and nullable
//! alike.
//!
//! Never: a test of what a value may be; the server is asked that over HTTP.

use std::collections::{BTreeMap, BTreeSet};

use domain::alert::route::Route;
use domain::alert::rule::Rule;
use domain::event_type::EventType;
use resilience::Timestamp;
use serde_json::{Map, Value, json};

use super::document;
use crate::api::{
    alert_spec, applications, endpoint_secrets, endpoint_spec, event_types, letter_replays,
    message_in, usage,
};
use crate::config::Settings;
use crate::config::raw::Raw;
use crate::http::fields::{Fields, asked};
use crate::http::problem::Problem;

type Read = fn(&[u8]) -> Result<(), Problem>;

const APPLICATION: &str = r#"{"name":"a"}"#;
const ENDPOINT: &str = r#"{"url":"https://example.com/"}"#;
const EVENT_TYPE: &str = r#"{"description":""}"#;
const SPAN: &str = r#"{"since":"2027-01-01T00:00:00Z","until":"2027-01-02T00:00:00Z"}"#;
const RULE: &str = r#"{"condition":"dead_letters"}"#;
const ROUTE: &str = r#"{"channel":"email","to":["a@example.com"]}"#;
/// A channel cannot be without its own parts; what one must have is nothing to the other.
const OTHER_ROUTE: &str = r#"{"channel":"slack","url":"https://h.example/x"}"#;
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Shapes, how they are read, and the least that can be read. Which fields of a route or a silence
/// of alerts are required depends on the others.
const ALL: [(&str, Read, &str); 13] = [
    ("ApplicationIn", |body| application(body, None), APPLICATION),
    ("ApplicationPatch", |body| application(body, Some(APPLICATION)), "{}"),
    ("EndpointIn", new_endpoint, ENDPOINT),
    ("EndpointUpdate", |body| endpoint(body, None), ENDPOINT),
    ("EndpointPatch", |body| endpoint(body, Some(ENDPOINT)), "{}"),
    ("EventTypeUpdate", |body| event_type(body, None), EVENT_TYPE),
    ("EventTypePatch", |body| event_type(body, Some(EVENT_TYPE)), "{}"),
    ("DeadLettersReplayIn", |body| letter_replays::read(body).map(drop), "{}"),
    ("AppUsageStatsIn", |body| usage::read(body, NOW).map(drop), SPAN),
    ("AlertRuleIn", |body| rule(body, None), RULE),
    ("AlertRulePatch", |body| rule(body, Some(RULE)), "{}"),
    ("AlertRoutePatch", any_route, "{}"),
    ("MessageIn", message, r#"{"eventType":"a","payload":{}}"#),
];

fn any_route(body: &[u8]) -> Result<(), Problem> {
    route(body, Some(ROUTE)).or_else(|_| route(body, Some(OTHER_ROUTE)))
}

fn settings() -> Settings {
    Settings::from_raw(&Raw::defaults().unwrap()).unwrap()
}

fn application(body: &[u8], old: Option<&str>) -> Result<(), Problem> {
    let old =
        old.map(|old| applications::spec_of(Fields::parse(old.as_bytes()).unwrap(), None).unwrap());
    applications::spec_of(Fields::parse(body)?, old.as_ref()).map(drop)
}

fn endpoint(body: &[u8], old: Option<&str>) -> Result<(), Problem> {
    let settings = settings();
    let old = old.map(|old| {
        endpoint_spec::spec_of(Fields::parse(old.as_bytes()).unwrap(), None, &settings).unwrap()
    });
    endpoint_spec::spec_of(Fields::parse(body)?, old.as_ref(), &settings).map(drop)
}

fn new_endpoint(body: &[u8]) -> Result<(), Problem> {
    let mut fields = Fields::parse(body)?;
    endpoint_secrets::given(&mut fields, "secret");
    endpoint_spec::spec_of(fields, None, &settings()).map(drop)
}

fn event_type(body: &[u8], old: Option<&str>) -> Result<(), Problem> {
    let read = |body: &[u8], old: Option<&EventType>| {
        event_types::read_type(Fields::parse(body)?, "a".into(), old, Timestamp::from_secs(0))
    };
    let old = old.map(|old| read(old.as_bytes(), None).unwrap());
    read(body, old.as_ref()).map(drop)
}

fn rule(body: &[u8], old: Option<&str>) -> Result<(), Problem> {
    let rules = settings().alerts.rules;
    let usual = alert_spec::Usual { rules: &rules, routes: &[] };
    let read = |text: &[u8], old: Option<&Rule>| {
        alert_spec::rule_of(Fields::parse(text)?, "a", old, &usual)
    };
    let old = old.map(|old| read(old.as_bytes(), None).unwrap());
    read(body, old.as_ref()).map(drop)
}

fn route(body: &[u8], old: Option<&str>) -> Result<(), Problem> {
    let read = |text: &[u8], old: Option<&Route>| {
        alert_spec::route_of(Fields::parse(text)?, "a", old, (false, true))
    };
    let old = old.map(|old| read(old.as_bytes(), None).unwrap());
    read(body, old.as_ref()).map(drop)
}

fn message(body: &[u8]) -> Result<(), Problem> {
    message_in::read(body, 1 << 20).map(drop)
}

fn shape(document: &Value, name: &str) -> Map<String, Value> {
    document["components"]["schemas"][name].as_object().unwrap_or_else(|| panic!("{name}")).clone()
}

/// The fields of an object, those of inner policies behind a full stop.
fn fields(document: &Value, name: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (name, field) in shape(document, name)["properties"].as_object().unwrap() {
        let inner = field["anyOf"][0]["$ref"].as_str().and_then(|to| to.rsplit('/').next());
        if let Some(inner) = inner.filter(|inner| inner.ends_with("PolicyIn")) {
            let within = shape(document, inner)["properties"].as_object().unwrap().clone();
            found.extend(within.into_iter().map(|(key, field)| (format!("{name}.{key}"), field)));
        }
        found.insert(name.clone(), field.clone());
    }
    found
}

fn admits_null(field: &Value) -> bool {
    let of_types = |types: &Value| types.as_array().is_some_and(|all| all.contains(&json!("null")));
    of_types(&field["type"])
        || field["anyOf"].as_array().is_some_and(|all| all.contains(&json!({"type": "null"})))
}

#[test]
fn readers_ask_for_the_fields_that_are_described_and_for_no_others() {
    let document = document();
    for (name, read, least) in ALL {
        // A posted message is read by its derive, and field by field only when it is refused.
        let least = if name == "MessageIn" { "{}" } else { least };
        let mut body: Value = serde_json::from_str(least).unwrap();
        let described: BTreeSet<_> = fields(&document, name).into_keys().collect();
        for policy in ["retryPolicy", "breaker"] {
            if described.contains(policy) {
                body[policy] = json!({});
            }
        }
        let (_, mut asked) = asked::during(|| read(body.to_string().as_bytes()));
        asked.retain(|name| !name.starts_with("transformationsParams."));
        assert_eq!(asked, described, "{name}");
    }
}

#[test]
fn what_is_required_is_described_as_such() {
    let document = document();
    for (name, read, _) in ALL {
        let refused = read(b"{}").err().map(|problem| problem.text()).unwrap_or_default();
        let refused: Value = serde_json::from_slice(&refused).unwrap_or_default();
        let faults = refused["detail"].as_array().into_iter().flatten();
        let asked: BTreeSet<_> = faults
            .filter(|fault| fault["msg"] == "is required")
            .filter_map(|fault| fault["loc"][1].as_str().map(str::to_owned))
            .collect();
        let described = shape(&document, name).get("required").cloned().unwrap_or(json!([]));
        let described: BTreeSet<String> = serde_json::from_value(described).unwrap();
        assert_eq!(asked, described, "{name}");
    }
}

#[test]
fn what_may_be_null_is_described_as_such() {
    let document = document();
    for (name, read, least) in ALL {
        for (path, field) in fields(&document, name) {
            let mut body: Value = serde_json::from_str(least).unwrap();
            match path.split_once('.') {
                Some((outer, inner)) => body[outer] = json!({inner: null}),
                None => body[&path] = Value::Null,
            }
            let taken = read(body.to_string().as_bytes()).is_ok();
            assert_eq!(taken, admits_null(&field), "{name}: {path}: {body}");
        }
    }
}
