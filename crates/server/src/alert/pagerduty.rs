//! PagerDuty: Events API v2.
//!
//! `routing_key` (32 characters), `event_action` (`trigger`, `acknowledge`, `resolve`) and
//! `dedup_key` (at most 255); a trigger has a `payload` with `summary` (at most 1,024), `source`
//! and `severity` (`critical`, `error`, `warning`, `info`). It answers 202.
//! Never: two keys for one incident; that would open another one.

use domain::alert::notice::{Notice, Occasion};
use domain::alert::rule::Severity;
use serde_json::{Map, Value, json};

use super::told;
use crate::api::views::time;

/// Characters of a summary.
const SUMMARY_CHARS: usize = 1_024;

/// An event.
pub(super) fn event(notice: &Notice, routing_key: &str) -> Value {
    let action = match notice.occasion {
        Occasion::Firing | Occasion::Updated | Occasion::Test => "trigger",
        Occasion::Acknowledged => "acknowledge",
        Occasion::Resolved | Occasion::TestOver => "resolve",
    };
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": notice.dedup_key,
    });
    if action == "trigger" {
        event["payload"] = json!({
            "summary": told::headline(notice, SUMMARY_CHARS),
            "source": "peyk",
            "severity": severity(notice.severity),
            "timestamp": time(notice.at),
            "component": "webhook delivery",
            "class": notice.condition,
            "custom_details": details(notice),
        });
        event["client"] = json!("Peyk");
        if let Some(runbook) = &notice.runbook {
            event["links"] = json!([{"href": runbook, "text": "Runbook"}]);
        }
    }
    event
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "info",
    }
}

fn details(notice: &Notice) -> Value {
    let facts = told::facts(notice).into_iter();
    let mut details: Map<_, _> = facts.map(|(name, fact)| (name, Value::String(fact))).collect();
    if !notice.subjects.is_empty() {
        let lines = notice.subjects.iter().map(told::plain_subject).chain(told::more(notice));
        details.insert("endpoints".to_owned(), lines.collect());
    }
    Value::Object(details)
}
