//! What an edit changed: where two payloads differ, without what stands there.
//!
//! Values are compared as they are spelled, so that a number which no reader can hold is not taken
//! for another. Entries of lists are compared place by place.
//! Never: a value in what comes out, or more of it than a bound.

use std::collections::BTreeMap;

use domain::edit::{Change, ChangeKind, Content, Edit};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// Differences that are named.
const CHANGES_MAX: usize = 100;
/// Bytes of a pointer; what lies deeper counts as a change of what holds it.
const PLACE_BYTES_MAX: usize = 256;
/// Objects and lists within each other, likewise.
const DEPTH_MAX: usize = 16;

/// What `by` changed.
pub(super) fn edit(by: &str, before: &[u8], after: &[u8]) -> Edit {
    let mut found = Found::default();
    let read = serde_json::from_slice::<&RawValue>;
    if let (Ok(before), Ok(after)) = (read(before), read(after)) {
        found.compare(String::new(), 0, (before, after));
    }
    Edit {
        by: by.to_owned(),
        before: content(before),
        after: content(after),
        changes: found.changes,
        more: found.more,
    }
}

fn content(bytes: &[u8]) -> Content {
    Content { bytes: bytes.len() as u64, hash: Sha256::digest(bytes).into() }
}

#[derive(Default)]
struct Found {
    changes: Vec<Change>,
    more: u64,
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

impl Found {
    fn note(&mut self, kind: ChangeKind, place: String) {
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(Change { kind, place });
        } else {
            self.more += 1;
        }
    }

    fn compare_lists(
        &mut self,
        place: &str,
        depth: usize,
        (before, after): (&[&RawValue], &[&RawValue]),
    ) {
        // The longest number of a place.
        if depth == DEPTH_MAX || place.len() + 8 > PLACE_BYTES_MAX {
            return self.note(ChangeKind::Changed, place.to_owned());
        }
        for number in 0..before.len().max(after.len()) {
            let at = format!("{place}/{number}");
            match (before.get(number), after.get(number)) {
                (Some(before), Some(after)) => self.compare(at, depth + 1, (before, after)),
                (None, _) => self.note(ChangeKind::Added, at),
                (_, None) => self.note(ChangeKind::Removed, at),
            }
        }
    }

    fn compare(&mut self, place: String, depth: usize, (before, after): (&RawValue, &RawValue)) {
        if before.get() == after.get() {
            return;
        }
        if let (Some(before), Some(after)) = (entries(before), entries(after)) {
            return self.compare_lists(&place, depth, (&before, &after));
        }
        let both = (fields(before), fields(after));
        let (Some(before), Some(after)) = both else {
            return self.note(ChangeKind::Changed, place);
        };
        let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
        let places: Vec<_> =
            names.map(|name| (name, format!("{place}/{}", escaped(name)))).collect();
        if depth == DEPTH_MAX || places.iter().any(|(_, place)| place.len() > PLACE_BYTES_MAX) {
            return self.note(ChangeKind::Changed, place);
        }
        for (name, place) in places {
            match (before.get(name), after.get(name)) {
                (Some(before), Some(after)) => self.compare(place, depth + 1, (before, after)),
                (None, Some(_)) => self.note(ChangeKind::Added, place),
                (_, None) => self.note(ChangeKind::Removed, place),
            }
        }
    }
}

/// What an object holds, by name.
fn fields(of: &RawValue) -> Option<Fields<'_>> {
    if of.get().starts_with('{') { serde_json::from_str(of.get()).ok() } else { None }
}

/// What a list holds, by place.
fn entries(of: &RawValue) -> Option<Vec<&RawValue>> {
    if of.get().starts_with('[') { serde_json::from_str(of.get()).ok() } else { None }
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> Vec<String> {
        let edit = edit("me", before.as_bytes(), after.as_bytes());
        let changes = edit.changes.iter();
        changes.map(|change| format!("{} {}", change.kind.name(), change.place)).collect()
    }

    #[test]
    fn places_are_named_and_values_are_not() {
        let before = r#"{"a":1,"b":{"c":[1,2],"d":"secret"},"e/~":null,"n":1.0}"#;
        let after = r#"{"a":1,"b":{"c":[1,3],"f":true},"e/~":0,"n":1.00}"#;
        assert_eq!(
            changes(before, after),
            ["changed /b/c/1", "removed /b/d", "added /b/f", "changed /e~1~0", "changed /n",]
        );
        assert_eq!(changes(before, before), [""; 0]);
        assert_eq!(changes("[1]", "[1,2]"), ["added /1"]);
        assert_eq!(changes(r#"{"a":{}}"#, r#"{"a":[]}"#), ["changed /a"]);
        assert_eq!(changes("{}", "[]"), ["changed "]);
        let huge = |last| format!("{{\"n\":1234567890123456789012345678901234567{last}}}");
        assert_eq!(changes(&huge(1), &huge(2)), ["changed /n"]);
    }

    #[test]
    fn what_is_no_json_has_sizes_and_hashes_only() {
        let edit = edit("me", b"a=1", b"{}");
        assert_eq!((edit.changes.len(), edit.before.bytes, edit.after.bytes), (0, 3, 2));
        assert_ne!(edit.before.hash, edit.after.hash);
    }

    #[test]
    fn it_is_bounded() {
        let many = |value| {
            let fields: Vec<_> = (0..250).map(|n| format!("\"k{n:03}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        };
        let edit = edit("me", many(1).as_bytes(), many(2).as_bytes());
        assert_eq!((edit.changes.len(), edit.more), (100, 150));
        let nest = |value: &str| format!("{}{value}{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert_eq!(changes(&nest("1"), &nest("2")), [format!("changed {}", "/a".repeat(16))]);
        let long = |value| format!("{{\"o\":{{\"{}\":{value}}}}}", "x".repeat(300));
        assert_eq!(changes(&long(1), &long(2)), ["changed /o"]);
    }
}
