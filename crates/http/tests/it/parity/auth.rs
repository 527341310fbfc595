//! BA, BB, AK, and SU for the identifiers: what a request is known by.
//!
//! Never: compare a credential that did not go over the transport.

use http_adapter::testing::{MockTransport, RecordedCall};
use http_adapter::{ApiKey, Basic, Bearer, BoxError, Interceptor};

use crate::support::over;

/// What the transport is sent with these credentials.
async fn sent(credentials: impl Interceptor) -> RecordedCall {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).auth(credentials).build().unwrap();
    api.get("x").header("authorization", "old").send().await.unwrap();
    mock.call(0).unwrap()
}

/// All values of the header, of which there is to be one.
fn authorization(call: &RecordedCall) -> Vec<&str> {
    call.headers.get_all("authorization").iter().map(|value| value.to_str().unwrap()).collect()
}

/// A token that takes time to come.
async fn later() -> Result<String, BoxError> {
    tokio::task::yield_now().await;
    Ok("later".to_owned())
}

/// Ours has one kind of provider, whose future may be ready at once.
fn at_once() -> std::future::Ready<Result<String, BoxError>> {
    std::future::ready(Ok("at-once".to_owned()))
}

#[tokio::test]
async fn ba_01_ba_02_ba_03_ba_05_a_bearer_token_replaces_what_is_there() {
    assert_eq!(authorization(&sent(Bearer::token("fixed")).await), ["Bearer fixed"]);
    assert_eq!(authorization(&sent(Bearer::provider(at_once)).await), ["Bearer at-once"]);
    assert_eq!(authorization(&sent(Bearer::provider(later)).await), ["Bearer later"]);
}

#[tokio::test]
async fn bb_01_bb_02_bb_04_user_and_password_replace_what_is_there() {
    let whole = sent(Basic::new("user", "pass")).await;
    assert_eq!(authorization(&whole), ["Basic dXNlcjpwYXNz"]);
    assert_eq!(authorization(&sent(Basic::new("user", "")).await), ["Basic dXNlcjo="]);
}

#[tokio::test]
async fn ak_01_ak_02_ak_03_a_key_goes_into_its_header() {
    assert_eq!(sent(ApiKey::new("key")).await.header("x-api-key"), Some("key"));
    let named = sent(ApiKey::new("key").in_header("x-own")).await;
    assert_eq!((named.header("x-own"), named.header("x-api-key")), (Some("key"), None));
    assert_eq!(sent(ApiKey::provider(later)).await.header("x-api-key"), Some("later"));
}

/// Ours has no default parameter: a key in a query is asked for by name.
#[tokio::test]
async fn ak_04_ak_05_ak_06_a_key_goes_into_the_query() {
    let query = async |key: ApiKey| sent(key).await.uri.query().map(str::to_owned);
    assert_eq!(query(ApiKey::new("key").in_query("api_key")).await.unwrap(), "api_key=key");
    assert_eq!(query(ApiKey::new("k&y").in_query("own")).await.unwrap(), "own=k%26y");
    assert_eq!(query(ApiKey::provider(later).in_query("own")).await.unwrap(), "own=later");
}

#[tokio::test]
async fn su_01_su_02_every_request_has_a_random_uuid() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let api = over(&mock).correlation_id("x-id").build().unwrap();
    for _ in 0..2 {
        api.get("x").send().await.unwrap();
    }
    let ids: Vec<uuid::Uuid> =
        mock.calls().iter().map(|call| call.header("x-id").unwrap().parse().unwrap()).collect();
    assert!(ids.iter().all(|id| id.get_version_num() == 4));
    assert_ne!(ids[0], ids[1]);
}
