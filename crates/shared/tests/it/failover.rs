//! A Redis that becomes a replica, as in a failover, and one that comes back empty.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use resilience::circuit::Phase;
use resilience::shared::{BreakerStore, SharedBreaker, Sharing};
use resilience::{OpenFor, State, TokioSleeper, Trip, Vote};
use shared::RedisBreakerStore;
use testparts::Redis;

use crate::support::{KEY, in_redis};

const OPEN: Duration = Duration::from_secs(600);

fn breaker(store: RedisBreakerStore) -> SharedBreaker<RedisBreakerStore, TokioSleeper> {
    SharedBreaker::builder(KEY, store, TokioSleeper::new())
        .trip(Trip::consecutive(3))
        .open_for(OpenFor::fixed(OPEN))
        .sharing(Sharing::Strict)
        .store_timeout(Duration::from_secs(5))
        .build()
        .unwrap()
}

async fn replica_of(server: &mut MultiplexedConnection, master: &[&str]) {
    redis::cmd("REPLICAOF").arg(master).exec_async(server).await.unwrap();
}

async fn operator(redis: &Redis) -> MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// The first exchange may still meet the broken connection, or a rest after it.
async fn is_back(breaker: &SharedBreaker<RedisBreakerStore, TokioSleeper>) {
    for _ in 0..50 {
        if breaker.force(None).await.is_ok() {
            return;
        }
    }
    panic!("the server is not back");
}

#[tokio::test]
async fn a_replica_fails_no_call_and_what_opened_meanwhile_is_written_when_it_is_promoted() {
    let redis = Redis::start();
    let store = in_redis(&redis.url()).await;
    let (one, other) = (breaker(store.clone()), breaker(store.clone()));
    for breaker in [&one, &other] {
        breaker.acquire().await.unwrap().record(Vote::Success).await;
    }
    let mut operator = operator(&redis).await;
    // Its master is not there: it keeps what it has, and refuses every write.
    replica_of(&mut operator, &["127.0.0.1", "1"]).await;
    let refused = store.force("any", None).await.unwrap_err();
    assert!(format!("{refused:?}").contains("ReadOnly"), "{refused:?}");
    for _ in 0..20 {
        one.acquire().await.expect("no call is rejected").record(Vote::Success).await;
    }
    for _ in 0..3 {
        one.acquire().await.expect("no call is rejected").record(Vote::Failure).await;
    }
    assert!(matches!(one.state(), State::Open { .. }), "its own breaker decides");
    replica_of(&mut operator, &["NO", "ONE"]).await;
    one.refresh().await;
    assert!(matches!(one.state(), State::Open { .. }));
    other.refresh().await;
    assert!(other.acquire().await.is_err(), "it has been told");
}

#[tokio::test]
async fn what_opened_before_a_failover_that_loses_it_is_written_to_the_new_master() {
    let (redis, empty) = (Redis::start(), Redis::start());
    let store = in_redis(&redis.url()).await;
    let (one, other) = (breaker(store.clone()), breaker(store.clone()));
    other.acquire().await.unwrap().record(Vote::Success).await;
    for _ in 0..3 {
        one.acquire().await.unwrap().record(Vote::Failure).await;
    }
    other.refresh().await;
    let mut operator = operator(&redis).await;
    // It takes over what the other server has, which is nothing, and is then a master again.
    replica_of(&mut operator, &["127.0.0.1", &empty.port().to_string()]).await;
    loop {
        let told: String =
            redis::cmd("INFO").arg("replication").query_async(&mut operator).await.unwrap();
        if told.contains("master_link_status:up") {
            break;
        }
    }
    replica_of(&mut operator, &["NO", "ONE"]).await;
    is_back(&other).await;
    assert!(matches!(other.state(), State::Open { .. }));
    let view = store.snapshot(KEY).await.unwrap();
    assert_eq!(view.phase, Phase::Open);
    assert!(view.retry_in <= OPEN, "{view:?}");
}

#[tokio::test]
async fn what_opened_while_redis_was_down_survives_that_it_comes_back_empty() {
    let mut redis = Redis::start();
    let store = in_redis(&redis.url()).await;
    let one = breaker(store.clone());
    one.acquire().await.unwrap().record(Vote::Success).await;
    redis.stop();
    for _ in 0..3 {
        one.acquire().await.expect("no call is rejected").record(Vote::Failure).await;
    }
    assert!(matches!(one.state(), State::Open { .. }));
    redis.restart();
    is_back(&one).await;
    assert!(matches!(one.state(), State::Open { .. }));
    assert_eq!(store.snapshot(KEY).await.unwrap().phase, Phase::Open);
}
