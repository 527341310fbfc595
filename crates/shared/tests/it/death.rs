//! A process that dies with the probe in its hands.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use resilience::shared::{Admit, BreakerStore, InstanceId, Report, Runs};
use resilience::{Clock, SteadyClock, Vote};
use testparts::Redis;

use crate::support::{KEY, RULES, in_fresh_database, in_postgres, in_redis};

/// Runs in the other process: takes the probe, says so, and never comes back.
#[tokio::test]
#[ignore = "not a test: the other process of the tests below"]
async fn takes_the_probe_and_hangs() {
    let mut url = String::new();
    std::io::stdin().read_line(&mut url).unwrap();
    let me = InstanceId::new("doomed");
    let admit = match url.trim() {
        url if url.starts_with("redis") => in_redis(url).await.admit(KEY, &RULES, &me).await,
        url => in_postgres(url).admit(KEY, &RULES, &me).await,
    };
    println!("\ntook {:?}", admit.unwrap());
    std::future::pending::<()>().await;
}

fn other_process(url: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::takes_the_probe_and_hangs", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{url}").unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let took = lines.map_while(Result::ok).find(|line| line.starts_with("took")).unwrap();
    assert!(took.contains("Probe {"), "{took}");
    child
}

async fn is_replaced(store: impl BreakerStore, url: &str) {
    let me = InstanceId::new("survivor");
    let Admit::Closed { generation } = store.admit(KEY, &RULES, &me).await.unwrap() else {
        panic!("not closed")
    };
    let runs = Runs { lead: 3, ..Runs::default() };
    store.report(KEY, &RULES, &Report::Calls { generation, runs }).await.unwrap();
    let clock = SteadyClock::new();
    let mut child = other_process(url);
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = clock.now();
    let (generation, lease) = loop {
        // Each round waits for the server's answer; the lease runs out meanwhile.
        match store.admit(KEY, &RULES, &me).await.unwrap() {
            Admit::Probe { generation, lease } => break (generation, lease),
            Admit::ProbeOut { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    let waited = clock.now().since(begun);
    assert!(waited < RULES.lease * 8, "{waited:?}");
    let probe = Report::Probe { generation, lease, vote: Vote::Success };
    let told = store.report(KEY, &RULES, &probe).await.unwrap();
    assert!(told.is_some(), "the survivor's probe closes it");
}

#[tokio::test]
async fn cb_02_a_killed_prober_does_not_hold_up_redis() {
    let redis = Redis::start();
    is_replaced(in_redis(&redis.url()).await, &redis.url()).await;
}

#[tokio::test]
async fn cb_02_a_killed_prober_does_not_hold_up_postgres() {
    let (store, url) = in_fresh_database().await;
    is_replaced(store, &url).await;
}
