//! A node is lost: killed, standing still, or cut off from the database.
//!
//! Never: a message lost after its 202, or sent again without having been in flight.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::PATIENT;
use super::fleet::{Fleet, node_id};
use super::forwarding::warm;
use super::load::{all_arrived, arrivals, load, six_apps};
use crate::support::{Gate, Receiver, Reply, Server, until};

/// Endpoints of a lost node are served again by then.
const SERVED_AGAIN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_node_that_is_killed_under_load_loses_nothing() {
    let mut fleet = Fleet::start(3, &PATIENT).await;
    let receiver = Receiver::start().await;
    let apps = six_apps(&fleet, &receiver).await;
    let victim = fleet.owner_of(&apps[0]);
    let (stop, stopped) = watch::channel(false);
    let mut dying = fleet.nodes.remove(victim);
    let nodes: Vec<&Server> = fleet.nodes.iter().collect();
    let all: Vec<&Server> = nodes.iter().copied().chain([&dying]).collect();
    let before = load(&all, &apps, stopped.clone());
    let kills = async {
        receiver.wait_for(200).await;
        stop.send(true).unwrap();
    };
    let (mut acknowledged, ()) = tokio::join!(before, kills);
    // What it had in flight when it died is sent again, and nothing else.
    let never = Gate::shut();
    let held = never.clone();
    receiver.script(move |_, _| Reply::status(200).held(&held));
    acknowledged.extend(dying.messages(&apps[0], 10).await);
    until("sends in flight", || async { (receiver.open() > 0).then_some(()) }).await;
    let in_flight = receiver.open();
    dying.kill();
    let killed = Instant::now();
    receiver.script(|_, _| Reply::status(200));
    never.open();
    acknowledged.push(nodes[0].message(&apps[0], json!({"n": 1})).await);
    let last = acknowledged.last().unwrap().clone();
    until("the endpoint of a dead node", || async {
        arrivals(&receiver).contains_key(&last).then_some(())
    })
    .await;
    assert!(killed.elapsed() < SERVED_AGAIN, "{:?}", killed.elapsed());
    let again = all_arrived(&acknowledged, (nodes[0], &apps), &receiver).await;
    assert!(again <= in_flight + 64, "{again} sent again, {in_flight} were in flight");
}

pub(super) fn signal(server: &Server, name: &str) {
    let id = server.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[tokio::test]
async fn du_05_a_node_that_stood_still_past_its_lease_writes_nothing_more() {
    let fleet = Fleet::start(3, &PATIENT).await;
    let gate = Gate::shut();
    let held = gate.clone();
    let receiver = Receiver::scripted(move |number, _| match number {
        0 => Reply::status(500).held(&held),
        _ => Reply::status(200),
    })
    .await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let owner = fleet.owner_of("a");
    let other = &fleet.nodes[(owner + 1) % 3];
    let id = other.message("a", json!({"n": 0})).await;
    receiver.wait_for(1).await;
    let still = &fleet.nodes[owner];
    let gone = format!("SELECT count(*) FROM peyk.node WHERE id = {}", node_id(still));
    signal(still, "-STOP");
    let stopped = Instant::now();
    // The others find it silent, and send what it had in flight again.
    other.wait_delivered("a", std::slice::from_ref(&id)).await;
    assert!(stopped.elapsed() < SERVED_AGAIN, "{:?}", stopped.elapsed());
    assert_eq!(fleet.sql(&gone), "0");
    // Its own send ends with a failure, which nobody may write down.
    gate.open();
    signal(still, "-CONT");
    let ended = until("the end of its process", || async { still.ended() }).await;
    assert_eq!(ended, Some(1), "{}", still.log());
    assert!(still.log().contains("taken over"), "{}", still.log());
    let rows = other.attempts("a", &id).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["status"], receiver.hits().len()), (&json!(0), 2));
}

/// Leads to the database until it is cut.
struct Way {
    address: SocketAddr,
    cut: watch::Sender<bool>,
}

impl Way {
    async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, is_cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let mut is_cut = is_cut.clone();
                tokio::spawn(async move {
                    if *is_cut.borrow() {
                        return;
                    }
                    let Ok(mut to) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                        _ = is_cut.wait_for(|cut| *cut) => {}
                    }
                });
            }
        });
        Self { address, cut }
    }
}

// The way to the database is a task of this test, and a start of a server is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_from_the_database_stops_before_others_take_over() {
    let mut fleet = Fleet::start(2, &PATIENT).await;
    let way = Arc::new(Way::to(testparts::Postgres::shared().port()).await);
    let name = fleet.url.rsplit('/').next().unwrap();
    let url = format!("postgres://postgres@{}/{name}", way.address);
    fleet.join_as(&[("PEYK_DATABASE_URL", &url)]).await;
    fleet.wait_even().await;
    let receiver = Receiver::scripted(|_, _| Reply::status(500)).await;
    let apps: Vec<String> = (0..12).map(|n| format!("a{n}")).collect();
    for app in &apps {
        let patient = json!({"breaker": {"failures": 1000}});
        fleet.nodes[0].app_with(app, &receiver.url(&format!("/{app}")), patient).await;
    }
    let owned: HashSet<String> =
        apps.iter().filter(|app| fleet.owner_of(app) == 2).cloned().collect();
    let app = owned.iter().next().unwrap().clone();
    let id = fleet.nodes[0].message(&app, json!({"n": 0})).await;
    receiver.wait_for(2).await;
    let cut_off = &fleet.nodes[2];
    let others = apps.iter().find(|app| !owned.contains(*app)).unwrap();
    warm(cut_off, others).await;
    way.cut.send(true).unwrap();
    let cut = Instant::now();
    // It forwards what others serve, for as long as they know it.
    let forwarded = cut_off.message(others, json!({"n": 1})).await;
    until("a health that tells", || async {
        (cut_off.get("/health").await.status == 503).then_some(())
    })
    .await;
    let message = json!({"eventType": "t", "payload": {}});
    assert_eq!(cut_off.post(&format!("/app/{app}/msg"), &message).await.status, 503);
    receiver.script(|_, _| Reply::status(200));
    fleet.nodes[0].wait_delivered(&app, &[id]).await;
    fleet.nodes[0].wait_delivered(others, &[forwarded]).await;
    assert!(cut.elapsed() < SERVED_AGAIN, "{:?}", cut.elapsed());
    assert!(fleet.try_owner_of(&app).is_some_and(|owner| owner < 2));
    way.cut.send(false).unwrap();
    let ended = until("the end of its process", || async { cut_off.ended() }).await;
    assert_eq!(ended, Some(1), "{}", cut_off.log());
}

#[tokio::test]
async fn db_04_no_node_is_declared_dead_because_the_database_was_away() {
    let own = Some(testparts::Postgres::start());
    let mut fleet = Fleet::on(own, 3, &PATIENT).await;
    let never = Gate::shut();
    let held = never.clone();
    let receiver = Receiver::scripted(move |_, _| Reply::status(200).held(&held)).await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let mut ids = vec![fleet.nodes[0].message("a", json!({"n": 0})).await];
    receiver.wait_for(1).await;
    let nodes = fleet.members();
    fleet.postgres.as_mut().unwrap().kill();
    // Away for so long that each would be dead by its silence.
    until("a send that is broken off", || async { (receiver.open() == 0).then_some(()) }).await;
    receiver.script(|_, _| Reply::status(200));
    fleet.postgres.as_mut().unwrap().restart();
    for (n, node) in fleet.nodes.iter().enumerate() {
        let message = json!({"eventType": "t", "payload": {"n": n + 1}});
        let id = until("an acknowledgement", || async {
            let answer = node.post("/app/a/msg", &message).await;
            (answer.status == 202).then(|| answer.json()["id"].as_str().unwrap().to_owned())
        });
        ids.push(id.await);
    }
    fleet.nodes[0].wait_delivered("a", &ids).await;
    fleet.wait_even().await;
    let now = fleet.members();
    assert_eq!(now, nodes, "the same nodes");
    assert!(fleet.nodes.iter().all(|node| node.ended().is_none()));
}
