//! What the API answers: wire views of values. camelCase, times in RFC 3339, durations as texts.
//!
//! Never: reach a store; everything shown is passed in.

pub(crate) mod application;
pub(crate) mod attempt;
pub(crate) mod dead_letter;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod explain;
pub(crate) mod message;
pub(crate) mod notice;
pub(crate) mod report;
pub(crate) mod sent;
pub(crate) mod task;

use resilience::Timestamp;
use serde_json::value::RawValue;

/// A point in time as text; `None` for one that no calendar holds.
pub(crate) fn time_or_none(at: Timestamp) -> Option<String> {
    jiff::Timestamp::from_microsecond(at.as_micros()).ok().map(|at| at.to_string())
}

/// A point in time as text.
pub(crate) fn time(at: Timestamp) -> String {
    time_or_none(at).unwrap_or_else(|| "9999-12-31T23:59:59Z".to_owned())
}

/// JSON that is kept as text.
pub(crate) fn stored_json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_to_the_microsecond() {
        assert_eq!(
            time(Timestamp::from_micros(1_800_000_000_000_001)),
            "2027-01-15T08:00:00.000001Z"
        );
        assert_eq!(time(Timestamp::from_secs(1_800_000_000)), "2027-01-15T08:00:00Z");
        assert_eq!(time_or_none(Timestamp::MAX), None);
        assert_eq!(time(Timestamp::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn stored_json_is_shown_as_it_is() {
        assert_eq!(stored_json(r#"{"a": "b"}"#).get(), r#"{"a": "b"}"#);
        assert_eq!(stored_json("").get(), "null");
    }
}
