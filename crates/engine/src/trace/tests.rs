//! What is told of a trace, to receivers and to whoever takes spans.
//!
//! Never: the network.

use std::sync::Mutex;

use bytes::Bytes;
use domain::attempt::{Answer, Outcome};
use domain::delivery::Trigger;
use domain::message::ContentType;
use domain::trace::SHARE_OF;
use resilience::RetryAfter;
use store::conformance::samples;

use super::*;

/// Keeps id, parent and link of each span.
#[derive(Default)]
struct Seen(Mutex<Vec<Ids>>);

/// A span, its parent, and the span that it is linked with.
type Ids = (SpanId, Option<SpanId>, Option<SpanId>);

impl Tracer for Seen {
    fn take(&self, span: Span<'_>) {
        self.0.lock().unwrap().push((span.id, span.parent, span.link.map(|(_, span)| span)));
    }
}

fn envelope(given: Option<Given>) -> Envelope {
    Envelope {
        id: PublicId::new(7 << 24, [9; 12]),
        payload: Bytes::from_static(b"{}"),
        content_type: ContentType::Json,
        trace: given.map(Arc::new),
    }
}

fn attempt(number: u32, trigger: Trigger) -> Attempt {
    let answer = Answer {
        status: 200,
        retry_after: RetryAfter::Absent,
        body: Bytes::new(),
        cut: None,
        redirect_origin: None,
    };
    Attempt {
        number,
        started_at: Timestamp::EPOCH,
        took: Duration::ZERO,
        trigger,
        outcome: Outcome::Answered(answer),
        resent: false,
    }
}

/// What a receiver is told of the first send.
fn told(tracing: &Tracing, given: Option<Given>) -> [Option<String>; 2] {
    let (envelope, endpoint) = (envelope(given), samples::stored_endpoint(samples::endpoint()));
    let mut headers = HeaderMap::new();
    if let Some(ahead) = tracing.ahead(&envelope, &endpoint.id, 1) {
        tracing.tell(&ahead, &mut headers);
    }
    ["traceparent", "tracestate"]
        .map(|name| headers.get(name).map(|value| value.to_str().unwrap().to_owned()))
}

fn given() -> Given {
    samples::given()
}

#[test]
fn without_anybody_who_takes_spans_the_callers_trace_is_handed_on() {
    let off = Tracing::default();
    assert_eq!(told(&off, None), [None, None]);
    let parent = format!("00-{}-{}-01", given().trace, given().parent);
    assert_eq!(told(&off, Some(given())), [Some(parent.clone()), None]);
    let both = Tracing { to_receivers: ToReceivers::Both, ..Tracing::default() };
    assert_eq!(told(&both, Some(given())), [Some(parent), Some(given().state)]);
    let none = Tracing { to_receivers: ToReceivers::Nothing, ..Tracing::default() };
    assert_eq!(told(&none, Some(given())), [None, None]);
    assert!(off.reads() && both.reads() && !none.reads());
}

#[test]
fn receivers_and_spans_name_the_same_send() {
    let seen = Arc::new(Seen::default());
    let tracer = Some(Arc::clone(&seen) as Arc<dyn Tracer>);
    let tracing = Tracing { tracer, share: SHARE_OF, ..Tracing::default() };
    let endpoint = samples::stored_endpoint(samples::endpoint());
    for given in [None, Some(given())] {
        let [parent, _] = told(&tracing, given.clone());
        let envelope = envelope(given);
        let trace = Trace::of(&envelope.id, envelope.trace.as_deref());
        let begun = Begun {
            message: &envelope.id,
            given: envelope.trace.as_deref(),
            bytes: 2,
            started_at: Timestamp::EPOCH,
            ended_at: Timestamp::EPOCH,
            link: None,
        };
        tracing.accepted(begun, Of::Own { event_type: "a" });
        for (number, trigger) in
            [(1, Trigger::Scheduled), (2, Trigger::Scheduled), (3, Trigger::Replay)]
        {
            let ahead = tracing.ahead(&envelope, &endpoint.id, number).unwrap();
            tracing.attempted(&ahead, &envelope, (&endpoint, &attempt(number, trigger)));
        }
        let spans = std::mem::take(&mut *seen.0.lock().unwrap());
        let of = |number| trace.attempt(&endpoint.id, number);
        let root = Some(trace.accepted());
        assert_eq!(
            spans,
            [
                (trace.accepted(), trace.caller(), None),
                (of(1), root, None),
                (of(2), root, None),
                (of(3), root, Some(of(2))),
            ]
        );
        assert_eq!(parent.unwrap(), format!("00-{}-{}-01", trace.id(), of(1)));
    }
}

#[test]
fn what_is_not_sampled_is_named_to_receivers_and_to_nobody_else() {
    let seen = Arc::new(Seen::default());
    let tracer = Some(Arc::clone(&seen) as Arc<dyn Tracer>);
    let tracing = Tracing { tracer, share: 0, ..Tracing::default() };
    let endpoint = samples::stored_endpoint(samples::endpoint());
    for given in [None, Some(Given { flags: 0, ..given() })] {
        let [parent, _] = told(&tracing, given.clone());
        assert!(parent.unwrap().ends_with("-00"));
        let envelope = envelope(given);
        let ahead = tracing.ahead(&envelope, &endpoint.id, 1).unwrap();
        let attempt = attempt(1, Trigger::Scheduled);
        tracing.attempted(&ahead, &envelope, (&endpoint, &attempt));
    }
    assert!(seen.0.lock().unwrap().is_empty());
}
