//! A report as the API shows it: like a background task, in the names that the SDKs know.
//!
//! Never: count; what was found is passed in.

use std::collections::BTreeSet;

use domain::ids::{Kind as IdKind, key_time};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{stored_json, time};
use crate::reports::{Kind, Report, Standing};

/// What reports are called here.
pub(crate) const NAMES: [&str; 2] = ["application.stats", "event-type.aggregate"];

/// A report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportOut {
    id: String,
    pub(crate) status: &'static str,
    pub(crate) task: &'static str,
    data: Box<RawValue>,
    created_at: String,
    updated_at: String,
}

/// A report that was begun.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartedOut {
    #[serde(flatten)]
    head: HeadOut,
    unresolved_app_ids: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HeadOut {
    id: String,
    status: &'static str,
    task: &'static str,
    updated_at: String,
}

#[derive(Serialize)]
struct FailedOut<'a> {
    error: &'a str,
}

/// Messages to endpoints, by application.
#[derive(Serialize)]
pub(crate) struct AppsOut {
    pub(crate) app_stats: Vec<AppOut>,
}

/// Of one application.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppOut {
    pub(crate) app_id: String,
    pub(crate) message_destinations: u64,
}

/// Subscriptions, by application.
#[derive(Serialize)]
pub(crate) struct TypesOut {
    pub(crate) event_types: Vec<SubscribedOut>,
}

/// Of one application.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscribedOut {
    pub(crate) app_id: String,
    pub(crate) explicitly_subscribed_event_types: BTreeSet<String>,
    pub(crate) has_catch_all_endpoint: bool,
}

impl ReportOut {
    /// A report as it is remembered.
    pub(crate) fn new(report: Report) -> Self {
        let HeadOut { id, status, task, updated_at } = head(&report);
        let data = match &report.standing {
            Standing::Running => stored_json("{}"),
            Standing::Finished(data) => stored_json(data),
            Standing::Failed(error) => {
                stored_json(&serde_json::to_string(&FailedOut { error }).unwrap_or_default())
            }
        };
        Self { id, status, task, data, created_at: time(key_time(report.id.key())), updated_at }
    }

    /// Its id, as an iterator.
    pub(crate) fn iterator(&self) -> String {
        self.id.clone()
    }
}

impl StartedOut {
    /// With the names of what is not there to be counted.
    pub(crate) fn new(report: Report, unresolved_app_ids: Vec<String>) -> Self {
        Self { head: head(&report), unresolved_app_ids }
    }
}

fn head(report: &Report) -> HeadOut {
    HeadOut {
        id: report.id.text(IdKind::Task),
        status: match report.standing {
            Standing::Running => "running",
            Standing::Finished(_) => "finished",
            Standing::Failed(_) => "failed",
        },
        task: match report.kind {
            Kind::Applications => "application.stats",
            Kind::EventTypes => "event-type.aggregate",
        },
        updated_at: time(report.updated_at),
    }
}
