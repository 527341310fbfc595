//! HF and HX: statuses, and what an answer says of being asked again. NF and NR: kinds of network
//! faults.
//!
//! Never: an error made by the test; the adapter makes all of them.

use std::error::Error;
use std::io::{self, ErrorKind};

use http::{Method, StatusCode};
use http_adapter::resilience::compat::http_adapter::HttpAdapterClassify;
use http_adapter::resilience::{Clock, ErrorKind as Fault, Timestamp, TokioSleeper};
use http_adapter::testing::{MockReply, MockTransport};
use http_adapter::{HttpAdapter, HttpError, HttpErrorKind};

use crate::support::{SECOND, over};
use crate::wire::{Server, answer};

/// The error of a request that gets this reply.
async fn error_of(reply: MockReply) -> HttpError {
    let mock = MockTransport::new();
    mock.always(reply);
    over(&mock).build().unwrap().post("users").send().await.unwrap_err()
}

/// Ours keeps the status where theirs has a class for it; HF41 is a number that no status can be.
#[tokio::test]
async fn hf_01_to_hf_42_hx_02_to_hx_43_every_status_is_kept() {
    for status in 400..=599 {
        let error = error_of(MockReply::new(status, "")).await;
        assert_eq!(error.kind(), HttpErrorKind::Status);
        let kept = error.status().unwrap();
        assert_eq!(kept.as_u16(), status);
        assert_eq!((kept.is_client_error(), kept.is_server_error()), (status < 500, status >= 500));
    }
}

/// The wait that an answer with this header asks for, in seconds.
async fn asked(value: &'static str) -> Option<u64> {
    let error = error_of(MockReply::new(429, "").header("retry-after", value)).await;
    error.retry_after().map(|wait| wait.as_secs())
}

#[tokio::test]
async fn hx_44_seconds_are_read() {
    assert_eq!(asked("30").await, Some(30));
}

/// The last second that the format has, so that the test needs no date of today.
#[tokio::test]
async fn hx_45_a_date_is_the_time_until_then() {
    let wait = asked("Fri, 31 Dec 9999 23:59:59 GMT").await.unwrap();
    let left = Timestamp::from_secs(253_402_300_799).since(TokioSleeper::new().now()).as_secs();
    assert!((left..=left + 2).contains(&wait), "{wait} is not about {left}");
}

/// HX47: theirs may have no headers at all; ours may have none in them.
#[tokio::test]
async fn hx_46_hx_47_without_the_header_no_wait_is_asked_for() {
    assert_eq!(error_of(MockReply::new(429, "")).await.retry_after(), None);
    let other = MockReply::new(429, "").header("x-other", "30");
    assert_eq!(error_of(other).await.retry_after(), None);
}

/// Ours takes none of what theirs reads a number from (T8).
#[tokio::test]
async fn hx_48_what_is_no_wait_is_none() {
    for value in ["soon", "", "1.5", "10abc", "-5", "2026-12-01T00:00:00Z"] {
        assert_eq!(asked(value).await, None, "{value}");
    }
}

#[tokio::test]
async fn hx_49_hx_50_the_header_is_known_in_any_case() {
    for name in ["Retry-After", "RETRY-AFTER", "retry-after"] {
        let server = Server::start(vec![answer("429 Slow", &format!("{name}: 30\r\n"), "")]);
        let error = server.adapter().build().unwrap().get("x").send().await.unwrap_err();
        assert_eq!(error.retry_after(), Some(SECOND * 30), "{name}");
    }
}

/// Whether this status may be retried, by their table and by ours.
async fn retryable(status: u16) -> [bool; 2] {
    let mock = MockTransport::new();
    mock.reply(status, "");
    let theirs = over(&mock).classify(HttpAdapterClassify).build().unwrap();
    let ours = over(&mock).build().unwrap();
    [theirs.get("x").send().await, ours.get("x").send().await].map(|answer| {
        let error = answer.unwrap_err();
        assert_eq!(error.status(), StatusCode::from_u16(status).ok());
        error.is_retryable()
    })
}

#[tokio::test]
async fn hx_51_hx_52_hx_53_hx_54_what_may_pass_is_retryable() {
    for status in [429, 502, 503, 504] {
        assert_eq!(retryable(status).await, [true; 2], "{status}");
    }
}

/// 500 may pass by our own table; the method says whether it is sent again, as for 502:
/// docs/strategies/http-client.md, "What is sent again".
#[tokio::test]
async fn hx_55_to_hx_62_what_will_not_pass_is_not_retryable() {
    for status in [400, 401, 403, 404, 405, 422, 501] {
        assert_eq!(retryable(status).await, [false; 2], "{status}");
    }
    assert_eq!(retryable(500).await, [false, true]);
}

/// Our own timer in place of their `AbortError`.
#[tokio::test(start_paused = true)]
async fn nf_01_an_attempt_that_takes_too_long_is_a_timeout() {
    let error = error_of(MockReply::silence()).await;
    assert_eq!(
        (error.kind(), error.fault()),
        (HttpErrorKind::AttemptTimeout, Some(Fault::Timeout))
    );
    assert!(error.source().unwrap().is::<http_adapter::TimedOut>(), "the cause is kept");
}

/// NF2: `ECONNABORTED` is a time-out of axios; from the system, as here, it is a broken connection.
/// NF10: a kind that nobody knows is a fault of the transport all the same.
#[tokio::test]
async fn nf_02_nf_03_nf_06_to_nf_10_kinds_of_the_system_are_told_apart() {
    for (kind, fault) in [
        (ErrorKind::ConnectionAborted, Fault::ConnectionReset),
        (ErrorKind::ConnectionRefused, Fault::ConnectionRefused),
        (ErrorKind::TimedOut, Fault::Timeout),
        (ErrorKind::ConnectionReset, Fault::ConnectionReset),
        (ErrorKind::HostUnreachable, Fault::HostUnreachable),
        (ErrorKind::NetworkUnreachable, Fault::HostUnreachable),
        (ErrorKind::Other, Fault::Other),
    ] {
        let error = error_of(MockReply::fault(kind)).await;
        assert_eq!((error.kind(), error.fault()), (HttpErrorKind::Transport, Some(fault)));
        let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(cause.kind(), kind, "the cause is kept");
    }
}

/// Resolvers do not say which of the two it was, so that ours is one kind.
#[tokio::test]
async fn nf_04_nf_05_a_name_that_does_not_resolve_is_told() {
    let api = HttpAdapter::builder("http://no-such-host.invalid").build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (HttpErrorKind::Transport, Some(Fault::Dns)));
    // NR4: theirs is not retryable. Ours was not sent: docs/strategies/http-client.md.
    assert!(error.is_retryable() && error.is_not_sent());
}

#[tokio::test]
async fn nf_11_a_network_fault_says_which_request_it_was() {
    let error = error_of(MockReply::fault(ErrorKind::ConnectionReset)).await;
    let context = error.context();
    let seen = (context.method(), context.url(), context.attempt());
    assert_eq!(seen, (&Method::POST, "https://api.test/v1/users", 1));
}

/// The number of theirs cannot be an error here.
#[tokio::test]
async fn nf_12_an_error_that_is_a_text_keeps_it() {
    let mock = MockTransport::new();
    let error = over(&mock).build().unwrap().get("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (HttpErrorKind::Transport, Some(Fault::Other)));
    assert_eq!(error.source().unwrap().to_string(), "no response configured");
}

/// NR4, a name that does not resolve, differs and stands with NF4.
#[tokio::test]
async fn nr_01_nr_02_nr_03_nr_05_nr_06_faults_that_may_pass_are_retryable() {
    for (kind, retryable) in [
        (ErrorKind::TimedOut, true),
        (ErrorKind::ConnectionReset, true),
        (ErrorKind::ConnectionRefused, true),
        (ErrorKind::HostUnreachable, false),
        (ErrorKind::Other, false),
    ] {
        let error = error_of(MockReply::fault(kind)).await;
        assert_eq!(error.is_retryable(), retryable, "{kind:?}");
    }
}
