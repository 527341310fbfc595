//! JSON Schemas of event types: whether what was given can be one (draft 7).
//!
//! In: an object of schemas by version. Out: its JSON, or the keyword that is wrong. Keywords are
//! checked for the kind of their values, which is what the meta-schema of draft 7 asks.
//! Never: apply a schema to a payload.

use domain::error::Invalid;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::fields::value_of;

/// Bytes of all schemas of one event type.
const BYTES_MAX: usize = 256 << 10;
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Reads schemas by version; they are kept as they are spelled.
pub(super) fn read(name: &'static str, raw: &RawValue) -> Result<String, Invalid> {
    let value = value_of(name, raw)?;
    let map = value
        .as_object()
        .ok_or_else(|| Invalid::new(name, "must be an object of JSON Schemas by version"))?;
    for (version, schema) in map {
        if let Some(keyword) = fault(schema) {
            let rule = format!("is no JSON Schema: `{keyword}` is wrong");
            return Err(Invalid::new(version.clone(), rule).within(name));
        }
    }
    if raw.get().len() > BYTES_MAX {
        return Err(Invalid::new(name, format!("must be at most {BYTES_MAX} bytes as JSON")));
    }
    Ok(raw.get().to_owned())
}

/// The keyword that is wrong, if one is. The depth is bounded by the JSON reader.
fn fault(schema: &Value) -> Option<String> {
    let map = match schema {
        Value::Bool(_) => return None,
        Value::Object(map) => map,
        _ => return Some("schema".to_owned()),
    };
    map.iter().find_map(|(keyword, value)| {
        let is_right = match keyword.as_str() {
            "type" => is_type(value) || entries(value, is_type),
            "properties" | "patternProperties" | "definitions" | "$defs" => {
                return match value.as_object() {
                    Some(inner) => inner.values().find_map(fault),
                    None => Some(keyword.clone()),
                };
            }
            "items" if value.is_array() => return inner_fault(value),
            "allOf" | "anyOf" | "oneOf" => {
                return if entries(value, |_| true) {
                    inner_fault(value)
                } else {
                    Some(keyword.clone())
                };
            }
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "propertyNames" => return fault(value).map(|_| keyword.clone()),
            "required" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "enum" | "examples" => value.is_array(),
            "$id" | "$schema" | "$ref" | "$comment" | "title" | "description" | "pattern"
            | "format" => value.is_string(),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => value.as_f64().is_some_and(|n| n >= 0.0 && n.fract() == 0.0),
            "multipleOf" => value.as_f64().is_some_and(|n| n > 0.0),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "uniqueItems" | "readOnly" | "writeOnly" => value.is_boolean(),
            _ => true,
        };
        (!is_right).then(|| keyword.clone())
    })
}

fn inner_fault(list: &Value) -> Option<String> {
    list.as_array().and_then(|entries| entries.iter().find_map(fault))
}

fn entries(value: &Value, check: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|entries| !entries.is_empty() && entries.iter().all(check))
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(json: &str) -> bool {
        match read("schemas", serde_json::from_str(json).unwrap()) {
            Ok(kept) => kept == json,
            Err(_) => false,
        }
    }

    #[test]
    fn schemas_are_told_from_other_json() {
        for good in [
            "{}",
            r#"{"1":{}}"#,
            r#"{"1":true}"#,
            r#"{"1":{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}}"#,
            r#"{"1":{"allOf":[{"minimum":1}],"items":{"type":"integer"},"x-own":7,"examples":[{}]}}"#,
            r#"{"2": {"minimum":1.0e+2, "maximum":123456789012345678901234567890}, "1": {}}"#,
        ] {
            assert!(reads(good), "{good}");
        }
        for bad in [
            "[]",
            "1",
            r#"{"1":1}"#,
            r#"{"1":[]}"#,
            r#"{"1":{"type":"text"}}"#,
            r#"{"1":{"type":[]}}"#,
            r#"{"1":{"properties":{"a":1}}}"#,
            r#"{"1":{"properties":[]}}"#,
            r#"{"1":{"required":"a"}}"#,
            r#"{"1":{"items":{"type":"x"}}}"#,
            r#"{"1":{"anyOf":[]}}"#,
            r#"{"1":{"oneOf":[{"minLength":-1}]}}"#,
            r#"{"1":{"multipleOf":0}}"#,
            r#"{"1":{"minimum":1e999}}"#,
        ] {
            assert!(!reads(bad), "{bad}");
        }
    }
}
