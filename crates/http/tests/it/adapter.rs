//! Interceptors, validators, correlation ids, observers: what happens around one attempt.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_adapter::testing::{
    InterceptorEvent, MockTransport, ObserverEvent, SpyInterceptor, SpyObserver,
};
use http_adapter::{
    Body, Context, Flow, HttpError, HttpErrorKind, Interceptor, OrInvalid, Response,
};

use crate::support::{calls, over};

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// Writes down its name at each hook.
pub(crate) struct Named(pub(crate) &'static str, pub(crate) Log);

impl Named {
    fn note(&self, hook: &str) {
        self.1.lock().unwrap().push(format!("{hook}{}", self.0));
    }
}

impl Interceptor for Named {
    async fn on_request(&self, request: &mut http::Request<Body>, _: &Context) -> Flow {
        self.note("req");
        request.headers_mut().append("x-by", self.0.parse()?);
        Ok(())
    }

    async fn on_response(&self, _: &mut Response<Bytes>) -> Flow {
        self.note("res");
        Ok(())
    }

    async fn on_response_validated(&self, _: &Response<Bytes>) -> Flow {
        self.note("val");
        Ok(())
    }
}

/// Only looks at errors, and puts its own in their place.
pub(crate) struct Replaces;

impl Interceptor for Replaces {
    async fn on_error(&self, _: HttpError, context: &Context) -> HttpError {
        HttpError::new(HttpErrorKind::Interceptor, context.clone(), "replaced")
    }
}

/// AD2, AD3, AD6, AD16, AD17, AD22: the order of hooks and validators.
#[tokio::test]
async fn hooks_run_in_the_order_of_registration() {
    let mock = MockTransport::new();
    mock.reply(200, "ok");
    let log = Log::default();
    let api = over(&mock)
        .interceptor(Named("1", log.clone()))
        .interceptor(Named("2", log.clone()))
        .build()
        .unwrap();
    let seen = log.clone();
    let response = api
        .get("users")
        .validate(move |response| {
            seen.lock().unwrap().push("check".to_owned());
            (response.body() == "ok").or_invalid("not ok")
        })
        .send()
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), response.body().as_ref()), (200, b"ok".as_ref()));
    let order = ["req1", "req2", "res1", "res2", "check", "val1", "val2"];
    assert_eq!(*log.lock().unwrap(), order);
    let call = mock.call(0).unwrap();
    assert_eq!(
        (call.method.as_str(), call.uri.to_string().as_str()),
        ("GET", "https://api.test/v1/users")
    );
    assert_eq!(call.headers.get_all("x-by").iter().count(), 2);
}

/// AD4, AD5, AD7, AD12.
#[tokio::test]
async fn the_error_of_an_interceptor_counts() {
    let mock = MockTransport::new();
    mock.reply(404, "");
    let plain = over(&mock).interceptor(Named("1", Log::default())).build().unwrap();
    let error = plain.get("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.status().unwrap().as_u16()), (HttpErrorKind::Status, 404));
    let api = over(&mock).interceptor(Replaces).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Interceptor);
    assert!(error.to_string().contains("replaced"));
}

/// AD18, AD19, AD23, AD24, AD25, RB26 to RB29.
#[tokio::test]
async fn the_first_validator_that_refuses_ends_it() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let spy = SpyInterceptor::default();
    let api = over(&mock).interceptor(spy.clone()).build().unwrap();
    let log = Log::default();
    let note = |name: &'static str, holds: bool| {
        let log = log.clone();
        move |_: &Response<Bytes>| {
            log.lock().unwrap().push(name.to_owned());
            holds.or_invalid(name)
        }
    };
    let request = api.get("x").validate(note("a", true)).validate(note("b", false));
    let error = request.validate(note("c", true)).send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Validation);
    assert!(!error.is_retryable());
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "invalid answer: b");
    assert_eq!(*log.lock().unwrap(), ["a", "b"]);
    let ok = http::StatusCode::OK;
    let expected = [
        InterceptorEvent::Request("/v1/x".to_owned()),
        InterceptorEvent::Response(ok),
        InterceptorEvent::Error(HttpErrorKind::Validation),
    ];
    assert_eq!(spy.events(), expected, "SI1, SI3, SI5: answered, not validated");
    spy.reset();
    assert_eq!(spy.events(), [], "SI6");
    api.get("x").send().await.unwrap();
    assert_eq!(spy.events()[2], InterceptorEvent::Validated(ok), "AD27, SI4");
}

/// AD20: an error status ends it before any validator.
#[tokio::test]
async fn validators_see_no_failed_answer() {
    let mock = MockTransport::new();
    mock.reply(500, "");
    let api = over(&mock).build().unwrap();
    let error = api.get("x").validate(|_| panic!("asked")).send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Status);
}

/// AD21, AD26: an asynchronous validator is waited for, and an error of ours passes as it is.
#[tokio::test]
async fn validators_may_take_their_time() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).build().unwrap();
    let request = api.get("x").validate_async(|response| {
        let context = response.context().clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            Err(HttpError::new(HttpErrorKind::Request, context, "mine").into())
        })
    });
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Request);
}

/// AD28 to AD36, RB31 to RB37: whose word counts on the correlation id.
#[tokio::test]
async fn the_requests_word_on_the_correlation_id_goes_first() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let names = |index: usize| {
        let call = mock.call(index).unwrap();
        ["x-correlation-id", "x-adapter", "x-request"]
            .into_iter()
            .filter(|name| call.headers.contains_key(*name))
            .collect::<Vec<_>>()
    };
    let none = over(&mock).build().unwrap();
    let named = over(&mock).correlation_id("x-adapter").build().unwrap();
    let requests = [
        (none.get("x"), None),
        (none.get("x").with_correlation_id(), Some("x-correlation-id")),
        (none.get("x").with_correlation_header("x-request"), Some("x-request")),
        (none.get("x").without_correlation_id(), None),
        (named.get("x"), Some("x-adapter")),
        (named.get("x").with_correlation_id(), Some("x-adapter")),
        (named.get("x").with_correlation_header("x-request"), Some("x-request")),
        (named.get("x").without_correlation_id(), None),
        (named.get("x").without_correlation_id().with_correlation_id(), Some("x-adapter")),
    ];
    for (index, (request, expected)) in requests.into_iter().enumerate() {
        let response = request.send().await.unwrap();
        assert_eq!(names(index), Vec::from_iter(expected), "request {index}");
        if let Some(name) = expected {
            let sent = mock.call(index).unwrap().header(name).map(str::to_owned);
            assert_eq!(sent.as_deref(), Some(response.context().correlation_id()));
        }
    }
}

/// OB1 to OB8, SO1 to SO6.
#[tokio::test(start_paused = true)]
async fn observers_hear_every_attempt_and_one_end() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply_once(503, "").reply_once(200, "ok").reply(503, "");
    let spy = SpyObserver::default();
    let api = over(&mock).retry(calls(3)).observer(spy.clone()).build().unwrap();
    api.get("x").send().await.unwrap();
    let start = |attempt| ObserverEvent::Start { attempt };
    let delay = crate::support::SECOND;
    let retry = |attempt| ObserverEvent::Retry { attempt, kind: HttpErrorKind::Status, delay };
    let status = http::StatusCode::OK;
    let success = ObserverEvent::Success { status, calls: 3, elapsed: delay * 2 };
    assert_eq!(spy.events(), [start(1), retry(1), start(2), retry(2), start(3), success]);
    spy.reset();
    api.get("x").without_retry().send().await.unwrap_err();
    let elapsed = std::time::Duration::ZERO;
    let failure = ObserverEvent::Failure { kind: HttpErrorKind::Status, elapsed };
    assert_eq!(spy.events(), [start(1), failure], "OB3, OB7");
}

/// Who drops a request is heard of too, and once.
#[tokio::test(start_paused = true)]
async fn a_dropped_request_ends_for_the_observers() {
    let mock = MockTransport::new();
    mock.always(http_adapter::testing::MockReply::silence());
    let spy = SpyObserver::default();
    let api = over(&mock).observer(spy.clone()).build().unwrap();
    let wait = tokio::time::timeout(crate::support::SECOND, api.get("x").send());
    assert!(wait.await.is_err());
    let elapsed = crate::support::SECOND;
    let failure = ObserverEvent::Failure { kind: HttpErrorKind::Cancelled, elapsed };
    assert_eq!(spy.events(), [ObserverEvent::Start { attempt: 1 }, failure]);
}
