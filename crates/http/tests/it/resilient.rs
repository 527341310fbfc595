//! Retry, breaker, bulkhead and timeouts of the adapter, on a paused clock.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_adapter::resilience::{
    BreakerRegistry, Replay, RetryBudget, RetryPolicy, State, StopReason, TokioSleeper, Trip,
};
use http_adapter::testing::{MockReply, MockTransport, SpyObserver};
use http_adapter::{Bearer, Bulkhead, HttpErrorKind, IdempotencyKeys, Order};
use http_body_util::Full;

use crate::support::{SECOND, breaker, calls, over};

/// AD9, AD10, RE2, RE4, BO-05: so many calls are made as were asked for.
#[tokio::test(start_paused = true)]
async fn a_policy_of_so_many_calls_makes_so_many() {
    for wanted in [1, 2, 3, 5] {
        let mock = MockTransport::new();
        mock.reply(503, "busy");
        let api = over(&mock).retry(calls(wanted)).build().unwrap();
        let error = api.get("x").send().await.unwrap_err();
        mock.assert_called_times(wanted as usize);
        let info = error.info().unwrap();
        assert_eq!((info.calls, info.stop), (wanted, Some(StopReason::CallsExhausted)));
        assert_eq!(info.elapsed, Some(SECOND * (wanted - 1)));
        assert_eq!(error.response().unwrap().body(), "busy");
        assert!(error.is_retryable());
    }
}

/// The library's own table: what is retried for which method.
#[tokio::test(start_paused = true)]
async fn only_what_may_pass_and_is_safe_is_retried() {
    let keys = IdempotencyKeys::auto([Method::PATCH]);
    for (method, reply, retried) in [
        (Method::GET, MockReply::new(500, ""), true),
        (Method::GET, MockReply::new(404, ""), false),
        (Method::GET, MockReply::new(501, ""), false),
        (Method::PUT, MockReply::new(504, ""), true),
        (Method::POST, MockReply::new(500, ""), false),
        (Method::POST, MockReply::new(502, ""), false),
        (Method::POST, MockReply::new(429, ""), true),
        (Method::POST, MockReply::fault(ErrorKind::ConnectionRefused), true),
        (Method::POST, MockReply::fault(ErrorKind::ConnectionReset), false),
        (Method::PATCH, MockReply::fault(ErrorKind::ConnectionReset), true),
        (Method::PATCH, MockReply::new(500, ""), true),
    ] {
        let mock = MockTransport::new();
        mock.always(reply.clone());
        let api = over(&mock).retry(calls(2)).idempotency_keys(keys.clone()).build().unwrap();
        api.request(method.clone(), "x").json(&1).send().await.unwrap_err();
        assert_eq!(mock.calls().len(), 1 + usize::from(retried), "{method} {reply:?}");
        assert!(mock.calls().iter().all(|call| call.body == "1"), "BO, HC-06: the same body");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_sent_again_is_sent_once() {
    const LIMIT: usize = 64 << 10;
    for (bytes, sent) in [(LIMIT - 1, 2), (LIMIT, 2), (LIMIT + 1, 1)] {
        let body = Bytes::from(vec![b'x'; bytes]);
        for streamed in [false, true] {
            let mock = MockTransport::new();
            mock.reply_once(503, "").reply(200, "");
            let api = over(&mock).retry(calls(2)).build().unwrap();
            let request = api.put("x");
            let request = match streamed {
                true => request.stream(Full::new(body.clone())),
                false => request.bytes(body.clone()),
            };
            let result = request.send().await;
            mock.assert_called_times(sent);
            assert!(mock.calls().iter().all(|call| call.body == body));
            let stop = result.err().and_then(|error| error.info()?.stop);
            assert_eq!(stop, (sent == 1).then_some(StopReason::BodyNotReplayable));
        }
    }
}

/// T21, TM-03: the total time bounds everything, and waits that do not fit are not begun.
#[tokio::test(start_paused = true)]
async fn t21_the_total_time_ends_it() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let hung = over(&mock).retry(calls(9)).attempt_timeout(SECOND * 20).total_timeout(SECOND * 30);
    let error = hung.build().unwrap().get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::TotalTimeout);
    let info = error.info().unwrap();
    assert_eq!((info.calls, info.elapsed), (2, Some(SECOND * 30)));
    assert_eq!(info.stop, Some(StopReason::Elapsed));
    assert_eq!(error.last_error().unwrap().kind(), HttpErrorKind::AttemptTimeout);

    mock.reset();
    mock.always(MockReply::new(503, "").header("retry-after", "20"));
    let api = over(&mock).retry(calls(9)).total_timeout(SECOND * 30).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!((error.kind(), mock.calls().len()), (HttpErrorKind::Status, 2));
    let info = error.info().unwrap();
    assert_eq!(info.stop, Some(StopReason::Elapsed));
    assert!(info.elapsed < Some(SECOND * 23), "no wait to the end for nothing: {info:?}");
}

/// The default order: the breaker sees each attempt and ends the retries; T9.
#[tokio::test(start_paused = true)]
async fn t9_the_breaker_counts_attempts_and_ends_the_retries() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let one = breaker("one").trip(Trip::consecutive(2)).build().unwrap();
    let api = over(&mock).retry(calls(5)).breaker(one.clone()).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    mock.assert_called_times(2);
    assert_eq!(error.kind(), HttpErrorKind::CircuitOpen);
    let info = error.info().unwrap();
    assert_eq!((info.calls, info.stop), (2, Some(StopReason::CircuitOpen)));
    assert!(error.retry_after().unwrap() <= SECOND * 60);
    assert!(matches!(one.state(), State::Open { .. }));
    let last = error.last_error().unwrap();
    assert_eq!((last.kind(), last.status().unwrap().as_u16()), (HttpErrorKind::Status, 503));
    assert!(error.to_string().ends_with("; last error: 503 Service Unavailable)"), "{error}");
    let shown = serde_json::to_value(&error).unwrap();
    assert_eq!(shown["last_error"], "503 Service Unavailable");
    let shut = api.get("x").send().await.unwrap_err();
    assert!(shut.last_error().is_none(), "no attempt was made");
}

/// The other order: a request with all its attempts is one call.
#[tokio::test(start_paused = true)]
async fn in_the_other_order_the_breaker_counts_requests() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let spy = SpyObserver::default();
    let one = breaker("one").trip(Trip::consecutive(2)).build().unwrap();
    let api = over(&mock).retry(calls(5)).breaker(one).order(Order::BreakerOutsideRetry);
    let api = api.observer(spy.clone()).build().unwrap();
    for _ in 0..2 {
        assert_eq!(api.get("x").send().await.unwrap_err().kind(), HttpErrorKind::Status);
    }
    mock.assert_called_times(10);
    spy.reset();
    assert_eq!(api.get("x").send().await.unwrap_err().kind(), HttpErrorKind::CircuitOpen);
    mock.assert_called_times(10);
    assert_eq!(spy.events().len(), 1, "no start, no retry, one failure");
}

/// T10: refusals are no failures of the receiver, and neither are our own faults.
#[tokio::test(start_paused = true)]
async fn t10_refusals_do_not_open_the_breaker() {
    let mock = MockTransport::new();
    mock.reply(404, "");
    let one = breaker("one").trip(Trip::consecutive(2)).build().unwrap();
    let api = over(&mock).breaker(one.clone()).build().unwrap();
    for _ in 0..5 {
        api.get("x").send().await.unwrap_err();
    }
    mock.reset();
    mock.reply(200, "{");
    for _ in 0..5 {
        api.get("x").send_json::<u32>().await.unwrap_err();
    }
    assert_eq!(one.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn each_receiver_has_its_own_breaker() {
    let registry =
        BreakerRegistry::new(TokioSleeper::new(), |host| breaker(host).trip(Trip::consecutive(1)));
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply(200, "");
    let adapter = |base: &str| {
        let builder = http_adapter::HttpAdapter::builder(base).transport(mock.clone());
        builder.breaker(registry.clone()).build().unwrap()
    };
    let (a, b) = (adapter("https://A.test/x"), adapter("https://b.test:8443"));
    a.get("x").send().await.unwrap_err();
    assert_eq!(a.get("x").send().await.unwrap_err().kind(), HttpErrorKind::CircuitOpen);
    assert!(b.get("x").send().await.is_ok());
    let mut names: Vec<_> =
        registry.breakers().iter().map(|breaker| breaker.name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["a.test:443", "b.test:8443"], "the same from build() and from requests");
}

/// Dropping a request frees its place, counts nothing and pays the retry back.
#[tokio::test(start_paused = true)]
async fn a_dropped_request_leaves_nothing_behind() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").always(MockReply::silence());
    let bulkhead = Bulkhead::new(1).unwrap();
    let one = breaker("one").trip(Trip::consecutive(2)).build().unwrap();
    let budget = RetryBudget::ratio(1.0);
    let retry = RetryPolicy::fixed(SECOND * 5).budget(budget.clone()).build().unwrap();
    let api = over(&mock).retry(retry).breaker(one.clone()).bulkhead(bulkhead.clone());
    let api = api.attempt_timeout(SECOND * 20).build().unwrap();
    let clock = TokioSleeper::new();
    let now = || resilience::Clock::now(&clock);

    let in_wait = tokio::time::timeout(SECOND, api.get("x").send()).await;
    assert!(in_wait.is_err());
    assert_eq!(budget.left(now()), 1, "dropped in the wait: paid back");
    let in_flight = tokio::time::timeout(SECOND, api.get("x").send()).await;
    assert!(in_flight.is_err());
    assert_eq!(bulkhead.running(), 0);
    assert_eq!(one.state(), State::Closed, "dropped in flight: counts as nothing");
    mock.assert_called_times(2);
}

/// A retry that is on the wire has been spent, whatever becomes of it.
#[tokio::test(start_paused = true)]
async fn a_retry_that_was_sent_is_not_paid_back() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").always(MockReply::silence());
    let budget = RetryBudget::ratio(1.0);
    let retry = RetryPolicy::fixed(SECOND).budget(budget.clone()).build().unwrap();
    let api = over(&mock).retry(retry).build().unwrap();
    let dropped = tokio::time::timeout(SECOND * 3, api.get("x").send()).await;
    assert!(dropped.is_err());
    mock.assert_called_times(2);
    assert_eq!(budget.left(resilience::Clock::now(&TokioSleeper::new())), 0);
}

#[tokio::test(start_paused = true)]
async fn an_empty_budget_ends_the_retries() {
    let mock = MockTransport::new();
    mock.reply(503, "");
    let budget = RetryBudget::ratio(0.5);
    let retry = RetryPolicy::fixed(SECOND).max_calls(9).budget(budget).build().unwrap();
    let api = over(&mock).retry(retry).build().unwrap();
    let stops: Vec<_> = [api.get("x").send().await, api.get("x").send().await]
        .into_iter()
        .map(|result| {
            let info = *result.unwrap_err().info().unwrap();
            (info.calls, info.stop)
        })
        .collect();
    let empty = Some(StopReason::BudgetEmpty);
    assert_eq!(stops, [(1, empty), (2, empty)], "two calls earn one retry");
}

/// So many at once, so many in line, the others turned away without a call.
#[tokio::test(start_paused = true)]
async fn a_bulkhead_bounds_the_attempts() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let bulkhead = Bulkhead::new(2).unwrap().queue(1);
    let api = over(&mock).bulkhead(bulkhead.clone()).attempt_timeout(SECOND * 10).build().unwrap();
    let started: Vec<_> = (0..3)
        .map(|_| {
            let request = api.get("x").send();
            tokio::spawn(request)
        })
        .collect();
    tokio::task::yield_now().await;
    assert_eq!((bulkhead.running(), bulkhead.queued(), mock.calls().len()), (2, 1, 2));
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::BulkheadFull);
    assert_eq!(error.info().unwrap().calls, 0);
    for task in started {
        assert_eq!(task.await.unwrap().unwrap_err().kind(), HttpErrorKind::AttemptTimeout);
    }
    assert_eq!((bulkhead.running(), bulkhead.queued()), (0, 0));
}

/// A request that waited in line until its time was up says nothing about the receiver, and may be
/// made again whatever its method; the one on the wire says and may not.
#[tokio::test(start_paused = true)]
async fn what_ran_out_of_time_in_line_was_not_sent() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let one = breaker("one").trip(Trip::consecutive(1)).build().unwrap();
    let api = over(&mock).bulkhead(Bulkhead::new(1).unwrap().queue(1)).breaker(one.clone());
    let api = api.retry(calls(2)).attempt_timeout(SECOND * 20).build().unwrap();
    let sent = api.post("x").send();
    let sent = tokio::spawn(sent);
    tokio::task::yield_now().await;
    let error = api.post("x").timeout(SECOND * 5).send().await.unwrap_err();
    assert_eq!((error.kind(), error.is_not_sent()), (HttpErrorKind::AttemptTimeout, true));
    let info = error.info().unwrap();
    assert_eq!((info.calls, info.stop), (0, Some(StopReason::CallsExhausted)));
    assert_eq!(info.elapsed, Some(SECOND * 11), "it was tried twice");
    assert_eq!(one.state(), State::Closed);
    let error = sent.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_not_sent()), (HttpErrorKind::AttemptTimeout, false));
    assert_eq!(error.info().unwrap().stop, Some(StopReason::UnsafeMethod));
    assert!(matches!(one.state(), State::Open { .. }));
}

/// Credentials that could not be had are asked for again, also for a POST: nothing was sent.
#[tokio::test(start_paused = true)]
async fn what_failed_before_it_was_sent_is_made_again_whatever_its_method() {
    let mock = MockTransport::new();
    mock.reply(200, "");
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let provider = move || {
        let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let token = if first { Err(ErrorKind::TimedOut.into()) } else { Ok("t".to_owned()) };
        async move { token as Result<String, std::io::Error> }
    };
    let one = breaker("one").trip(Trip::consecutive(1)).build().unwrap();
    let api = over(&mock).auth(Bearer::provider(provider)).breaker(one.clone());
    let api = api.retry(calls(2)).build().unwrap();
    let response = api.post("x").send().await.unwrap();
    assert_eq!((response.info().unwrap().calls, one.state()), (1, State::Closed));
}

/// Who is turned away by the bulkhead fails at once, and comes back where a predicate wants it.
#[tokio::test(start_paused = true)]
async fn a_full_bulkhead_is_told_as_overload() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let waits = |outcome: &resilience::Outcome<'_>| {
        outcome.error_kind() == Some(resilience::ErrorKind::Overloaded)
    };
    let patient = RetryPolicy::fixed(SECOND).max_calls(4).retry_if(waits).build().unwrap();
    let api = over(&mock)
        .bulkhead(Bulkhead::new(1).unwrap())
        .attempt_timeout(SECOND * 9)
        .build()
        .unwrap();
    let holding = api.get("x").send();
    let holding = tokio::spawn(holding);
    tokio::task::yield_now().await;
    for (retry, elapsed) in [(calls(4), Duration::ZERO), (patient, SECOND * 3)] {
        let error = api.post("x").retry_override(retry).send().await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::BulkheadFull);
        assert_eq!(error.fault(), Some(resilience::ErrorKind::Overloaded));
        assert!(error.is_not_sent());
        assert_eq!(error.info().unwrap().elapsed, Some(elapsed));
    }
    mock.assert_called_times(1);
    holding.await.unwrap().unwrap_err();
}

/// RP5 to RP11: a predicate decides in place of the class, and sees the error itself.
#[tokio::test(start_paused = true)]
async fn a_predicate_of_the_caller_decides() {
    let mock = MockTransport::new();
    mock.reply(404, "");
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let retry = RetryPolicy::fixed(SECOND)
        .replay(Replay::Always)
        .retry_if(move |outcome: &resilience::Outcome<'_>| {
            let error = outcome.error_as::<http_adapter::HttpError>().unwrap();
            log.lock().unwrap().push((error.kind(), outcome.status()));
            outcome.status_is(404)
        })
        .build()
        .unwrap();
    let api = over(&mock).retry(retry).build().unwrap();
    api.post("x").send().await.unwrap_err();
    mock.assert_called_times(3);
    assert_eq!(seen.lock().unwrap()[0], (HttpErrorKind::Status, Some(404)));
}

/// A hung receiver opens the breaker also where one attempt may take all the time there is.
#[tokio::test(start_paused = true)]
async fn a_hung_receiver_opens_the_breaker() {
    let mock = MockTransport::new();
    mock.always(MockReply::silence());
    let one = breaker("one").trip(Trip::consecutive(1)).build().unwrap();
    let api = over(&mock).breaker(one.clone()).total_timeout(SECOND);
    let api = api.attempt_timeout(Duration::from_secs(60)).build().unwrap();
    let error = api.get("x").send().await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::AttemptTimeout);
    assert!(matches!(one.state(), State::Open { .. }));
}
