//! A change in one process reaches another through the server, though news are exchanged rarely.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use resilience::circuit::{BreakerObserver, Phase, StateChange};
use resilience::shared::{BreakerStore, SharedBreaker, Sharing};
use resilience::{Forced, OpenFor, TokioSleeper, Trip, Vote};
use testparts::Redis;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::NoTls;

use crate::support::{KEY, in_fresh_database, in_postgres, in_redis};

const HOUR: Duration = Duration::from_secs(3_600);

struct Ear(UnboundedSender<Phase>);

impl BreakerObserver for Ear {
    fn on_state_change(&self, change: &StateChange) {
        self.0.send(change.to).ok();
    }
}

type Breaker<S> = SharedBreaker<S, TokioSleeper>;

/// A breaker with its driver, which exchanges news every hour, and the changes it hears of.
fn breaker<S: BreakerStore>(store: S) -> (Breaker<S>, UnboundedReceiver<Phase>) {
    let (ear, heard) = unbounded_channel();
    let breaker = SharedBreaker::builder(KEY, store, TokioSleeper::new())
        .trip(Trip::consecutive(3))
        .open_for(OpenFor::fixed(HOUR))
        .sharing(Sharing::Eventual { flush: HOUR, max_stale: HOUR })
        .store_timeout(Duration::from_secs(10))
        .observe(Ear(ear))
        .build()
        .unwrap();
    (breaker, heard)
}

/// Runs in the other process: fails until its breaker opens, then forces it closed when told to.
#[tokio::test]
#[ignore = "not a test: the other process of the tests below"]
async fn opens_and_is_forced_closed() {
    match order() {
        url if url.starts_with("redis") => obey(in_redis(&url).await).await,
        url => obey(in_postgres(&url)).await,
    }
}

/// A line from the parent.
fn order() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

async fn obey<S: BreakerStore>(store: S) {
    let (breaker, mut heard) = breaker(store);
    for _ in 0..3 {
        breaker.acquire().await.unwrap().record(Vote::Failure).await;
    }
    assert_eq!(heard.recv().await, Some(Phase::Open));
    tokio::spawn(breaker.driver());
    // On the only thread the driver runs while this waits for the parent's order.
    assert_eq!(tokio::task::spawn_blocking(order).await.unwrap(), "close");
    breaker.force(Some(Forced::Closed)).await.unwrap();
}

fn other_process(url: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "news::opens_and_is_forced_closed", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{url}").unwrap();
    child
}

/// Begins when the store is told of changes.
async fn hears_the_other_process<S: BreakerStore>(store: S, url: &str) {
    let mut listening = store.watch("any");
    listening.changed().await;
    let (breaker, mut heard) = breaker(store);
    tokio::spawn(breaker.driver());
    let mut child = other_process(url);
    assert_eq!(heard.recv().await, Some(Phase::Open));
    // From here on the driver waits for its hour, or for the server to tell of a change.
    writeln!(child.stdin.as_mut().unwrap(), "close").unwrap();
    assert_eq!(heard.recv().await, Some(Phase::Closed));
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn through_redis() {
    let redis = Redis::start();
    let store = in_redis(&redis.url()).await;
    let (listener, client) = (store.clone(), redis::Client::open(redis.url()).unwrap());
    tokio::spawn(async move { listener.listen(&client).await });
    hears_the_other_process(store, &redis.url()).await;
}

#[tokio::test]
async fn through_postgres() {
    let (store, url) = in_fresh_database().await;
    let (listener, server) = (store.clone(), url.parse().unwrap());
    tokio::spawn(async move { listener.listen(&server, NoTls).await });
    hears_the_other_process(store, &url).await;
}

#[tokio::test]
async fn a_listener_whose_server_is_gone_says_so() {
    let mut redis = Redis::start();
    let store = in_redis(&redis.url()).await;
    let client = redis::Client::open(redis.url()).unwrap();
    let mut watch = store.watch("any");
    let listener = tokio::spawn({
        let store = store.clone();
        async move { store.listen(&client).await }
    });
    watch.changed().await;
    redis.stop();
    assert!(listener.await.unwrap().is_err());
}
