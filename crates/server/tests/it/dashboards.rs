//! The dashboard and the rules in `deploy` name metrics that are served, and Prometheus takes both.
//!
//! Never: a metric that is only named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Server, until};

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file).canonicalize().unwrap()
}

/// Names that begin as ours do.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter: char| !is_part(letter));
    words.filter(|word| word.starts_with("peyk_")).map(str::to_owned).collect()
}

/// Every expression of the dashboard.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_metric_of_dashboard_and_rules_is_served() {
    let server = Server::start().await;
    let page = server.send("GET", "/metrics", &[], "").await.text();
    let typed = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let served: BTreeSet<String> = typed
        .flat_map(|(name, kind)| match kind {
            "histogram" => {
                ["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")).to_vec()
            }
            _ => vec![name.to_owned()],
        })
        .collect();
    let dashboard = std::fs::read_to_string(deploy("grafana/peyk.json")).unwrap();
    let rules = std::fs::read_to_string(deploy("prometheus/rules.yml")).unwrap();
    let parsed: Value = serde_json::from_str(&dashboard).unwrap();
    let in_panels = names(&expressions(&parsed).join("\n"));
    // What a description names counts too, but for the ends of histograms.
    let in_rules = names(&rules);
    assert!(in_panels.len() > 12 && in_rules.len() > 10, "{in_panels:?} {in_rules:?}");
    for name in in_panels.union(&in_rules) {
        assert!(served.contains(name), "{name} is not served");
    }
}

/// A node takes messages whose endpoints another one serves; both say what waits in their database.
#[test]
fn a_node_that_others_deliver_for_is_no_alarm_and_a_fleet_that_delivers_nothing_is() {
    let rules = deploy("prometheus/rules.yml");
    let series = |name: &str, node: usize, values: &str| json!({"series": format!("{name}{{job=\"peyk\", instance=\"node-{node}\"}}"), "values": values});
    let delivered = |node: usize, values: &str| {
        let name = "peyk_deliveries_total{outcome=\"delivered\", job=\"peyk\", instance=\"node-";
        json!({"series": format!("{name}{node}\"}}"), "values": values})
    };
    let alarm = json!({
        "exp_labels": {"severity": "critical"},
        "exp_annotations": {
            "summary": "Messages are accepted and none is delivered",
            "description": "See peyk_attempts_total by class, peyk_breakers and peyk_holds.",
        },
    });
    let fleet = |by_worker: &str, alarms: Value| {
        json!({
            "interval": "1m",
            "input_series": [
                series("peyk_messages_total", 1, "0+60x40"),
                series("peyk_queue_depth", 1, "7+0x40"),
                series("peyk_queue_depth", 2, "7+0x40"),
                delivered(1, "3+0x40"),
                delivered(2, by_worker),
            ],
            "alert_rule_test": [
                {"eval_time": "35m", "alertname": "PeykNothingDelivered", "exp_alerts": alarms},
            ],
        })
    };
    let tests = json!({
        "rule_files": [rules.display().to_string()],
        "tests": [fleet("0+60x40", json!([])), fleet("9+0x40", json!([alarm]))],
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tests.yml");
    // JSON is YAML.
    std::fs::write(&file, tests.to_string()).unwrap();
    let said = testparts::Prometheus::test_rules(&file);
    assert!(said.contains("SUCCESS"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_takes_the_rules_and_what_is_served() {
    let rules = deploy("prometheus/rules.yml");
    let said = testparts::Prometheus::check_rules(&rules);
    assert!(said.contains("SUCCESS"), "{said}");
    let server = Server::start().await;
    let receiver = Receiver::scripted(|number, _| Reply::status([200, 404][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 2).await;
    server.wait_dead("a", 1).await;
    let target = server.address().to_owned();
    let prometheus =
        tokio::task::spawn_blocking(move || testparts::Prometheus::start(&target, &rules));
    let prometheus = prometheus.await.unwrap();
    let ask = async |query: &str| {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let path = format!("http://127.0.0.1:{}/api/v1/query?query={query}", prometheus.port());
        server.fetch(&path).await.json()
    };
    let scraped = until("a scrape", async || {
        let found = ask("peyk_dead_letters_total{reason=\"rejected\"}").await;
        let value = found["data"]["result"][0]["value"][1].as_str()?.to_owned();
        (value == "1").then_some(found)
    });
    let scraped = scraped.await;
    assert_eq!(scraped["data"]["result"][0]["metric"]["job"], "peyk");
    assert_eq!(ask("up").await["data"]["result"][0]["value"][1], "1");
    // Every expression is one, whether it finds anything or not.
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(deploy("grafana/peyk.json")).unwrap())
            .unwrap();
    for expression in expressions(&dashboard) {
        let expression = expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
        let found = ask(&expression).await;
        assert_eq!(found["status"], "success", "{expression}: {found}");
    }
}
