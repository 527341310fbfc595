//! An example of a value, from its schema.
//!
//! Never: take one field of many for a rule; what cannot be shown is a word.

use serde_json::{Map, Value, json};

/// Objects within objects that are shown.
const DEPTH_MAX: usize = 6;

/// An example of a value of this schema.
pub(super) fn of(document: &Value, schema: &Value) -> Value {
    within(document, schema, 0)
}

fn within(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolved(document, schema);
    let given = [&schema["examples"][0], &schema["const"], &schema["default"], &schema["enum"][0]];
    if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
        return given.clone();
    }
    let several = ["anyOf", "oneOf", "allOf"].map(|name| schema[name].as_array());
    if let Some(first) = several.into_iter().flatten().flatten().next() {
        return within(document, first, depth);
    }
    let kind = match &schema["type"] {
        Value::Array(names) => names.iter().find(|name| *name != "null"),
        other => Some(other),
    };
    match kind.and_then(Value::as_str) {
        Some("object") if depth < DEPTH_MAX => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let shown =
                fields.map(|(name, field)| (name.clone(), within(document, field, depth + 1)));
            Value::Object(shown.collect::<Map<_, _>>())
        }
        Some("object") => json!({}),
        Some("array") if schema["items"].is_object() => {
            json!([within(document, &schema["items"], depth + 1)])
        }
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => match &schema["minimum"] {
            Value::Null => json!(1),
            least => least.clone(),
        },
        _ => json!("text"),
    }
}

/// What a reference within the document leads to.
pub(super) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_follows_its_schema() {
        let document = json!({"components": {"schemas": {"A": {
            "type": "object", "properties": {
                "n": {"type": ["integer", "null"], "minimum": 5},
                "many": {"type": "array", "items": {"enum": ["x", "y"]}},
                "or": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
                "given": {"type": "string", "examples": ["this"]}
            }
        }, "Loop": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Loop"}}}}}});
        let shown = of(&document, &json!({"$ref": "#/components/schemas/A"}));
        assert_eq!(shown, json!({"n": 5, "many": ["x"], "or": true, "given": "this"}));
        assert!(of(&document, &json!({"$ref": "#/components/schemas/Loop"})).is_object());
        assert_eq!(of(&document, &json!({"type": "string"})), "text");
    }
}
