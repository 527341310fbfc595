//! OB: what an observer hears, and when.
//!
//! Never: an observer that changes what it hears of.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use http_adapter::resilience::RetryInfo;
use http_adapter::resilience::compat::http_adapter::fixed_delay;
use http_adapter::testing::{MockReply, MockTransport, ObserverEvent, SpyObserver};
use http_adapter::{BoxError, Context, HttpAdapter, HttpErrorKind, HttpObserver, Response};
use http_body_util::Full;

use crate::adapter::Log;
use crate::support::{SECOND, calls, over};

/// Writes down the attempt, and the body and identifier of the answer.
struct Notes(Log);

impl HttpObserver for Notes {
    fn on_start(&self, context: &Context) {
        self.0.lock().unwrap().push(format!("start {}", context.attempt()));
    }

    fn on_success(&self, response: &Response<Bytes>, _: &RetryInfo) {
        let id = response.context().correlation_id();
        self.0.lock().unwrap().push(format!("{:?} {id}", response.body()));
    }
}

#[tokio::test]
async fn ob_01_the_start_is_told_before_the_call() {
    let log = Log::default();
    let seen = log.clone();
    let wire = tower::service_fn(move |_| {
        seen.lock().unwrap().push("wire".to_owned());
        async { Ok::<_, BoxError>(http::Response::new(Full::new(Bytes::new()))) }
    });
    let api = HttpAdapter::builder("http://api.test").transport(wire).observer(Notes(log.clone()));
    api.build().unwrap().get("x").send().await.unwrap();
    assert_eq!(log.lock().unwrap()[..2], ["start 1", "wire"]);
}

#[tokio::test(start_paused = true)]
async fn ob_02_ob_05_ob_08_success_is_told_with_the_same_answer_and_its_time() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply(201, "made");
    let (log, spy) = (Log::default(), SpyObserver::default());
    let api = over(&mock).retry(calls(2)).observer(Notes(log.clone())).observer(spy.clone());
    let response = api.build().unwrap().get("x").send().await.unwrap();
    let told = format!("{:?} {}", response.body(), response.context().correlation_id());
    assert_eq!(log.lock().unwrap().last(), Some(&told));
    let status = http::StatusCode::CREATED;
    let success = ObserverEvent::Success { status, calls: 2, elapsed: SECOND };
    assert_eq!(spy.events().last(), Some(&success));
    let failed = |event: &ObserverEvent| matches!(event, ObserverEvent::Failure { .. });
    assert!(!spy.events().iter().any(failed));
}

#[tokio::test(start_paused = true)]
async fn ob_03_ob_04_failure_is_told_with_its_error_and_time() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let spy = SpyObserver::default();
    let api = over(&mock).attempt_timeout(SECOND).observer(spy.clone()).build().unwrap();
    api.get("x").send().await.unwrap_err();
    let failure = ObserverEvent::Failure { kind: HttpErrorKind::AttemptTimeout, elapsed: SECOND };
    assert_eq!(spy.events(), [ObserverEvent::Start { attempt: 1 }, failure]);
}

/// Ours says when the next attempt begins, too.
#[tokio::test(start_paused = true)]
async fn ob_06_every_retry_is_told_by_its_number() {
    let mock = MockTransport::new();
    let timeout = MockReply::fault(ErrorKind::TimedOut);
    mock.once(timeout.clone()).once(timeout).reply(200, "");
    let spy = SpyObserver::default();
    let retry = fixed_delay(3, Duration::ZERO).build().unwrap();
    let api = over(&mock).retry(retry).observer(spy.clone()).build().unwrap();
    api.get("x").send().await.unwrap();
    let kind = HttpErrorKind::Transport;
    let retry = |attempt| ObserverEvent::Retry { attempt, kind, delay: Duration::ZERO };
    let events = spy.events();
    let retries: Vec<_> =
        events.iter().filter(|event| matches!(event, ObserverEvent::Retry { .. })).collect();
    assert_eq!(retries, [&retry(1), &retry(2)]);
    let starts = events.iter().filter(|event| matches!(event, ObserverEvent::Start { .. }));
    assert_eq!(starts.count(), 3);
}

#[tokio::test]
async fn ob_07_without_a_policy_no_retry_is_told() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let spy = SpyObserver::default();
    let api = over(&mock).observer(spy.clone()).build().unwrap();
    api.get("x").send().await.unwrap_err();
    let retry = |event: &ObserverEvent| matches!(event, ObserverEvent::Retry { .. });
    assert!(!spy.events().iter().any(retry));
}
