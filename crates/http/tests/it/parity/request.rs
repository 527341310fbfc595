//! RB: how a request is written, and what it says in place of its adapter.
//!
//! Never: assert on what is written; only on what reaches the wire.

use std::sync::{Arc, Mutex};

use http::Method;
use http_adapter::resilience::{State, Trip};
use http_adapter::testing::{MockTransport, RecordedCall};
use http_adapter::{
    Body, Context, Flow, HttpErrorKind, Interceptor, OrInvalid, RequestBuilder, Response,
};

use crate::support::{breaker, calls, over};

/// What one POST comes to on the wire.
async fn sent(write: impl FnOnce(RequestBuilder) -> RequestBuilder) -> RecordedCall {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).build().unwrap();
    write(api.post("users")).send().await.unwrap();
    mock.assert_called_times(1);
    mock.call(0).unwrap()
}

/// Ours keeps the path of the base, which theirs drops (T20).
#[tokio::test]
async fn rb_01_rb_02_the_endpoint_goes_below_the_base() {
    let call = sent(|request| request).await;
    assert_eq!(call.uri, "https://api.test/v1/users");
}

/// Ours has no default method: each request is named for its own.
#[tokio::test]
async fn rb_03_rb_04_every_request_names_its_method() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).build().unwrap();
    for (request, method) in [
        (api.get("x"), Method::GET),
        (api.head("x"), Method::HEAD),
        (api.post("x"), Method::POST),
        (api.put("x"), Method::PUT),
        (api.patch("x"), Method::PATCH),
        (api.delete("x"), Method::DELETE),
        (api.request(Method::OPTIONS, "x"), Method::OPTIONS),
    ] {
        request.send().await.unwrap();
        assert_eq!(mock.calls().last().unwrap().method, method);
    }
}

/// Ours encodes the body as its type says; theirs sets the header alone (T18).
#[tokio::test]
async fn rb_05_rb_06_rb_07_a_body_has_its_type() {
    for (call, content_type, body) in [
        (sent(|to| to.json(&[("a", 1)])).await, "application/json", r#"[["a",1]]"#),
        (sent(|to| to.xml("<a/>")).await, "text/xml; charset=utf-8", "<a/>"),
        (sent(|to| to.form(&[("a", 1)])).await, "application/x-www-form-urlencoded", "a=1"),
    ] {
        assert_eq!(call.header("content-type"), Some(content_type));
        assert_eq!(call.body, body);
    }
}

#[tokio::test]
async fn rb_08_a_body_replaces_the_one_before() {
    let call = sent(|request| request.json(&1).text("second")).await;
    assert_eq!(call.body, "second");
    assert_eq!(call.header("content-type"), Some("text/plain; charset=utf-8"));
}

/// Ours takes a body as one value, whose fields are their parameters.
#[tokio::test]
async fn rb_09_rb_10_rb_13_all_parameters_of_a_body_are_sent() {
    let params = serde_json::json!({"a": 1, "b": "2"});
    let call = sent(|request| request.json(&params)).await;
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&call.body).unwrap(), params);
}

/// Theirs sends `null`, or `{}` where nothing was said; ours no body and no type for one.
#[tokio::test]
async fn rb_14_without_a_body_none_is_sent() {
    let call = sent(|request| request).await;
    assert!(call.body.is_empty() && call.header("content-type").is_none());
}

#[tokio::test]
async fn rb_15_rb_16_rb_22_all_headers_are_sent() {
    let call = sent(|request| request.header("x-a", "1").header("x-b", "2")).await;
    assert_eq!((call.header("x-a"), call.header("x-b")), (Some("1"), Some("2")));
}

#[tokio::test]
async fn rb_17_rb_18_query_parameters_are_merged() {
    let call = sent(|request| request.query(&[("a", "1")]).query(&[("b", 2), ("c", 3)])).await;
    assert_eq!(call.uri.query(), Some("a=1&b=2&c=3"));
}

#[tokio::test]
async fn rb_26_rb_27_rb_28_rb_29_validators_add_up_in_order() {
    for count in 0..=3 {
        let mock = MockTransport::new();
        mock.reply(200, "");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut request = over(&mock).build().unwrap().get("x");
        for number in 0..count {
            let asked = Arc::clone(&asked);
            request = request.validate(move |_: &Response<_>| {
                asked.lock().unwrap().push(number);
                true.or_invalid("never")
            });
        }
        request.send().await.unwrap();
        assert_eq!(*asked.lock().unwrap(), Vec::from_iter(0..count));
    }
}

/// The last word on the correlation id counts; without one there is none.
#[tokio::test]
async fn rb_31_rb_32_rb_34_rb_35_rb_37_a_request_says_where_its_id_goes() {
    let names = async |write: fn(RequestBuilder) -> RequestBuilder| {
        let call = sent(write).await;
        ["x-correlation-id", "x-own"].map(|name| call.headers.contains_key(name))
    };
    assert_eq!(names(|request| request.with_correlation_id()).await, [true, false]);
    assert_eq!(names(|request| request.with_correlation_header("x-own")).await, [false, true]);
    assert_eq!(names(|request| request.without_correlation_id()).await, [false, false]);
    let taken_back = |to: RequestBuilder| to.with_correlation_id().without_correlation_id();
    assert_eq!(names(taken_back).await, [false, false]);
    assert_eq!(names(|request| request).await, [false, false]);
}

/// RB52: one that says nothing has the adapter's.
#[tokio::test(start_paused = true)]
async fn rb_38_rb_40_rb_52_a_request_has_its_own_policy_or_none() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let api = over(&mock).retry(calls(2)).build().unwrap();
    for (request, made) in [
        (api.get("x"), 2),
        (api.get("x").retry_override(calls(4)), 4),
        (api.get("x").without_retry(), 1),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.info().unwrap().calls, made);
    }
}

#[tokio::test(start_paused = true)]
async fn rb_42_rb_44_rb_52_a_request_has_its_own_breaker_or_none() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let [adapters, own] =
        ["adapters", "own"].map(|name| breaker(name).trip(Trip::consecutive(1)).build().unwrap());
    let api = over(&mock).breaker(adapters.clone()).build().unwrap();
    let kind = async |request: RequestBuilder| request.send().await.unwrap_err().kind();
    let by_own = || api.get("x").breaker_override(own.clone());
    assert_eq!(kind(by_own()).await, HttpErrorKind::Status);
    assert!(matches!(own.state(), State::Open { .. }));
    assert_eq!(adapters.state(), State::Closed);
    assert_eq!(kind(by_own()).await, HttpErrorKind::CircuitOpen);
    assert_eq!(kind(api.get("x")).await, HttpErrorKind::Status);
    assert_eq!(kind(api.get("x")).await, HttpErrorKind::CircuitOpen);
    assert_eq!(kind(api.get("x").without_breaker()).await, HttpErrorKind::Status);
}

/// A type of interceptor for each number.
struct Mark<const NUMBER: u16>;

impl<const NUMBER: u16> Interceptor for Mark<NUMBER> {
    async fn on_request(&self, request: &mut http::Request<Body>, _: &Context) -> Flow {
        request.headers_mut().append("x-mark", NUMBER.into());
        Ok(())
    }
}

#[tokio::test]
async fn rb_46_rb_47_rb_52_interceptors_are_left_out_by_type() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).interceptor(Mark::<1>).interceptor(Mark::<2>).interceptor(Mark::<3>);
    let api = api.build().unwrap();
    for (request, expected) in [
        (api.get("x"), ["1", "2", "3"].as_slice()),
        (api.get("x").without_interceptor::<Mark<2>>(), &["1", "3"]),
        (api.get("x").without_interceptor::<Mark<1>>().without_interceptor::<Mark<3>>(), &["2"]),
    ] {
        request.send().await.unwrap();
        let call = mock.calls().pop().unwrap();
        assert!(call.headers.get_all("x-mark").iter().eq(expected));
    }
}
