//! Metrics as a request of the OpenTelemetry protocol, in Protocol Buffers over HTTP.
//!
//! Spans are enclosed in the same way.
//! In: what there is now, since when it is counted, what time it is. Out: the body of a POST to
//! `/v1/metrics`. Counters and distributions are cumulative, as they are scraped.
//! Never: send it; `push` does.

use resilience::Timestamp;

use super::protobuf::Message;
use super::samples::{Kind, Labels, Metric, Spread, Value};

/// Sums that go on from the start of the process.
const CUMULATIVE: u64 = 2;

/// The span that a request tells of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    pub(super) started: Timestamp,
    pub(super) now: Timestamp,
}

/// The body of a request.
pub(super) fn request(metrics: &[Metric], since: Since) -> Vec<u8> {
    let scoped = Message::default()
        .message(1, scope())
        .messages(2, metrics.iter().map(|metric| one(metric, since)));
    of_resource(scoped)
}

/// The body of a request: all that one scope tells, of this server.
fn of_resource(scoped: Message) -> Vec<u8> {
    let service = [("service.name", "peyk"), ("service.version", env!("CARGO_PKG_VERSION"))];
    let resource =
        Message::default().messages(1, service.map(|(name, value)| attribute(name, value)));
    let of_resource = Message::default().message(1, resource).message(2, scoped);
    Message::default().message(1, of_resource).done()
}

fn scope() -> Message {
    Message::default().text(1, "peyk").text(2, env!("CARGO_PKG_VERSION"))
}

/// The body of a request to `/v1/traces`, of spans that are written already.
pub(super) fn spans(spans: &[Vec<u8>]) -> Vec<u8> {
    let scoped = Message::default().message(1, scope());
    of_resource(spans.iter().fold(scoped, |scoped, span| scoped.blob(2, span)))
}

fn one(metric: &Metric, since: Since) -> Message {
    let head = Message::default().text(1, &metric.name).text(2, &metric.help);
    let numbers = || {
        let numbers = metric.series.iter().filter_map(|(labels, value)| match value {
            Value::Number(number) => Some((labels, *number)),
            Value::Spread(_) => None,
        });
        numbers.map(|(labels, number)| number_point(labels, number, since))
    };
    match metric.kind {
        Kind::Gauge => head.message(5, Message::default().messages(1, numbers())),
        Kind::Counter => {
            let sum = Message::default().messages(1, numbers()).number(2, CUMULATIVE).number(3, 1);
            head.message(7, sum)
        }
        Kind::Histogram => {
            let spreads = metric.series.iter().filter_map(|(labels, value)| match value {
                Value::Spread(spread) => Some(spread_point(labels, spread, since)),
                Value::Number(_) => None,
            });
            head.message(9, Message::default().messages(1, spreads).number(2, CUMULATIVE))
        }
    }
}

fn number_point(labels: &Labels, number: f64, since: Since) -> Message {
    let point = Message::default().fixed(2, nanos(since.started)).fixed(3, nanos(since.now));
    point.double(4, number).messages(7, attributes(labels))
}

fn spread_point(labels: &Labels, spread: &Spread, since: Since) -> Message {
    let point = Message::default().fixed(2, nanos(since.started)).fixed(3, nanos(since.now));
    point
        .fixed(4, spread.counts.iter().sum())
        .double(5, spread.sum)
        .all_fixed(6, spread.counts.iter().copied())
        .all_fixed(7, spread.bounds.iter().map(|bound| bound.to_bits()))
        .messages(9, attributes(labels))
}

fn attributes(labels: &Labels) -> impl Iterator<Item = Message> + '_ {
    labels.iter().map(|(name, value)| attribute(name, value))
}

pub(super) fn attribute(name: &str, value: &str) -> Message {
    Message::default().text(1, name).message(2, Message::default().text(1, value))
}

pub(super) fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros()).unwrap_or(0).saturating_mul(1_000)
}
