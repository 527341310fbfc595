//! Payloads and schemas by table.
//!
//! Never: a store; what is kept and forgotten is seen over the API.

use serde_json::{Value, json};

use super::*;

fn compiled(schema: &Value) -> Compiled {
    Compiled::new("1", &schema.to_string()).unwrap_or_else(|fault| panic!("{fault}: {schema}"))
}

#[test]
fn the_first_broken_rule_is_named_with_its_place() {
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "a/b": {"items": {"maxLength": 2}},
            "mail": {"format": "email"},
            "ref": {"$ref": "#/definitions/short"},
        },
        "additionalProperties": false,
        "definitions": {"short": {"maxLength": 1}},
    });
    let compiled = compiled(&schema);
    assert!(compiled.check(br#"{"id": 1, "a/b": ["xy"], "mail": "a@b.example"}"#).is_ok());
    for (payload, keyword, pointer, loc) in [
        ("{}", "required", "", "payload"),
        (r#"{"id":0}"#, "minimum", "/id", "payload.id"),
        (r#"{"id":"secret"}"#, "type", "/id", "payload.id"),
        (r#"{"id":1,"a/b":["x","secret"]}"#, "maxLength", "/a~1b/1", "payload.a/b.[1]"),
        (r#"{"id":1,"mail":"secret"}"#, "format", "/mail", "payload.mail"),
        (r#"{"id":1,"more":"secret"}"#, "additionalProperties", "", "payload"),
        (r#"{"id":1,"ref":"secret"}"#, "maxLength", "/ref", "payload.ref"),
    ] {
        let fault = compiled.check(payload.as_bytes()).unwrap_err().fault;
        assert_eq!(fault.loc[1..].join("."), loc, "{payload}");
        let place = if pointer.is_empty() { "its top" } else { &format!("`{pointer}`") };
        let said = format!("breaks the rule `{keyword}` of its schema (version 1) at {place}: ");
        assert!(fault.rule.starts_with(&said), "{payload}: {}", fault.rule);
        assert!(!fault.rule.contains("secret"), "{}", fault.rule);
    }
    let at = |payload: &[u8]| compiled.check(payload).unwrap_err().at;
    assert_eq!(at(br#"{"id":1,"a/b":["x","secret"]}"#), "/a~1b/1");
    let map = json!({"additionalProperties": {"type": "object",
        "properties": {"n": {"type": "string"}}}});
    let map = Compiled::new("1", &map.to_string()).unwrap();
    assert_eq!(map.check(br#"{"secret":{"n":1}}"#).unwrap_err().at, "/*/n");
    for odd in [r#"{"id":1e999}"#, r#"{"id":1,"a/b":["\ud800"]}"#] {
        let fault = compiled.check(odd.as_bytes()).unwrap_err().fault;
        assert!(fault.rule.contains("cannot be read"), "{}", fault.rule);
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
    for (schema, reason) in [
        (json!({"type": "text"}), "cannot be compiled: at `/type` stands"),
        (
            json!({"type": "object", "$schema": "http://x.example/y"}),
            "cannot be compiled: at its top",
        ),
        (json!({"pattern": "("}), "cannot be compiled"),
        (json!({"$schema": "https://example.com/x"}), "cannot be compiled"),
        (json!({"$ref": "https://example.com/x"}), "must refer to its parts"),
    ] {
        let fault = Compiled::new("1", &schema.to_string()).err().unwrap();
        assert!(fault.contains(reason), "{schema}: {fault}");
    }
    let newer = json!({"$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"a": {"prefixItems": [{"type": "string"}]}}});
    assert!(compiled(&newer).check(br#"{"a":[1]}"#).is_err());
}

#[test]
fn no_payload_takes_long() {
    let nested = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let both = json!([{"$ref": "#"}, {"$ref": "#"}]);
    let deep = format!("{}1{}", r#"{"a":"#.repeat(120), "}".repeat(120));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let fault = compiled(&nested(json!({keyword: both}))).check(deep.as_bytes()).unwrap_err();
        assert!(fault.fault.rule.contains("refers to itself"), "{}", fault.fault.rule);
    }
    let long = json!({"a": "a".repeat(10_000)}).to_string();
    assert!(compiled(&nested(json!({"pattern": "^(a+)+(?=b)$"}))).check(long.as_bytes()).is_err());
}

#[test]
fn a_schema_that_refers_to_itself_says_where_it_is_broken() {
    let tree = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "children": {"items": {"$ref": "#"}}},
    });
    let said = compiled(&tree).check(br#"{"name":"a","children":[{"name":"b"},{"name":1}]}"#);
    let broken = said.unwrap_err();
    assert!(broken.fault.rule.contains("`type`"), "{}", broken.fault.rule);
    assert!(broken.fault.rule.contains("`/children/1/name`"), "{}", broken.fault.rule);
    assert_eq!(broken.fault.loc[1..], ["payload", "children", "[1]", "name"]);
    assert_eq!(broken.at, "/children/1/name");
    let list = json!({
        "definitions": {"list": {"anyOf": [
            {"type": "null"},
            {"required": ["n"], "properties": {"next": {"$ref": "#/definitions/list"}}},
        ]}},
        "properties": {"list": {"$ref": "#/definitions/list"}},
    });
    let inner = (0..100).fold(json!({"n": 1}), |inner, _| json!({"n": 1, "next": inner}));
    let compiled = compiled(&list);
    assert!(compiled.check(json!({"list": inner}).to_string().as_bytes()).is_ok());
    let inner = (0..100).fold(json!({}), |inner, _| json!({"n": 1, "next": inner}));
    let broken = compiled.check(json!({"list": inner}).to_string().as_bytes()).unwrap_err();
    assert!(broken.fault.rule.contains("`anyOf`"), "{}", broken.fault.rule);
    assert!(broken.fault.loc.starts_with(&["body".into(), "payload".into(), "list".into()]));
}

#[test]
fn what_takes_too_much_work_is_refused() {
    let rules: Vec<_> = (0..1_500).map(|n| json!({"minimum": -n})).collect();
    let costly = compiled(&json!({"properties": {"a": {"items": {"allOf": rules}}}}));
    let numbers = |count: usize| json!({"a": vec![1; count]}).to_string();
    assert!(costly.check(numbers(1_000).as_bytes()).is_ok());
    let fault = costly.check(numbers(100_000).as_bytes()).unwrap_err().fault;
    assert_eq!((fault.kind, fault.loc[1].as_str()), ("schema_too_costly", "payload"));
    assert!(fault.rule.contains("too much work"), "{}", fault.rule);
    // Many values alone are not too many.
    let plain = compiled(&json!({"properties": {"a": {"items": {"type": "integer"}}}}));
    assert!(plain.check(numbers(400_000).as_bytes()).is_ok());
}

#[tokio::test]
async fn a_stored_schema_that_cannot_be_used_is_told_where_payloads_must_obey() {
    let now = resilience::Timestamp::from_secs(1_000);
    let org = PublicId::new(1, [1; 12]);
    let event_type = EventType {
        name: "order".into(),
        description: String::new(),
        archived: false,
        deprecated: false,
        schemas: Some(r#"{"1":{"$ref":"https://example.com/x"}}"#.into()),
        feature_flag: None,
        created_at: now,
        updated_at: now,
    };
    let store = store::memory::MemoryStore::new(Arc::new(resilience::ManualClock::new(now)));
    store.create_event_type(org, event_type).await.unwrap();
    let spec = MessageSpec {
        event_type: "order".into(),
        event_id: None,
        channels: Vec::new(),
        tags: Vec::new(),
        payload: Bytes::from_static(b"{}"),
        content_type: domain::message::ContentType::Json,
        retention_hours: None,
        deliver_at: None,
        trace: None,
    };
    for mode in [Validation::Off, Validation::Warn] {
        assert!(SchemaCheck::new(mode).check(&*store, org, &spec).await.is_ok(), "{mode:?}");
    }
    let problem = SchemaCheck::new(Validation::Enforce).check(&*store, org, &spec).await;
    let problem = problem.err().unwrap();
    assert_eq!(problem.status().as_u16(), 422);
    let said = format!("{problem:?}");
    for part in [r#"["body", "eventType"]"#, "schema_unusable", "version 1 must refer"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn the_newest_version_is_the_largest_number() {
    let of = |schemas: Value| {
        let now = resilience::Timestamp::EPOCH;
        newest(Some(EventType {
            name: "t".into(),
            description: String::new(),
            archived: false,
            deprecated: false,
            schemas: Some(schemas.to_string()),
            feature_flag: None,
            created_at: now,
            updated_at: now,
        }))
    };
    for (schemas, version) in [
        (json!({"2": {"required": ["v2"]}, "10": {"required": ["v10"]}, "x": {}}), "version 10"),
        (json!({"b": {"required": ["b"]}, "a": {}}), "version b"),
    ] {
        let Kept::Compiled(compiled, _) = of(schemas) else { panic!("compiled") };
        assert!(compiled.check(b"{}").unwrap_err().fault.rule.contains(version));
    }
    assert!(matches!(of(json!({})), Kept::None) && matches!(newest(None), Kept::None));
    assert!(matches!(of(json!({"1": {"pattern": "("}})), Kept::Unusable(_)));
}
