//! The span of a request that makes a message, and the trace that the message is in.
//!
//! Never: a span of a request that made none; its caller sees what it was answered.

use std::sync::Arc;

use domain::ids::PublicId;
use domain::message::MessageSpec;
use domain::trace::{Given, SpanId, TraceId};
use engine::trace::{Begun, Of};
use http::StatusCode;
use resilience::Timestamp;
use store::inbox::Accepted;

use crate::http::extract::Received;
use crate::state::Shared;

/// A request that may make a message.
pub(super) struct Traced<'s> {
    shared: &'s Shared,
    route: &'static str,
    /// When it came; `None` when nobody takes spans.
    began: Option<Timestamp>,
}

impl<'s> Traced<'s> {
    pub(super) fn begin(shared: &'s Shared, route: &'static str) -> Self {
        let began = shared.tracing.tracer.as_ref().map(|_| shared.now());
        Self { shared, route, began }
    }

    /// The trace that the message is to be in, if it is its caller's.
    pub(super) fn given(&self, received: &Received) -> Option<Arc<Given>> {
        if self.shared.tracing.reads() { received.trace() } else { None }
    }

    /// It was accepted with this status, or was not.
    pub(super) fn end(&self, status: StatusCode, accepted: &Accepted, spec: &MessageSpec) {
        if let Accepted::New { id, .. } = accepted {
            self.made(status, id, spec, None);
        }
    }

    /// It was answered with this status, and made this message because of that span.
    pub(super) fn made(
        &self,
        status: StatusCode,
        message: &PublicId,
        spec: &MessageSpec,
        link: Option<(TraceId, SpanId)>,
    ) {
        let Some(started_at) = self.began else { return };
        let begun = Begun {
            message,
            given: spec.trace.as_deref(),
            bytes: spec.payload.len(),
            started_at,
            ended_at: self.shared.now(),
            link,
        };
        let (route, status, event_type) = (self.route, status.as_u16(), &spec.event_type);
        self.shared.tracing.accepted(begun, Of::Post { route, status, event_type });
    }
}
