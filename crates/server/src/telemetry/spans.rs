//! Spans on their way to a collector: written at once, sent many at a time.
//!
//! In: spans that ended. Out: requests to the collector, at an interval and when many wait. What
//! finds no room is counted and gone.
//! Never: make whoever ends a span wait for the collector, or hold more than a bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use engine::trace::{Span, Tracer};
use http::Uri;
use metrics::{Counter, counter};
use tokio::sync::Notify;

use super::collector::{Collector, Fault};
use super::{otlp, span};

/// Bytes of all spans that wait.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Spans of a request, and bytes of them.
const BATCH_SPANS: usize = 512;
const BATCH_BYTES: usize = 1 << 20;

/// Spans that wait.
pub(crate) struct Spans {
    waiting: Mutex<Waiting>,
    /// There are enough for a request.
    many: Notify,
    sent: Counter,
    dropped: Counter,
    refused: Counter,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Sends them.
pub(crate) struct Sender {
    spans: Arc<Spans>,
    collector: Collector,
    fault: Fault,
}

impl Tracer for Spans {
    fn take(&self, span: Span<'_>) {
        let bytes = span::written(&span);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.bytes + bytes.len() > WAITING_BYTES_MAX {
            drop(waiting);
            return self.dropped.increment(1);
        }
        waiting.bytes += bytes.len();
        waiting.spans.push_back(bytes);
        let is_many = waiting.spans.len() == BATCH_SPANS;
        drop(waiting);
        if is_many {
            self.many.notify_one();
        }
    }
}

impl Spans {
    pub(crate) fn new() -> Self {
        let of = |outcome| counter!("peyk_spans_total", "outcome" => outcome);
        Self {
            waiting: Mutex::default(),
            many: Notify::new(),
            sent: of("sent"),
            dropped: of("dropped"),
            refused: of("refused"),
        }
    }

    /// Waits until there are enough for a request.
    pub(crate) async fn many(&self) {
        self.many.notified().await;
    }

    /// The oldest ones; they still wait.
    fn batch(&self) -> Vec<Vec<u8>> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let oldest = waiting.spans.iter().take(BATCH_SPANS).take_while(|span| {
            bytes += span.len();
            bytes <= BATCH_BYTES
        });
        oldest.cloned().collect()
    }

    /// So many of the oldest wait no more.
    fn forget(&self, count: usize) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: usize = waiting.spans.drain(..count).map(|span| span.len()).sum();
        waiting.bytes -= gone;
    }
}

impl Sender {
    pub(crate) fn new(spans: Arc<Spans>, to: Uri) -> Self {
        Self { spans, collector: Collector::new(to), fault: Fault::default() }
    }

    /// Sends all that wait, until the collector does not take one; whether it took all.
    pub(crate) async fn send(&mut self) -> bool {
        loop {
            let batch = self.spans.batch();
            if batch.is_empty() {
                return true;
            }
            let sent = self.collector.post(otlp::spans(&batch)).await;
            let told = sent.as_ref().err().map(|refused| refused.text.as_str());
            self.fault.tell(("telemetry.traces.url", "spans"), told);
            let counter = match &sent {
                Ok(()) => &self.spans.sent,
                Err(refused) if refused.is_final => &self.spans.refused,
                Err(_) => return false,
            };
            self.spans.forget(batch.len());
            counter.increment(batch.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::ids::PublicId;
    use domain::trace::{SpanId, TraceId};
    use engine::trace::Of;
    use resilience::Timestamp;

    use super::*;

    #[test]
    fn what_finds_no_room_is_gone_and_what_was_there_stays() {
        let spans = Spans::new();
        let message = PublicId::new(1, [2; 12]);
        let name = "x".repeat(100_000);
        let span = Span {
            trace: TraceId([1; 16]),
            id: SpanId([2; 8]),
            parent: None,
            state: "",
            link: None,
            started_at: Timestamp::from_secs(1),
            took: Duration::from_secs(1),
            message: &message,
            bytes: 7,
            of: Of::Own { event_type: &name },
        };
        for _ in 0..100 {
            spans.take(span);
        }
        let held = |spans: &Spans| {
            let waiting = spans.waiting.lock().unwrap();
            assert_eq!(waiting.bytes, waiting.spans.iter().map(Vec::len).sum::<usize>());
            (waiting.spans.len(), waiting.bytes)
        };
        let (count, bytes) = held(&spans);
        assert!((30..50).contains(&count) && bytes <= WAITING_BYTES_MAX, "{count} of {bytes}");
        let batch = spans.batch();
        assert!((5..20).contains(&batch.len()), "a request is bounded: {}", batch.len());
        spans.forget(batch.len());
        assert_eq!(held(&spans).0, count - batch.len());
    }
}
