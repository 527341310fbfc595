//! The same traces as in memory.

use std::time::Duration;

use resilience::Forced;
use resilience::shared::{Admit, BreakerStore, InstanceId, Report, Runs, SharedRules, conformance};
use testparts::{Postgres, Redis};

use crate::support::{KEY, RULES, in_fresh_database, in_postgres, in_redis};

#[tokio::test]
async fn redis_passes() {
    let redis = Redis::start();
    conformance::all(&in_redis(&redis.url()).await).await;
}

#[tokio::test]
async fn postgres_passes() {
    let (store, _) = in_fresh_database().await;
    store.create_schema().await.unwrap();
    conformance::all(&store).await;
}

/// Of eight that ask at once, each on a connection of its own where there are such, one probes; a
/// hundred times, since two of them must come within a microsecond or so to get in each other's
/// way.
async fn one_of_many<S: BreakerStore + Clone>(store: S) {
    let me = InstanceId::new("many");
    let rules = SharedRules { lease: Duration::from_secs(60), ..RULES };
    for round in 0..100 {
        let key = format!("{KEY}-{round}");
        let Admit::Closed { generation } = store.admit(&key, &RULES, &me).await.unwrap() else {
            panic!("not closed")
        };
        let runs = Runs { lead: 3, ..Runs::default() };
        store.report(&key, &RULES, &Report::Calls { generation, runs }).await.unwrap();
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let (store, key) = (store.clone(), key.clone());
                let me = InstanceId::new(n.to_string());
                tokio::spawn(async move { store.admit(&key, &rules, &me).await.unwrap() })
            })
            .collect();
        let mut probes = 0;
        for task in tasks {
            match task.await.unwrap() {
                Admit::Probe { .. } => probes += 1,
                Admit::ProbeOut { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(probes, 1, "round {round}");
    }
}

#[tokio::test]
async fn cb_01_of_many_connections_to_redis_one_probes() {
    let redis = Redis::start();
    one_of_many(in_redis(&redis.url()).await).await;
}

#[tokio::test]
async fn cb_01_of_many_connections_to_postgres_one_probes() {
    one_of_many(in_fresh_database().await.0).await;
}

#[tokio::test]
async fn a_breaker_in_redis_does_not_stay_for_ever() {
    let redis = Redis::start();
    let store = in_redis(&redis.url()).await.prefix("other");
    store.snapshot(KEY).await.unwrap();
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let ttl: i64 =
        redis::cmd("PTTL").arg("other:{payments}").query_async(&mut connection).await.unwrap();
    assert!((1..=86_400_000).contains(&ttl), "{ttl}");
}

#[tokio::test]
async fn a_missing_schema_is_told() {
    let store = in_postgres(&Postgres::shared().fresh_database());
    let told = store.snapshot(KEY).await.unwrap_err().to_string();
    assert!(told.contains("peyk_breaker_view(text) does not exist"), "{told}");
}

#[tokio::test]
async fn what_nobody_uses_is_pruned_from_postgres_unless_it_is_forced() {
    let (store, _) = in_fresh_database().await;
    store.snapshot("idle").await.unwrap();
    store.force("forced", Some(Forced::Open)).await.unwrap();
    assert_eq!(store.prune(Duration::from_secs(60)).await.unwrap(), 0);
    assert_eq!(store.prune(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(store.snapshot("forced").await.unwrap().forced, Some(Forced::Open));
}
