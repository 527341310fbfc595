//! Options that could never work are refused where they are set, by name.

use std::time::Duration;

use http::Method;
use http_adapter::resilience::{BreakerRegistry, TokioSleeper, Trip};
use http_adapter::testing::MockTransport;
use http_adapter::{
    ApiKey, Basic, Bearer, Bulkhead, ConfigError, HttpAdapter, HttpAdapterBuilder, HttpError,
    HttpErrorKind, IdempotencyKeys, RequestBuilder, TimeoutLayer,
};

use crate::support::{breaker, over};

fn builder() -> HttpAdapterBuilder {
    over(&MockTransport::new())
}

fn refused(builder: HttpAdapterBuilder) -> &'static str {
    let error = builder.build().unwrap_err();
    assert!(error.to_string().starts_with(error.option) && error.rule.starts_with("must"));
    error.option
}

#[tokio::test]
async fn an_adapter_is_not_built_with_what_never_works() {
    let at = |base: &str| HttpAdapter::builder(base).transport(MockTransport::new());
    let registry =
        BreakerRegistry::new(TokioSleeper::new(), |host| breaker(host).trip(Trip::consecutive(0)));
    for (builder, option) in [
        (at(""), "base URL"),
        (at("nowhere"), "base URL"),
        (builder().attempt_timeout(Duration::ZERO), "attempt_timeout"),
        (builder().total_timeout(Duration::ZERO), "total_timeout"),
        (builder().max_response_body(0), "max_response_body"),
        (builder().header("", "x"), "header"),
        (builder().header("x", "a\nb"), "header"),
        (builder().header("idempotency-key", "k"), "header"),
        (builder().correlation_id(""), "correlation_id"),
        (builder().breaker(breaker("")), "name"),
        (builder().auth(Bearer::token("a\nb")), "Bearer::token"),
        (builder().auth(Bearer::token("")), "Bearer::token"),
        (builder().auth(ApiKey::new("")), "ApiKey::new"),
        (builder().auth(ApiKey::new("a\nb")), "ApiKey::new"),
        (builder().auth(ApiKey::new("k").in_header("bad name")), "ApiKey::in_header"),
        (builder().auth(ApiKey::new("k").in_query("")), "ApiKey::in_query"),
        (builder().auth(Basic::new("a:b", "c")), "Basic::new"),
        (builder().auth(Basic::new("a", "b\n")), "Basic::new"),
    ] {
        assert_eq!(refused(builder), option);
    }
    assert!(builder().breaker(registry).build().is_err());
    assert!(builder().breaker(breaker("b").trip(Trip::consecutive(0))).build().is_err());
    let large = builder().max_response_body(usize::MAX).max_replay_body(u64::MAX);
    let large = large.attempt_timeout(Duration::MAX).total_timeout(Duration::MAX);
    let small = builder().max_replay_body(0).drain_on_retry(0);
    let text = builder().auth(ApiKey::new("a\nb").in_query("key"));
    assert!(large.build().is_ok() && small.build().is_ok() && text.build().is_ok());
}

#[test]
fn a_bulkhead_and_a_timeout_are_not_made_of_nothing() {
    let refused = |error: ConfigError| error.to_string();
    assert_eq!(
        Bulkhead::new(0).map_err(refused).unwrap_err(),
        "bulkhead must let at least 1 call through"
    );
    assert_eq!(
        TimeoutLayer::new(Duration::ZERO).map_err(refused).unwrap_err(),
        "timeout must be above zero"
    );
    assert!(Bulkhead::new(usize::MAX).is_ok() && TimeoutLayer::new(Duration::MAX).is_ok());
}

fn option(error: &HttpError) -> &'static str {
    assert_eq!(error.kind(), HttpErrorKind::Request, "{error}");
    let source = std::error::Error::source(error).unwrap();
    source.downcast_ref::<ConfigError>().unwrap().option
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_is_not_sent() {
    type Change = fn(RequestBuilder) -> RequestBuilder;
    let rows: [(Change, &str); 8] = [
        (|request| request.timeout(Duration::ZERO), "timeout"),
        (|request| request.total_timeout(Duration::ZERO), "total_timeout"),
        (|request| request.header("a b", "c"), "header"),
        (|request| request.header("a", "\n"), "header"),
        (|request| request.content_type("\n"), "content_type"),
        (|request| request.with_correlation_header(""), "with_correlation_header"),
        (|request| request.idempotency_key("\n"), "idempotency_key"),
        (|request| request.idempotency_key(""), "idempotency_key"),
    ];
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).build().unwrap();
    for (change, named) in rows {
        let error = change(api.get("x")).send().await.unwrap_err();
        assert_eq!(option(&error), named);
        assert!(error.context().url().ends_with("/x"), "{error}");
    }
    for key in ["", "\n"] {
        let keys = IdempotencyKeys::auto([Method::POST]).made_by(move || key.to_owned());
        let api = over(&mock).idempotency_keys(keys).build().unwrap();
        assert_eq!(option(&api.post("x").send().await.unwrap_err()), "made_by");
    }
    mock.assert_not_called();
    let longest = api.get("x").timeout(Duration::MAX).total_timeout(Duration::MAX);
    assert!(longest.send().await.is_ok());
}

/// A provider's word is known when it is asked: nothing is sent with empty credentials.
#[tokio::test(start_paused = true)]
async fn empty_credentials_of_a_provider_are_not_sent() {
    let mock = MockTransport::new();
    let nothing = || async { Ok::<_, std::io::Error>(String::new()) };
    let api = over(&mock).auth(Bearer::provider(nothing)).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Interceptor);
    mock.assert_not_called();
}
