//! Three nodes on one PostgreSQL, as processes: any of them takes what is asked, one sends it, and
//! what one of them had is served by the others when it ends, stands still or is cut off.
//!
//! Never: an acknowledged message lost, or a wait that is not for a signal or a state.

mod bounds;
mod clocks;
mod database;
mod fleet;
mod forwarding;
mod load;
mod lost;
mod pooled;

use std::collections::HashSet;

use serde_json::json;

use crate::support::{Gate, Receiver, Reply, Server, until};
use fleet::Fleet;

const PATIENT: [(&str, &str); 2] =
    [("PEYK_RETRY__ATTEMPTS_MAX", "1000"), ("PEYK_RETRY__BASE", "100ms")];

/// What is posted goes through the database.
const NOT_FORWARDED: [(&str, &str); 1] = [("PEYK_NODE_LISTEN_ADDRESS", "off")];

/// Of one node, what may be in flight to the endpoints of a test when it hands them over.
const REPEATS_MAX: usize = 24;

#[tokio::test]
async fn any_node_takes_a_message_and_each_is_sent_once() {
    any_node_takes(&Fleet::start(3, &[]).await).await;
}

#[tokio::test]
async fn any_node_takes_a_message_though_none_is_forwarded() {
    any_node_takes(&Fleet::start(3, &NOT_FORWARDED).await).await;
}

async fn any_node_takes(fleet: &Fleet) {
    let receiver = Receiver::start().await;
    let apps: Vec<String> = (0..12).map(|n| format!("a{n}")).collect();
    for (n, app) in apps.iter().enumerate() {
        fleet.nodes[n % 3].app_with(app, &receiver.url("/"), json!({})).await;
    }
    let owners: HashSet<usize> = apps.iter().map(|app| fleet.owner_of(app)).collect();
    assert_eq!(owners.len(), 3, "twelve endpoints fall to all");
    let mut ids = HashSet::new();
    for app in &apps {
        for node in &fleet.nodes {
            ids.extend(node.messages(app, 5).await);
        }
    }
    let hits = receiver.wait_for(ids.len()).await;
    let sent: HashSet<String> =
        hits.iter().map(|hit| hit.header("webhook-id").to_owned()).collect();
    assert_eq!((sent, hits.len()), (ids, 180));
    for node in &fleet.nodes {
        assert_eq!(node.metric("peyk_lane_repairs_total").await, 0.0, "nothing was missed");
    }
}

#[tokio::test]
async fn a_change_is_in_force_on_all_nodes_whichever_makes_it() {
    changes(&Fleet::start(3, &[]).await).await;
}

#[tokio::test]
async fn a_change_is_in_force_on_all_nodes_though_notifications_are_lost() {
    let nowhere = "postgres://postgres@127.0.0.1:1/none";
    changes(&Fleet::start(3, &[("PEYK_DATABASE_DIRECT_URL", nowhere)]).await).await;
}

async fn changes(fleet: &Fleet) {
    let (old, new) = (Receiver::start().await, Receiver::start().await);
    fleet.nodes[0].app_with("a", &old.url("/"), json!({})).await;
    let owner = fleet.owner_of("a");
    let (one, other) = (&fleet.nodes[(owner + 1) % 3], &fleet.nodes[(owner + 2) % 3]);
    let owner = &fleet.nodes[owner];
    // All have it in their caches.
    for (n, node) in [owner, one, other].into_iter().enumerate() {
        node.message("a", json!({"n": n})).await;
    }
    old.wait_for(3).await;
    let url = json!({"url": new.url("/")});
    one.patch("/app/a/endpoint/e", &url).await.expect(200);
    until("the new address", || async {
        owner.message("a", json!({})).await;
        other.message("a", json!({})).await;
        (new.hits().len() >= 2).then_some(())
    })
    .await;

    owner.wait_idle("a").await;
    other.force("a", "open").await;
    for node in [owner, one, other] {
        node.wait_breaker("a", "open").await;
    }
    let sent = new.hits().len() + old.hits().len();
    let held = one.message("a", json!({"n": 100})).await;
    until("a message that waits", || async {
        (one.breaker("a").await["waiting"] == 1).then_some(())
    })
    .await;
    assert_eq!(new.hits().len() + old.hits().len(), sent, "nothing is sent");
    one.force("a", "auto").await;
    other.wait_delivered("a", &[held]).await;

    let access = owner.post("/auth/app-portal-access/a", &json!({})).await.expect(200);
    let token = format!("Bearer {}", access["token"].as_str().unwrap());
    let asks = async |node: &Server| {
        node.send("GET", "/api/v1/app/a", &[("authorization", &token)], "").await.status
    };
    for node in [owner, one, other] {
        assert_eq!(asks(node).await, 200);
    }
    one.post("/auth/app/a/expire-all", &json!({})).await;
    for node in [one, owner, other] {
        until("a token that is refused", || async { (asks(node).await == 401).then_some(()) })
            .await;
    }
    one.delete("/app/a/endpoint/e").await.expect(204);
    until("an endpoint that is gone", || async {
        let message = json!({"eventType": "t", "payload": {}});
        other.post("/app/a/msg", &message).await.expect(202);
        let list = owner.get("/app/a/endpoint").await.expect(200);
        list["data"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_idempotency_key_makes_one_message_on_whichever_node() {
    let fleet = Fleet::start(2, &[]).await;
    let receiver = Receiver::start().await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let body = json!({"eventType": "t", "payload": {}}).to_string();
    let post = async |node: &Server, key: &str| {
        let headers = [("idempotency-key", key)];
        let made = node.send("POST", "/api/v1/app/a/msg", &headers, body.clone()).await;
        made.expect(202)["id"].as_str().unwrap().to_owned()
    };
    for round in 0..10 {
        let key = format!("key-{round}");
        let (a, b) = tokio::join!(post(&fleet.nodes[0], &key), post(&fleet.nodes[1], &key));
        assert_eq!(a, b);
    }
    receiver.wait_for(10).await;
    fleet.nodes[0].wait_idle("a").await;
    assert_eq!(receiver.hits().len(), 10);
}

#[tokio::test]
async fn a_node_that_joins_gets_its_share_while_messages_flow() {
    let mut fleet = Fleet::start(1, &[]).await;
    let receiver = Receiver::start().await;
    let apps: Vec<String> = (0..6).map(|n| format!("a{n}")).collect();
    for app in &apps {
        fleet.nodes[0].app_with(app, &receiver.url("/"), json!({})).await;
    }
    let mut ids = HashSet::new();
    for _ in 0..2 {
        fleet.join().await;
        for app in &apps {
            for node in &fleet.nodes {
                ids.extend(node.messages(app, 10).await);
            }
        }
        fleet.wait_even().await;
    }
    wait_for_all(&receiver, ids).await;
}

/// Waits until each message was sent. A send that is not over within the 2 s of a hand-over, which
/// happens where the machine has too much to do, is broken off and made again.
async fn wait_for_all(receiver: &Receiver, ids: HashSet<String>) {
    let hits = until("each message", || async {
        let hits = receiver.hits();
        let sent: HashSet<&str> = hits.iter().map(|hit| hit.header("webhook-id")).collect();
        ids.iter().all(|id| sent.contains(id.as_str())).then_some(hits.len())
    });
    let repeated = hits.await - ids.len();
    assert!(repeated <= REPEATS_MAX, "{repeated} of {} were sent again", ids.len());
}

#[tokio::test]
async fn a_rolling_restart_loses_nothing() {
    let mut fleet = Fleet::start(3, &[]).await;
    let receiver = Receiver::start().await;
    let apps: Vec<String> = (0..6).map(|n| format!("a{n}")).collect();
    for app in &apps {
        fleet.nodes[0].app_with(app, &receiver.url("/"), json!({})).await;
    }
    let mut ids = HashSet::new();
    for round in 0..3 {
        for app in &apps {
            for node in &fleet.nodes {
                ids.extend(node.messages(app, 5).await);
            }
        }
        assert_eq!(fleet.nodes[round].stop(), Some(0), "{}", fleet.nodes[round].log());
        for (n, node) in fleet.nodes.iter().enumerate().filter(|(n, _)| *n != round) {
            ids.extend(node.messages(&apps[n], 20).await);
        }
        fleet.nodes[round].start_again();
        fleet.wait_even().await;
    }
    wait_for_all(&receiver, ids).await;
}

#[tokio::test]
async fn cb_01_one_probe_and_order_are_kept_when_an_endpoint_moves() {
    let mut fleet = Fleet::start(3, &PATIENT).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let ordered = json!({
        "ordered": true,
        "breaker": {"failures": 2, "openFor": "300ms", "openForMax": "300ms"},
    });
    fleet.nodes[0].app_with("a", &receiver.url("/"), ordered).await;
    let mut expected = Vec::new();
    for n in 0..40_u64 {
        let node = usize::try_from(n).unwrap() % 3;
        fleet.nodes[node].message("a", json!({"n": n})).await;
        expected.push(n);
    }
    until("an open breaker", || async {
        let state = fleet.nodes[0].breaker("a").await["state"].clone();
        (state != "closed").then_some(())
    })
    .await;
    let never = Gate::shut();
    let held = never.clone();
    receiver.script(move |_, _| Reply::status(500).held(&held));
    until("a probe", || async { (receiver.open() == 1).then_some(()) }).await;
    receiver.most_at_once();
    let owner = fleet.owner_of("a");
    // The probe is out, and its node gives the endpoint away.
    assert_eq!(fleet.nodes[owner].stop(), Some(0));
    until("the probe that was broken off", || async { (receiver.open() == 0).then_some(()) }).await;
    until("the next one's", || async { (receiver.open() == 1).then_some(()) }).await;
    assert_eq!(receiver.most_at_once(), 1, "one probe at a time");
    assert_ne!(fleet.owner_of("a"), owner);
    let before = receiver.hits().len();
    receiver.script(|_, _| Reply::status(200));
    never.open();
    let hits = receiver.wait_for(before + 40).await;
    let order: Vec<u64> = hits[before..].iter().map(|hit| hit.n()).collect();
    assert_eq!(order, expected);
}

#[tokio::test]
async fn du_09_roles_say_what_a_node_does() {
    let mut fleet = Fleet::start(1, &[("PEYK_ROLES", "api")]).await;
    let receiver = Receiver::start().await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let id = fleet.nodes[0].message("a", json!({"n": 1})).await;
    fleet.join_as(&[("PEYK_ROLES", "worker")]).await;
    receiver.wait_for(1).await;
    fleet.nodes[0].wait_delivered("a", &[id]).await;
    let worker = &fleet.nodes[1];
    assert_eq!(worker.get("/app").await.status, 404);
    assert_eq!(worker.get("/health").await.status, 200);
    assert_eq!(worker.send("GET", "/metrics", &[], "").await.status, 200);
}

/// Bytes that the database logs for a message to one endpoint that is delivered at once.
#[tokio::test]
async fn a_delivery_costs_the_database_little() {
    let mut fleet = Fleet::start(1, &[]).await;
    let receiver = Receiver::start().await;
    let apps: Vec<String> = (0..6).map(|n| format!("a{n}")).collect();
    for app in &apps {
        fleet.nodes[0].app_with(app, &receiver.url("/"), json!({})).await;
    }
    let logged = |fleet: &Fleet| -> u64 {
        fleet.sql("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").parse().unwrap()
    };
    let (mut sent, mut costs) = (0, Vec::new());
    for nodes in [1, 3] {
        while fleet.nodes.len() < nodes {
            fleet.join().await;
        }
        fleet.wait_even().await;
        let before = logged(&fleet);
        for app in &apps {
            for node in &fleet.nodes {
                sent += node.messages(app, 300 / nodes).await.len();
            }
        }
        receiver.wait_for(sent).await;
        for app in &apps {
            fleet.nodes[0].wait_idle(app).await;
        }
        costs.push((logged(&fleet) - before) / 1_800);
    }
    println!("bytes of log for a delivery, with one node and with three: {costs:?}");
    assert!(costs.iter().all(|bytes| *bytes < 4_000), "{costs:?}");
}
