//! A server that stops, hangs and comes back, under calls that go on.

use std::time::Duration;

use resilience::classify::Vote;
use resilience::shared::{BreakerStore, SharedBreaker, Sharing};
use resilience::{HalfOpen, OpenFor, State, TokioSleeper, Trip};
use testparts::{Postgres, Redis};

use crate::support::{KEY, in_postgres, in_redis};

const TIMEOUT: Duration = Duration::from_millis(200);

type Breaker<S> = SharedBreaker<S, TokioSleeper>;

fn breaker<S: BreakerStore>(store: S, sharing: Sharing) -> Breaker<S> {
    SharedBreaker::builder(KEY, store, TokioSleeper::new())
        .trip(Trip::consecutive(3))
        .open_for(OpenFor::fixed(Duration::from_secs(600)))
        .sharing(sharing)
        .store_timeout(TIMEOUT)
        .build()
        .unwrap()
}

async fn calls<S: BreakerStore>(breaker: &Breaker<S>, vote: Vote, times: u32) {
    for _ in 0..times {
        breaker.acquire().await.expect("no call is rejected").record(vote).await;
    }
}

/// Calls go on whatever the server does; once it is back, it hears of failures again.
async fn survives<S: BreakerStore>(
    breaker: &Breaker<S>,
    goes: impl FnOnce(),
    comes: impl FnOnce(),
) {
    calls(breaker, Vote::Success, 10).await;
    goes();
    calls(breaker, Vote::Success, 20).await;
    comes();
    // The first exchange may still meet the broken connection.
    let mut told = false;
    for _ in 0..50 {
        told |= breaker.force(None).await.is_ok();
        if told {
            break;
        }
    }
    assert!(told, "the server is back");
    calls(breaker, Vote::Failure, 3).await;
    breaker.refresh().await;
    assert!(matches!(breaker.state(), State::Open { .. }));
}

const fn sharings() -> [Sharing; 2] {
    let max_stale = Duration::from_millis(100);
    [Sharing::Strict, Sharing::Eventual { flush: Duration::from_millis(50), max_stale }]
}

/// A call goes while the server hangs and may let it out as the probe: nobody waits for its lease.
async fn a_probe_that_nobody_heard_of_is_free_at_once<S: BreakerStore + Clone>(
    store: S,
    hangs: impl FnOnce(),
    goes_on: impl FnOnce(),
) {
    let build = || {
        SharedBreaker::builder(KEY, store.clone(), TokioSleeper::new())
            .trip(Trip::consecutive(3))
            .open_for(OpenFor::fixed(Duration::from_millis(1)))
            .half_open(HalfOpen::probes(1).max_wait(Duration::from_secs(3_600)))
            .sharing(Sharing::Strict)
            .store_timeout(Duration::from_secs(10))
            .build()
            .unwrap()
    };
    let (one, other) = (build(), build());
    calls(&one, Vote::Failure, 3).await;
    other.refresh().await;
    hangs();
    let asked = tokio::time::timeout(Duration::from_millis(100), one.acquire()).await;
    assert!(asked.is_err(), "it was dropped while it asked");
    goes_on();
    one.refresh().await;
    let probe = other.acquire().await.expect("the slot is free");
    assert!(probe.is_probe());
}

#[tokio::test]
async fn cb_02_a_call_dropped_while_redis_answers_gives_its_probe_back() {
    let redis = Redis::start();
    let store = in_redis(&redis.url()).await;
    let (hangs, goes_on) = (|| redis.pause(), || redis.resume());
    a_probe_that_nobody_heard_of_is_free_at_once(store, hangs, goes_on).await;
}

#[tokio::test]
async fn cb_02_a_call_dropped_while_postgres_answers_gives_its_probe_back() {
    let postgres = Postgres::start();
    let store = in_postgres(&postgres.fresh_database());
    store.create_schema().await.unwrap();
    let (hangs, goes_on) = (|| postgres.pause(), || postgres.resume());
    a_probe_that_nobody_heard_of_is_free_at_once(store, hangs, goes_on).await;
}

#[tokio::test]
async fn redis_stops_and_starts() {
    for sharing in sharings() {
        let redis = std::cell::RefCell::new(Redis::start());
        let url = redis.borrow().url();
        let breaker = breaker(in_redis(&url).await, sharing);
        survives(&breaker, || redis.borrow_mut().stop(), || redis.borrow_mut().restart()).await;
    }
}

#[tokio::test]
async fn redis_hangs_and_goes_on() {
    let redis = Redis::start();
    let breaker = breaker(in_redis(&redis.url()).await, Sharing::Strict);
    survives(&breaker, || redis.pause(), || redis.resume()).await;
}

#[tokio::test]
async fn postgres_stops_and_starts() {
    let postgres = std::cell::RefCell::new(Postgres::start());
    let url = postgres.borrow().fresh_database();
    let store = in_postgres(&url);
    store.create_schema().await.unwrap();
    let breaker = breaker(store, Sharing::Strict);
    survives(&breaker, || postgres.borrow_mut().stop(), || postgres.borrow_mut().restart()).await;
}
