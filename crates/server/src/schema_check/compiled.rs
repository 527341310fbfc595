//! One schema, compiled: draft 7 unless its `$schema` names another.
//!
//! In: the text of a schema, then payloads. Out: the first rule that a payload breaks, with its
//! place as a JSON pointer.
//! Never: show a value of the payload; only names of its fields, and to a log only those that the
//! schema has too.

use domain::error::Invalid;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::{unfold, weigh};

/// Work that one payload may take, about half a second of it.
const WORK_MAX: usize = 5_000_000;
/// The same where a schema refers to itself and the place is looked for, with nothing remembered.
const SOUGHT_MAX: usize = 500_000;
/// Bytes of a schema and of a payload, multiplied, that are looked at where they were read.
const BESIDE_PRODUCT: usize = 64 << 20;
/// The kind of a fault that is not the payload's alone.
const TOO_COSTLY: &str = "schema_too_costly";

/// Steps back that one match of a pattern may take.
const BACKTRACKS_MAX: usize = 100_000;
/// What a compiled pattern may take in memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;
const UNREAD: &str = "cannot be read:";
const LIMITS: &str =
    "it has half of a character, a number beyond every range, or more than 127 levels";
/// An answer repeats no longer names than this, and no longer text of a rule.
const NAME_CHARS_MAX: usize = 256;
const TEXT_CHARS_MAX: usize = 1_000;

/// A schema in use.
pub(super) struct Compiled {
    version: String,
    schema: Value,
    /// Bytes of its text.
    bytes: usize,
    validator: Validator,
    /// Whether it refers to itself. Where a rule is broken may then take long to find: whether one
    /// is broken is quickly known, since what was seen is remembered.
    is_cyclic: bool,
}

/// A rule that a payload breaks.
#[derive(Debug)]
pub(super) struct Broken {
    /// For whoever posted it.
    pub(super) fault: Invalid,
    /// The place of the rule in the schema, if it is known.
    pub(super) rule: String,
    /// The place in the payload as a JSON pointer, names that the schema does not have as `*`.
    pub(super) at: String,
}

impl Compiled {
    /// Compiles a schema, or says why it cannot be used.
    pub(super) fn new(version: &str, text: &str) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(text).map_err(|_| format!("{UNREAD} {LIMITS}"))?;
        let is_cyclic = unfold::is_cyclic(&schema)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS_MAX)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let mut options = jsonschema::options().offline().with_pattern_options(patterns);
        if schema.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft7);
        }
        let validator = options.build(&schema).map_err(|fault| {
            let place = place(fault.instance_path());
            format!("cannot be compiled: at {place} stands what JSON Schema does not allow there")
        })?;
        Ok(Self { version: version.to_owned(), bytes: text.len(), schema, validator, is_cyclic })
    }

    /// Whether a payload of this size is soon held against it.
    pub(super) const fn is_quick(&self, payload_bytes: usize) -> bool {
        self.bytes.saturating_mul(payload_bytes) <= BESIDE_PRODUCT
    }

    /// Holds a payload against the schema.
    pub(super) fn check(&self, payload: &[u8]) -> Result<(), Broken> {
        let version = &self.version;
        let value: Value = match serde_json::from_slice(payload) {
            Ok(value) => value,
            Err(_) => {
                let rule = format!("cannot be held against its schema: it {UNREAD} {LIMITS}");
                return Err(Broken::somewhere(rule));
            }
        };
        let most = if self.is_cyclic { SOUGHT_MAX } else { WORK_MAX };
        let can_be_sought = weigh::fits(&self.schema, &value, most, false);
        let fits = || self.is_cyclic && weigh::fits(&self.schema, &value, WORK_MAX, true);
        if !can_be_sought && !fits() {
            let rule =
                format!("takes too much work to be held against its schema (version {version})");
            let broken = Broken::somewhere(rule);
            return Err(Broken { fault: broken.fault.of_kind(TOO_COSTLY), ..broken });
        }
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let first = if can_be_sought { self.validator.validate(&value).err() } else { None };
        let Some(fault) = first else {
            let rule = format!(
                "breaks its schema (version {version}), which refers to itself so often that the \
                 place takes too long to find"
            );
            return Err(Broken::somewhere(rule));
        };
        let (path, keyword) = (fault.instance_path(), fault.kind().keyword());
        let rule = format!(
            "breaks the rule `{keyword}` of its schema (version {version}) at {}: {}",
            place(path),
            said(&fault)
        );
        let mut loc = vec!["body".to_owned(), "payload".to_owned()];
        loc.extend(path.segments().map(|segment| match segment {
            LocationSegment::Property(name) => cut(&name, NAME_CHARS_MAX),
            LocationSegment::Index(at) => format!("[{at}]"),
        }));
        let at = known(path, fault.evaluation_path());
        let rule_at = fault.schema_path().as_str().to_owned();
        Err(Broken { fault: Invalid { loc, rule, kind: Invalid::KIND }, rule: rule_at, at })
    }
}

impl Broken {
    /// Nothing is known but this.
    fn somewhere(said: String) -> Self {
        Self { fault: Invalid::new("payload", said), rule: String::new(), at: String::new() }
    }
}

/// A place in words.
fn place(path: &Location) -> String {
    match path.as_str() {
        "" => "its top".to_owned(),
        pointer => format!("`{}`", cut(pointer, TEXT_CHARS_MAX)),
    }
}

/// A place as a JSON pointer, with those names alone that the way to the rule has too.
fn known(path: &Location, rule: &Location) -> String {
    let mut pointer = String::new();
    for segment in path.segments() {
        pointer.push('/');
        match segment {
            LocationSegment::Index(at) => pointer.push_str(&at.to_string()),
            LocationSegment::Property(name) => {
                let is_known = rule.segments().any(
                    |other| matches!(other, LocationSegment::Property(other) if other == name),
                );
                pointer.push_str(&if is_known { escaped(&name) } else { "*".to_owned() });
            }
        }
    }
    cut(&pointer, TEXT_CHARS_MAX)
}

/// A step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The rule in words, without what the value is.
fn said(fault: &ValidationError<'_>) -> String {
    cut(&fault.masked().to_string(), TEXT_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
