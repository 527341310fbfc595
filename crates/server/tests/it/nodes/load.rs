//! Posts to several nodes while something happens to them, and what arrived of that.
//!
//! Never: judge what it counts.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{interval, timeout};

use super::fleet::Fleet;
use crate::support::{PATIENCE, Receiver, Server};

/// Posts to all nodes at once until told to stop; what was acknowledged.
pub(super) async fn load(
    nodes: &[&Server],
    apps: &[String],
    mut stop: watch::Receiver<bool>,
) -> Vec<String> {
    let post = async |node: &Server, app: &str, n: usize| {
        let body = json!({"eventType": "t", "payload": {"n": n}}).to_string();
        let made = node.try_send("POST", &format!("/api/v1/app/{app}/msg"), &[], body).await?;
        (made.status == 202).then(|| made.json()["id"].as_str().unwrap().to_owned())
    };
    let (mut acknowledged, mut n) = (Vec::new(), 0);
    while !*stop.borrow_and_update() {
        let posts = nodes.iter().flat_map(|node| apps.iter().map(move |app| (node, app)));
        let round = join_all(posts.map(|(node, app)| post(node, app, n))).await;
        acknowledged.extend(round.into_iter().flatten());
        n += 1;
    }
    acknowledged
}

pub(super) fn arrivals(receiver: &Receiver) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for hit in receiver.hits() {
        *counts.entry(hit.header("webhook-id").to_owned()).or_default() += 1;
    }
    counts
}

pub(super) async fn six_apps(fleet: &Fleet, receiver: &Receiver) -> Vec<String> {
    let apps: Vec<String> = (0..6).map(|n| format!("a{n}")).collect();
    for app in &apps {
        fleet.nodes[0].app_with(app, &receiver.url("/"), json!({})).await;
    }
    apps
}

/// Waits until each of these has arrived and nothing waits any more; how many sends were repeats.
pub(super) async fn all_arrived(
    acknowledged: &[String],
    (node, apps): (&Server, &[String]),
    receiver: &Receiver,
) -> usize {
    let missing = || {
        let counts = arrivals(receiver);
        acknowledged.iter().filter(move |id| !counts.contains_key(*id))
    };
    let mut ticks = interval(Duration::from_millis(10));
    let arrive = async {
        while missing().next().is_some() {
            ticks.tick().await;
        }
    };
    if timeout(PATIENCE, arrive).await.is_err() {
        let mut said = Vec::new();
        for (id, app) in missing().take(3).flat_map(|id| apps.iter().map(move |app| (id, app))) {
            let path = format!("/app/{app}/msg/{id}/endpoint/e/explain");
            said.extend(
                Some(node.get(&path).await).filter(|it| it.status == 200).map(|it| it.json()),
            );
        }
        panic!("{} of {} did not arrive: {said:#?}", missing().count(), acknowledged.len());
    }
    for app in apps {
        node.wait_idle(app).await;
    }
    arrivals(receiver).values().map(|count| count - 1).sum()
}
