//! What sends metrics and spans to others, begun and ended with the server.
//!
//! Never: hold up a request or a delivery.

use std::sync::Arc;
use std::time::Duration;

use engine::trace::{Tracer, Tracing};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::telemetry::Traces;
use crate::state::Shared;
use crate::telemetry::push::Pusher;
use crate::telemetry::spans::{Sender, Spans};

/// The last spans are given so long.
const LAST_MAX: Duration = Duration::from_secs(5);

/// The tasks, and what ends each.
#[derive(Default)]
pub(super) struct Pushing(Vec<(oneshot::Sender<()>, JoinHandle<()>)>);

/// What is made of traces, and the spans that wait if they are sent to anybody.
pub(super) fn tracing(of: &Traces) -> (Tracing, Option<Arc<Spans>>) {
    // Its counters are there though nothing is counted.
    let spans = Arc::new(Spans::new());
    let spans = of.otlp.as_ref().map(|_| spans);
    let tracer = spans.clone().map(|spans| spans as Arc<dyn Tracer>);
    (Tracing { tracer, share: of.share, to_receivers: of.to_receivers }, spans)
}

impl Pushing {
    /// Begins what the settings name.
    pub(super) fn start(shared: &Arc<Shared>, spans: Option<Arc<Spans>>) -> Self {
        let mut begun = Self::default();
        let push = &shared.settings.push;
        if let Some(pusher) = Pusher::new(push, shared.now()) {
            let shared = Arc::clone(shared);
            begun.add(|ended| tokio::spawn(metrics(shared, pusher, ended)));
        }
        if let (Some(spans), Some(to)) = (spans, push.traces.otlp.clone()) {
            let (sender, every) = (Sender::new(Arc::clone(&spans), to), push.every);
            begun.add(|ended| tokio::spawn(send_spans(spans, sender, every, ended)));
        }
        begun
    }

    fn add(&mut self, start: impl FnOnce(oneshot::Receiver<()>) -> JoinHandle<()>) {
        let (end, ended) = oneshot::channel();
        self.0.push((end, start(ended)));
    }

    /// Ends them, each with a last push.
    pub(super) async fn end(self) {
        let (ends, tasks): (Vec<_>, Vec<_>) = self.0.into_iter().unzip();
        drop(ends);
        for task in tasks {
            let _ended = task.await;
        }
    }
}

/// Sends metrics again and again, and once more at the end.
async fn metrics(shared: Arc<Shared>, mut pusher: Pusher, mut ended: oneshot::Receiver<()>) {
    let mut ticks = tokio::time::interval(pusher.every());
    let mut last = false;
    while !last {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut ended => last = true,
        }
        let queue = Arc::clone(&shared.engine.stores().queue);
        let text = shared.metrics.render(&queue, shared.now()).await;
        pusher.push(&text, shared.now()).await;
    }
}

/// Sends spans again and again, when there are many or it is time; after a fault only when it is
/// time.
async fn send_spans(
    spans: Arc<Spans>,
    mut sender: Sender,
    every: Duration,
    mut ended: oneshot::Receiver<()>,
) {
    let mut ticks = tokio::time::interval(every);
    let mut took = true;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = spans.many(), if took => {}
            _ = &mut ended => break,
        }
        took = sender.send().await;
    }
    let _gone = timeout(LAST_MAX, sender.send()).await;
}
