//! Webhooks of an OpenAPI document as event types.
//!
//! In: a document, version 3.0 (`x-webhooks`) or 3.1 (`webhooks`). Out: name, description, schema
//! of each. What a schema refers to in `components` goes along under `definitions`, so that it can
//! be read alone.
//! Never: follow a reference out of the document.

use std::collections::BTreeSet;

use domain::error::Invalid;
use domain::text;
use serde_json::{Map, Value};

/// References to references that are followed.
const STEPS_MAX: usize = 16;
/// Event types of one document.
const WEBHOOKS_MAX: usize = 1_000;
const METHODS: [&str; 6] = ["post", "put", "patch", "get", "delete", "options"];
const COMPONENTS: &str = "#/components/schemas/";

/// A webhook.
#[derive(Debug, PartialEq)]
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) deprecated: bool,
    /// Its schemas by version, of which there is one.
    pub(super) schemas: Option<Value>,
}

/// All webhooks of a document that stands in this field.
pub(super) fn webhooks(field: &str, spec: &Value) -> Result<Vec<Webhook>, Invalid> {
    let all = ["webhooks", "x-webhooks"].map(|name| spec.get(name).and_then(Value::as_object));
    if all.iter().all(Option::is_none) {
        return Err(Invalid::new(field, "has neither `webhooks` nor `x-webhooks`"));
    }
    let items = all.into_iter().flatten().flatten();
    let mut found: Vec<Webhook> = Vec::new();
    for (key, item) in items {
        let webhook = webhook(spec, key, item).map_err(|fault| fault.within(field))?;
        if found.iter().any(|other| other.name == webhook.name) {
            return Err(Invalid::new(key, "is there twice").within(field));
        }
        if found.len() == WEBHOOKS_MAX {
            let rule = format!("must have at most {WEBHOOKS_MAX} webhooks");
            return Err(Invalid::new(field, rule));
        }
        found.push(webhook);
    }
    Ok(found)
}

fn webhook(spec: &Value, key: &str, item: &Value) -> Result<Webhook, Invalid> {
    let item = followed(spec, item);
    let operation = METHODS.iter().find_map(|method| item.get(method));
    let operation = operation.ok_or_else(|| Invalid::new(key, "has no operation"))?;
    let words = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let texts = [
        words(operation, "description"),
        words(operation, "summary"),
        words(item, "description"),
        words(item, "summary"),
    ];
    let description = texts.into_iter().flatten().find(|text| !text.is_empty());
    let description = description.unwrap_or_default();
    text::description("description", &description).map_err(|fault| fault.within(key))?;
    let deprecated = operation.get("deprecated").and_then(Value::as_bool).unwrap_or_default();
    let schema = schema(spec, operation);
    let schemas = schema.map(|schema| Value::from_iter([("1".to_owned(), schema)]));
    Ok(Webhook { name: name(key, operation)?, description, deprecated, schemas })
}

/// The webhook's own name, or its operation's if that alone can be the name of an event type.
fn name(key: &str, operation: &Value) -> Result<String, Invalid> {
    let own = text::event_type_name(key, key);
    let other = operation.get("operationId").and_then(Value::as_str);
    let other = other.filter(|name| own.is_err() && text::event_type_name(key, name).is_ok());
    match other {
        Some(name) => Ok(name.to_owned()),
        None => own.map(|()| key.to_owned()),
    }
}

/// The schema of the body of an operation's requests.
fn schema(spec: &Value, operation: &Value) -> Option<Value> {
    let content = followed(spec, operation.get("requestBody")?).get("content")?.as_object()?;
    let is_json = |name: &str| name.split(';').next().is_some_and(|name| name.ends_with("json"));
    let json = content.iter().find(|(name, _)| is_json(name)).map(|(_, media)| media);
    let media = content.get("application/json").or(json)?;
    let mut schema = alone(spec, followed(spec, media.get("schema")?));
    let examples = examples(spec, media, &schema);
    if let Some(map) = schema.as_object_mut()
        && !examples.is_empty()
    {
        map.insert("examples".to_owned(), Value::Array(examples));
    }
    Some(schema)
}

/// Examples from wherever a document may have them.
fn examples(spec: &Value, media: &Value, schema: &Value) -> Vec<Value> {
    let own = schema.get("examples").and_then(Value::as_array).cloned().unwrap_or_default();
    let named = media.get("examples").and_then(Value::as_object).into_iter().flatten();
    let named = named.filter_map(|(_, example)| followed(spec, example).get("value").cloned());
    let single = [media.get("example"), schema.get("example")];
    own.into_iter().chain(named).chain(single.into_iter().flatten().cloned()).collect()
}

/// What a reference within the document leads to.
fn followed<'a>(spec: &'a Value, mut value: &'a Value) -> &'a Value {
    for _ in 0..STEPS_MAX {
        let pointer = value.get("$ref").and_then(Value::as_str);
        let target = pointer.and_then(|text| spec.pointer(text.strip_prefix('#')?));
        let Some(target) = target else { return value };
        value = target;
    }
    value
}

/// A schema with all that it refers to.
fn alone(spec: &Value, schema: &Value) -> Value {
    let (mut schema, mut wanted) = (schema.clone(), BTreeSet::new());
    redirect(&mut schema, &mut wanted);
    let mut definitions = Map::new();
    while let Some(token) = wanted.pop_first() {
        // The token is one step of a JSON pointer.
        let name = token.replace("~1", "/").replace("~0", "~");
        let pointer = format!("/components/schemas/{token}");
        if definitions.contains_key(&name) {
            continue;
        }
        let Some(mut part) = spec.pointer(&pointer).cloned() else { continue };
        redirect(&mut part, &mut wanted);
        definitions.insert(name, part);
    }
    if let Some(map) = schema.as_object_mut()
        && !definitions.is_empty()
    {
        map.insert("definitions".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Turns references to components into references to definitions, and collects them.
fn redirect(value: &mut Value, wanted: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                let token = inner.as_str().and_then(|text| text.strip_prefix(COMPONENTS));
                if let Some(token) = token.filter(|_| name == "$ref").map(str::to_owned) {
                    *inner = Value::String(format!("#/definitions/{token}"));
                    wanted.insert(token);
                } else {
                    redirect(inner, wanted);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| redirect(inner, wanted)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(spec: &Value) -> Webhook {
        let mut all = webhooks("spec", spec).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    #[test]
    fn a_schema_comes_with_all_that_it_refers_to() {
        let spec = json!({
            "webhooks": {"pet.new": {"post": {
                "description": "A pet",
                "deprecated": true,
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
            }}},
            "components": {
                "requestBodies": {"Pet": {"content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/Pet"},
                    "example": {"name": "Rex"},
                }}}},
                "schemas": {
                    "Pet": {"type": "object", "properties": {
                        "mother": {"$ref": "#/components/schemas/Pet"},
                        "tag": {"$ref": "#/components/schemas/a~1b"},
                    }},
                    "a/b": {"type": "string"},
                    "unused": {"type": "string"},
                },
            },
        });
        let expected = json!({"1": {
            "type": "object",
            "properties": {
                "mother": {"$ref": "#/definitions/Pet"},
                "tag": {"$ref": "#/definitions/a~1b"},
            },
            "definitions": {
                "Pet": {"type": "object", "properties": {
                    "mother": {"$ref": "#/definitions/Pet"},
                    "tag": {"$ref": "#/definitions/a~1b"},
                }},
                "a/b": {"type": "string"},
            },
            "examples": [{"name": "Rex"}],
        }});
        let webhook = one(&spec);
        assert_eq!((webhook.name.as_str(), webhook.description.as_str()), ("pet.new", "A pet"));
        assert_eq!((webhook.deprecated, webhook.schemas), (true, Some(expected)));
    }

    #[test]
    fn names_and_descriptions_are_found_where_they_are() {
        let spec = json!({"x-webhooks": {"New pet": {
            "summary": "of the item",
            "get": {"operationId": "pet.new"},
        }}});
        let webhook = one(&spec);
        assert_eq!(
            (webhook.name.as_str(), webhook.description.as_str()),
            ("pet.new", "of the item")
        );
        assert_eq!(webhook.schemas, None);
        let post = json!({"operationId": "other"});
        let spec = json!({"webhooks": {"pet.new": {"post": post}}});
        assert_eq!(one(&spec).name, "pet.new", "its own name comes first");
    }

    #[test]
    fn what_cannot_be_imported_is_refused_by_name() {
        for (spec, loc) in [
            (json!({}), &["spec"][..]),
            (json!({"webhooks": []}), &["spec"]),
            (json!({"webhooks": {"a": {}}}), &["spec", "a"]),
            (json!({"webhooks": {"a b": {"post": {}}}}), &["spec", "a b"]),
            (
                json!({"webhooks": {"a": {"post": {}}}, "x-webhooks": {"a": {"post": {}}}}),
                &["spec", "a"],
            ),
        ] {
            assert_eq!(webhooks("spec", &spec).unwrap_err().loc[1..], *loc, "{spec}");
        }
        let many = (0..=WEBHOOKS_MAX).map(|n| (format!("t{n}"), json!({"post": {}})));
        let spec = json!({"webhooks": Map::from_iter(many)});
        assert_eq!(webhooks("spec", &spec).unwrap_err().loc, ["body", "spec"]);
    }

    #[test]
    fn a_circle_of_references_ends() {
        let spec = json!({"webhooks": {"a": {"$ref": "#/webhooks/a"}}});
        assert!(webhooks("spec", &spec).is_err());
    }
}
