//! How soon something holds on all nodes, how long an endpoint waits when a node joins, and rates
//! that hold for all of them together. What is measured is printed: `--no-capture`.
//!
//! Never: a bound of the machine that runs the tests; what is asserted must hold on a busy one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use resilience::{Clock as _, SystemClock, Timestamp};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::fleet::Fleet;
use super::load::{all_arrived, load};
use crate::support::{Receiver, Reply, Server, until};

/// What is not told is read after this.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// An endpoint that moves has so long for what is in flight.
const MOVES_IN: Duration = Duration::from_secs(3);
const ROUNDS: usize = 30;

/// Deliveries are tried again and again by the endpoint's owner, while another node changes the
/// address: for how long after the answer the old one is still sent to, in each round.
async fn how_soon(settings: &[(&str, &str)]) -> Vec<Duration> {
    let mut all = vec![
        ("PEYK_RETRY__BASE", "20ms"),
        ("PEYK_RETRY__ATTEMPTS_MAX", "1000"),
        ("PEYK_BREAKER__ENABLED", "false"),
    ];
    all.extend(settings);
    let fleet = Fleet::start(3, &all).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    fleet.nodes[0].app_with("a", &receiver.url("/0"), json!({})).await;
    let changes = &fleet.nodes[(fleet.owner_of("a") + 1) % 3];
    changes.messages("a", 8).await;
    let mut answered: Vec<Timestamp> = Vec::new();
    for round in 1..=ROUNDS {
        let path = format!("/{round}");
        let url = json!({"url": receiver.url(&path)});
        changes.patch("/app/a/endpoint/e", &url).await.expect(200);
        answered.push(SystemClock.now());
        until("the new address", || async {
            receiver.hits().iter().any(|hit| hit.path == path).then_some(())
        })
        .await;
    }
    let hits = receiver.hits();
    let late = |(round, at): (usize, &Timestamp)| {
        let old = format!("/{round}");
        let last = hits.iter().filter(|hit| hit.path == old).map(|hit| hit.at).max();
        last.map_or(Duration::ZERO, |last| last.since(*at))
    };
    let mut late: Vec<Duration> = answered.iter().enumerate().map(late).collect();
    late.sort_unstable();
    late
}

fn told(what: &str, late: &[Duration]) {
    let (median, most) = (late[late.len() / 2], late[late.len() - 1]);
    let almost = late[late.len() * 99 / 100];
    eprintln!("{what}: p50 {median:?}, p99 {almost:?}, max {most:?} of {}", late.len());
}

#[tokio::test]
async fn a_change_holds_elsewhere_as_soon_as_it_is_told() {
    let heard = how_soon(&[]).await;
    told("the old address after the answer, with notifications", &heard);
    // Read every 250 ms alone, half of them would be later than 125 ms.
    assert!(heard[heard.len() / 2] < LOOK_EVERY / 4, "notifications are not what told: {heard:?}");
}

#[tokio::test]
async fn a_change_holds_elsewhere_though_it_is_not_told() {
    let nowhere = "postgres://postgres@127.0.0.1:1/none";
    let deaf = how_soon(&[("PEYK_DATABASE_DIRECT_URL", nowhere)]).await;
    told("the old address after the answer, without notifications", &deaf);
    assert!(deaf[deaf.len() / 2] < LOOK_EVERY * 2, "{deaf:?}");
}

/// The longest time in which an endpoint was sent nothing.
fn longest_gap(receiver: &Receiver, apps: usize, (from, to): (Timestamp, Timestamp)) -> Duration {
    let hits = receiver.hits();
    let gaps = (0..apps).map(|app| {
        let path = format!("/a{app}");
        let of = hits.iter().filter(|hit| hit.path == path).map(|hit| hit.at);
        let mut times: Vec<_> = of.filter(|at| *at >= from && *at <= to).collect();
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
        gaps.max().unwrap_or_else(|| to.since(from))
    });
    gaps.max().unwrap_or_default()
}

// A start of a server is waited for while messages are posted.
#[tokio::test(flavor = "multi_thread")]
async fn no_endpoint_waits_for_long_when_a_node_joins() {
    let mut fleet = Fleet::start(2, &[]).await;
    let receiver = Receiver::start().await;
    let apps: Vec<String> = (0..12).map(|n| format!("a{n}")).collect();
    for app in &apps {
        let url = receiver.url(&format!("/{app}"));
        fleet.nodes[0].app_with(app, &url, json!({})).await;
    }
    let posts = Arc::new(fleet.nodes.remove(0));
    let (stop, stopped) = watch::channel(false);
    let loading = {
        let (posts, apps) = (Arc::clone(&posts), apps.clone());
        tokio::spawn(async move { load(&[&*posts], &apps, stopped).await })
    };
    let begun = SystemClock.now();
    receiver.wait_for(600).await;
    let joins = SystemClock.now();
    fleet.join().await;
    fleet.wait_even_of(3).await;
    let sent = receiver.hits().len();
    receiver.wait_for(sent + 300).await;
    let end = SystemClock.now();
    stop.send(true).unwrap();
    let acknowledged = loading.await.unwrap();
    let repeated = all_arrived(&acknowledged, (&posts, &apps), &receiver).await;
    let before = longest_gap(&receiver, apps.len(), (begun, joins));
    let while_joining = longest_gap(&receiver, apps.len(), (joins, end));
    println!(
        "longest gap of an endpoint: {before:?} before, {while_joining:?} while a node joined; sent \
         again {repeated}"
    );
    assert!(while_joining < MOVES_IN + before, "{while_joining:?}, {before:?} before");
}

#[tokio::test]
async fn a_rate_of_an_application_holds_over_all_nodes() {
    let fleet = Fleet::start(3, &[]).await;
    let app = json!({"name": "a", "uid": "a", "throttleRate": 9});
    fleet.nodes[0].post("/app", &app).await.expect(201);
    let message = json!({"eventType": "t", "payload": {}});
    let begun = Instant::now();
    let posts = fleet.nodes.iter().flat_map(|node| (0..40).map(move |_| node));
    let post = async |node: &Server| node.post("/app/a/msg", &message).await.status;
    let answers = join_all(posts.map(post)).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    let passed = answers.iter().filter(|status| **status == 202).count();
    assert!(answers.iter().all(|status| [202, 429].contains(status)), "{answers:?}");
    // Each bucket begins full.
    assert!(passed >= 9 && passed <= 9 * (1 + seconds), "{passed} within {seconds} s");
}
