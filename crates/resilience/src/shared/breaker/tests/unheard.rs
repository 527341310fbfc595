//! Calls that go before they hear the store, and probes whose end is not heard there.

use super::*;

/// Both processes know that it is open, and the open time is over.
async fn due(bench: &Bench) -> (Shared, Shared) {
    let (one, other) = (bench.process(), bench.process());
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    other.refresh().await;
    tokio::time::sleep(secs(10)).await;
    (one, other)
}

/// Long enough for a driver to be woken; a lease is 5 s.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A call of this breaker is dropped after 20 ms.
async fn goes_early(breaker: &Shared) {
    let asked = tokio::time::timeout(Duration::from_millis(20), breaker.acquire()).await;
    assert!(asked.is_err(), "it was dropped while it asked");
}

#[tokio::test(start_paused = true)]
async fn cb_02_a_call_dropped_while_the_store_answers_gives_its_probe_back_at_once() {
    let bench = Bench::new();
    let (one, other) = due(&bench).await;
    bench.store.becomes(ANSWERS_LATE);
    goes_early(&one).await;
    bench.store.becomes(0);
    a_moment().await;
    assert!(other.acquire().await.unwrap().is_probe());
}

#[tokio::test(start_paused = true)]
async fn cb_02_without_a_driver_the_next_call_gives_it_back() {
    let bench = Bench::new();
    let one = bench.breaker();
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    tokio::time::sleep(secs(10)).await;
    bench.store.becomes(ANSWERS_LATE);
    goes_early(&one).await;
    bench.store.becomes(0);
    assert!(one.acquire().await.unwrap().is_probe());
}

#[tokio::test(start_paused = true)]
async fn cb_02_an_answer_that_comes_too_late_gives_its_probe_back_at_once() {
    let bench = Bench::new();
    let hasty = bench.builder().store_timeout(Duration::from_millis(20)).build().unwrap();
    tokio::spawn(hasty.driver());
    let (_, other) = due(&bench).await;
    bench.store.becomes(ANSWERS_LATE);
    drop(hasty.acquire().await);
    bench.store.becomes(0);
    a_moment().await;
    assert!(other.acquire().await.unwrap().is_probe());
}

#[tokio::test(start_paused = true)]
async fn cb_02_a_call_that_is_let_out_after_it_went_gives_its_probe_back_with_the_next_news() {
    let bench = Bench::new();
    let (one, other) = due(&bench).await;
    bench.store.becomes(HEARS_LATE);
    goes_early(&one).await;
    bench.store.becomes(0);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(reason(&other).await, RejectReason::ProbeInFlight);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(other.acquire().await.unwrap().is_probe());
}

#[tokio::test(start_paused = true)]
async fn another_calls_probe_is_not_given_back() {
    let bench = Bench::new();
    let (one, other) = due(&bench).await;
    let probe = one.acquire().await.unwrap();
    assert!(probe.is_probe());
    bench.store.becomes(ANSWERS_LATE);
    goes_early(&one).await;
    bench.store.becomes(0);
    a_moment().await;
    assert_eq!(reason(&other).await, RejectReason::ProbeInFlight);
    probe.success().await;
    assert_eq!(bench.store.snapshot("k").await.unwrap().phase, Phase::Closed);
}

#[tokio::test(start_paused = true)]
async fn cb_02_the_end_of_a_probe_is_told_though_its_task_is_dropped_meanwhile() {
    let bench = Bench::new();
    let (one, _) = due(&bench).await;
    let probe = one.acquire().await.unwrap();
    bench.store.becomes(DRAGS);
    let told = tokio::time::timeout(Duration::from_millis(20), probe.success()).await;
    assert!(told.is_err(), "it was dropped while it told");
    bench.store.becomes(0);
    // The driver may be waiting for the slow store just now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(bench.store.snapshot("k").await.unwrap().phase, Phase::Closed);
}

#[tokio::test(start_paused = true)]
async fn cb_02_the_end_of_a_probe_is_told_when_the_store_is_back() {
    let bench = Bench::new();
    let (one, _) = due(&bench).await;
    let probe = one.acquire().await.unwrap();
    bench.store.becomes(FAILS);
    probe.failure(&StoreError::new("down")).await;
    bench.store.becomes(0);
    one.refresh().await;
    let view = bench.store.snapshot("k").await.unwrap();
    assert_eq!((view.phase, view.retry_in), (Phase::Open, secs(10)));
}
