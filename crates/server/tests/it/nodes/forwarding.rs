//! Posts that go to the node that serves their endpoints, over a connection between the two.
//!
//! Never: a post that depends on that connection, or that becomes two messages.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::fleet::Fleet;
use super::lost::signal;
use crate::support::{Receiver, Server, until};

/// Posts of a node that another one has committed.
async fn forwarded(node: &Server) -> f64 {
    node.metric("peyk_posts_forwarded_total{outcome=\"committed\"}").await
}

/// Posts until one is forwarded, so that there is a connection; what was posted.
pub(super) async fn warm(node: &Server, app: &str) -> Vec<String> {
    let mut posted = Vec::new();
    while forwarded(node).await == 0.0 {
        posted.push(node.message(app, json!({"n": 0})).await);
    }
    posted
}

#[tokio::test]
async fn a_post_is_committed_by_the_node_that_serves_its_endpoint() {
    let fleet = Fleet::start(3, &[]).await;
    let receiver = Receiver::start().await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let owner = fleet.owner_of("a");
    let mut ids = Vec::new();
    for (at, node) in fleet.nodes.iter().enumerate() {
        if at != owner {
            ids.extend(warm(node, "a").await);
        }
        let before = forwarded(node).await;
        ids.extend(node.messages("a", 20).await);
        // A machine that stands still for a moment may have some of them committed at once.
        let more = forwarded(node).await - before;
        assert_eq!(more > 0.0, at != owner, "{more} by node {at}; {owner} serves it");
    }
    let hits = receiver.wait_for(ids.len()).await;
    let sent: HashSet<_> = hits.iter().map(|hit| hit.header("webhook-id").to_owned()).collect();
    assert_eq!((sent.len(), hits.len()), (ids.len(), ids.len()));
    // A key that a caller gives is one key on all nodes.
    let other = &fleet.nodes[(owner + 1) % 3];
    let third = &fleet.nodes[(owner + 2) % 3];
    let body = json!({"eventType": "t", "payload": {}}).to_string();
    let mut made = HashSet::new();
    for node in [other, third, &fleet.nodes[owner], other] {
        let post =
            node.send("POST", "/api/v1/app/a/msg", &[("idempotency-key", "k")], body.clone());
        made.insert(post.await.expect(202)["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(made.len(), 1, "{made:?}");
}

#[tokio::test]
async fn nothing_is_forwarded_where_that_is_off_and_all_of_it_arrives() {
    let fleet = Fleet::start(2, &[("PEYK_NODE_LISTEN_ADDRESS", "off")]).await;
    assert_eq!(fleet.sql("SELECT count(address), count(fingerprint) FROM peyk.node"), "0|0");
    let receiver = Receiver::start().await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let other = &fleet.nodes[1 - fleet.owner_of("a")];
    let ids = other.messages("a", 20).await;
    other.wait_delivered("a", &ids).await;
    assert_eq!((forwarded(other).await, receiver.hits().len()), (0.0, 20));
}

#[tokio::test]
async fn posts_are_taken_while_the_node_that_serves_them_stands_still_and_none_becomes_two() {
    let fleet = Fleet::start(2, &[]).await;
    let receiver = Receiver::start().await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let owner = fleet.owner_of("a");
    let (still, other) = (&fleet.nodes[owner], &fleet.nodes[1 - owner]);
    let mut ids = warm(other, "a").await;
    other.wait_delivered("a", &ids).await;
    signal(still, "-STOP");
    // These are on their way to it; whoever waits for it commits them after a while.
    ids.extend(join_all((0..5).map(|n| other.message("a", json!({"n": n})))).await);
    // It has them in its socket, and finds each to be there already.
    signal(still, "-CONT");
    ids.extend(other.messages("a", 5).await);
    other.wait_delivered("a", &ids).await;
    let unanswered = "peyk_posts_forwarded_total{outcome=\"unanswered\"}";
    assert!(other.metric(unanswered).await >= 1.0);
    assert_eq!(fleet.sql("SELECT count(*) FROM peyk.message"), ids.len().to_string());
    until("the end of its lane", || async {
        (fleet.sql("SELECT count(*) FROM peyk.pending") == "0").then_some(())
    })
    .await;
    assert_eq!(receiver.hits().len(), ids.len());
}

#[tokio::test]
async fn strangers_at_the_port_for_nodes_change_nothing() {
    let fleet = Fleet::start(2, &[]).await;
    let receiver = Receiver::start().await;
    fleet.nodes[0].app_with("a", &receiver.url("/"), json!({})).await;
    let ports = fleet.sql("SELECT string_agg(address, ' ') FROM peyk.node");
    for at in ports.split(' ') {
        for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xFF, 0xFF, 1], &[0; 4_096]] {
            let mut socket = TcpStream::connect(at).await.unwrap();
            // It may be closed before all of it is written.
            let _closed = socket.write_all(said).await;
        }
    }
    let other = &fleet.nodes[1 - fleet.owner_of("a")];
    let ids = warm(other, "a").await;
    other.wait_delivered("a", &ids).await;
}
