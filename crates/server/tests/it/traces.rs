//! Traces from a POST to each attempt: for a collector, and for receivers.
//!
//! Never: a collector that is more lenient than the protocol.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::json;
use testparts::Postgres;

use crate::support::receiver::Hit;
use crate::support::server::refused_setting;
use crate::support::{Receiver, Reply, Server, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Nothing but the policy holds a retry back.
const TRIED: [(&str, &str); 2] =
    [("PEYK_RETRY__ATTEMPTS_MAX", "1000"), ("PEYK_BREAKER__ENABLED", "false")];

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The spans of a request, each of which must be whole.
fn decoded(hit: &Hit) -> Vec<Span> {
    assert_eq!(hit.path, "/v1/traces");
    assert_eq!(hit.header("content-type"), "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(&hit.body[..]).unwrap();
    let [of_resource] = &request.resource_spans[..] else { panic!("{request:?}") };
    assert_eq!(of_resource.resource.as_ref().unwrap().attributes[0].key, "service.name");
    let [scoped] = &of_resource.scope_spans[..] else { panic!("{request:?}") };
    assert_eq!(scoped.scope.as_ref().unwrap().name, "peyk");
    for span in &scoped.spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert!(span.start_time_unix_nano > 0);
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        assert_eq!(span.flags & 1, 1, "sampled");
        let keys: Vec<_> = span.attributes.iter().map(|pair| &pair.key).collect();
        let once: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(once.len(), keys.len(), "{keys:?}");
    }
    scoped.spans.clone()
}

/// All spans that a collector took so far.
fn spans(collector: &Receiver) -> Vec<Span> {
    collector.hits().iter().flat_map(decoded).collect()
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |value: &Any| match value {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let pairs = span.attributes.iter();
    pairs
        .map(|pair| (pair.key.clone(), text(pair.value.as_ref().unwrap().value.as_ref().unwrap())))
        .collect()
}

async fn traced(more: &[(&str, &str)]) -> (Server, Receiver) {
    let collector = Receiver::start().await;
    let url = collector.url("/");
    let own = [
        ("PEYK_TELEMETRY__EVERY", "1s"),
        ("PEYK_TELEMETRY__TRACES__URL", url.as_str()),
        ("PEYK_TELEMETRY__TRACES__PER_MILLION", "1000000"),
    ];
    (Server::with(&[&own[..], more].concat()).await, collector)
}

async fn post(server: &Server, headers: &[(&str, &str)]) -> String {
    let body = json!({"eventType": "t", "payload": {"n": 1}}).to_string();
    let answer = server.send("POST", "/api/v1/app/a/msg", headers, body).await.expect(202);
    answer["id"].as_str().unwrap().to_owned()
}

/// From a POST over a restart to the delivery, with its retries.
async fn over_a_restart(database: &[(&str, &str)]) {
    let (mut server, collector) = traced(&[&TRIED[..], database].concat()).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(503)).await;
    server.app_with("a", &receiver.url("/path?token=hunter2"), json!({})).await;
    let given = parent("01");
    let id = post(&server, &[("traceparent", &given), ("tracestate", "a=1, b=2")]).await;
    receiver.wait_for(1).await;
    assert_eq!(server.stop(), Some(0));
    receiver.script(|_, _| Reply::status(200));
    server.start_again();
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    let hits = receiver.hits();
    let found = until("all spans", || async {
        let found = spans(&collector);
        (found.len() > hits.len()).then_some(found)
    })
    .await;
    assert_eq!(found.len(), hits.len() + 1);
    let root = found.iter().find(|span| span.name == "POST message").unwrap();
    assert_eq!((hex(&root.parent_span_id).as_str(), root.kind), (CALLER, SpanKind::Server as i32));
    assert_eq!(root.flags, 0x301, "its parent is in another process");
    assert_eq!(attributes(root)["messaging.message.id"], id);
    assert_eq!(attributes(root)["http.route"], "/api/v1/app/{app}/msg");
    for (number, hit) in (1..).zip(&hits) {
        let [_, trace, span, flags] =
            hit.header("traceparent").split('-').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((trace, flags), (TRACE, "01"));
        assert!(hit.headers.get("tracestate").is_none(), "it is the caller's own");
        let sent = found.iter().find(|it| hex(&it.span_id) == span).unwrap();
        assert_eq!((sent.name.as_str(), sent.kind), ("delivery attempt", SpanKind::Client as i32));
        assert_eq!((hex(&sent.trace_id).as_str(), sent.trace_state.as_str()), (TRACE, "a=1,b=2"));
        assert_eq!(sent.parent_span_id, root.span_id);
        assert!(sent.links.is_empty());
        let of = attributes(sent);
        assert_eq!(of["peyk.attempt"], number.to_string());
        assert_eq!(hit.header("webhook-attempt"), number.to_string());
        let (status, code) = if number < hits.len() { ("503", 2) } else { ("200", 0) };
        assert_eq!(of["http.response.status_code"], status);
        assert_eq!(sent.status.as_ref().map_or(0, |status| status.code), code);
        assert_eq!(of.get("error.type").map(String::as_str), (code == 2).then_some("503"));
    }
    let all = format!("{found:?}");
    assert!(!all.contains("hunter2") && !all.contains("/path"), "an origin and no more");
    assert_eq!(server.metric("peyk_spans_total{outcome=\"dropped\"}").await, 0.0);
    until("an answer of the collector", || async {
        (server.metric("peyk_spans_total{outcome=\"sent\"}").await > 0.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_trace_leads_from_the_post_to_each_attempt_over_a_restart() {
    over_a_restart(&[]).await;
}

#[tokio::test]
async fn one_trace_leads_from_the_post_to_each_attempt_in_postgresql() {
    let url = Postgres::shared().fresh_database();
    over_a_restart(&[("PEYK_DATABASE_URL", &url)]).await;
}

#[tokio::test]
async fn what_is_no_trace_begins_one_and_a_replay_is_linked() {
    let (server, collector) = traced(&[]).await;
    let receiver = Receiver::scripted(|_, _| Reply::status(400)).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let upper = parent("01").to_uppercase();
    let id = post(&server, &[("traceparent", &upper), ("tracestate", "a=1")]).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    receiver.script(|_, _| Reply::status(200));
    let path = format!("/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    server.wait_delivered("a", std::slice::from_ref(&id)).await;
    let found = until("three spans", || async {
        let found = spans(&collector);
        (found.len() == 3).then_some(found)
    })
    .await;
    let root = found.iter().find(|span| span.name == "POST message").unwrap();
    assert!(root.parent_span_id.is_empty() && root.trace_state.is_empty());
    assert!(found.iter().all(|span| span.trace_id == root.trace_id));
    assert_ne!(hex(&root.trace_id), TRACE, "it began anew");
    let sends: Vec<_> = found.iter().filter(|span| span.name == "delivery attempt").collect();
    assert!(sends.iter().all(|span| span.parent_span_id == root.span_id));
    let of = |trigger| sends.iter().find(|span| attributes(span)["peyk.trigger"] == trigger);
    let (first, replayed) = (of("scheduled").unwrap(), of("replay").unwrap());
    let [link] = &replayed.links[..] else { panic!("{replayed:?}") };
    assert_eq!((&link.trace_id, &link.span_id), (&first.trace_id, &first.span_id));
    assert!(first.links.is_empty());
    for (hit, span) in receiver.hits().iter().zip([first, replayed]) {
        let expected = format!("00-{}-{}-01", hex(&root.trace_id), hex(&span.span_id));
        assert_eq!(hit.header("traceparent"), expected);
    }
}

#[tokio::test]
async fn an_edited_payload_is_linked_to_what_it_was_made_of() {
    let (server, collector) = traced(&[]).await;
    let receiver = Receiver::scripted(|number, _| Reply::status([400, 200][number.min(1)])).await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    post(&server, &[]).await;
    let dead = server.wait_dead("a", 1).await.remove(0);
    let path = format!("/api/v1/app/a/dead-letter/{}/replay", dead["id"].as_str().unwrap());
    let headers = [("traceparent", parent("01"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    server.send("POST", &path, &headers, "{\"payload\":{\"n\":2}}").await.expect(202);
    let found = until("four spans", || async {
        let found = spans(&collector);
        (found.len() == 4).then_some(found)
    })
    .await;
    let roots: Vec<_> = found.iter().filter(|span| span.name == "POST message").collect();
    let edited = roots.iter().find(|span| hex(&span.trace_id) == TRACE).unwrap();
    let first = roots.iter().find(|span| hex(&span.trace_id) != TRACE).unwrap();
    assert_eq!(hex(&edited.parent_span_id), CALLER);
    let [link] = &edited.links[..] else { panic!("{edited:?}") };
    assert_eq!((&link.trace_id, &link.span_id), (&first.trace_id, &first.span_id));
    assert!(receiver.hits()[1].header("traceparent").starts_with(&format!("00-{TRACE}-")));
}

#[tokio::test]
async fn a_trace_that_its_caller_does_not_sample_is_not_sent() {
    let (server, collector) = traced(&[]).await;
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let given = parent("00");
    let quiet = post(&server, &[("traceparent", &given)]).await;
    server.wait_delivered("a", &[quiet]).await;
    let loud = post(&server, &[]).await;
    until("the spans of the other", || async { (spans(&collector).len() == 2).then_some(()) })
        .await;
    let all = spans(&collector);
    assert!(all.iter().all(|span| attributes(span)["messaging.message.id"] == loud));
    let told = receiver.hits()[0].header("traceparent").to_owned();
    assert!(told.starts_with(&format!("00-{TRACE}-")) && told.ends_with("-00"), "{told}");
}

#[tokio::test]
async fn without_a_collector_a_callers_trace_goes_on_as_it_is_told_to() {
    let given = parent("01");
    for (receivers, state) in [("traceparent", None), ("both", Some("a=1")), ("none", None)] {
        let server = Server::with(&[("PEYK_TELEMETRY__TRACES__RECEIVERS", receivers)]).await;
        let receiver = Receiver::start().await;
        server.app_with("a", &receiver.url("/"), json!({})).await;
        post(&server, &[("traceparent", &given), ("tracestate", "a=1")]).await;
        post(&server, &[]).await;
        let hits = receiver.wait_for(2).await;
        let of = |hit: &Hit, name: &str| {
            hit.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let told: Vec<_> = hits.iter().map(|hit| of(hit, "traceparent")).collect();
        let expected = (receivers != "none").then(|| given.clone());
        assert!(told.contains(&expected) && told.contains(&None), "{receivers}: {told:?}");
        let states: Vec<_> = hits.iter().filter_map(|hit| of(hit, "tracestate")).collect();
        assert_eq!(states.first().map(String::as_str), state, "{receivers}");
    }
}

#[tokio::test]
async fn a_collector_that_hangs_or_refuses_holds_up_nothing() {
    let gate = crate::support::Gate::shut();
    let held = gate.clone();
    let (server, collector) = traced(&[]).await;
    collector.script(move |number, _| match number {
        0 => Reply::status(200).held(&held),
        1 => Reply::status(400),
        _ => Reply::status(200),
    });
    let receiver = Receiver::start().await;
    server.app_with("a", &receiver.url("/"), json!({})).await;
    let first = server.messages("a", 3).await;
    server.wait_delivered("a", &first).await;
    collector.wait_for(1).await;
    let second = server.messages("a", 3).await;
    server.wait_delivered("a", &second).await;
    gate.open();
    let of = async |outcome: &str| {
        server.metric(&format!("peyk_spans_total{{outcome=\"{outcome}\"}}")).await
    };
    // What is refused for good is counted, and the next are sent.
    until("a refusal", || async { (of("refused").await > 0.0).then_some(()) }).await;
    let third = server.messages("a", 3).await;
    server.wait_delivered("a", &third).await;
    until("all are gone", || async {
        (of("sent").await + of("refused").await >= 18.0).then_some(())
    })
    .await;
    assert_eq!(of("sent").await + of("refused").await, 18.0);
    assert_eq!(of("dropped").await, 0.0);
}

#[tokio::test]
async fn settings_of_traces_are_refused_by_name() {
    for (name, value, key) in [
        ("PEYK_TELEMETRY__TRACES__URL", "https://collector", "telemetry.traces.url"),
        ("PEYK_TELEMETRY__TRACES__PER_MILLION", "1000001", "telemetry.traces.per_million"),
        ("PEYK_TELEMETRY__TRACES__RECEIVERS", "all", "telemetry.traces.receivers"),
    ] {
        let said = refused_setting(name, value);
        assert!(said.contains(name) || said.contains(key), "{said}");
    }
}
