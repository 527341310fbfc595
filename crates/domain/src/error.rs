//! What a caller got wrong: which field, and which rule it breaks.
//!
//! In: nothing. Out: a value that the API turns into a 422 and the settings into one line.
//! Never: repeat what was sent; a URL, a header value or a secret may not reach a log this way.

/// A value that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {rule}", field_of(.loc))]
pub struct Invalid {
    /// Where it stands: `["body", "url"]`, names as in the JSON.
    pub loc: Vec<String>,
    /// The rule in words, to follow the name of the field: "must be at most 256 characters".
    pub rule: String,
    /// The stable name of the kind of fault.
    pub kind: &'static str,
}

impl Invalid {
    /// The kind of nearly all of them.
    pub const KIND: &'static str = "value_error";

    /// The body's field `field` breaks `rule`.
    pub fn new(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { loc: vec!["body".into(), field.into()], rule: rule.into(), kind: Self::KIND }
    }

    /// The same, when the field itself stands within `outer`.
    #[must_use]
    pub fn within(mut self, outer: impl Into<String>) -> Self {
        self.loc.insert(self.loc.len().min(1), outer.into());
        self
    }

    /// The same, under another name of the kind.
    #[must_use]
    pub const fn of_kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }
}

/// The place without its root: `channels.[2]`.
fn field_of(loc: &[String]) -> String {
    loc.get(1..).unwrap_or_default().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_reads_from_the_outside_in() {
        let fault = Invalid::new("[2]", "must not be empty").within("channels").within("endpoint");
        assert_eq!(fault.loc, ["body", "endpoint", "channels", "[2]"]);
        assert_eq!(fault.to_string(), "endpoint.channels.[2]: must not be empty");
        assert_eq!(fault.kind, "value_error");
        assert_eq!(fault.of_kind("application_uid_missing").kind, "application_uid_missing");
    }
}
