//! The tower layers, in stacks as their users build them.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_adapter::resilience::{
    BreakerRegistry, Rejected, RetryBudget, RetryInfo, RetryPolicy, StopReason, TokioSleeper, Trip,
};
use http_adapter::testing::{MockReply, MockTransport};
use http_adapter::{
    Answered, BoxError, Bulkhead, BulkheadFull, BulkheadLayer, CircuitBreakerLayer, GaveUp,
    RetryLayer, TimedOut, TimeoutLayer,
};
use http_body_util::{BodyExt, Full, StreamBody};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::support::{SECOND, breaker, calls};

fn request(method: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri("http://h/x");
    request.body(Full::new(body.into())).unwrap()
}

/// HC-06, RetryInfo in the answer, and the same body on every attempt.
#[tokio::test(start_paused = true)]
async fn an_answer_tells_how_it_came_about() {
    let mock = MockTransport::new();
    mock.reply_once(503, "a").reply_once(503, "b").reply(200, "c");
    let service = ServiceBuilder::new().layer(RetryLayer::new(calls(3))).service(mock.clone());
    let response = service.clone().oneshot(request("PUT", "body")).await.unwrap();
    let info = *response.extensions().get::<RetryInfo>().unwrap();
    assert_eq!((info.calls, info.elapsed, info.stop), (3, Some(SECOND * 2), None));
    assert!(mock.calls().iter().all(|call| call.body == "body"));
    mock.reply(503, "");
    let response = service.oneshot(request("PUT", "body")).await.unwrap();
    assert_eq!(response.status(), 503);
    let info = response.extensions().get::<RetryInfo>().unwrap();
    assert_eq!((info.calls, info.stop), (3, Some(StopReason::CallsExhausted)));
}

#[tokio::test(start_paused = true)]
async fn an_error_tells_how_it_came_about() {
    let mock = MockTransport::new();
    mock.always(MockReply::fault(std::io::ErrorKind::ConnectionRefused));
    let heard = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&heard);
    let layer = RetryLayer::new(calls(3)).on_retry(move |attempt, _, delay| {
        assert_eq!(delay, SECOND);
        count.fetch_add(attempt, Ordering::SeqCst);
    });
    let service = ServiceBuilder::new().layer(layer).service(mock);
    let error = service.oneshot(request("POST", "body")).await.unwrap_err();
    let error = error.downcast::<GaveUp>().unwrap();
    assert_eq!((error.info.calls, error.stop()), (3, StopReason::CallsExhausted));
    assert!(error.source.is::<std::io::Error>());
    assert_eq!(heard.load(Ordering::SeqCst), 1 + 2);
}

/// T12: what a listener does wrong stays with it, under the layer as in the adapter.
#[tokio::test(start_paused = true)]
async fn t12_a_listener_that_panics_changes_nothing() {
    let mock = MockTransport::new();
    mock.reply_once(503, "").reply(200, "");
    let layer = RetryLayer::new(calls(2)).on_retry(|_, _, _| panic!("deaf"));
    let service = ServiceBuilder::new().layer(layer).service(mock.clone());
    let response = service.oneshot(request("GET", "")).await.unwrap();
    assert_eq!((response.status().as_u16(), mock.calls().len()), (200, 2));
}

/// Who is asked something belongs to the request: a panic there is the caller's, and leaves of the
/// request what its being dropped would: nothing.
#[tokio::test(start_paused = true)]
async fn a_judge_that_panics_leaves_nothing_behind() {
    let one = breaker("one").trip(Trip::consecutive(1)).build().unwrap();
    let bulkhead = Bulkhead::new(1).unwrap();
    let mock = MockTransport::new();
    mock.reply(503, "");
    let service =
        ServiceBuilder::new()
            .layer(CircuitBreakerLayer::new(one.clone()).classify(
                |_: &resilience::Call, _, _| -> resilience::Class { panic!("no judgement") },
            ))
            .layer(BulkheadLayer::new(bulkhead.clone()))
            .service(mock);
    let panicked = tokio::spawn(service.oneshot(request("GET", ""))).await.unwrap_err();
    assert!(panicked.is_panic());
    assert_eq!((one.state(), bulkhead.running()), (resilience::State::Closed, 0));
}

/// T6, T7 in the layer; 64 KiB and one byte more.
#[tokio::test(start_paused = true)]
async fn t6_t7_the_layer_repeats_what_it_may_and_waits_as_asked() {
    for (method, key, bytes, stop) in [
        ("POST", false, 1, Some(StopReason::UnsafeMethod)),
        ("POST", true, 1, None),
        ("PUT", false, 64 << 10, None),
        ("PUT", false, (64 << 10) + 1, Some(StopReason::BodyNotReplayable)),
    ] {
        let mock = MockTransport::new();
        mock.once(MockReply::new(503, "").header("retry-after", "7")).reply(200, "");
        let service = ServiceBuilder::new().layer(RetryLayer::new(calls(2))).service(mock.clone());
        let mut request = request(method, vec![b'x'; bytes]);
        if key {
            request.headers_mut().insert("idempotency-key", "k".parse().unwrap());
        }
        let response = service.oneshot(request).await.unwrap();
        let info = response.extensions().get::<RetryInfo>().unwrap();
        assert_eq!(info.stop, stop, "{method} {bytes}");
        assert_eq!(info.elapsed >= Some(SECOND * 7), stop.is_none());
        assert!(mock.calls().iter().all(|call| call.body.len() == bytes));
    }
}

/// A failed answer is read while the wait lasts, and one that drips holds nothing up.
#[tokio::test(start_paused = true)]
async fn a_failed_answer_is_drained_during_the_wait_and_no_longer() {
    let read = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&read);
    let mut first = true;
    let service = service_fn(move |_: Request<_>| {
        let dripping = std::mem::take(&mut first);
        let count = Arc::clone(&count);
        let piece = move || {
            count.fetch_add(1, Ordering::SeqCst);
            let frame = http_body::Frame::data(Bytes::from_static(b"12345678"));
            (frame, ())
        };
        let body = StreamBody::new(Drip { piece, left: if dripping { 10 } else { 0 } });
        let mut response = Response::new(body);
        if dripping {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        ready(Ok::<_, BoxError>(response))
    });
    let service = Arc::new(tokio::sync::Mutex::new(service));
    let shared = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move {
            let call = tower::Service::call(&mut *service.lock().await, request);
            call.await
        }
    });
    let layer = RetryLayer::new(calls(2)).drain_on_retry(32);
    let service = ServiceBuilder::new().layer(layer).service(shared);
    let response = service.oneshot(request("GET", "")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(read.load(Ordering::SeqCst), 5, "32 bytes, and the piece that goes beyond");
}

/// So many pieces at once, then nothing, for ever.
struct Drip<F> {
    piece: F,
    left: u32,
}

impl<F: FnMut() -> (http_body::Frame<Bytes>, ()) + Unpin> futures_core::Stream for Drip<F> {
    type Item = Result<http_body::Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        if self.left == 0 {
            return std::task::Poll::Pending;
        }
        self.left -= 1;
        std::task::Poll::Ready(Some(Ok((self.piece)().0)))
    }
}

/// A future that is dropped in its wait pays the retry back.
#[tokio::test(start_paused = true)]
async fn a_dropped_wait_pays_the_retry_back() {
    let budget = RetryBudget::ratio(1.0);
    let retry = RetryPolicy::fixed(SECOND * 9).budget(budget.clone()).build().unwrap();
    let mock = MockTransport::new();
    mock.reply(503, "");
    let service = ServiceBuilder::new().layer(RetryLayer::new(retry)).service(mock.clone());
    let wait = |span| tokio::time::timeout(span, service.clone().oneshot(request("GET", "")));
    assert!(wait(SECOND).await.is_err());
    let now = resilience::Clock::now(&TokioSleeper::new());
    assert_eq!(budget.left(now), 1);
    mock.reset();
    mock.reply_once(503, "").always(MockReply::silence());
    assert!(wait(SECOND * 10).await.is_err());
    assert_eq!(budget.left(now), 1, "two calls earned two retries, and one was sent");
}

/// T9: in a stack of retry around breaker an open breaker ends the retries. Its refusal comes from
/// the call; the service stays ready.
#[tokio::test(start_paused = true)]
async fn t9_an_open_breaker_refuses_the_call_and_is_not_retried() {
    let one = breaker("one").trip(Trip::consecutive(2)).build().unwrap();
    let mock = MockTransport::new();
    mock.reply(503, "");
    let mut service = ServiceBuilder::new()
        .layer(RetryLayer::new(calls(9)))
        .layer(CircuitBreakerLayer::new(one))
        .service(mock.clone());
    let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await.unwrap();
    let error = tower::Service::call(ready, request("GET", "")).await.unwrap_err();
    mock.assert_called_times(2);
    let gave_up = error.downcast::<GaveUp>().unwrap();
    assert_eq!(gave_up.stop(), StopReason::CircuitOpen);
    assert!(gave_up.source.is::<Rejected>());
    let last = gave_up.last_error().unwrap().downcast_ref::<Answered>().unwrap();
    assert_eq!(last.status, StatusCode::SERVICE_UNAVAILABLE, "what had gone wrong before");
    let text = gave_up.to_string();
    assert!(text.ends_with("last error: answered 503 Service Unavailable)"), "{text}");
    let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await;
    assert!(ready.is_ok(), "never from poll_ready");
}

/// The same where attempts fail with errors, and where the breaker was open from the beginning.
#[tokio::test(start_paused = true)]
async fn the_error_behind_a_refusal_is_kept() {
    let one = breaker("one").trip(Trip::consecutive(2)).build().unwrap();
    let hung = service_fn(|_: Request<_>| pending::<Result<Response<Full<Bytes>>, Infallible>>());
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(calls(9)))
        .layer(CircuitBreakerLayer::new(one))
        .layer(TimeoutLayer::new(SECOND).unwrap())
        .service(hung);
    let error = service.clone().oneshot(request("GET", "")).await.unwrap_err();
    let gave_up = error.downcast::<GaveUp>().unwrap();
    assert!(gave_up.source.is::<Rejected>());
    assert!(gave_up.last_error().unwrap().is::<TimedOut>());
    let shut = service.oneshot(request("GET", "")).await.unwrap_err();
    let shut = shut.downcast::<GaveUp>().unwrap();
    assert!(shut.last_error().is_none() && !shut.to_string().contains("last error"));
}

#[tokio::test(start_paused = true)]
async fn a_registry_keeps_receivers_apart() {
    let registry =
        BreakerRegistry::new(TokioSleeper::new(), |host| breaker(host).trip(Trip::consecutive(1)));
    let mock = MockTransport::new();
    mock.reply(503, "");
    let layer = CircuitBreakerLayer::registry(registry.clone());
    let service = ServiceBuilder::new().layer(layer).service(mock.clone());
    for (uri, host, calls) in [
        ("http://a/1", None, 1),
        ("http://A:80/2", None, 1),
        ("/3", Some("a"), 1),
        ("https://a/", None, 2),
        ("http://b/", None, 3),
        ("/", None, 4),
        ("/", None, 4),
    ] {
        let mut request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
        if let Some(host) = host {
            request.headers_mut().insert("host", host.parse().unwrap());
        }
        let _ = service.clone().oneshot(request).await;
        assert_eq!(mock.calls().len(), calls, "{uri} {host:?}");
    }
    let mut names: Vec<_> =
        registry.breakers().iter().map(|breaker| breaker.name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["a:443", "a:80", "b:80", "no-host"]);
}

async fn refusal(error: BoxError) -> (StatusCode, String) {
    let error = match error.downcast::<GaveUp>() {
        Ok(gave_up) => gave_up.source,
        Err(error) => error,
    };
    let open = error.is::<Rejected>() || error.is::<BulkheadFull>();
    let status = if open { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_GATEWAY };
    (status, error.to_string())
}

/// axum clones a layer's services for every route and request; the state is the layer's.
#[tokio::test]
async fn state_survives_the_clones_of_a_router() {
    let one = breaker("one").trip(Trip::consecutive(3)).build().unwrap();
    let hits = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&hits);
    let failing = move || {
        count.fetch_add(1, Ordering::SeqCst);
        ready(StatusCode::BAD_GATEWAY)
    };
    let guard = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(refusal))
        .layer(RetryLayer::new(calls(1)))
        .layer(CircuitBreakerLayer::new(one.clone()));
    let app =
        Router::new().route("/a", get(failing.clone())).route("/b", get(failing)).layer(guard);
    let mut statuses = Vec::new();
    for path in ["/a", "/b", "/a", "/b", "/a"] {
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        statuses.push(app.clone().oneshot(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [502, 502, 502, 503, 503]);
    assert_eq!(hits.load(Ordering::SeqCst), 3);
}

/// The place is held until the body is read, over all clones of the service.
#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_body_is_read() {
    let bulkhead = Bulkhead::new(1).unwrap().queue(1);
    let mock = MockTransport::new();
    mock.reply(200, "body");
    let layer = BulkheadLayer::new(bulkhead.clone());
    let service = ServiceBuilder::new().layer(layer).service(mock);
    let held = service.clone().oneshot(request("GET", "")).await.unwrap();
    assert_eq!(bulkhead.running(), 1);
    let waiting = tokio::spawn(service.clone().oneshot(request("GET", "")));
    tokio::task::yield_now().await;
    assert_eq!(bulkhead.queued(), 1);
    let full = service.oneshot(request("GET", "")).await.unwrap_err();
    assert!(full.is::<BulkheadFull>());
    assert_eq!(held.into_body().collect().await.unwrap().to_bytes(), "body");
    drop(waiting.await.unwrap().unwrap());
    assert_eq!((bulkhead.running(), bulkhead.queued()), (0, 0));
}

/// HR-01: the time does not end at the head, and the retry layer knows the error.
#[tokio::test(start_paused = true)]
async fn a_timeout_covers_the_body_and_is_retried() {
    let hung = service_fn(|_: Request<_>| pending::<Result<Response<Full<Bytes>>, Infallible>>());
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(calls(2)))
        .layer(TimeoutLayer::new(SECOND).unwrap());
    let error = stack.service(hung).oneshot(request("GET", "")).await.unwrap_err();
    let error = error.downcast::<GaveUp>().unwrap();
    assert_eq!((error.info.calls, error.info.elapsed), (2, Some(SECOND * 3)));
    assert!(error.source.is::<TimedOut>());

    let dripping = service_fn(|_: Request<Full<Bytes>>| {
        let piece = || (http_body::Frame::data(Bytes::from_static(b"x")), ());
        ready(Ok::<_, Infallible>(Response::new(StreamBody::new(Drip { piece, left: 3 }))))
    });
    let service = ServiceBuilder::new().layer(TimeoutLayer::new(SECOND).unwrap()).service(dripping);
    let response = service.oneshot(request("GET", "")).await.unwrap();
    let begun = tokio::time::Instant::now();
    let error = response.into_body().collect().await.unwrap_err();
    assert!(error.is::<TimedOut>());
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

/// A body whose sender waits for the answer is passed on at once: the early answer comes through.
#[tokio::test(start_paused = true)]
async fn an_early_answer_comes_while_the_body_still_streams() {
    let piece = || (http_body::Frame::data(Bytes::from_static(b"x")), ());
    let endless = StreamBody::new(Drip { piece, left: 1 });
    let service = service_fn(|request: Request<http_adapter::ReplayBody<_>>| async move {
        let mut body = request.into_body();
        body.frame().await.unwrap().unwrap();
        let mut response = Response::new(Full::new(Bytes::new()));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, Infallible>(response)
    });
    let service = ServiceBuilder::new().layer(RetryLayer::new(calls(3))).service(service);
    let request = Request::put("http://h/").body(endless).unwrap();
    let response = service.oneshot(request).await.unwrap();
    let info = response.extensions().get::<RetryInfo>().unwrap();
    assert_eq!((info.calls, info.stop), (1, Some(StopReason::BodyNotReplayable)));
}
