//! Traces: the span of each acceptance and each send, and the `traceparent` of a receiver.
//!
//! In: what is known when it ends. Out: a span, to whoever takes spans. Without anybody, and
//! without a trace of the caller's, nothing is made of it.
//! Never: keep a span, wait for whoever takes it, or let a sampled one change what is sent but for
//! two headers.

use std::sync::Arc;
use std::time::Duration;

use domain::attempt::Attempt;
use domain::endpoint::Endpoint;
use domain::ids::PublicId;
use domain::message::Envelope;
use domain::trace::{Given, SpanId, Trace, TraceId};
use http::{HeaderMap, HeaderName, HeaderValue};
use resilience::Timestamp;
use store::inbox::Accepted;

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// What receivers are told of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToReceivers {
    /// Nothing.
    Nothing,
    /// `traceparent`: ids, and nothing else.
    #[default]
    Parent,
    /// `tracestate` too, which is the caller's.
    Both,
}

/// Takes spans; must return at once.
pub trait Tracer: Send + Sync {
    /// One that has ended, and is sampled.
    fn take(&self, span: Span<'_>);
}

/// A span that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// What it is part of.
    pub parent: Option<SpanId>,
    /// What tracing systems left for each other.
    pub state: &'a str,
    /// What led to it, and is no part of the same trace or did not cause it alone.
    pub link: Option<(TraceId, SpanId)>,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// The message.
    pub message: &'a PublicId,
    /// Bytes of its payload.
    pub bytes: usize,
    /// What it is of.
    pub of: Of<'a>,
}

/// What a span is of.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// A request that was answered once its message was on disk.
    Post {
        /// The template of its path.
        route: &'static str,
        /// What it was answered.
        status: u16,
        /// The event type.
        event_type: &'a str,
    },
    /// A message of Peyk's own.
    Own {
        /// The event type.
        event_type: &'a str,
    },
    /// A send.
    Attempt {
        /// Where to.
        endpoint: &'a Endpoint,
        /// What came of it.
        attempt: &'a Attempt,
    },
}

/// A message that was accepted, and how long that took.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a> {
    /// Its id.
    pub message: &'a PublicId,
    /// The trace that its caller is in.
    pub given: Option<&'a Given>,
    /// Bytes of its payload.
    pub bytes: usize,
    /// When the request came.
    pub started_at: Timestamp,
    /// When it was on disk.
    pub ended_at: Timestamp,
    /// The acceptance that it was made of by somebody's edit.
    pub link: Option<(TraceId, SpanId)>,
}

/// What is made of traces.
#[derive(Clone, Default)]
pub struct Tracing {
    /// Who takes spans, if anybody does.
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Of those that begin here so many in a million are sampled.
    pub share: u32,
    /// What receivers are told.
    pub to_receivers: ToReceivers,
}

/// The span of a send that begins.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<'a> {
    trace: Trace<'a>,
    /// `None` where no spans are taken: then the caller's is handed on.
    span: Option<SpanId>,
    is_sampled: bool,
}

impl Tracing {
    /// Whether anything is made of what a caller brings along.
    pub fn reads(&self) -> bool {
        self.tracer.is_some() || self.to_receivers != ToReceivers::Nothing
    }

    /// A message was accepted.
    pub fn accepted(&self, begun: Begun<'_>, of: Of<'_>) {
        let Some(tracer) = &self.tracer else { return };
        let trace = Trace::of(begun.message, begun.given);
        if !trace.is_sampled(self.share) {
            return;
        }
        tracer.take(Span {
            trace: trace.id(),
            id: trace.accepted(),
            parent: trace.caller(),
            state: trace.state(),
            link: begun.link,
            started_at: begun.started_at,
            took: begun.ended_at.since(begun.started_at),
            message: begun.message,
            bytes: begun.bytes,
            of,
        });
    }

    /// A message of Peyk's own was accepted, or was before.
    pub(crate) fn own(&self, accepted: &Accepted, event_type: &str, bytes: usize) {
        if self.tracer.is_none() {
            return;
        }
        let Accepted::New { id, accepted_at, .. } = accepted else { return };
        let begun = Begun {
            message: id,
            given: None,
            bytes,
            started_at: *accepted_at,
            ended_at: *accepted_at,
            link: None,
        };
        self.accepted(begun, Of::Own { event_type });
    }

    /// A send begins; `None` when it is in no trace.
    pub(crate) fn ahead<'a>(
        &self,
        envelope: &'a Envelope,
        endpoint: &PublicId,
        number: u32,
    ) -> Option<Ahead<'a>> {
        let given = envelope.trace.as_deref();
        if self.tracer.is_none() && given.is_none() {
            return None;
        }
        let trace = Trace::of(&envelope.id, given);
        let is_sampled = trace.is_sampled(self.share);
        let span = self.tracer.is_some().then(|| trace.attempt(endpoint, number));
        Some(Ahead { trace, span, is_sampled })
    }

    /// What its receiver is told of it.
    pub(crate) fn tell(&self, ahead: &Ahead<'_>, headers: &mut HeaderMap) {
        if self.to_receivers == ToReceivers::Nothing {
            return;
        }
        let parent = match ahead.span {
            Some(span) => Some(ahead.trace.parent(span, ahead.is_sampled)),
            None => ahead.trace.parent_given(),
        };
        let Some(Ok(parent)) = parent.map(HeaderValue::try_from) else { return };
        headers.insert(PARENT, parent);
        let state = ahead.trace.state();
        if self.to_receivers == ToReceivers::Both
            && !state.is_empty()
            && let Ok(state) = HeaderValue::from_str(state)
        {
            headers.insert(STATE, state);
        }
    }

    /// A send ended.
    pub(crate) fn attempted(
        &self,
        ahead: &Ahead<'_>,
        envelope: &Envelope,
        (endpoint, attempt): (&Endpoint, &Attempt),
    ) {
        let (Some(tracer), Some(span)) = (&self.tracer, ahead.span) else { return };
        if !ahead.is_sampled {
            return;
        }
        let trace = ahead.trace;
        // What somebody put back follows from the send before it.
        let before = attempt.number.saturating_sub(1);
        let is_again = before > 0 && attempt.trigger.is_by_hand();
        let link = is_again.then(|| (trace.id(), trace.attempt(&endpoint.id, before)));
        tracer.take(Span {
            trace: trace.id(),
            id: span,
            parent: Some(trace.accepted()),
            state: trace.state(),
            link,
            started_at: attempt.started_at,
            took: attempt.took,
            message: &envelope.id,
            bytes: envelope.payload.len(),
            of: Of::Attempt { endpoint, attempt },
        });
    }
}

#[cfg(test)]
mod tests;
