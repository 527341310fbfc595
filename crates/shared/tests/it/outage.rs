//! A server that stops, hangs and comes back, under calls that go on.

use std::time::Duration;

use resilience::classify::Vote;
use resilience::shared::{BreakerStore, SharedBreaker, Sharing};
use resilience::{OpenFor, State, TokioSleeper, Trip};
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
