//! AB: how an adapter is built, shown by what it then does.
//!
//! Never: count a call of the builder for more than its effect.

use http_adapter::HttpAdapter;
use http_adapter::resilience::{State, Trip};
use http_adapter::testing::{MockReply, MockTransport, SpyInterceptor};

use crate::adapter::{Log, Named};
use crate::support::{breaker, calls, over};

/// Ours needs the URL that all requests go below.
#[test]
fn ab_01_ab_02_an_adapter_is_built_from_nothing_but_its_base() {
    assert!(HttpAdapter::builder("http://api.test").build().is_ok());
    assert!(HttpAdapter::builder("").build().is_err());
}

#[tokio::test]
async fn ab_03_ab_04_ab_05_interceptors_add_up() {
    for names in [vec!["1"], vec!["1", "2"], vec!["1", "2", "3"]] {
        let mock = MockTransport::new();
        mock.reply(200, "");
        let mut builder = over(&mock);
        for name in &names {
            builder = builder.interceptor(Named(name, Log::default()));
        }
        builder.build().unwrap().get("x").send().await.unwrap();
        assert!(mock.call(0).unwrap().headers.get_all("x-by").iter().eq(&names));
    }
}

#[tokio::test(start_paused = true)]
async fn ab_07_the_policy_is_followed() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply(200, "");
    let api = over(&mock).retry(calls(2)).build().unwrap();
    assert_eq!(api.get("x").send().await.unwrap().info().unwrap().calls, 2);
}

/// AD10: the requests go through the breaker.
#[tokio::test(start_paused = true)]
async fn ab_09_ab_10_ad_10_a_breaker_is_given_whole_or_by_its_options() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let options = || breaker("one").trip(Trip::consecutive(1));
    let whole = options().build().unwrap();
    for builder in [over(&mock).breaker(whole.clone()), over(&mock).breaker(options())] {
        let api = builder.build().unwrap();
        assert!(api.get("x").send().await.unwrap_err().rejected().is_none());
        assert!(api.get("x").send().await.unwrap_err().rejected().is_some());
    }
    assert!(matches!(whole.state(), State::Open { .. }));
    mock.assert_called_times(2);
}

#[tokio::test]
async fn ab_12_the_transport_is_the_one_that_was_given() {
    let mock = MockTransport::new();
    mock.reply(200, "mine");
    let response = over(&mock).build().unwrap().get("x").send().await.unwrap();
    assert_eq!(response.body(), "mine");
}

#[tokio::test(start_paused = true)]
async fn ab_14_all_options_work_together() {
    let mock = MockTransport::new();
    mock.once(MockReply::fault(std::io::ErrorKind::TimedOut)).reply(200, "");
    let (guard, spy) = (breaker("one").build().unwrap(), SpyInterceptor::default());
    let api = over(&mock).interceptor(spy.clone()).retry(calls(2)).breaker(guard.clone());
    let api = api.correlation_id("x-id").build().unwrap();
    let response = api.get("x").send().await.unwrap();
    assert_eq!((response.info().unwrap().calls, guard.state()), (2, State::Closed));
    assert_eq!(spy.events().len(), 5, "request, error, request, response, validated");
    let ids = mock.calls().iter().filter(|call| call.headers.contains_key("x-id")).count();
    assert_eq!(ids, 2);
}
