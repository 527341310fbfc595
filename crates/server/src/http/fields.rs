//! A JSON object as a caller sent it, read field by field; every fault is gathered and named.
//!
//! In: a body. Out: values, or one 422 with all that is wrong. Unknown fields are ignored whatever
//! they hold: a value is read when its field is asked for.
//! Three ways of reading mirror the three writes: a create or PUT has no old value, so an absent
//! field is its default; a PATCH has one, so an absent field keeps it. `null` clears what may be
//! cleared.
//! Never: coerce; a number is no text. Never choose between two values under one name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

use domain::error::Invalid;
use domain::text;
use resilience::Timestamp;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::problem::{NOT_JSON, Problem};

/// JSON allows it, and yet it is no text.
const HALF_PAIR: &str = "half of a surrogate pair, which is no character";

/// The fields of one object.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    map: BTreeMap<String, &'a RawValue>,
    /// Names that were given more than once.
    twice: BTreeSet<String>,
    outer: Vec<String>,
    faults: Vec<Invalid>,
}

/// An object by its names, of which some may be wrong.
#[derive(Default)]
struct Names<'a> {
    map: BTreeMap<String, &'a RawValue>,
    twice: BTreeSet<String>,
    has_half_pair: bool,
}

impl<'de> Deserialize<'de> for Names<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_map(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names = Names::default();
        while let Some((Name(name), raw)) = map.next_entry::<Name, &RawValue>()? {
            match name {
                None => names.has_half_pair = true,
                Some(name) => {
                    if names.map.insert(name.clone(), raw).is_some() {
                        names.twice.insert(name);
                    }
                }
            }
        }
        Ok(names)
    }
}

/// A name, unless it holds half of a surrogate pair.
struct Name(Option<String>);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_bytes(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Name, E> {
        Ok(Name(std::str::from_utf8(bytes).ok().map(str::to_owned)))
    }
}

/// What is there under a name.
enum Given<'a> {
    Absent,
    Null,
    Value(&'a RawValue),
}

impl<'a> Fields<'a> {
    /// Reads a body, which must be an object.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Problem> {
        if std::str::from_utf8(body).is_err() {
            return Err(Problem::field(&["body"], "is not valid JSON: it is not UTF-8", NOT_JSON));
        }
        match serde_json::from_slice(body) {
            Ok(names) => Ok(Self::of(names, Vec::new())),
            Err(fault) if fault.is_data() => {
                Err(Problem::field(&["body"], "must be a JSON object", Invalid::KIND))
            }
            Err(fault) => Err(not_json(&fault)),
        }
    }

    /// Reads what stands under a name of the body, which must be an object.
    pub(crate) fn parse_within(name: &str, raw: &'a RawValue) -> Result<Self, Problem> {
        let names = serde_json::from_str(raw.get());
        let names = names.map_err(|_| Invalid::new(name, "must be an object"))?;
        Ok(Self::of(names, vec![name.to_owned()]))
    }

    fn of(names: Names<'a>, outer: Vec<String>) -> Self {
        let Names { map, twice, has_half_pair } = names;
        let mut fields = Self { map, twice, outer, faults: Vec::new() };
        if has_half_pair {
            let rule = format!("has a name with {HALF_PAIR}");
            let fault = Invalid { loc: vec!["body".to_owned()], rule, kind: Invalid::KIND };
            fields.check::<()>(Err(fault));
        }
        fields
    }

    /// Whether the name stands in the object, be it with `null`.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Whether something but `null` stands under the name.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|raw| raw.get() != "null")
    }

    /// Gives all faults that were found, or nothing.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid(self.faults)) }
    }

    /// Keeps a fault for later, or gives the value.
    pub(crate) fn check<T>(&mut self, result: Result<T, Invalid>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(mut fault) => {
                for name in self.outer.iter().rev() {
                    fault = fault.within(name);
                }
                self.faults.push(fault);
                None
            }
        }
    }

    /// Keeps a fault of one field.
    pub(crate) fn fail(&mut self, name: &str, rule: impl Into<String>) {
        self.check::<()>(Err(Invalid::new(name, rule)));
    }

    /// A field that may be absent or `null`.
    pub(crate) fn nullable<T>(
        &mut self,
        names: &[&'static str],
        old: Option<T>,
        read: impl FnOnce(&'static str, &Value) -> Result<T, Invalid>,
    ) -> Option<T> {
        self.nullable_raw(names, old, |name, raw| read(name, &value_of(name, raw)?))
    }

    /// The same, read from its spelling.
    pub(crate) fn nullable_raw<T>(
        &mut self,
        names: &[&'static str],
        old: Option<T>,
        read: impl FnOnce(&'static str, &'a RawValue) -> Result<T, Invalid>,
    ) -> Option<T> {
        match self.take(names) {
            (_, Given::Absent) => old,
            (_, Given::Null) => None,
            (name, Given::Value(raw)) => self.check(read(name, raw)),
        }
    }

    /// A field that always has a value: the given one, else the old one, else the default.
    pub(crate) fn firm<T>(
        &mut self,
        name: &'static str,
        old: Option<T>,
        default: Option<T>,
        read: impl FnOnce(&'static str, &Value) -> Result<T, Invalid>,
    ) -> Option<T> {
        self.firm_raw(name, old, default, |name, raw| read(name, &value_of(name, raw)?))
    }

    /// The same, read from its spelling.
    pub(crate) fn firm_raw<T>(
        &mut self,
        name: &'static str,
        old: Option<T>,
        default: Option<T>,
        read: impl FnOnce(&'static str, &'a RawValue) -> Result<T, Invalid>,
    ) -> Option<T> {
        match (self.take(&[name]).1, old, default) {
            (Given::Value(raw), _, _) => self.check(read(name, raw)),
            (Given::Absent, Some(old), _) => Some(old),
            (Given::Absent | Given::Null, None, Some(default)) => Some(default),
            (Given::Null, Some(_), _) => {
                self.fail(name, "must not be null");
                None
            }
            (Given::Absent | Given::Null, None, None) => {
                self.fail(name, "is required");
                None
            }
        }
    }

    /// An object within this one; `None` when absent or `null`.
    pub(crate) fn object(&mut self, name: &'static str) -> Option<Self> {
        let names = self.nullable_raw(&[name], None, |name, raw| {
            serde_json::from_str(raw.get()).map_err(|_| Invalid::new(name, "must be an object"))
        })?;
        let outer = self.outer.iter().cloned().chain([name.to_owned()]).collect();
        Some(Self::of(names, outer))
    }

    /// Takes over the faults of an object within this one.
    pub(crate) fn absorb(&mut self, inner: Self) {
        self.faults.extend(inner.faults);
    }

    /// One field under several names has one value.
    fn check_aliases(&mut self, names: &[&'static str]) {
        let mut given = names.iter().filter_map(|name| Some((*name, self.map.get(*name)?.get())));
        let Some((first, value)) = given.next() else { return };
        if let Some((other, _)) = given.find(|(_, other)| *other != value) {
            self.fail(other, format!("must not differ from {first}, which is the same field"));
        }
    }

    fn take(&mut self, names: &[&'static str]) -> (&'static str, Given<'a>) {
        #[cfg(test)]
        asked::note(&self.outer, names);
        self.check_aliases(names);
        for name in names {
            if self.twice.remove(*name) {
                self.fail(name, "must not be given twice");
            }
            match self.map.remove(*name) {
                None => {}
                Some(raw) if raw.get() == "null" => return (name, Given::Null),
                Some(raw) => return (name, Given::Value(raw)),
            }
        }
        (names.first().copied().unwrap_or_default(), Given::Absent)
    }
}

/// Which fields readers ask for, in tests of what is described of them.
#[cfg(test)]
pub(crate) mod asked {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static NAMES: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub(super) fn note(outer: &[String], names: &[&'static str]) {
        let first = names.first().copied().unwrap_or_default();
        let path: Vec<_> = outer.iter().map(String::as_str).chain([first]).collect();
        NAMES.with_borrow_mut(|all| all.insert(path.join(".")));
    }

    /// The names that were asked for meanwhile, those of inner objects behind a full stop.
    pub(crate) fn during<T>(read: impl FnOnce() -> T) -> (T, BTreeSet<String>) {
        NAMES.take();
        (read(), NAMES.take())
    }
}

/// A body that is no JSON.
pub(crate) fn not_json(fault: &serde_json::Error) -> Problem {
    let rule = format!("is not valid JSON: {fault}");
    Problem::field(&["body", &fault.line().to_string()], rule, NOT_JSON)
}

/// Reads a value; one that no number, text or depth of ours can hold breaks the rule.
pub(crate) fn value_of(name: &str, raw: &RawValue) -> Result<Value, Invalid> {
    serde_json::from_str(raw.get()).map_err(|fault| {
        let said = fault.to_string();
        // The spelling of escapes was checked when the body was read; only their sense is left.
        let why = if said.contains("hex escape") { format!("it holds {HALF_PAIR}") } else { said };
        Invalid::new(name, format!("cannot be read: {why}"))
    })
}

/// Reads a text.
pub(crate) fn text(name: &str, value: &Value) -> Result<String, Invalid> {
    value.as_str().map(str::to_owned).ok_or_else(|| Invalid::new(name, "must be a text"))
}

/// Reads a text and checks it.
pub(crate) fn checked(
    check: impl FnOnce(&str, &str) -> Result<(), Invalid>,
) -> impl FnOnce(&'static str, &Value) -> Result<String, Invalid> {
    move |name, value| {
        let text = text(name, value)?;
        check(name, &text).map(|()| text)
    }
}

/// Reads a flag.
pub(crate) fn flag(name: &str, value: &Value) -> Result<bool, Invalid> {
    value.as_bool().ok_or_else(|| Invalid::new(name, "must be true or false"))
}

/// A whole number from 0, also one that is written with a fraction of zero: JSON knows one kind of
/// number.
pub(crate) fn whole_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().and_then(whole_of_float))
}

/// The same of a number that was read as one with a fraction.
pub(crate) fn whole_of_float(number: f64) -> Option<u64> {
    format!("{number:?}").strip_suffix(".0")?.parse().ok()
}

/// Reads a whole number in a range.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl FnOnce(&'static str, &Value) -> Result<T, Invalid> {
    move |name, value| {
        let number = whole_of(value).filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let rule = format!("must be a whole number from {} to {}", range.start(), range.end());
            Invalid::new(name, rule)
        })
    }
}

/// Reads a list of texts.
pub(crate) fn texts(name: &str, value: &Value) -> Result<Vec<String>, Invalid> {
    let refuse = || Invalid::new(name, "must be a list of texts");
    let entries = value.as_array().ok_or_else(refuse)?;
    entries.iter().map(|entry| entry.as_str().map(str::to_owned).ok_or_else(refuse)).collect()
}

/// Checks each entry of a list, and names the one that is wrong.
pub(crate) fn each(
    name: &str,
    entries: &[String],
    check: impl Fn(&str, &str) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    entries.iter().enumerate().try_for_each(|(at, entry)| {
        check(&format!("[{at}]"), entry).map_err(|fault| fault.within(name))
    })
}

/// A point in time, RFC 3339; or the rule that the text breaks.
pub(crate) fn time_of(text: &str) -> Result<Timestamp, &'static str> {
    match text.parse::<jiff::Timestamp>() {
        Ok(at) => Ok(Timestamp::from_micros(at.as_microsecond())),
        Err(_) if is_beyond(text) => Err("must not be later than 9999-12-30T22:00:00Z"),
        Err(_) => Err("must be a time like 2030-01-31T10:00:00Z"),
    }
}

/// Whether a text that is no time of ours is written like one.
fn is_beyond(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let year = digits.split('-').next().unwrap_or_default();
    let is_long = year.len() > 4 && year.len() < digits.len();
    let pieces = jiff::fmt::temporal::Pieces::parse(text);
    is_long && year.bytes().all(|byte| byte.is_ascii_digit())
        || pieces.is_ok_and(|pieces| pieces.time().is_some() && pieces.offset().is_some())
}

/// Reads a point in time.
pub(crate) fn time(name: &str, value: &Value) -> Result<Timestamp, Invalid> {
    time_of(&text(name, value)?).map_err(|rule| Invalid::new(name, rule))
}

/// Reads an object of texts and gives it back as JSON.
pub(crate) fn metadata(name: &'static str, value: &Value) -> Result<String, Invalid> {
    let refuse = || Invalid::new(name, "must be an object of texts");
    let map = value.as_object().ok_or_else(refuse)?;
    if !map.values().all(Value::is_string) {
        return Err(refuse());
    }
    let json = value.to_string();
    text::metadata(name, &json).map(|()| json)
}

#[cfg(test)]
mod tests;
