//! The engine's metrics: handles made once, names that begin with `peyk_`.
//!
//! Labels are closed sets (class, reason, state), never a URL, an id or a text from outside.
//! Never: decide anything.

use domain::classify::Class;
use domain::dead_letter::DeadReason;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use store::commits::BatchStats;
use store::prune::Counts;

use crate::admit::HeldBy;

/// Metrics of the store's batches.
#[derive(Clone)]
pub struct BatchMetrics {
    operations: Histogram,
    seconds: Histogram,
    rows: Counter,
    committed: Counter,
    failed: Counter,
}

impl BatchMetrics {
    /// Handles on the installed recorder.
    pub fn new() -> Self {
        Self {
            operations: histogram!("peyk_commit_batch_operations"),
            seconds: histogram!("peyk_commit_seconds"),
            rows: counter!("peyk_commit_rows_total"),
            committed: counter!("peyk_commits_total", "result" => "committed"),
            failed: counter!("peyk_commits_total", "result" => "failed"),
        }
    }

    /// One batch.
    pub fn observe(&self, stats: BatchStats) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a batch has at most a few thousand operations"
        )]
        self.operations.record(stats.operations as f64);
        self.seconds.record(stats.took);
        if stats.committed {
            self.rows.increment(stats.rows as u64);
            self.committed.increment(1);
        } else {
            self.failed.increment(1);
        }
    }
}

impl Default for BatchMetrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Metrics of pruning.
pub(super) struct PruneMetrics {
    payloads: Counter,
    dead_letters: Counter,
    messages: Counter,
    attempts: Counter,
    answers: Counter,
}

impl PruneMetrics {
    fn new() -> Self {
        let of_kind = |kind| counter!("peyk_pruned_total", "kind" => kind);
        Self {
            payloads: of_kind("payload"),
            dead_letters: of_kind("dead_letter"),
            messages: of_kind("message"),
            attempts: of_kind("attempt"),
            answers: of_kind("answer"),
        }
    }

    pub(super) fn count(&self, counts: Counts) {
        self.payloads.increment(counts.payloads as u64);
        self.dead_letters.increment(counts.dead_letters as u64);
        self.messages.increment(counts.messages as u64);
        self.attempts.increment(counts.attempts as u64);
        self.answers.increment(counts.answers as u64);
    }
}

/// Metrics of the dispatcher.
pub(super) struct Telemetry {
    attempts: Vec<(Class, Counter)>,
    attempt_seconds: Histogram,
    delivered: Counter,
    cancelled: Counter,
    attempts_to_success: Histogram,
    dead: Vec<(DeadReason, Counter)>,
    pub(super) pruned: PruneMetrics,
    pub(super) repairs: Counter,
    pub(super) in_flight: Gauge,
    pub(super) unrecorded: Gauge,
    pub(super) lanes: Gauge,
    pub(super) lanes_held: Gauge,
    holds: [Gauge; HeldBy::ALL.len()],
    pub(super) breakers_open: Gauge,
    pub(super) breakers_half_open: Gauge,
    pub(super) suspended: Gauge,
    pub(super) ids: Gauge,
    paused: Gauge,
    well: Counter,
    unwell: Counter,
}

impl Telemetry {
    pub(super) fn new() -> Self {
        let of_class =
            |class: Class| (class, counter!("peyk_attempts_total", "class" => class.name()));
        let of_reason = |reason: DeadReason| {
            (reason, counter!("peyk_dead_letters_total", "reason" => reason.name()))
        };
        Self {
            attempts: Class::ALL.into_iter().map(of_class).collect(),
            attempt_seconds: histogram!("peyk_attempt_seconds"),
            delivered: counter!("peyk_deliveries_total", "outcome" => "delivered"),
            cancelled: counter!("peyk_deliveries_total", "outcome" => "cancelled"),
            attempts_to_success: histogram!("peyk_attempts_to_success"),
            dead: DeadReason::ALL.into_iter().map(of_reason).collect(),
            pruned: PruneMetrics::new(),
            repairs: counter!("peyk_lane_repairs_total"),
            in_flight: gauge!("peyk_sends_in_flight"),
            unrecorded: gauge!("peyk_results_unrecorded"),
            lanes: gauge!("peyk_lanes"),
            lanes_held: gauge!("peyk_lanes_held"),
            holds: HeldBy::ALL.map(|by| gauge!("peyk_holds", "reason" => by.name())),
            breakers_open: gauge!("peyk_breakers", "state" => "open"),
            breakers_half_open: gauge!("peyk_breakers", "state" => "half_open"),
            suspended: gauge!("peyk_breakers", "state" => "suspended"),
            ids: gauge!("peyk_lane_ids"),
            paused: gauge!("peyk_sending_paused"),
            well: counter!("peyk_health_checks_total", "result" => "well"),
            unwell: counter!("peyk_health_checks_total", "result" => "unwell"),
        }
    }

    pub(super) fn attempted(&self, class: Class, took: std::time::Duration) {
        if let Some((_, counter)) = self.attempts.iter().find(|(known, _)| *known == class) {
            counter.increment(1);
        }
        self.attempt_seconds.record(took);
    }

    pub(super) fn paused(&self, paused: bool) {
        self.paused.set(f64::from(u8::from(paused)));
    }

    /// Lanes by what holds them, in the order of [`HeldBy::ALL`].
    pub(super) fn holds(&self, counts: [u32; HeldBy::ALL.len()]) {
        for (gauge, count) in self.holds.iter().zip(counts) {
            gauge.set(f64::from(count));
        }
    }

    pub(super) fn delivered(&self, sends: u32) {
        self.delivered.increment(1);
        self.attempts_to_success.record(f64::from(sends));
    }

    /// A receiver was asked whether it is well.
    pub(super) fn asked(&self, is_well: bool) {
        if is_well { self.well.increment(1) } else { self.unwell.increment(1) }
    }

    pub(super) fn cancelled(&self) {
        self.cancelled.increment(1);
    }

    pub(super) fn buried(&self, reason: DeadReason) {
        if let Some((_, counter)) = self.dead.iter().find(|(known, _)| *known == reason) {
            counter.increment(1);
        }
    }
}
