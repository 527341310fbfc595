//! The table of verdicts.

use std::sync::Arc;

use resilience::{Outcome, RetryAfterRule, RetryBudget, RetryPolicy};

use super::*;
use crate::message::LeaseToken;

const SECOND: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp::from_secs(1_000);

fn message(attempt: u32, history: History) -> Message {
    Message {
        id: "m".into(),
        body: "body".into(),
        attributes: Arc::default(),
        correlation: None,
        attempt,
        enqueued_at: Timestamp::from_secs(900),
        received_at: Timestamp::from_secs(999),
        history,
        token: LeaseToken::new("m", "1"),
    }
}

fn policy() -> Retry {
    let hints = RetryAfterRule::exact().cap(SECOND * 60);
    RetryPolicy::linear(SECOND).max_calls(3).retry_after(hints).seed(1).build().unwrap()
}

fn judge(message: &Message, retry: &Retry, ended: Ended) -> Verdict {
    Case { message, retry, now: NOW }.verdict(ended, &mut resilience::Seeded::new(1))
}

fn failed(hint: RetryAfter) -> Ended {
    Ended::Handled(End::Retry { error: "no".into(), hint })
}

fn again(verdict: Verdict) -> Again {
    match verdict {
        Verdict::Again(again) => again,
        other => panic!("{other:?}"),
    }
}

fn buried(verdict: Verdict) -> (String, String) {
    match verdict {
        Verdict::Bury { reason, description, .. } => (reason, description),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_wait_follows_the_attempts_that_the_queue_counted() {
    for (attempt, wait) in [(1, 1), (2, 2)] {
        let verdict =
            judge(&message(attempt, History::default()), &policy(), failed(RetryAfter::Absent));
        let again = again(verdict);
        assert_eq!(again.due, NOW.plus(SECOND * wait));
        assert_eq!(again.history.last_wait, SECOND * wait);
        assert_eq!(again.history.begun, Some(Timestamp::from_secs(999)), "its first receipt");
        assert_eq!(again.history.last_error.as_deref(), Some("no"));
    }
}

#[test]
fn decorrelated_waits_go_on_from_the_last_one() {
    let retry = RetryPolicy::decorrelated_jitter(SECOND).cap(SECOND * 300).build().unwrap();
    let waits = (0..200).map(|seed| {
        let history = History { last_wait: SECOND * 100, ..History::default() };
        let message = message(2, history);
        let case = Case { message: &message, retry: &retry, now: NOW };
        let verdict = case.verdict(failed(RetryAfter::Absent), &mut resilience::Seeded::new(seed));
        again(verdict).history.last_wait
    });
    assert!(waits.max().unwrap() > SECOND * 250, "up to three times the last wait");
}

#[test]
fn a_hint_of_the_receiver_is_followed() {
    let hint = RetryAfter::Wait(SECOND * 30);
    let due = again(judge(&message(1, History::default()), &policy(), failed(hint))).due;
    assert!((SECOND * 30..=SECOND * 31).contains(&due.since(NOW)), "{due:?}");
}

#[test]
fn panics_and_late_handlers_are_tried_again() {
    for (ended, word) in [
        (Ended::Panicked("boom".to_owned()), "panicked: boom"),
        (Ended::TimedOut(SECOND), "longer than 1s"),
    ] {
        let again = again(judge(&message(1, History::default()), &policy(), ended));
        assert!(again.history.last_error.unwrap().contains(word));
    }
}

#[test]
fn the_last_attempt_is_set_aside_with_the_whole_story() {
    let begun = Some(Timestamp::from_secs(950));
    let history = History { begun, last_wait: SECOND, last_error: Some("old".to_owned()) };
    let verdict = judge(&message(3, history), &policy(), failed(RetryAfter::Absent));
    assert_eq!(
        buried(verdict),
        (
            "attempts_exhausted".to_owned(),
            "attempt 3 of at most 3; enqueued 1970-01-01T00:15:00Z, first tried \
             1970-01-01T00:15:50Z, given up 1970-01-01T00:16:40Z; last error: no"
                .to_owned()
        )
    );
}

#[test]
fn reasons() {
    let first = message(1, History::default());
    let reject = End::Reject { reason: "bad_schema".to_owned(), error: "no field".into() };
    assert_eq!(buried(judge(&first, &policy(), Ended::Handled(reject))).0, "bad_schema");
    let never = RetryPolicy::fixed(SECOND).retry_if(|_: &Outcome<'_>| false);
    let never = never.build().unwrap();
    assert_eq!(buried(judge(&first, &never, failed(RetryAfter::Absent))).0, "not_retryable");
    let old = History { begun: Some(Timestamp::EPOCH), ..History::default() };
    let brief = RetryPolicy::fixed(SECOND).max_elapsed(SECOND * 60).build().unwrap();
    let verdict = judge(&message(2, old), &brief, failed(RetryAfter::Absent));
    assert_eq!(buried(verdict).0, "too_old");
}

/// DU-10: the count is the queue's, so that it survives whoever was killed.
#[test]
fn du_10_a_message_received_too_often_is_set_aside_unseen() {
    let retry = policy();
    let is_exhausted = |attempt| {
        let message = message(attempt, History::default());
        Case { message: &message, retry: &retry, now: NOW }.is_exhausted()
    };
    assert_eq!([1, 3, 4].map(is_exhausted), [false, false, true]);
    let history = History { begun: Some(Timestamp::from_secs(950)), ..History::default() };
    let verdict = judge(&message(4, history), &retry, Ended::Exhausted);
    assert!(matches!(verdict, Verdict::Bury { attempts: 3, .. }), "the fourth is not begun");
    let (reason, text) = buried(verdict);
    assert_eq!(reason, "crashed");
    assert!(text.contains("attempt 3 of at most 3; "), "{text}");
    assert!(text.contains("first tried 1970-01-01T00:15:50Z"), "{text}");
    assert!(text.contains("consumers died"), "{text}");
}

#[test]
fn an_empty_budget_puts_off_and_never_sets_aside() {
    let budget = RetryBudget::ratio(0.1);
    let retry = RetryPolicy::fixed(SECOND).budget(budget).max_calls(3).build().unwrap();
    let again = again(judge(&message(1, History::default()), &retry, failed(RetryAfter::Absent)));
    assert!(again.due >= NOW.plus(PUT_OFF), "{:?}", again.due);
}

/// A policy's own code that panics neither loses the message nor repeats it without an end.
#[test]
fn a_predicate_that_panics_puts_the_message_off() {
    let retry = RetryPolicy::fixed(SECOND).retry_if(|_: &Outcome<'_>| panic!("no word"));
    let retry = retry.max_calls(2).build().unwrap();
    let verdict = judge(&message(1, History::default()), &retry, failed(RetryAfter::Absent));
    assert!(again(verdict).due >= NOW.plus(PUT_OFF));
    let third = message(3, History::default());
    assert!(Case { message: &third, retry: &retry, now: NOW }.is_exhausted());
}
