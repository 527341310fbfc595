//! What a process has found out while the store was away, or the store has lost.

use super::*;

const SHARINGS: [Sharing; 2] =
    [Sharing::Eventual { flush: Duration::from_millis(200), max_stale: secs(1) }, Sharing::Strict];

impl Bench {
    fn shared(&self, sharing: Sharing) -> Shared {
        self.builder().sharing(sharing).build().unwrap()
    }
}

/// Opens here while the store is away, which then is back, empty or as it was.
async fn opens_alone(bench: &Bench, one: &Shared, empty: bool) {
    vote(one, Vote::Success, 1).await;
    bench.store.becomes(FAILS);
    // The news are old by now, so that calls ask, and are then alone.
    tokio::time::advance(secs(2)).await;
    vote(one, Vote::Failure, 3).await;
    assert!(matches!(one.state(), State::Open { .. }));
    if empty {
        bench.store.loses_everything();
    }
    bench.store.becomes(0);
}

#[tokio::test(start_paused = true)]
async fn what_opened_while_the_store_was_away_stays_open_and_is_written_there() {
    for (sharing, empty) in SHARINGS.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let bench = Bench::new();
        let (one, other) = (bench.shared(sharing), bench.shared(sharing));
        opens_alone(&bench, &one, empty).await;
        tokio::time::advance(secs(4)).await;
        assert_eq!(reason(&one).await, RejectReason::Open, "{sharing:?}, empty: {empty}");
        one.refresh().await;
        assert!(matches!(one.state(), State::Open { .. }));
        let view = bench.store.snapshot("k").await.unwrap();
        assert_eq!((view.phase, view.retry_in), (Phase::Open, secs(6)), "what was left of it");
        other.refresh().await;
        assert_eq!(reason(&other).await, RejectReason::Open);
        tokio::time::advance(secs(6)).await;
        one.acquire().await.unwrap().success().await;
        assert_eq!(one.state(), State::Closed, "and it is heard when it closes");
        other.refresh().await;
        assert_eq!(other.state(), State::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn one_probes_though_the_open_time_was_over_before_the_store_was_back() {
    for (sharing, empty) in SHARINGS.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let bench = Bench::new();
        let (one, other) = (bench.shared(sharing), bench.shared(sharing));
        opens_alone(&bench, &one, empty).await;
        tokio::time::advance(secs(20)).await;
        let probe = one.acquire().await.unwrap();
        assert!(probe.is_probe(), "{sharing:?}, empty: {empty}");
        other.refresh().await;
        assert_eq!(reason(&other).await, RejectReason::ProbeInFlight);
        probe.success().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_has_lost_is_written_there_again() {
    for sharing in SHARINGS {
        let bench = Bench::new();
        let (one, other) = (bench.shared(sharing), bench.shared(sharing));
        vote(&other, Vote::Success, 1).await;
        vote(&one, Vote::Failure, 3).await;
        one.refresh().await;
        other.refresh().await;
        tokio::time::advance(secs(4)).await;
        bench.store.loses_everything();
        other.refresh().await;
        assert_eq!(reason(&other).await, RejectReason::Open, "{sharing:?}");
        let view = bench.store.snapshot("k").await.unwrap();
        assert_eq!((view.phase, view.retry_in), (Phase::Open, secs(6)));
    }
}

#[tokio::test(start_paused = true)]
async fn failures_on_their_way_when_the_store_went_are_not_forgotten() {
    let bench = Bench::new();
    let one = bench.breaker();
    vote(&one, Vote::Failure, 3).await;
    bench.store.becomes(FAILS);
    one.refresh().await;
    bench.store.becomes(0);
    one.refresh().await;
    assert!(matches!(one.state(), State::Open { .. }));
    assert_eq!(bench.store.snapshot("k").await.unwrap().phase, Phase::Open);
}

#[tokio::test(start_paused = true)]
async fn that_others_closed_it_is_news_also_after_an_outage() {
    let bench = Bench::new();
    let (one, other) = (bench.breaker(), bench.breaker());
    vote(&one, Vote::Failure, 3).await;
    one.refresh().await;
    other.refresh().await;
    bench.store.becomes(HANGS);
    one.refresh().await;
    bench.store.becomes(0);
    tokio::time::advance(secs(10)).await;
    other.acquire().await.unwrap().success().await;
    one.refresh().await;
    assert_eq!(one.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_opened_nothing_is_let_be() {
    let bench = Bench::new();
    let one = bench.breaker();
    bench.store.becomes(FAILS);
    vote(&one, Vote::Failure, 1).await;
    bench.store.becomes(0);
    one.refresh().await;
    assert_eq!(bench.store.snapshot("k").await.unwrap().phase, Phase::Closed);
    bench.store.loses_everything();
    one.refresh().await;
    vote(&one, Vote::Success, 1).await;
}
