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

/// OB-01: whatever is asked for, and however many endpoints there are, no series is added.
#[tokio::test]
async fn ob_01_odd_requests_and_many_endpoints_add_no_series() {
    let server = Server::start().await;
    let receiver = Receiver::scripted(|number, _| {
        Reply::status(200 + u16::try_from(number * 37 % 700).unwrap())
    })
    .await;
    let series = async || {
        let text = server.send("GET", "/metrics", &[], "").await.text();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let names: std::collections::BTreeSet<String> =
            lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
        (names, text.len())
    };
    server.app_with("first", &receiver.url("/"), json!({})).await;
    let (before, _) = series().await;
    let methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"];
    for number in 0..1_000 {
        let method = methods[number % methods.len()];
        let path = match number % 3 {
            0 => format!("/{number:x}/secret-{number}"),
            1 => format!("/api/v1/app/app_{number}/endpoint/{number}/stats"),
            _ => format!("/api/v1/{number}?token={number}"),
        };
        server.send(method, &path, &[], "").await;
    }
    for number in 0..60 {
        let app = format!("app-{number}");
        server.app_with(&app, &receiver.url(&format!("/{number}")), json!({})).await;
        server.message(&app, json!({})).await;
    }
    server.wait_idle("app-0").await;
    let (after, length) = series().await;
    assert_eq!(after, before);
    assert!(length < 200_000, "{length} bytes");
}
