//! A report as the API shows it: like a background task, in the names that the SDKs know.
//!
//! Never: count; what was found is passed in.

use std::collections::BTreeSet;

use domain::ids::{Kind as IdKind, key_time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::task::STATUSES;
use super::{stored_json, time};
use crate::api::shapes::{AppId, TaskId, Time, Uid};
use crate::reports::{Kind, Report, Standing};

/// What reports are called here.
pub(crate) const NAMES: [&str; 2] = ["application.stats", "event-type.aggregate"];

/// A background task that only counts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "UsageReportOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportOut {
    #[schemars(with = "TaskId")]
    id: String,
    #[schemars(extend("enum" = STATUSES))]
    pub(crate) status: &'static str,
    #[schemars(extend("enum" = NAMES))]
    pub(crate) task: &'static str,
    #[schemars(with = "Found<'_>")]
    data: Box<RawValue>,
    #[schemars(with = "Time")]
    created_at: String,
    #[schemars(with = "Time")]
    updated_at: String,
}

/// Subscriptions, as they are answered at once.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AggregateEventTypesOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct TypesReportOut {
    #[schemars(with = "TaskId")]
    id: String,
    #[schemars(extend("enum" = ["finished"]))]
    status: &'static str,
    #[schemars(extend("enum" = ["event-type.aggregate"]))]
    task: &'static str,
    #[schemars(with = "TypesOut")]
    data: Box<RawValue>,
    #[schemars(with = "Time")]
    created_at: String,
    #[schemars(with = "Time")]
    updated_at: String,
}

/// A count of messages that was begun.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AppUsageStatsOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartedOut {
    #[serde(flatten)]
    head: HeadOut,
    /// Names of no application.
    unresolved_app_ids: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HeadOut {
    #[schemars(with = "TaskId")]
    id: String,
    #[schemars(extend("enum" = STATUSES))]
    status: &'static str,
    #[schemars(extend("enum" = NAMES))]
    task: &'static str,
    #[schemars(with = "Time")]
    updated_at: String,
}

/// What a report found, by kind and outcome; nothing while it runs.
#[derive(JsonSchema)]
#[schemars(inline, untagged)]
#[expect(dead_code, reason = "read by its derive only")]
enum Found<'a> {
    Apps(AppsOut),
    Types(TypesOut),
    Failed(FailedOut<'a>),
    Running {},
}

/// Why nothing could be counted.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageFailedOut")]
struct FailedOut<'a> {
    error: &'a str,
}

/// Messages to endpoints, by application.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AppUsageStatsData")]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppsOut {
    pub(crate) app_stats: Vec<AppOut>,
}

/// How many messages went to endpoints of an application.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AppUsageStats")]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppOut {
    #[schemars(with = "AppId")]
    pub(crate) app_id: String,
    #[schemars(with = "Option<Uid>")]
    pub(crate) app_uid: Option<String>,
    pub(crate) message_destinations: u64,
}

/// Subscriptions, by application.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AggregateEventTypesData")]
pub(crate) struct TypesOut {
    pub(crate) event_types: Vec<SubscribedOut>,
}

/// What the endpoints of an application subscribe to.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SubscribedEventTypesOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscribedOut {
    #[schemars(with = "AppId")]
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

impl TypesReportOut {
    /// A report of subscriptions that has ended.
    pub(crate) fn new(report: Report) -> Self {
        let ReportOut { id, status, task, data, created_at, updated_at } = ReportOut::new(report);
        Self { id, status, task, data, created_at, updated_at }
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
