//! How large a schema is once what it refers to stands in the place of each reference.
//!
//! A few lines whose definitions each refer twice to the next unfold to more than any machine can
//! look at, and a chain of them to more than a stack can hold; such schemas are refused. What a
//! schema that refers to itself costs depends on the payload, and is only told.
//! Never: follow a reference out of the schema.

use serde_json::{Map, Value};

/// Parts of an unfolded schema.
const PARTS_MAX: usize = 20_000;
/// Parts within parts.
const DEPTH_MAX: usize = 100;
/// The same where a schema refers to itself: it is gone through anew with each level of a payload,
/// of which there may be 128.
const CYCLIC_DEPTH_MAX: usize = 24;
/// Keywords that hold data, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];
/// Keywords that hold schemas by names of their own.
const BY_NAME: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Whether the schema refers to itself; or why it cannot be used.
pub(super) fn is_cyclic(schema: &Value) -> Result<bool, String> {
    let mut walk = Walk { root: schema, within: Vec::new(), parts: 0, depth: 0, is_cyclic: false };
    walk.part(schema, 0)?;
    if walk.is_cyclic && walk.depth > CYCLIC_DEPTH_MAX {
        return Err(format!("refers to itself more than {CYCLIC_DEPTH_MAX} levels deep"));
    }
    Ok(walk.is_cyclic)
}

struct Walk<'a> {
    root: &'a Value,
    /// What was referred to and is being gone through.
    within: Vec<&'a Value>,
    parts: usize,
    depth: usize,
    is_cyclic: bool,
}

impl<'a> Walk<'a> {
    fn part(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        self.parts += 1;
        self.depth = self.depth.max(depth);
        if self.parts > PARTS_MAX {
            return Err(format!("unfolds to more than {PARTS_MAX} parts"));
        }
        if depth > DEPTH_MAX {
            return Err(format!("unfolds to more than {DEPTH_MAX} levels"));
        }
        match schema {
            Value::Object(map) => self.object(map, depth),
            Value::Array(parts) => parts.iter().try_for_each(|part| self.part(part, depth)),
            _ => Ok(()),
        }
    }

    fn object(&mut self, map: &'a Map<String, Value>, depth: usize) -> Result<(), String> {
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(to)) => self.reference(to, depth)?,
                ("$dynamicRef" | "$recursiveRef", _) => {
                    return Err(format!("must refer to its parts by `$ref`, not by `{keyword}`"));
                }
                ("$id" | "id", Value::String(_)) if depth > 0 => {
                    return Err("must not have parts with an `$id` of their own".to_owned());
                }
                (name, _) if DATA.contains(&name) => {}
                (name, Value::Object(named)) if BY_NAME.contains(&name) => {
                    named.values().try_for_each(|part| self.part(part, depth + 1))?;
                }
                _ => self.part(value, depth + 1)?,
            }
        }
        Ok(())
    }

    fn reference(&mut self, to: &str, depth: usize) -> Result<(), String> {
        let pointer = to.strip_prefix('#').filter(|at| at.is_empty() || at.starts_with('/'));
        let pointer = pointer.ok_or("must refer to its parts by `#/…`, and to nothing else")?;
        let target = self.root.pointer(pointer);
        let target = target.ok_or("refers to a part that it does not have")?;
        let is_it = |within: &&Value| std::ptr::eq(*within, target);
        if std::ptr::eq(target, self.root) || self.within.iter().any(is_it) {
            self.is_cyclic = true;
            return Ok(());
        }
        self.within.push(target);
        self.part(target, depth + 1)?;
        self.within.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Definitions of which each refers so many times to the next.
    fn chain(length: usize, times: usize) -> Value {
        let refer = |to: usize| json!({"$ref": format!("#/definitions/{to}")});
        let mut all = Map::new();
        for at in 0..length {
            all.insert(at.to_string(), json!({"anyOf": vec![refer(at + 1); times]}));
        }
        all.insert(length.to_string(), json!({"type": "string"}));
        json!({"definitions": all, "allOf": [refer(0)]})
    }

    #[test]
    fn what_unfolds_without_end_is_told_or_refused() {
        assert_eq!(is_cyclic(&json!({"properties": {"a": {"type": "string"}}})), Ok(false));
        assert_eq!(is_cyclic(&json!({"properties": {"next": {"$ref": "#"}}})), Ok(true));
        let mutual = json!({"definitions": {
            "a": {"items": {"$ref": "#/definitions/b"}},
            "b": {"items": {"$ref": "#/definitions/a"}},
        }});
        assert_eq!(is_cyclic(&mutual), Ok(true));
        // A part that is used twice is no circle.
        assert_eq!(is_cyclic(&chain(3, 2)), Ok(false));
        assert!(is_cyclic(&chain(20, 2)).unwrap_err().contains("parts"));
        assert!(is_cyclic(&chain(60, 1)).unwrap_err().contains("levels"));
        let mut deep = json!({"$ref": "#"});
        for _ in 0..30 {
            deep = json!({"not": deep});
        }
        assert!(is_cyclic(&deep).unwrap_err().contains("itself"));
    }

    #[test]
    fn only_its_own_parts_are_referred_to() {
        for schema in [
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "other.json#/a"}),
            json!({"$ref": "#name"}),
            json!({"$ref": "#/definitions/none"}),
            json!({"$dynamicRef": "#name"}),
            json!({"items": {"$id": "https://example.com/other"}}),
        ] {
            assert!(is_cyclic(&schema).is_err(), "{schema}");
        }
        // Data, and names of fields.
        let data = json!({"enum": [{"$ref": "x"}], "properties": {"$ref": {}, "$id": {}}});
        assert_eq!(is_cyclic(&data), Ok(false));
    }
}
