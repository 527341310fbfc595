//! Metrics: the recorder behind every `peyk_…` series, what the API counts, and the queue's depth.
//!
//! Labels are bounded by construction: route templates that were registered, and classes of status.
//! Never: a path, an id, or a text of a caller as a label.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{Counter, Gauge, counter, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use resilience::Timestamp;
use store::queue::Queue;

use super::help;

/// The depth is read from the store no more often than this.
const DEPTH_FRESH: Duration = Duration::from_secs(1);
/// A scrape waits no longer for the look at the queue; the next one shows what it found.
const LOOK_WAIT_MAX: Duration = Duration::from_millis(10);
/// Between two looks lie so many times what the last one took: looking takes a twentieth of a core
/// at most, however many endpoints have work.
const LOOK_PAUSES: u32 = 20;
/// Bounds of histograms in seconds.
const SECONDS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];
/// Bounds of the histogram of durations of sends, fine enough for a quantile.
const SEND_SECONDS: [f64; 19] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0,
    15.0, 30.0,
];
/// Bounds of a histogram of operations in a batch.
const OPERATIONS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0];
/// Bounds of a histogram of sends.
const SENDS: [f64; 7] = [1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0];
/// The template of what no route matches.
pub(crate) const UNMATCHED: &str = "unmatched";
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Requests counted by route and class of status, and the text of all metrics.
pub(crate) struct Metrics {
    handle: PrometheusHandle,
    requests: HashMap<&'static str, [Counter; 4]>,
    queue: Arc<QueueGauges>,
}

/// How the queue is, as it was looked at last.
struct QueueGauges {
    depth: Gauge,
    oldest_due: Gauge,
    looked: Mutex<Looked>,
    /// Somebody looks now.
    looking: AtomicBool,
}

/// The last look.
#[derive(Clone, Copy, Default)]
struct Looked {
    at: Option<Timestamp>,
    took: Duration,
}

impl Metrics {
    /// Installs the recorder of this process. Comes before engine and store, so that theirs are
    /// counted too.
    pub(crate) fn install(routes: &[&'static str]) -> Result<Self, String> {
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(|made| {
                made.set_buckets_for_metric(
                    Matcher::Suffix("_batch_operations".to_owned()),
                    &OPERATIONS,
                )
            })
            .and_then(|made| {
                made.set_buckets_for_metric(
                    Matcher::Suffix("_attempts_to_success".to_owned()),
                    &SENDS,
                )
            })
            .and_then(|made| {
                let name = Matcher::Full("peyk_attempt_seconds".to_owned());
                made.set_buckets_for_metric(name, &SEND_SECONDS)
            })
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|fault| format!("cannot begin metrics: {fault}"))?;
        help::describe();
        let requests = routes.iter().copied().chain([UNMATCHED]);
        Ok(Self {
            handle,
            requests: requests.map(|route| (route, counters(route))).collect(),
            queue: Arc::new(QueueGauges {
                depth: gauge!("peyk_queue_depth"),
                oldest_due: gauge!("peyk_queue_oldest_due_seconds"),
                looked: Mutex::default(),
                looking: AtomicBool::new(false),
            }),
        })
    }

    /// Counts one answer.
    pub(crate) fn count(&self, route: &str, status: u16) {
        let counters = self.requests.get(route).or_else(|| self.requests.get(UNMATCHED));
        let class = usize::from(status / 100).saturating_sub(2);
        if let Some(counter) = counters.and_then(|counters| counters.get(class)) {
            counter.increment(1);
        }
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) async fn render(&self, queue: &Arc<dyn Queue>, now: Timestamp) -> String {
        if self.queue.begin(now) {
            let (gauges, queue) = (Arc::clone(&self.queue), Arc::clone(queue));
            // With many endpoints that have work the look takes its time: it goes on beside.
            let look = tokio::spawn(async move { gauges.look(&*queue, now).await });
            let _later = tokio::time::timeout(LOOK_WAIT_MAX, look).await;
        }
        self.handle.run_upkeep();
        self.handle.render()
    }

    /// Keeps memory of histograms bounded though nobody asks for metrics.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

impl QueueGauges {
    /// Whether it is time to look, and nobody does.
    fn begin(&self, now: Timestamp) -> bool {
        let Ok(mut looked) = self.looked.lock() else { return false };
        let begins = !looked.is_fresh(now) && !self.looking.swap(true, Ordering::Relaxed);
        if begins {
            looked.at = Some(now);
        }
        begins
    }

    async fn look(&self, queue: &dyn Queue, now: Timestamp) {
        let began = tokio::time::Instant::now();
        match queue.depth().await {
            Ok((depth, earliest)) => {
                self.depth.set(to_float(depth));
                let age = earliest.map_or(Duration::ZERO, |due| now.since(due));
                self.oldest_due.set(age.as_secs_f64());
            }
            Err(fault) => tracing::warn!(%fault, "cannot read the depth of the queue"),
        }
        if let Ok(mut looked) = self.looked.lock() {
            looked.took = began.elapsed();
        }
        self.looking.store(false, Ordering::Relaxed);
    }
}

impl Looked {
    /// Whether what was found still does.
    fn is_fresh(&self, now: Timestamp) -> bool {
        let fresh = DEPTH_FRESH.max(self.took.saturating_mul(LOOK_PAUSES));
        // A clock that was set back must not freeze the gauge.
        self.at.is_some_and(|at| at <= now && now.since(at) < fresh)
    }
}

fn counters(route: &'static str) -> [Counter; 4] {
    CLASSES.map(|class| counter!("peyk_api_requests_total", "route" => route, "status" => class))
}

#[expect(clippy::cast_precision_loss, reason = "a count for people; exact up to 2^53")]
const fn to_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_long_is_made_less_often() {
        let at = Timestamp::from_secs(1_800_000_000);
        let after = |millis| at.plus(Duration::from_millis(millis));
        let quick = Looked { at: Some(at), took: Duration::from_millis(3) };
        assert!(quick.is_fresh(after(999)) && !quick.is_fresh(after(1_000)));
        let slow = Looked { at: Some(at), took: Duration::from_millis(100) };
        assert!(slow.is_fresh(after(1_999)) && !slow.is_fresh(after(2_000)));
        assert!(!slow.is_fresh(at.minus(Duration::from_secs(1))), "the clock was set back");
        assert!(!Looked::default().is_fresh(at));
    }

    /// OB-01: 100,000 paths and every status fall into as many series as there were.
    #[test]
    fn ob_01_paths_and_statuses_add_no_series() {
        let metrics = Metrics::install(&["/api/v1/app", "/metrics"]).unwrap();
        let series = || metrics.handle.render().lines().count();
        let before = series();
        for number in 0..100_000_u32 {
            let status = u16::try_from(100 + number % 900).unwrap();
            metrics.count(&format!("/{number:x}/{}", number.wrapping_mul(2_654_435_761)), status);
        }
        metrics.count("/metrics", 200);
        assert_eq!(series(), before);
        let text = metrics.handle.render();
        let unmatched = format!("route=\"{UNMATCHED}\",status=\"4xx\"");
        assert!(text.contains(&unmatched), "{text}");
    }
}
