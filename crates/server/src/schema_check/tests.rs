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
        let said =
            format!("breaks the rule `{keyword}` of its schema (version 1) at `{pointer}`: ");
        assert!(fault.rule.starts_with(&said), "{payload}: {}", fault.rule);
        assert!(!fault.rule.contains("secret"), "{}", fault.rule);
    }
    for odd in [r#"{"id":1e999}"#, r#"{"id":1,"a/b":["\ud800"]}"#] {
        let fault = compiled.check(odd.as_bytes()).unwrap_err().fault;
        assert!(fault.rule.contains("cannot be read"), "{}", fault.rule);
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
    for (schema, reason) in [
        (json!({"type": "text"}), "at `/type`"),
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
    assert!(matches!(of(json!({"1": {"pattern": "("}})), Kept::Unusable));
}
