//! AD: what happens around one request: hooks, validators, correlation ids.
//!
//! Never: look at an adapter from inside; the transport, the hooks and the answer tell.

use std::io::ErrorKind;

use http::StatusCode;
use http_adapter::testing::{
    InterceptorEvent, MockReply, MockTransport, RecordedCall, SpyInterceptor,
};
use http_adapter::{
    HttpAdapterBuilder, HttpError, HttpErrorKind, OrInvalid, RequestBuilder, Response,
};

use crate::adapter::{Log, Named, Replaces};
use crate::support::{SECOND, over};

/// A transport that always answers so.
fn answering(status: u16, body: &'static str) -> MockTransport {
    let mock = MockTransport::new();
    mock.reply(status, body);
    mock
}

/// A validator that writes its name down.
fn noting<T>(
    log: &Log,
    name: &'static str,
    holds: bool,
) -> impl Fn(&Response<T>) -> Result<(), http_adapter::BoxError> + Send + Sync + 'static {
    let log = log.clone();
    move |_| {
        log.lock().unwrap().push(name.to_owned());
        holds.or_invalid(name)
    }
}

/// AD1 and AD11: without interceptors, policy and breaker.
#[tokio::test]
async fn ad_01_ad_02_ad_11_ad_15_a_bare_adapter_sends_and_answers() {
    let mock = answering(201, "data");
    let response = over(&mock).build().unwrap().get("users").send().await.unwrap();
    assert_eq!((response.status(), response.body().as_ref()), (StatusCode::CREATED, &b"data"[..]));
    assert!(response.headers().is_empty(), "AD15: none, where theirs is null");
    let call = mock.call(0).unwrap();
    assert_eq!((call.method, call.uri.path()), (http::Method::GET, "/v1/users"));
}

/// Hooks of answers run in the order of registration too, as theirs do.
#[tokio::test]
async fn ad_03_interceptors_run_in_order_both_ways() {
    let log = Log::default();
    let (one, two) = (Named("1", log.clone()), Named("2", log.clone()));
    let api = over(&answering(200, "")).interceptor(one).interceptor(two).build().unwrap();
    api.get("x").send().await.unwrap();
    assert_eq!(log.lock().unwrap()[..4], ["req1", "req2", "res1", "res2"]);
}

/// AD12: an error hook cannot throw; the error that it gives is its word.
#[tokio::test]
async fn ad_04_ad_05_ad_12_the_error_that_a_hook_gives_is_what_the_caller_has() {
    let api = over(&answering(500, "")).interceptor(Replaces).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (HttpErrorKind::Interceptor, None));
    assert!(error.to_string().contains("replaced"), "{error}");
}

#[tokio::test]
async fn ad_06_what_a_request_hook_adds_reaches_the_transport() {
    let mock = answering(200, "ok");
    let api = over(&mock).interceptor(Named("1", Log::default())).build().unwrap();
    assert_eq!(api.get("x").send().await.unwrap().body(), "ok");
    assert_eq!(mock.call(0).unwrap().header("x-by"), Some("1"));
}

#[tokio::test]
async fn ad_07_without_error_hooks_the_error_is_the_transports() {
    let mock = MockTransport::new();
    mock.always(MockReply::fault(ErrorKind::ConnectionReset));
    let api = over(&mock).interceptor(Named("1", Log::default())).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    let io = source.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(io.kind(), ErrorKind::ConnectionReset);
    assert!(error.to_string().contains(&io.to_string()), "{error}");
}

#[tokio::test]
async fn ad_08_ad_13_a_query_is_appended_if_there_is_one() {
    let mock = answering(200, "");
    let api = over(&mock).build().unwrap();
    api.get("x").query(&[("q", "search")]).send().await.unwrap();
    api.get("x").send().await.unwrap();
    let [with, without] = [0, 1].map(|index| mock.call(index).unwrap().uri.to_string());
    assert_eq!(with, "https://api.test/v1/x?q=search");
    assert_eq!(without, "https://api.test/v1/x");
}

/// Ours ends the attempt itself, so that every transport keeps the time.
#[tokio::test(start_paused = true)]
async fn ad_14_the_time_of_a_request_is_kept() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let error = over(&mock).build().unwrap().get("x").timeout(SECOND * 3).send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::AttemptTimeout);
    assert_eq!(error.info().unwrap().elapsed, Some(SECOND * 3));
}

#[tokio::test]
async fn ad_16_ad_17_ad_22_a_validator_is_asked_once_between_the_hooks() {
    let log = Log::default();
    let api = over(&answering(200, "ok")).interceptor(Named("1", log.clone())).build().unwrap();
    let (seen, request) = (log.clone(), api.get("x"));
    let request = request.validate(move |response| {
        seen.lock().unwrap().push(format!("check {}", response.status().as_u16()));
        (response.body() == "ok").or_invalid("another answer")
    });
    request.send().await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["req1", "res1", "check 200", "val1"]);
}

#[tokio::test]
async fn ad_18_ad_19_validators_are_asked_in_order_until_one_refuses() {
    let (log, api) = (Log::default(), over(&answering(200, "")).build().unwrap());
    let request = api.get("x").validate(noting(&log, "a", true)).validate(noting(&log, "b", true));
    request.send().await.unwrap();
    assert_eq!(std::mem::take(&mut *log.lock().unwrap()), ["a", "b"]);
    let request = api.get("x").validate(noting(&log, "a", false)).validate(noting(&log, "b", true));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Validation);
    assert_eq!(*log.lock().unwrap(), ["a"]);
}

#[tokio::test]
async fn ad_20_validators_are_not_asked_about_a_failed_answer() {
    let (log, api) = (Log::default(), over(&answering(404, "")).build().unwrap());
    let error = api.get("x").validate(noting(&log, "a", true)).send().await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::NOT_FOUND));
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn ad_21_a_validator_that_takes_time_is_waited_for() {
    let api = over(&answering(200, "")).build().unwrap();
    let request = api.get("x").validate_async(|_| {
        Box::pin(async {
            tokio::task::yield_now().await;
            false.or_invalid("late")
        })
    });
    assert_eq!(request.send().await.unwrap_err().kind(), HttpErrorKind::Validation);
}

#[tokio::test]
async fn ad_23_ad_24_ad_27_only_what_passes_is_told_as_validated() {
    let ok = StatusCode::OK;
    let request = InterceptorEvent::Request("/v1/x".to_owned());
    let answered = InterceptorEvent::Response(ok);
    for (holds, end) in [
        (Some(false), InterceptorEvent::Error(HttpErrorKind::Validation)),
        (Some(true), InterceptorEvent::Validated(ok)),
        (None, InterceptorEvent::Validated(ok)),
    ] {
        let spy = SpyInterceptor::default();
        let api = over(&answering(200, "")).interceptor(spy.clone()).build().unwrap();
        let sent = match holds {
            Some(holds) => api.get("x").validate(move |_| holds.or_invalid("no")),
            None => api.get("x"),
        };
        assert_eq!(sent.send().await.is_ok(), holds != Some(false));
        assert_eq!(spy.events(), [request.clone(), answered.clone(), end]);
    }
}

#[tokio::test]
async fn ad_25_an_error_of_a_validators_own_is_the_cause() {
    let api = over(&answering(200, "")).build().unwrap();
    let request = api.get("x").validate(|_| Err("x".parse::<u32>().unwrap_err().into()));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Validation);
    assert!(std::error::Error::source(&error).unwrap().is::<std::num::ParseIntError>());
}

#[tokio::test]
async fn ad_26_an_error_of_the_adapters_kind_passes_as_it_is() {
    let api = over(&answering(200, "")).build().unwrap();
    let request = api.get("x").validate(|response| {
        Err(HttpError::new(HttpErrorKind::Decode, response.context().clone(), "mine").into())
    });
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Decode);
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "mine");
}

const HEADERS: [&str; 3] = ["x-correlation-id", "x-adapter", "x-request"];

/// Those headers of a request that hold its identifier.
async fn told(
    adapter: impl FnOnce(HttpAdapterBuilder) -> HttpAdapterBuilder,
    write: impl FnOnce(RequestBuilder) -> RequestBuilder,
) -> Vec<&'static str> {
    let mock = answering(200, "");
    let api = adapter(over(&mock)).build().unwrap();
    let response = write(api.get("x")).send().await.unwrap();
    let call: RecordedCall = mock.call(0).unwrap();
    let sent: Vec<_> =
        HEADERS.into_iter().filter(|name| call.headers.contains_key(*name)).collect();
    let id = Some(response.context().correlation_id());
    assert!(sent.iter().all(|name| call.header(name) == id), "the request's own identifier");
    sent
}

fn as_it_is<T>(it: T) -> T {
    it
}

/// An adapter that sends the identifier in its own header.
fn named(builder: HttpAdapterBuilder) -> HttpAdapterBuilder {
    builder.correlation_id("x-adapter")
}

#[tokio::test]
async fn ad_28_ad_29_ad_30_the_identifier_is_sent_if_the_adapter_says_so() {
    assert_eq!(told(as_it_is, as_it_is).await, [""; 0]);
    let usual = |builder: HttpAdapterBuilder| builder.correlation_id("x-correlation-id");
    assert_eq!(told(usual, as_it_is).await, ["x-correlation-id"]);
    assert_eq!(told(named, as_it_is).await, ["x-adapter"]);
}

#[tokio::test]
async fn ad_31_ad_33_ad_36_a_request_may_ask_for_it() {
    let asks = RequestBuilder::with_correlation_id;
    assert_eq!(told(as_it_is, asks).await, ["x-correlation-id"]);
    assert_eq!(told(named, asks).await, ["x-adapter"]);
}

#[tokio::test]
async fn ad_32_the_header_of_the_request_goes_first() {
    let own = |request: RequestBuilder| request.with_correlation_header("x-request");
    assert_eq!(told(named, own).await, ["x-request"]);
    assert_eq!(told(as_it_is, own).await, ["x-request"]);
}

#[tokio::test]
async fn ad_34_ad_35_a_request_may_forbid_it() {
    assert_eq!(told(named, RequestBuilder::without_correlation_id).await, [""; 0]);
    assert_eq!(told(as_it_is, RequestBuilder::without_correlation_id).await, [""; 0]);
}
