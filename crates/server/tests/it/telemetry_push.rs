//! Metrics that are sent: to an agent over UDP, to a collector over HTTP.
//!
//! Never: a receiver that is more lenient than the protocol.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};
use prost::Message as _;
use serde_json::json;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::support::server::refused_setting;
use crate::support::{PATIENCE, Receiver, Reply, Server};

/// Lines by name and tags, checked against the protocol.
async fn lines(agent: &UdpSocket, sums: &mut BTreeMap<String, f64>) {
    let mut bytes = [0; 2_000];
    let length = timeout(PATIENCE, agent.recv(&mut bytes)).await.unwrap().unwrap();
    assert!(length <= 1_432, "{length} bytes");
    for line in std::str::from_utf8(&bytes[..length]).unwrap().lines() {
        let (name, rest) = line.split_once(':').unwrap();
        assert!(name.starts_with("test.peyk_"), "{line}");
        let parts: Vec<_> = rest.split('|').collect();
        let value: f64 = parts[0].parse().unwrap();
        assert!(["c", "g", "d"].contains(&parts[1]), "{line}");
        let mut weight = 1.0;
        for part in &parts[2..] {
            match part.split_at(1) {
                ("@", rate) => weight = (1.0 / rate.parse::<f64>().unwrap()).round(),
                ("#", tags) => assert!(tags.ends_with("env:test"), "{line}"),
                _ => panic!("{line}"),
            }
        }
        let tags = parts.last().unwrap();
        let sum = sums.entry(format!("{name}{tags}")).or_default();
        match parts[1] {
            "g" => *sum = value,
            "c" => *sum += value,
            _ => *sum += weight,
        }
    }
}

#[tokio::test]
async fn an_agent_is_told_what_has_grown_and_what_is() {
    let agent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = agent.local_addr().unwrap().to_string();
    let mut server = Server::with(&[
        ("PEYK_TELEMETRY__EVERY", "1s"),
        ("PEYK_TELEMETRY__DOGSTATSD__ADDRESS", &address),
        ("PEYK_TELEMETRY__DOGSTATSD__PREFIX", "test."),
        ("PEYK_TELEMETRY__DOGSTATSD__TAGS", "env:test"),
    ])
    .await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 7).await;
    server.wait_idle("a").await;
    let mut sums = BTreeMap::new();
    let of = |sums: &BTreeMap<String, f64>, name: &str| sums.get(name).copied().unwrap_or(0.0);
    // However many pushes it took: each says only what is new.
    while of(&sums, "test.peyk_deliveries_total#outcome:delivered,env:test") < 7.0
        || of(&sums, "test.peyk_attempt_seconds#env:test") < 7.0
        || of(&sums, "test.peyk_messages_total#env:test") < 7.0
    {
        lines(&agent, &mut sums).await;
    }
    server.stop();
    let last = async {
        loop {
            lines(&agent, &mut sums).await
        }
    };
    let _quiet = timeout(std::time::Duration::from_millis(300), last).await;
    assert_eq!(of(&sums, "test.peyk_deliveries_total#outcome:delivered,env:test"), 7.0);
    assert_eq!(of(&sums, "test.peyk_attempt_seconds#env:test"), 7.0);
    assert_eq!(of(&sums, "test.peyk_messages_total#env:test"), 7.0);
    assert_eq!(of(&sums, "test.peyk_queue_depth#env:test"), 0.0);
}

/// The metrics of a request, by name.
fn decoded(body: &[u8]) -> BTreeMap<String, Metric> {
    let request = ExportMetricsServiceRequest::decode(body).unwrap();
    let [of_resource] = &request.resource_metrics[..] else { panic!("{request:?}") };
    let resource = of_resource.resource.as_ref().unwrap();
    assert_eq!(resource.attributes[0].key, "service.name");
    let [scoped] = &of_resource.scope_metrics[..] else { panic!("{request:?}") };
    assert_eq!(scoped.scope.as_ref().unwrap().name, "peyk");
    scoped.metrics.iter().map(|metric| (metric.name.clone(), metric.clone())).collect()
}

/// The sum of a counter over all its series, each of which must be whole.
fn total(metric: &Metric) -> f64 {
    let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality, AggregationTemporality::Cumulative as i32);
    let values = sum.data_points.iter().map(|point| {
        assert!(point.start_time_unix_nano > 0);
        assert!(point.time_unix_nano >= point.start_time_unix_nano);
        let Some(Value::AsDouble(value)) = point.value else { panic!("{point:?}") };
        value
    });
    values.sum()
}

#[tokio::test]
async fn a_collector_gets_requests_of_the_published_protocol() {
    let collector = Receiver::scripted(|number, _| Reply::status([503, 200][number.min(1)])).await;
    let base = collector.url("/otlp/");
    let server =
        Server::with(&[("PEYK_TELEMETRY__EVERY", "1s"), ("PEYK_TELEMETRY__OTLP__URL", &base)])
            .await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    server.messages("a", 5).await;
    server.wait_idle("a").await;
    let mut found = BTreeMap::new();
    for number in 1.. {
        let hit = collector.wait_for(number).await.pop().unwrap();
        assert_eq!(hit.path, "/otlp/v1/metrics");
        assert_eq!(hit.header("content-type"), "application/x-protobuf");
        found = decoded(&hit.body);
        if total(&found["peyk_messages_total"]) >= 5.0 {
            break;
        }
    }
    assert_eq!(found["peyk_messages_total"].description, "Messages accepted.");
    let Some(Data::Gauge(depth)) = &found["peyk_queue_depth"].data else { panic!("no gauge") };
    assert_eq!(depth.data_points.len(), 1);
    let Some(Data::Histogram(spread)) = &found["peyk_attempt_seconds"].data else {
        panic!("no histogram")
    };
    let [point] = &spread.data_points[..] else { panic!("{spread:?}") };
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    assert!(point.explicit_bounds.is_sorted() && point.sum.is_some());
    let Some(Data::Sum(attempts)) = &found["peyk_attempts_total"].data else { panic!("no sum") };
    assert!(attempts.data_points.iter().all(|point| point.attributes[0].key == "class"));
    let text = server.log();
    assert!(text.contains("metrics cannot be sent"), "the first one was refused: {text}");
}

#[tokio::test]
async fn what_cannot_be_a_place_is_refused_by_name() {
    for (name, value, key) in [
        ("PEYK_TELEMETRY__DOGSTATSD__ADDRESS", "agent", "telemetry.dogstatsd.address"),
        ("PEYK_TELEMETRY__DOGSTATSD__PREFIX", "a b", "telemetry.dogstatsd.prefix"),
        ("PEYK_TELEMETRY__DOGSTATSD__TAGS", "a|b", "telemetry.dogstatsd.tags"),
        ("PEYK_TELEMETRY__OTLP__URL", "https://collector", "telemetry.otlp.url"),
        ("PEYK_TELEMETRY__EVERY", "10ms", "telemetry.every"),
    ] {
        let said = refused_setting(name, value);
        assert!(said.contains(name) || said.contains(key), "{said}");
    }
}
