//! One span in the protocol of OpenTelemetry, with attributes of its conventions.
//!
//! In: a span of the engine. Out: its bytes in a request.
//! Never: a payload, a header, a path or a query of a receiver's URL, or a text that a receiver
//! chose.

use domain::attempt::{Attempt, Outcome};
use domain::delivery::Trigger;
use domain::endpoint::Endpoint;
use domain::ids::{Kind, PublicId};
use domain::target::Host;
use domain::trace::{SpanId, TraceId};
use engine::trace::{Of, Span};

use super::otlp::{attribute, nanos};
use super::protobuf::Message;

const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// The code of the status of what failed; without one it is not said.
const FAILED: u64 = 2;
/// Flags: whose parent it is, is known; and it is in another process.
const PARENT_KNOWN: u32 = 0x100;
const PARENT_ELSEWHERE: u32 = 0x200;
const SAMPLED: u32 = 1;

/// Its bytes.
pub(super) fn written(span: &Span<'_>) -> Vec<u8> {
    let started = nanos(span.started_at);
    let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
    let (name, kind) = match &span.of {
        Of::Post { .. } => ("POST message", SERVER),
        Of::Own { .. } => ("own message", INTERNAL),
        Of::Attempt { .. } => ("delivery attempt", CLIENT),
    };
    let mut message = Message::default().blob(1, &span.trace.0).blob(2, &span.id.0);
    if !span.state.is_empty() {
        message = message.text(3, span.state);
    }
    if let Some(parent) = span.parent {
        message = message.blob(4, &parent.0);
    }
    message = message
        .text(5, name)
        .number(6, kind)
        .fixed(7, started)
        .fixed(8, started.saturating_add(took))
        .messages(9, shared(span))
        .messages(9, own(&span.of));
    if let Some(to) = span.link {
        message = message.message(13, link(to));
    }
    if let Some(failure) = failure(&span.of) {
        message = message.message(15, Message::default().text(2, &failure).number(3, FAILED));
    }
    let elsewhere = if kind == SERVER && span.parent.is_some() { PARENT_ELSEWHERE } else { 0 };
    let flags = SAMPLED | PARENT_KNOWN | elsewhere;
    message.fixed_small(16, flags).done()
}

fn link((trace, span): (TraceId, SpanId)) -> Message {
    Message::default().blob(1, &trace.0).blob(2, &span.0)
}

fn shared(span: &Span<'_>) -> [Message; 3] {
    [
        attribute("messaging.system", "peyk"),
        attribute("messaging.message.id", &id(Kind::Message, span.message)),
        count("messaging.message.body.size", span.bytes as u64),
    ]
}

fn own(of: &Of<'_>) -> Vec<Message> {
    match of {
        Of::Post { route, status, event_type } => vec![
            attribute("messaging.operation.name", "accept"),
            attribute("messaging.operation.type", "create"),
            attribute("http.request.method", "POST"),
            attribute("http.route", route),
            count("http.response.status_code", u64::from(*status)),
            attribute("peyk.event_type", event_type),
        ],
        Of::Own { event_type } => vec![
            attribute("messaging.operation.name", "accept"),
            attribute("messaging.operation.type", "create"),
            attribute("peyk.event_type", event_type),
        ],
        Of::Attempt { endpoint, attempt } => sent(endpoint, attempt),
    }
}

fn sent(endpoint: &Endpoint, attempt: &Attempt) -> Vec<Message> {
    let target = &endpoint.spec.target;
    let address = match target.host_for_dns() {
        Host::Name(name) => name.to_owned(),
        Host::Ip(address) => address.to_string(),
    };
    let mut attributes = vec![
        attribute("messaging.operation.name", "deliver"),
        attribute("messaging.operation.type", "send"),
        attribute("http.request.method", "POST"),
        attribute("url.full", &target.origin()),
        attribute("server.address", &address),
        count("server.port", u64::from(target.port())),
        attribute("peyk.endpoint.id", &id(Kind::Endpoint, &endpoint.id)),
        count("peyk.attempt", u64::from(attempt.number)),
        attribute("peyk.trigger", trigger(attempt.trigger)),
    ];
    if attempt.number > 1 {
        let again = u64::from(attempt.number - 1);
        attributes.push(count("http.request.resend_count", again));
    }
    if attempt.status() > 0 {
        attributes.push(count("http.response.status_code", u64::from(attempt.status())));
    }
    if let Some(kind) = failure(&Of::Attempt { endpoint, attempt }) {
        attributes.push(attribute("error.type", &kind));
    }
    attributes
}

/// What is wrong with it, in a word or a number.
fn failure(of: &Of<'_>) -> Option<String> {
    let Of::Attempt { attempt, .. } = of else { return None };
    match &attempt.outcome {
        Outcome::Answered(answer) if (200..300).contains(&answer.status) => None,
        Outcome::Answered(answer) => Some(answer.status.to_string()),
        Outcome::Failed(failure) => Some(failure.kind.name().to_owned()),
    }
}

const fn trigger(of: Trigger) -> &'static str {
    match of {
        Trigger::Scheduled => "scheduled",
        Trigger::Manual => "manual",
        Trigger::Replay => "replay",
        Trigger::Asked => "asked",
    }
}

fn id(kind: Kind, of: &PublicId) -> String {
    of.text(kind)
}

fn count(name: &str, number: u64) -> Message {
    Message::default().text(1, name).message(2, Message::default().number(3, number))
}
