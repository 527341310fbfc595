//! An attempt as the API shows it: the fields that SDKs know, and what else is known about it.
//!
//! The answer's body is an excerpt as text; bytes that are no text become U+FFFD.
//! Never: end an excerpt in the middle of a character.

use domain::attempt::{Attempt, Cut, FailureKind, Outcome};
use domain::classify::describe;
use domain::ids::{Kind, PublicId};
use resilience::Term;
use schemars::JsonSchema;
use serde::Serialize;
use store::history::AttemptRow;

use super::{sent_to, time, time_or_none};
use crate::api::shapes::{AttemptId, EndpointId, MessageId, Status, StatusText, Time, or_null};

/// What sets a delay, and what cuts an answer's body short.
pub(super) const TERMS: [&str; 3] =
    [term_name(Term::Backoff), term_name(Term::RetryAfter), term_name(Term::AgeLimit)];
const CUTS: [&str; 3] = [Cut::Cap.name(), Cut::Deadline.name(), Cut::Reset.name()];

/// An attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptOut {
    #[schemars(with = "AttemptId")]
    id: String,
    url: String,
    /// The body of the answer, at most 16 KiB of it.
    response: String,
    /// 0 for no answer.
    response_status_code: u16,
    response_duration_ms: u64,
    #[schemars(with = "Status")]
    status: u8,
    #[schemars(with = "StatusText")]
    status_text: &'static str,
    /// 0 by the policy, 1 by hand.
    #[schemars(extend("enum" = [0, 1]))]
    trigger_type: u8,
    #[schemars(with = "MessageId")]
    msg_id: String,
    #[schemars(with = "EndpointId")]
    endpoint_id: String,
    #[schemars(with = "Time")]
    timestamp: String,
    /// Which send of the delivery, from 1.
    number: u32,
    /// What went wrong, in words.
    error: Option<String>,
    /// Why no answer came.
    #[schemars(extend("enum" = or_null(&FailureKind::ALL.map(FailureKind::name))))]
    error_kind: Option<&'static str>,
    #[schemars(with = "Option<Time>")]
    next_attempt_at: Option<String>,
    /// What the delay until then comes from.
    #[schemars(extend("enum" = or_null(&TERMS)))]
    delay_set_by: Option<&'static str>,
    /// Sent once more because a kept connection had died.
    resent: bool,
    /// Why the answer's body is not whole.
    #[schemars(extend("enum" = or_null(&CUTS)))]
    cut: Option<&'static str>,
    /// Where a 3xx pointed.
    redirect_origin: Option<String>,
}

impl AttemptOut {
    /// One of this organisation, with or without the answer's body.
    pub(crate) fn new(row: AttemptRow, org: PublicId, with_content: bool) -> Self {
        let attempt = row.attempt;
        let (status, status_text) = status(&attempt);
        let mut shown = Self {
            id: row.id.text(Kind::Attempt),
            url: sent_to(row.url, org),
            response: String::new(),
            response_status_code: attempt.status(),
            response_duration_ms: u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
            status,
            status_text,
            trigger_type: u8::from(attempt.trigger.is_by_hand()),
            msg_id: row.message_id.text(Kind::Message),
            endpoint_id: row.endpoint_id.text(Kind::Endpoint),
            timestamp: time(attempt.started_at),
            number: attempt.number,
            error: describe(&attempt),
            error_kind: None,
            next_attempt_at: row.next.and_then(|(at, _)| time_or_none(at)),
            delay_set_by: row.next.map(|(_, term)| term_name(term)),
            resent: attempt.resent,
            cut: None,
            redirect_origin: None,
        };
        match attempt.outcome {
            Outcome::Answered(answer) => {
                shown.response = excerpt(&answer.body);
                shown.cut = answer.cut.map(Cut::name);
                shown.redirect_origin = answer.redirect_origin;
            }
            Outcome::Failed(failure) => {
                shown.error_kind = Some(failure.kind.name());
            }
        }
        if !with_content {
            "{}".clone_into(&mut shown.response);
        }
        shown
    }
}

/// 0 and `success`, or 2 and `fail`: an attempt that is stored has ended.
const fn status(attempt: &Attempt) -> (u8, &'static str) {
    match attempt.status() {
        200..=299 => (0, "success"),
        _ => (2, "fail"),
    }
}

pub(super) const fn term_name(term: Term) -> &'static str {
    match term {
        Term::Backoff => "backoff",
        Term::RetryAfter => "retry_after",
        Term::AgeLimit => "age_limit",
    }
}

/// The bytes as text; a character that was cut off at the end is left out.
fn excerpt(bytes: &[u8]) -> String {
    let whole = bytes.utf8_chunks().last().map_or(0, |last| {
        let cut_off = last.invalid();
        // Only an unfinished sequence can go on, and only at the end.
        let unfinished = std::str::from_utf8(cut_off).is_err_and(|e| e.error_len().is_none());
        if unfinished { cut_off.len() } else { 0 }
    });
    String::from_utf8_lossy(&bytes[..bytes.len() - whole]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn db_02_an_excerpt_ends_between_characters() {
        let horse = "ab🐎".as_bytes();
        assert_eq!(excerpt(horse), "ab🐎");
        for end in 3..horse.len() {
            assert_eq!(excerpt(&horse[..end]), "ab", "{end}");
        }
        assert_eq!(excerpt(b""), "");
        assert_eq!(excerpt(b"a\xFFb"), "a\u{FFFD}b");
        assert_eq!(excerpt(b"a\xFF"), "a\u{FFFD}");
        assert_eq!(excerpt(b"a\0b"), "a\0b");
        assert_eq!(excerpt(b"\xED\xA0\x80"), "\u{FFFD}\u{FFFD}\u{FFFD}");
    }
}
