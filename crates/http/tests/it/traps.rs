//! Faults of others, each as a test that it is not one of ours. T9, T10, T18 to T22 stand with what
//! they are about.

use std::io::ErrorKind;
use std::time::Duration;

use http::Method;
use http_adapter::resilience::{
    ErrorKind as Fault, RetryAfterRule, RetryPolicy, StopReason, TooLong,
};
use http_adapter::testing::{MockReply, MockTransport, ObserverEvent, SpyObserver};
use http_adapter::{Body, Context, Flow, HttpError, HttpErrorKind, HttpObserver, Interceptor};

use crate::support::{SECOND, breaker, calls, over};

/// T6: a POST without a key is not made twice where it may have been acted on.
#[tokio::test(start_paused = true)]
async fn t6_a_post_without_a_key_is_not_repeated() {
    for reply in [
        MockReply::new(502, ""),
        MockReply::new(503, ""),
        MockReply::new(504, ""),
        MockReply::fault(ErrorKind::TimedOut),
    ] {
        let mock = MockTransport::new();
        mock.always(reply);
        let api = over(&mock).retry(calls(3)).build().unwrap();
        let error = api.post("x").send().await.unwrap_err();
        mock.assert_called_times(1);
        assert_eq!(error.info().unwrap().stop, Some(StopReason::UnsafeMethod));
        api.post("x").idempotency_key("k").send().await.unwrap_err();
        mock.assert_called_times(4);
    }
}

/// T7, T8, RA-01 to RA-09: the receiver's wish is followed, and only where it is one.
#[tokio::test(start_paused = true)]
async fn t7_the_wish_of_the_receiver_is_followed() {
    for (status, value, least, most) in [
        (503, "7", 7_000, 7_700),
        (429, "120", 60_000, 61_000),
        (503, "99999999999999999999", 60_000, 61_000),
        (503, "1.5", 1_000, 1_000),
        (503, "10abc", 1_000, 1_000),
        (503, "-5", 1_000, 1_000),
        (503, "2026-12-01T00:00:00Z", 1_000, 1_000),
        (503, "Wed, 21 Oct 2015 07:28:00 GMT", 1_000, 1_000),
        (404, "7", 0, 0),
        (301, "7", 0, 0),
    ] {
        let mock = MockTransport::new();
        mock.once(MockReply::new(status, "").header("retry-after", value)).reply(200, "");
        let spy = SpyObserver::default();
        let api = over(&mock).retry(calls(2)).observer(spy.clone()).total_timeout(SECOND * 90);
        let _ = api.build().unwrap().get("x").send().await;
        let waits: u128 = spy
            .events()
            .iter()
            .filter_map(|event| match event {
                ObserverEvent::Retry { delay, .. } => Some(delay.as_millis()),
                _ => None,
            })
            .sum();
        assert!((least..=most).contains(&waits), "{status} {value}: {waits}");
    }
    let mock = MockTransport::new();
    mock.always(MockReply::new(503, "").header("retry-after", "120"));
    let rule = RetryAfterRule::exact().when_longer(TooLong::GiveUp);
    let retry = RetryPolicy::fixed(SECOND).retry_after(rule).build().unwrap();
    let api = over(&mock).retry(retry).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.info().unwrap().stop, Some(StopReason::RetryAfterTooLong));
    assert_eq!(error.retry_after(), Some(SECOND * 120));
}

/// T12: an observer that panics changes nothing.
#[tokio::test(start_paused = true)]
async fn t12_an_observer_that_panics_changes_nothing() {
    struct Panics;
    impl HttpObserver for Panics {
        fn on_start(&self, _: &Context) {
            panic!("start");
        }
        fn on_retry(&self, _: u32, _: &HttpError, _: Duration) {
            panic!("retry");
        }
        fn on_success(&self, _: &http_adapter::Response<bytes::Bytes>, _: &resilience::RetryInfo) {
            panic!("success");
        }
    }
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply(200, "ok");
    let spy = SpyObserver::default();
    let api = over(&mock).retry(calls(2)).observer(Panics).observer(spy.clone()).build().unwrap();
    assert_eq!(api.get("x").send().await.unwrap().body(), "ok");
    assert_eq!(spy.events().len(), 4, "and the next observer hears everything");
}

/// T14, T15: the kind of a failure is found behind the errors of clients.
#[tokio::test(start_paused = true)]
async fn t14_a_refused_connection_is_told_and_retried() {
    for (kind, fault, retryable) in [
        (ErrorKind::ConnectionRefused, Fault::ConnectionRefused, true),
        (ErrorKind::ConnectionReset, Fault::ConnectionReset, true),
        (ErrorKind::TimedOut, Fault::Timeout, true),
        (ErrorKind::HostUnreachable, Fault::HostUnreachable, false),
    ] {
        let mock = MockTransport::new();
        mock.always(MockReply::fault(kind));
        let error = over(&mock).build().unwrap().get("x").send().await.unwrap_err();
        assert_eq!((error.kind(), error.fault()), (HttpErrorKind::Transport, Some(fault)));
        assert_eq!(error.is_retryable(), retryable, "{kind:?}");
    }
}

/// T16: every error says which request it was, and none what was secret about it. EC22, NF11.
#[tokio::test(start_paused = true)]
async fn t16_every_error_bears_its_context_and_no_secret() {
    let mock = MockTransport::new();
    mock.once(MockReply::fault(ErrorKind::ConnectionReset));
    mock.once(MockReply::new(503, "hidden").header("x-secret", "hidden"));
    mock.once(MockReply::silence());
    mock.reply(200, "{");
    let key = http_adapter::ApiKey::new("hidden").in_query("key");
    let api = over(&mock).auth(key).build().unwrap();
    for kind in ["transport", "status", "attempt_timeout", "decode"] {
        let request = api.post("users?token=hidden").header("x-key", "hidden").json("hidden");
        let error = request.send_json::<u32>().await.unwrap_err();
        let context = error.context();
        assert_eq!(context.url(), "https://api.test/v1/users");
        assert_eq!((context.method(), context.attempt()), (&Method::POST, 1));
        assert!(!context.correlation_id().is_empty());
        let shown = serde_json::to_value(&error).unwrap();
        assert_eq!(shown["kind"], kind);
        assert_eq!(shown["request"]["url"], "https://api.test/v1/users");
        assert_eq!(shown["calls"], 1);
        for text in [shown.to_string(), error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("hidden"), "{text}");
        }
    }
}

/// T17: an error of an interceptor takes the way of all errors.
#[tokio::test(start_paused = true)]
async fn t17_an_interceptor_that_fails_is_heard_of_and_can_be_retried() {
    struct Fails(ErrorKind);
    impl Interceptor for Fails {
        async fn on_request(&self, _: &mut http::Request<Body>, _: &Context) -> Flow {
            Err(std::io::Error::from(self.0).into())
        }
    }
    for (kind, attempts) in [(ErrorKind::Other, 1), (ErrorKind::ConnectionRefused, 3)] {
        let mock = MockTransport::new();
        let (spy, shown) =
            (SpyObserver::default(), http_adapter::testing::SpyInterceptor::default());
        let guard = breaker("one").trip(resilience::Trip::consecutive(1)).build().unwrap();
        let api = over(&mock).retry(calls(3)).observer(spy.clone()).breaker(guard.clone());
        let api = api.interceptor(Fails(kind)).interceptor(shown.clone()).build().unwrap();
        let error = api.get("x").send().await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Interceptor);
        assert_eq!(shown.events().len(), attempts, "error hooks run on each attempt");
        let ends = spy
            .events()
            .iter()
            .filter(|event| matches!(event, ObserverEvent::Failure { .. }))
            .count();
        assert_eq!(ends, 1);
        mock.assert_not_called();
        assert_eq!(guard.state(), resilience::State::Closed, "not the receiver's fault");
    }
}

/// T19: each attempt starts from the request as the caller wrote it.
#[tokio::test(start_paused = true)]
async fn t19_interceptors_do_not_pile_up_over_attempts() {
    struct Adds;
    impl Interceptor for Adds {
        async fn on_request(&self, request: &mut http::Request<Body>, _: &Context) -> Flow {
            request.headers_mut().append("x-added", "1".parse()?);
            let uri = format!("{}?added=1", request.uri());
            *request.uri_mut() = uri.parse()?;
            Ok(())
        }
    }
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply_once(503, "").reply(200, "");
    let api = over(&mock).retry(calls(3)).interceptor(Adds).build().unwrap();
    api.get("x").send().await.unwrap();
    for call in mock.calls() {
        assert_eq!(call.headers.get_all("x-added").iter().count(), 1);
        assert_eq!(call.uri.query(), Some("added=1"));
    }
}

/// An answer beyond the limit is an error; a failed one is cut, and its status counts.
#[tokio::test(start_paused = true)]
async fn answers_are_bounded() {
    let mock = MockTransport::new();
    mock.reply_once(200, "12345").reply_once(200, "123456").reply_once(404, "123456");
    let api = over(&mock).max_response_body(5).drain_on_retry(3).build().unwrap();
    assert_eq!(api.get("x").send().await.unwrap().body(), "12345");
    assert_eq!(api.get("x").send().await.unwrap_err().kind(), HttpErrorKind::BodyTooLarge);
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.status().unwrap(), 404);
    assert_eq!(error.response().unwrap().body(), "123");
}
