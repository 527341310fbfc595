//! Metrics: the recorder behind every `peyk_…` series, what the API counts, and the queue's depth.
//!
//! Labels are bounded by construction: route templates that were registered, and classes of status.
//! Never: a path, an id, or a text of a caller as a label.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use metrics::{Counter, Gauge, counter, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use resilience::Timestamp;
use store::queue::Queue;

use super::help;

/// The depth is read from the store no more often than this.
const DEPTH_FRESH: Duration = Duration::from_secs(1);
/// Bounds of histograms in seconds.
const SECONDS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];
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
    depth: Gauge,
    oldest_due: Gauge,
    depth_at: Mutex<Option<Timestamp>>,
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
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|fault| format!("cannot begin metrics: {fault}"))?;
        help::describe();
        let requests = routes.iter().copied().chain([UNMATCHED]);
        Ok(Self {
            handle,
            requests: requests.map(|route| (route, counters(route))).collect(),
            depth: gauge!("peyk_queue_depth"),
            oldest_due: gauge!("peyk_queue_oldest_due_seconds"),
            depth_at: Mutex::new(None),
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
    pub(crate) async fn render(&self, queue: &dyn Queue, now: Timestamp) -> String {
        if self.depth_is_stale(now) {
            match queue.depth().await {
                Ok((depth, earliest)) => {
                    self.depth.set(to_float(depth));
                    let age = earliest.map_or(Duration::ZERO, |due| now.since(due));
                    self.oldest_due.set(age.as_secs_f64());
                }
                Err(fault) => tracing::warn!(%fault, "cannot read the depth of the queue"),
            }
        }
        self.handle.run_upkeep();
        self.handle.render()
    }

    fn depth_is_stale(&self, now: Timestamp) -> bool {
        let Ok(mut at) = self.depth_at.lock() else { return false };
        // A clock that was set back must not freeze the gauge.
        let fresh = at.is_some_and(|at| at <= now && now.since(at) < DEPTH_FRESH);
        if !fresh {
            *at = Some(now);
        }
        !fresh
    }

    /// Keeps memory of histograms bounded though nobody asks for metrics.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

fn counters(route: &'static str) -> [Counter; 4] {
    CLASSES.map(|class| counter!("peyk_api_requests_total", "route" => route, "status" => class))
}

#[expect(clippy::cast_precision_loss, reason = "a count for people; exact up to 2^53")]
const fn to_float(count: u64) -> f64 {
    count as f64
}
