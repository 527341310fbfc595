//! How requests and adapters are built.

use http::Method;
use http_adapter::resilience::{BreakerRegistry, Trip};
use http_adapter::testing::{MockReply, MockTransport};
use http_adapter::{Bulkhead, HttpAdapter, HttpErrorKind, IdempotencyKeys};

use crate::support::{SECOND, breaker, calls, over};

/// RB3, RB5 to RB8, RB15 to RB18, RB22, T18: each body in its own encoding, with its own type.
#[tokio::test]
async fn t18_bodies_are_encoded_as_their_type_says() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).header("x-all", "1").header("x-own", "adapter").build().unwrap();
    let pairs = [("a", "1 2"), ("b", "&")];
    let requests = [
        (api.post("x").json(&[1, 2]), "application/json", "[1,2]"),
        (api.put("x").form(&pairs), "application/x-www-form-urlencoded", "a=1+2&b=%26"),
        (api.patch("x").xml("<a/>"), "text/xml; charset=utf-8", "<a/>"),
        (api.post("x").text("é"), "text/plain; charset=utf-8", "é"),
        (api.post("x").bytes(vec![b'b']), "application/octet-stream", "b"),
        (
            api.post("x").json("s").content_type("application/vnd.s+json"),
            "application/vnd.s+json",
            "\"s\"",
        ),
        (api.post("x").header("content-type", "a/b").text("t"), "a/b", "t"),
    ];
    for (index, (request, content_type, body)) in requests.into_iter().enumerate() {
        request
            .header("x-own", "request")
            .header("x-two", "a")
            .header("x-two", "b")
            .send()
            .await
            .unwrap();
        let call = mock.call(index).unwrap();
        assert_eq!(call.header("content-type"), Some(content_type));
        assert_eq!(call.body, body.as_bytes());
        assert_eq!((call.header("x-all"), call.header("x-own")), (Some("1"), Some("request")));
        assert_eq!(call.headers.get_all("x-two").iter().count(), 2);
    }
    api.get("x").query(&[("q", "search")]).query(&pairs).send().await.unwrap();
    let call = mock.call(7).unwrap();
    assert_eq!(call.uri.query(), Some("q=search&a=1+2&b=%26"), "AD8");
    assert!(call.body.is_empty() && call.header("content-type").is_none());
    mock.assert_called_with(&Method::PATCH, "/v1/x");
}

/// T19: two requests of one adapter share nothing.
#[tokio::test]
async fn t19_requests_share_no_headers() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).build().unwrap();
    let first = api.get("a").header("x-first", "1").query(&[("first", "1")]);
    api.get("b").send().await.unwrap();
    first.send().await.unwrap();
    let calls = mock.calls();
    assert!(!calls[0].headers.contains_key("x-first") && calls[0].uri.query().is_none());
    assert_eq!(calls[1].header("x-first"), Some("1"));
}

/// What cannot be sent is told by `send`, names the cause and never reaches the wire.
#[tokio::test]
async fn a_request_that_cannot_be_built_fails_when_it_is_sent() {
    let mock = MockTransport::new();
    let api = over(&mock).build().unwrap();
    for request in [
        api.get("x").header("bad name", "v"),
        api.get("x").header("x", "bad\nvalue"),
        api.get("https://elsewhere/x"),
        api.get("../admin"),
        api.get("x").query(&1),
        api.post("x").json(&std::collections::HashMap::from([((1, 2), 3)])),
        api.post("x").idempotency_key("\n"),
        api.get("x").with_correlation_header("bad name"),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Request, "{error}");
    }
    mock.assert_not_called();
}

/// AB1 to AB14.
#[test]
fn an_adapter_is_built_from_every_option() {
    let mock = MockTransport::new();
    assert!(over(&mock).build().is_ok());
    assert!(HttpAdapter::builder("http://h").build().is_ok(), "FC1: reqwest is the default");
    let registry = BreakerRegistry::new(resilience::SteadyClock::new(), breaker);
    let whole =
        over(&mock).retry(calls(2)).breaker(registry).bulkhead(Bulkhead::new(1).unwrap().queue(1));
    let whole = whole.breaker(breaker("options")).breaker(breaker("one").build().unwrap());
    let whole =
        whole.correlation_id("x-id").idempotency_keys(IdempotencyKeys::auto([Method::POST]));
    let whole = whole.interceptor(http_adapter::testing::SpyInterceptor::default());
    assert!(whole.observer(http_adapter::testing::SpyObserver::default()).build().is_ok());
}

/// RB25, AD14, RB38 to RB52: what a request says in place of the adapter.
#[tokio::test(start_paused = true)]
async fn a_requests_word_goes_before_the_adapters() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let one = breaker("one").trip(Trip::consecutive(1)).build().unwrap();
    let spy = http_adapter::testing::SpyInterceptor::default();
    let api = over(&mock).retry(calls(2)).breaker(one.clone()).interceptor(spy.clone());
    let api = api.build().unwrap();

    let error = api.get("x").timeout(SECOND).without_retry().send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::AttemptTimeout);
    assert_eq!(error.info().unwrap().elapsed, Some(SECOND));
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::CircuitOpen);

    let own = breaker("own").trip(Trip::consecutive(9)).build().unwrap();
    let request = api.get("x").breaker_override(own.clone()).retry_override(calls(3));
    let error = request.timeout(SECOND).send().await.unwrap_err();
    assert_eq!(error.info().unwrap().calls, 3);
    spy.reset();
    let request = api.get("x").without_breaker().total_timeout(SECOND * 2).timeout(SECOND);
    let request = request.without_interceptor::<http_adapter::testing::SpyInterceptor>();
    let error = request.retry_override(calls(9)).send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::AttemptTimeout, "a wait past the end is not begun");
    assert_eq!(spy.events(), []);
}

/// FC2, FC3, T22: what does not parse is an error, and nothing is `null`.
#[tokio::test(start_paused = true)]
async fn t22_json_that_does_not_parse_is_an_error() {
    let mock = MockTransport::new();
    mock.reply_once(200, r#"{"id":7}"#)
        .reply_once(200, "{")
        .reply_once(200, "")
        .reply_once(200, "");
    mock.reply_once(200, "text").reply_once(200, vec![0xFF]);
    let api = over(&mock).retry(calls(3)).build().unwrap();
    let value = api.get("x").send_json::<serde_json::Value>().await.unwrap();
    assert_eq!(value.body()["id"], 7);
    let error = api.get("x").send_json::<serde_json::Value>().await.unwrap_err();
    assert_eq!((error.kind(), error.info().unwrap().calls), (HttpErrorKind::Decode, 1));
    assert_eq!(error.response().unwrap().body(), "{", "the body can be looked at");
    assert!(api.get("x").send_json::<u32>().await.is_err(), "nothing is no number");
    assert_eq!(api.get("x").send_json::<Option<u32>>().await.unwrap().into_body(), None);
    assert_eq!(api.get("x").decode_text().send().await.unwrap().into_body(), "text");
    let error = api.get("x").decode_text().send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Decode);
}

/// Keys: one for a request with all its attempts, another for the next, the caller's own kept.
#[tokio::test(start_paused = true)]
async fn a_key_is_the_same_on_every_attempt_and_another_on_every_request() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply_once(503, "").reply(200, "");
    let keys = IdempotencyKeys::auto([Method::POST]);
    let api = over(&mock).retry(calls(3)).idempotency_keys(keys).build().unwrap();
    api.post("x").send().await.unwrap();
    api.post("x").send().await.unwrap();
    api.post("x").idempotency_key("mine").send().await.unwrap();
    api.get("x").send().await.unwrap();
    let keys: Vec<_> =
        mock.calls().iter().map(|call| call.header("idempotency-key").map(str::to_owned)).collect();
    assert!(keys[0].is_some() && keys[0] == keys[1] && keys[1] == keys[2]);
    assert!(keys[3].is_some() && keys[3] != keys[0]);
    assert_eq!((keys[4].as_deref(), keys[5].as_deref()), (Some("mine"), None));
}
