//! Anybody who verifies Standard Webhooks: type, time and data.
//!
//! It is JSON for machines: texts stand in it as they are.
//! Never: a field that the document does not describe; see docs/alerts.md.

use domain::alert::notice::Notice;
use domain::ids::Kind;
use serde_json::{Map, Value, json};

use crate::api::views::time;

/// The payload.
pub(super) fn payload(notice: &Notice) -> Value {
    let facts = notice.facts.iter().map(|(name, fact)| (name.clone(), Value::String(fact.clone())));
    let endpoints = notice.subjects.iter().map(|it| {
        json!({
            "id": it.endpoint.text(Kind::Endpoint),
            "uid": it.endpoint_uid,
            "origin": it.origin,
            "appId": it.app.text(Kind::Application),
            "appName": it.app_name,
            "failingSince": time(it.since),
        })
    });
    json!({
        "type": notice.occasion.name(),
        "timestamp": time(notice.at),
        "data": {
            "incidentId": notice.incident.text(Kind::Incident),
            "dedupKey": notice.dedup_key,
            "rule": notice.rule,
            "condition": notice.condition,
            "severity": notice.severity.name(),
            "title": notice.title,
            "since": time(notice.since),
            "facts": facts.collect::<Map<_, _>>(),
            "endpoints": endpoints.collect::<Vec<_>>(),
            "moreEndpoints": notice.more,
            "runbookUrl": notice.runbook,
        },
    })
}
