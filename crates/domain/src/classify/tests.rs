//! Tests of the classes. Never: a network.

use std::time::Duration;

use bytes::Bytes;
use resilience::{RetryAfter, Timestamp};

use super::*;
use crate::attempt::{Answer, Cut, Failure};
use crate::delivery::Trigger;

fn attempt(outcome: Outcome) -> Attempt {
    Attempt {
        number: 1,
        started_at: Timestamp::EPOCH,
        took: Duration::ZERO,
        trigger: Trigger::Scheduled,
        outcome,
        resent: false,
    }
}

fn answered(status: u16) -> Attempt {
    attempt(Outcome::Answered(Answer {
        status,
        retry_after: RetryAfter::Absent,
        body: Bytes::from_static(b"\xFF\xFE\0 not text"),
        cut: Some(Cut::Reset),
        redirect_origin: None,
    }))
}

fn failed(kind: FailureKind, text: &str) -> Attempt {
    attempt(Outcome::Failed(Failure { kind, text: text.into() }))
}

#[test]
fn hr_06_every_2xx_is_a_success_whatever_the_body() {
    for status in 200..=299 {
        for retry_on in [RetryOn::Transient, RetryOn::All, RetryOn::Listed(vec![(0, 999)])] {
            assert_eq!(classify(&answered(status), &retry_on), Class::Success);
        }
        assert_eq!(describe(&answered(status)), None);
    }
}

#[test]
fn statuses_fall_into_the_classes_of_the_table() {
    let by = |status, retry_on: &RetryOn| classify(&answered(status), retry_on);
    for status in 300..=999 {
        let expected = match status {
            429 => Class::Throttled,
            408 | 425 | 500..=599 => Class::Transient,
            410 => Class::Gone,
            _ => Class::Rejected,
        };
        assert_eq!(by(status, &RetryOn::Transient), expected, "{status}");
        let expected = if status == 429 { Class::Throttled } else { Class::Transient };
        assert_eq!(by(status, &RetryOn::All), expected, "{status}");
    }
}

#[test]
fn a_list_replaces_the_default() {
    let listed = RetryOn::Listed(vec![(503, 503), (404, 404)]);
    let by = |status| classify(&answered(status), &listed);
    assert_eq!((by(503), by(404)), (Class::Transient, Class::Transient));
    assert_eq!((by(429), by(500), by(408)), (Class::Rejected, Class::Rejected, Class::Rejected));
    assert_eq!(by(410), Class::Gone);
    let listed = RetryOn::Listed(vec![(410, 410)]);
    assert_eq!(classify(&answered(410), &listed), Class::Transient);
}

#[test]
fn failures_are_transient_unless_they_cannot_be_mended_there() {
    for kind in FailureKind::ALL {
        let expected = match kind {
            FailureKind::Forbidden => Class::Forbidden,
            FailureKind::Internal => Class::Internal,
            _ => Class::Transient,
        };
        let none = RetryOn::Listed(Vec::new());
        assert_eq!(classify(&failed(kind, "x"), &none), expected, "{}", kind.name());
    }
}

#[test]
fn words_say_what_to_do() {
    let pointing = |status, target: Option<&str>| {
        let mut attempt = answered(status);
        if let Outcome::Answered(answer) = &mut attempt.outcome {
            answer.redirect_origin = target.map(str::to_owned);
        }
        describe(&attempt).unwrap()
    };
    let target = "https://new.example:443";
    for (status, target, parts) in [
        (301, Some(target), [target, "update the URL"]),
        (300, Some(target), [target, "update the URL"]),
        (300, None, ["answered 300", "check the URL"]),
        (302, None, ["answered 302", "check the URL"]),
        (304, None, ["answered 304", "takes no message"]),
        (304, Some(target), ["answered 304", "takes no message"]),
        (410, None, ["answered 410", "gone"]),
        (429, None, ["answered 429", "fewer"]),
        (600, None, ["answered 600", "not a valid HTTP status"]),
        (999, None, ["answered 999", "not a valid HTTP status"]),
    ] {
        let text = pointing(status, target);
        assert!(parts.iter().all(|part| text.contains(part)), "{status}: {text}");
        let points = target.is_some() && status != 304;
        assert_eq!(text.contains("redirect"), points, "{status}: {text}");
    }
    for status in [199, 404, 503, 599] {
        assert_eq!(describe(&answered(status)).unwrap(), format!("the receiver answered {status}"));
    }
    assert_eq!(describe(&failed(FailureKind::Tls, "expired")).unwrap(), "expired");
    assert_eq!(describe(&failed(FailureKind::Dns, "")).unwrap(), "dns");
}

#[test]
fn names_differ() {
    let names: std::collections::HashSet<_> = Class::ALL.map(Class::name).into();
    assert_eq!(names.len(), Class::ALL.len());
}
