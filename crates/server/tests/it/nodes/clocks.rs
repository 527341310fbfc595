//! Nodes, and a database, whose machines have other times of day.
//!
//! Processes are given another time by libfaketime; the clock that goes on while a machine sleeps,
//! and that of the tests, they share.
//! Never: a wait of the length of a difference.

use std::collections::HashMap;
use std::path::Path;

use resilience::{Clock as _, SystemClock};
use serde_json::json;
use tokio::sync::watch;

use super::PATIENT;
use super::database::fail_over;
use super::fleet::Fleet;
use super::load::{all_arrived, load, six_apps};
use crate::support::{Receiver, Reply, Server, time};

/// Where Debian has it, by architecture.
fn libfaketime() -> &'static str {
    let places = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    ];
    places.into_iter().find(|place| Path::new(place).is_file()).unwrap_or_else(|| {
        panic!("libfaketime is not installed: install the package faketime, or run ./test")
    })
}

/// Settings of a process whose time of day is so far ahead or behind.
fn shifted(by: &str) -> [(&str, &str); 3] {
    [("LD_PRELOAD", libfaketime()), ("FAKETIME", by), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]
}

/// Three nodes: one has the right time, one is ten minutes ahead, one two hours behind.
async fn apart() -> Fleet {
    let mut fleet = Fleet::start(1, &PATIENT).await;
    for by in ["+10m", "-2h"] {
        fleet.join_as(&shifted(by)).await;
    }
    fleet.wait_even().await;
    fleet
}

#[tokio::test]
async fn tm_01_nodes_whose_clocks_are_hours_apart_deliver_once_and_in_order() {
    let fleet = apart().await;
    let receiver = Receiver::start().await;
    let apps: Vec<String> = (0..6).map(|n| format!("a{n}")).collect();
    for app in &apps {
        let url = receiver.url(&format!("/{app}"));
        fleet.nodes[0].app_with(app, &url, json!({"ordered": true})).await;
    }
    // One after the other, each to another node: what was answered before is sent before.
    let mut posted = Vec::new();
    for n in 0..60_u64 {
        for app in &apps {
            let node = &fleet.nodes[usize::try_from(n).unwrap() % 3];
            posted.push(node.message(app, json!({"n": n})).await);
        }
    }
    let hits = receiver.wait_for(posted.len()).await;
    for app in &apps {
        fleet.nodes[0].wait_idle(app).await;
    }
    assert_eq!(receiver.hits().len(), posted.len(), "each once");
    let mut order: HashMap<String, Vec<u64>> = HashMap::new();
    for hit in &hits {
        order.entry(hit.path.clone()).or_default().push(hit.n());
    }
    let expected: Vec<u64> = (0..60).collect();
    for (path, sent) in order {
        assert_eq!(sent, expected, "{path}");
    }
    let here = SystemClock.now();
    for hit in &hits {
        let stamp: i64 = hit.header("webhook-timestamp").parse().unwrap();
        assert!((stamp - here.as_secs()).abs() < 120, "a receiver would refuse {stamp}");
    }
}

#[tokio::test]
async fn tm_01_a_retry_is_due_at_one_time_whichever_node_has_it_by_then() {
    let mut fleet = apart().await;
    fleet.nodes.iter_mut().for_each(|node| node.set("PEYK_RETRY__BASE", "3s"));
    for node in &mut fleet.nodes {
        assert_eq!(node.stop(), Some(0));
        node.start_again();
    }
    fleet.wait_even().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    let apps = six_apps(&fleet, &receiver).await;
    let mut first = Vec::new();
    for app in &apps {
        let id = fleet.nodes[1].message(app, json!({"n": 0})).await;
        first.push(fleet.nodes[2].wait_attempts(app, &id, 1).await.remove(0));
    }
    receiver.script(|_, _| Reply::status(200));
    // Who has it next is two hours behind, or ten minutes ahead, of who wrote down when it is due.
    for n in 0..2 {
        assert_eq!(fleet.nodes[n].stop(), Some(0));
    }
    let hits = receiver.wait_for(12).await;
    let due = first.iter().map(|attempt| time(&attempt["nextAttemptAt"])).min().unwrap();
    let again: Vec<_> = hits[6..].iter().map(|hit| hit.at).collect();
    assert!(again.iter().all(|at| *at >= due), "{again:?} before {due:?}");
}

#[tokio::test]
async fn tm_01_a_clock_that_is_set_while_retries_wait_moves_none_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("time");
    let set = |by: &str| std::fs::write(&file, by).unwrap();
    set("+0");
    let fleet = Fleet::start(
        2,
        &[
            ("LD_PRELOAD", libfaketime()),
            ("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("PEYK_RETRY__BASE", "1s"),
        ],
    )
    .await;
    let receiver = Receiver::scripted(|_, hit| match hit.header("webhook-attempt") {
        "1" | "2" => Reply::status(503),
        _ => Reply::status(200),
    })
    .await;
    let apps = six_apps(&fleet, &receiver).await;
    let members = fleet.members();
    for app in &apps {
        fleet.nodes[0].message(app, json!({"n": 0})).await;
        fleet.nodes[1].message(app, json!({"n": 1})).await;
    }
    for (sends, by) in [(12, "-2h"), (24, "+2h"), (36, "+0")] {
        receiver.wait_for(sends).await;
        set(by);
    }
    for app in &apps {
        fleet.nodes[0].wait_idle(app).await;
    }
    assert_eq!(receiver.hits().len(), 36);
    assert_eq!(fleet.members(), members, "nobody lost its lease");
}

/// By its heartbeats each node is silent for an hour at the moment of the fail-over, or says what
/// lies ahead; by less than the slack of a token, or those that were just issued are refused.
#[tokio::test]
async fn tm_01_no_node_is_declared_dead_because_a_standby_has_another_time() {
    for by in ["+1h", "-10m"] {
        fail_over(&shifted(by)).await;
    }
}

#[tokio::test]
async fn tm_01_a_node_is_killed_among_clocks_that_are_hours_apart_and_nothing_is_lost() {
    let mut fleet = apart().await;
    let receiver = Receiver::start().await;
    let apps = six_apps(&fleet, &receiver).await;
    let (stop, stopped) = watch::channel(false);
    let nodes: Vec<&Server> = fleet.nodes.iter().collect();
    let ends = async {
        receiver.wait_for(200).await;
        stop.send(true).unwrap();
    };
    let (mut acknowledged, ()) = tokio::join!(load(&nodes, &apps, stopped), ends);
    fleet.nodes.remove(1).kill();
    for app in &apps {
        acknowledged.push(fleet.nodes[1].message(app, json!({"n": 0})).await);
    }
    let repeated = all_arrived(&acknowledged, (&fleet.nodes[1], &apps), &receiver).await;
    assert!(repeated <= 6 * 64, "{repeated} were sent again");
}
