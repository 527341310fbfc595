//! What every metric counts, for whoever reads the text of `/metrics`.
//!
//! In: nothing. Out: a help line for each name, told to the recorder of this process.
//! Never: a metric; those are where they are counted.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Tells the recorder; a metric's page in the documentation says more.
pub(super) fn describe() {
    for &(name, help) in COUNTERS {
        describe_counter!(name, help);
    }
    for &(name, help) in GAUGES {
        describe_gauge!(name, help);
    }
    for &(name, help) in HISTOGRAMS {
        describe_histogram!(name, help);
    }
}

const COUNTERS: &[(&str, &str)] = &[
    ("peyk_api_requests_total", "Answers of the API by route template and class of status."),
    ("peyk_commits_total", "Batches, committed or failed."),
    ("peyk_commit_rows_total", "Rows written or removed."),
    ("peyk_messages_total", "Messages accepted."),
    (
        "peyk_posts_forwarded_total",
        "Posts for another node: committed there, kept here, returned, unanswered.",
    ),
    ("peyk_figures_rows_total", "Rows of figures written or removed by rolling up."),
    ("peyk_attempts_total", "Sends that ended, by class."),
    ("peyk_deliveries_total", "Deliveries that ended delivered or cancelled."),
    ("peyk_dead_letters_total", "Deliveries given up."),
    (
        "peyk_pruned_total",
        "What was old enough and is gone: payload, dead_letter, message, attempt.",
    ),
    (
        "peyk_schema_findings_total",
        "Payloads that broke the schema of their event type, or whose schema cannot be used.",
    ),
    ("peyk_mails_total", "Letters to owners: sent, failed (and tried again), given_up."),
    ("peyk_health_checks_total", "Questions at health-check URLs: well, unwell."),
    ("peyk_spans_total", "Spans: sent, dropped for want of room, refused by the collector."),
    ("peyk_lane_repairs_total", "Lanes that the poll had to wake; more than 0 is a defect."),
];

const GAUGES: &[(&str, &str)] = &[
    ("peyk_queue_depth", "Pending deliveries, at most a second old."),
    ("peyk_queue_oldest_due_seconds", "How long the delivery that is due longest has been due."),
    ("peyk_tasks_running", "Background tasks that run."),
    ("peyk_sends_in_flight", "Sends under way."),
    ("peyk_results_unrecorded", "Results that wait for their commit."),
    ("peyk_lanes", "Lanes in memory."),
    ("peyk_lanes_held", "Lanes that may not send now: breaker, hold, rate."),
    ("peyk_holds", "Lanes that are held, by what holds them."),
    ("peyk_lane_ids", "Ids in memory over all lanes."),
    ("peyk_breakers", "Lanes in memory whose breaker is open or half_open, or that are suspended."),
    ("peyk_alerts_firing", "Rules of alerts that fire."),
    ("peyk_sending_paused", "1 while sending pauses because the fault is on this side."),
];

const HISTOGRAMS: &[(&str, &str)] = &[
    ("peyk_commit_seconds", "From the first statement of a batch to the end of its commit."),
    ("peyk_commit_batch_operations", "Operations in a batch."),
    ("peyk_attempt_seconds", "Duration of a send."),
    ("peyk_attempts_to_success", "Sends that a delivered message took."),
];
