//! How much work it is to hold a payload against a schema: parts of the one that meet values of the
//! other, each pair counted once.
//!
//! In: a schema, a payload and how much is allowed. Out: whether it takes more.
//! Never: judge a payload; what is valid may be too much, and what is not may be little.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A text of so many bytes counts as much as one part.
const TEXT_BYTES: usize = 16;
/// A pattern that looks around or back counts for so much: each match may take many steps back.
const LOOKING_PATTERN: usize = 1_000;
/// Calls within calls; a schema that refers to itself without going down in the payload has no end.
const DEPTH_MAX: usize = 600;

/// Whether a payload may be held against a schema for this much work. A reference that meets the
/// same value once more counts nothing where what was found is `remembered`.
pub(super) fn fits(schema: &Value, payload: &Value, most: usize, remembered: bool) -> bool {
    let seen = remembered.then(BTreeSet::new);
    let mut weigh = Weigh { root: schema, left: most, depth: 0, seen };
    weigh.part(schema, payload).is_some()
}

struct Weigh<'a> {
    root: &'a Value,
    left: usize,
    depth: usize,
    /// References that met an object or a list, by where both lie.
    seen: Option<BTreeSet<(*const Value, *const Value)>>,
}

/// Nothing, once there is too much.
type Fits = Option<()>;

impl<'a> Weigh<'a> {
    fn take(&mut self, much: usize) -> Fits {
        self.left = self.left.checked_sub(much)?;
        Some(())
    }

    fn part(&mut self, schema: &'a Value, value: &Value) -> Fits {
        self.take(1)?;
        let Value::Object(keywords) = schema else { return Some(()) };
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        for (keyword, rule) in keywords {
            self.take(1)?;
            self.keyword(keyword, rule, value)?;
        }
        self.whole_value(keywords, value)?;
        self.depth -= 1;
        Some(())
    }

    fn keyword(&mut self, keyword: &str, rule: &'a Value, value: &Value) -> Fits {
        match (keyword, rule, value) {
            ("$ref", Value::String(to), _) => self.reference(to, value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => {
                parts.iter().try_for_each(|part| self.part(part, value))
            }
            ("not" | "if" | "then" | "else", part, _) => self.part(part, value),
            ("properties", Value::Object(named), Value::Object(members)) => {
                self.take(named.len())?;
                let both = named.iter().filter_map(|(name, part)| Some((part, members.get(name)?)));
                both.into_iter().try_for_each(|(part, member)| self.part(part, member))
            }
            ("patternProperties", Value::Object(named), Value::Object(members)) => {
                for (pattern, part) in named {
                    for (name, member) in members {
                        self.pattern(pattern, name)?;
                        self.part(part, member)?;
                    }
                }
                Some(())
            }
            ("additionalProperties" | "unevaluatedProperties", part, Value::Object(members)) => {
                members.values().try_for_each(|member| self.part(part, member))
            }
            ("propertyNames", part, Value::Object(members)) => {
                members.keys().try_for_each(|name| self.part(part, &Value::String(name.clone())))
            }
            ("items" | "prefixItems", Value::Array(parts), Value::Array(entries)) => {
                parts.iter().zip(entries).try_for_each(|(part, entry)| self.part(part, entry))
            }
            (
                "items" | "additionalItems" | "unevaluatedItems" | "contains",
                part,
                Value::Array(entries),
            ) => entries.iter().try_for_each(|entry| self.part(part, entry)),
            ("dependencies" | "dependentSchemas", Value::Object(named), Value::Object(members)) => {
                self.take(named.len())?;
                let met = named.iter().filter(|(name, _)| members.contains_key(*name));
                met.into_iter().try_for_each(|(_, part)| self.part(part, value))
            }
            ("enum", Value::Array(all), _) => self.take(all.len()),
            ("required", Value::Array(all), Value::Object(_)) => self.take(all.len()),
            ("uniqueItems", _, Value::Array(entries)) => self.take(entries.len()),
            ("pattern", Value::String(pattern), Value::String(text)) => self.pattern(pattern, text),
            _ => Some(()),
        }
    }

    /// What a rule takes that goes through a whole value, however large.
    fn whole_value(&mut self, keywords: &Map<String, Value>, value: &Value) -> Fits {
        let compares = ["const", "enum", "format", "minLength", "maxLength"];
        match value {
            Value::String(text) if compares.iter().any(|word| keywords.contains_key(*word)) => {
                self.take(text.len() / TEXT_BYTES)
            }
            _ => Some(()),
        }
    }

    fn pattern(&mut self, pattern: &str, text: &str) -> Fits {
        let looks = ["(?=", "(?!", "(?<", "\\1", "\\k"].iter().any(|sign| pattern.contains(sign));
        let size = 1 + pattern.len() / TEXT_BYTES;
        let each = if looks { LOOKING_PATTERN } else { 1 };
        self.take((1 + text.len() / TEXT_BYTES).saturating_mul(size).saturating_mul(each))
    }

    fn reference(&mut self, to: &str, value: &Value) -> Fits {
        let target = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        // A schema with a reference that leads nowhere is not in use.
        let Some(target) = target else { return Some(()) };
        if let Some(seen) = &mut self.seen
            && (value.is_object() || value.is_array())
            && !seen.insert((std::ptr::from_ref(target), std::ptr::from_ref(value)))
        {
            return Some(());
        }
        self.part(target, value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// How much it is, up to a million.
    fn much(schema: &Value, payload: &Value) -> usize {
        let (mut low, mut high) = (0, 1_000_000);
        while low < high {
            let middle = (low + high) / 2;
            if fits(schema, payload, middle, false) { high = middle } else { low = middle + 1 }
        }
        low
    }

    #[test]
    fn work_is_what_meets() {
        let rules = json!({"items": {"allOf": vec![json!({"minimum": 1}); 50]}});
        let numbers = |count: usize| json!(vec![1; count]);
        let (few, many) = (much(&rules, &numbers(10)), much(&rules, &numbers(100)));
        assert!(few > 500 && many > 9 * few && many < 11 * few, "{few} {many}");
        // Fields that are not there cost their names alone.
        let fields: Map<_, _> = (0..100).map(|n| (n.to_string(), rules.clone())).collect();
        let fields = json!({"properties": fields});
        assert!(much(&fields, &json!({"7": numbers(10)})) < few + 200);
        assert!(much(&fields, &numbers(1_000)) < 10);
        assert!(much(&json!({"enum": vec![1; 1_000]}), &json!(2)) >= 1_000);
        let (plain, looking) = (json!({"pattern": "^a+$"}), json!({"pattern": "^(?=a)"}));
        assert!(much(&plain, &json!("a")) < 10 && much(&looking, &json!("a")) >= 1_000);
    }

    #[test]
    fn what_refers_to_itself_goes_as_far_as_the_payload() {
        let list = json!({"properties": {"next": {"$ref": "#"}}});
        let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"next": inner}));
        assert!(much(&list, &nested(100)) < 1_000);
        let both = json!([{"$ref": "#"}, {"$ref": "#"}]);
        let doubled = json!({"properties": {"next": {"allOf": both}}});
        assert!(!fits(&doubled, &nested(100), 1_000_000, false), "doubles with each level");
        assert!(fits(&doubled, &nested(100), 10_000, true), "unless it is remembered");
        assert!(!fits(&json!({"allOf": [{"$ref": "#"}]}), &json!(1), 1_000_000, false));
    }
}
