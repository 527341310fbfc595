//! Credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http_adapter::testing::MockTransport;
use http_adapter::{ApiKey, Basic, Bearer, BoxError, HttpErrorKind, Interceptor};

use crate::support::{calls, over};

async fn sent(credentials: impl Interceptor) -> http_adapter::testing::RecordedCall {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).auth(credentials).build().unwrap();
    // BA5, BB4: what is there already is replaced.
    api.get("x?a=1").header("authorization", "old").send().await.unwrap();
    mock.call(0).unwrap()
}

/// BA1 to BA5, BB1 to BB4, AK1 to AK7.
#[tokio::test]
async fn credentials_are_set_where_they_belong() {
    let asked = || async { Ok::<_, BoxError>("tok".to_owned()) };
    for (call, expected) in [
        (sent(Bearer::token("tok")).await, "Bearer tok"),
        (sent(Bearer::provider(asked)).await, "Bearer tok"),
        (sent(Basic::new("user", "pass")).await, "Basic dXNlcjpwYXNz"),
        (sent(Basic::new("user", "")).await, "Basic dXNlcjo="),
    ] {
        assert_eq!(call.header("authorization"), Some(expected));
        assert!(call.headers["authorization"].is_sensitive());
        assert_eq!(call.headers.get_all("authorization").iter().count(), 1);
    }
    assert_eq!(sent(ApiKey::new("k")).await.header("x-api-key"), Some("k"));
    assert_eq!(sent(ApiKey::provider(asked).in_header("x-k")).await.header("x-k"), Some("tok"));
    let call = sent(ApiKey::new("k&").in_query("key")).await;
    assert_eq!(call.uri.query(), Some("a=1&key=k%26"));
    let call = sent(ApiKey::provider(asked).in_query("key")).await;
    assert_eq!(call.uri.query(), Some("a=1&key=tok"));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_on_every_attempt() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply_once(503, "").reply(200, "");
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let provider = move || {
        let time = count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, BoxError>(format!("t{time}")) }
    };
    let api = over(&mock).retry(calls(3)).auth(Bearer::provider(provider)).build().unwrap();
    api.get("x").send().await.unwrap();
    let tokens: Vec<_> =
        mock.calls().iter().map(|call| call.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(tokens, ["Bearer t0", "Bearer t1", "Bearer t2"]);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_source_that_fails_fails_the_request_before_the_wire() {
    let mock = MockTransport::new();
    let failing = || async { Err::<String, _>("no token") };
    let api = over(&mock).auth(Bearer::provider(failing)).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Interceptor);
    assert_eq!(error.info().unwrap().calls, 0);
    mock.assert_not_called();
}
