//! One schema, compiled: draft 7 unless its `$schema` names another.
//!
//! In: the text of a schema, then payloads. Out: the first rule that a payload breaks, with its
//! place as a JSON pointer.
//! Never: show a value of the payload; only names of its fields.

use domain::error::Invalid;
use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::unfold;

/// Steps back that one match of a pattern may take.
const BACKTRACKS_MAX: usize = 100_000;
/// What a compiled pattern may take in memory.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// An answer repeats no longer names than this, and no longer text of a rule.
const NAME_CHARS_MAX: usize = 256;
const TEXT_CHARS_MAX: usize = 1_000;

/// A schema in use.
pub(super) struct Compiled {
    version: String,
    validator: Validator,
    /// Where a rule is broken is only looked for in a schema that does not refer to itself: what
    /// such a look costs has no bound.
    is_cyclic: bool,
}

/// A rule that a payload breaks.
#[derive(Debug)]
pub(super) struct Broken {
    /// For whoever posted it.
    pub(super) fault: Invalid,
    /// The place of the rule in the schema, if it is known.
    pub(super) rule: String,
}

impl Compiled {
    /// Compiles a schema, or says why it cannot be used.
    pub(super) fn new(version: &str, text: &str) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
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
            let place = cut(fault.instance_path().as_str(), TEXT_CHARS_MAX);
            format!("cannot be compiled: at `{place}`: {}", said(&fault))
        })?;
        Ok(Self { version: version.to_owned(), validator, is_cyclic })
    }

    /// Holds a payload against the schema.
    pub(super) fn check(&self, payload: &[u8]) -> Result<(), Broken> {
        let version = &self.version;
        let value: Value = match serde_json::from_slice(payload) {
            Ok(value) => value,
            Err(fault) => {
                let rule = format!("cannot be held against its schema: it cannot be read: {fault}");
                return Err(Broken { fault: Invalid::new("payload", rule), rule: String::new() });
            }
        };
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let first = if self.is_cyclic { None } else { self.validator.validate(&value).err() };
        let Some(fault) = first else {
            let rule = format!("breaks its schema (version {version}), which refers to itself");
            return Err(Broken { fault: Invalid::new("payload", rule), rule: String::new() });
        };
        let (place, keyword) = (fault.instance_path(), fault.kind().keyword());
        let rule = format!(
            "breaks the rule `{keyword}` of its schema (version {version}) at `{}`: {}",
            cut(place.as_str(), TEXT_CHARS_MAX),
            said(&fault)
        );
        let mut loc = vec!["body".to_owned(), "payload".to_owned()];
        loc.extend(place.segments().map(|segment| match segment {
            LocationSegment::Property(name) => cut(&name, NAME_CHARS_MAX),
            LocationSegment::Index(at) => format!("[{at}]"),
        }));
        let rule_at = fault.schema_path().as_str().to_owned();
        Err(Broken { fault: Invalid { loc, rule, kind: Invalid::KIND }, rule: rule_at })
    }
}

/// The rule in words, without what the value is.
fn said(fault: &ValidationError<'_>) -> String {
    cut(&fault.masked().to_string(), TEXT_CHARS_MAX)
}

fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
