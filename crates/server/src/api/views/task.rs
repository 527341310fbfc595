//! A background task as the API shows it, in the names that the SDKs know.
//!
//! Both are closed sets there: what has no name of its own goes under the nearest one, and `data`
//! says more.
//! Never: a name or a status that an SDK could not read.

use domain::ids::{Kind, key_time};
use schemars::JsonSchema;
use serde::Serialize;
use store::tasks::{Task, TaskKind, TaskStatus, Work};

use super::{time, time_or_none};
use crate::api::shapes::{TaskId, Time};

/// What is shown as running, finished and failed.
pub(crate) const STATUSES: [&str; 3] = ["running", "finished", "failed"];
/// What tasks are called here.
pub(crate) const NAMES: [&str; 4] =
    ["endpoint.recover", "endpoint.replay", "endpoint.bulk-replay", "application.purge_content"];

/// The name of a kind of task.
pub(crate) const fn name_of(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Recover | TaskKind::Outage => "endpoint.recover",
        TaskKind::Missing => "endpoint.replay",
        TaskKind::Again | TaskKind::DeadLetters => "endpoint.bulk-replay",
        TaskKind::Purge => "application.purge_content",
    }
}

/// The name of a status.
pub(crate) const fn status_of(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "running",
        TaskStatus::Finished => "finished",
        TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Stopped => "failed",
    }
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BackgroundTaskOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskOut {
    #[schemars(with = "TaskId")]
    id: String,
    #[schemars(extend("enum" = STATUSES))]
    status: &'static str,
    #[schemars(extend("enum" = NAMES))]
    task: &'static str,
    data: Data,
    #[schemars(with = "Time")]
    created_at: String,
    #[schemars(with = "Time")]
    updated_at: String,
}

/// How far a task is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BackgroundTaskData")]
#[serde(rename_all = "camelCase")]
struct Data {
    /// Null until it is known.
    total: Option<u64>,
    done: u64,
    failed: u64,
    /// The same as `done`.
    #[schemars(with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_sent: Option<u64>,
    /// The same as `done`.
    #[schemars(with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_purged: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
    /// It began by itself, after an outage of its endpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    automatic: bool,
    /// When that outage began: what died since goes back.
    #[schemars(with = "Time")]
    #[serde(skip_serializing_if = "Option::is_none")]
    outage_since: Option<String>,
    /// Why it could not go on.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl TaskOut {
    /// A task as it is stored.
    pub(crate) fn new(task: Task) -> Self {
        let kind = task.spec.work.kind();
        let done = task.tally.done;
        let purges = kind == TaskKind::Purge;
        let ended = task.status == TaskStatus::Finished;
        let total = task.spec.total.or_else(|| ended.then_some(done + task.tally.failed));
        Self {
            id: task.id.text(Kind::Task),
            status: status_of(task.status),
            task: name_of(kind),
            data: Data {
                total,
                done,
                failed: task.tally.failed,
                messages_sent: (!purges).then_some(done),
                messages_purged: purges.then_some(done),
                cancelled: matches!(task.status, TaskStatus::Cancelled | TaskStatus::Stopped),
                automatic: kind == TaskKind::Outage,
                outage_since: match task.spec.work {
                    Work::Outage(since) => time_or_none(since),
                    _ => None,
                },
                error: task.error,
            },
            created_at: time(key_time(task.id.key())),
            updated_at: time(task.updated_at),
        }
    }

    /// Its id, as an iterator.
    pub(crate) fn iterator(&self) -> String {
        self.id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_one_that_the_sdks_do_not_know() {
        assert!(TaskKind::ALL.iter().all(|kind| NAMES.contains(&name_of(*kind))));
        assert!(TaskStatus::ALL.iter().all(|status| STATUSES.contains(&status_of(*status))));
    }
}
