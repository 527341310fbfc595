//! What the API answers: wire views of values. camelCase, times in RFC 3339, durations as texts.
//!
//! Never: reach a store; everything shown is passed in.

pub(crate) mod alert;
pub(crate) mod application;
pub(crate) mod attempt;
pub(crate) mod dead_letter;
pub(crate) mod edit;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod explain;
pub(crate) mod figures;
pub(crate) mod message;
pub(crate) mod notice;
pub(crate) mod report;
pub(crate) mod sent;
pub(crate) mod task;

use domain::ids::PublicId;
use domain::notice::MANAGEMENT;
use domain::target::Target;
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

/// Where something of this organisation was sent. URLs of the management organisation are
/// credentials of others, routes of alerts among them: their origin is shown.
fn sent_to(url: String, org: PublicId) -> String {
    if org != MANAGEMENT {
        return url;
    }
    Target::parse("url", &url, false).map(|target| target.origin()).unwrap_or_default()
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
    fn urls_of_the_management_organisation_are_not_shown_whole() {
        let url = || "https://hooks.example/T0/secret?k=1".to_owned();
        assert_eq!(sent_to(url(), MANAGEMENT), "https://hooks.example:443");
        assert_eq!(sent_to("no url".to_owned(), MANAGEMENT), "");
        assert_eq!(sent_to(url(), PublicId::new(1, [1; 12])), url());
    }

    #[test]
    fn stored_json_is_shown_as_it_is() {
        assert_eq!(stored_json(r#"{"a": "b"}"#).get(), r#"{"a": "b"}"#);
        assert_eq!(stored_json("").get(), "null");
    }
}
