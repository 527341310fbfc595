//! Every metric that the page on operations names is there to be read.
//!
//! Never: a value that depends on how fast the machine is.

use serde_json::json;

use crate::support::{Receiver, Reply, Server};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md"));

#[tokio::test]
async fn every_documented_metric_is_served() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|number, _| Reply::status([200, 404][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let delivered = server.message("a", json!({})).await;
    server.wait_attempts("a", &delivered, 1).await;
    server.message("a", json!({})).await;
    server.wait_dead("a", 1).await;
    server.wait_idle("a").await;
    let text = server.send("GET", "/metrics", &[], "").await.text();
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `peyk_"));
    let mut names = 0;
    for (name, kind) in rows.filter_map(|row| row.split_once("` | ")) {
        let kind = kind.split(' ').next().unwrap();
        let typed = format!("# TYPE peyk_{name} {kind}\n");
        assert!(text.contains(&typed), "{typed} in\n{text}");
        let help = format!("# HELP peyk_{name} ");
        assert!(text.contains(&help), "{help} in\n{text}");
        names += 1;
    }
    assert!(names >= 20, "the table was found");
    assert_eq!(text.matches("# TYPE ").count(), names, "nothing is served that is not there");
    for line in [
        "peyk_deliveries_total{outcome=\"delivered\"} 1",
        "peyk_attempts_total{class=\"success\"} 1",
        "peyk_attempts_total{class=\"rejected\"} 1",
        "peyk_dead_letters_total{reason=\"rejected\"} 1",
        "peyk_dead_letters_total{reason=\"exhausted\"} 0",
        "peyk_breakers{state=\"open\"} 0",
        "peyk_breakers{state=\"half_open\"} 0",
        "peyk_lanes_held 0",
        "peyk_lane_repairs_total 0",
        "peyk_pruned_total{kind=\"message\"} 0",
        "peyk_queue_depth 0",
        "peyk_queue_oldest_due_seconds 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}
