//! What background tasks are asked to do.
//!
//! Never: read anything; `replays` and `letter_replays` do.

#![expect(dead_code, reason = "read by their derives only")]

use domain::limits::{REPLAY_IDS_MAX, REPLAY_RATE_MAX};
use schemars::JsonSchema;

use crate::api::shapes::{
    Channel, DeadLetterId, DeadReason, EventTypeName, RunId, Status, StatusClass, Tag, Time, Uid,
};

/// What failed since a time.
#[derive(JsonSchema)]
pub(crate) struct RecoverIn {
    /// At most 14 days ago.
    since: Time,
    /// Later than `since`.
    until: Option<Time>,
}

/// What is missing since a time.
#[derive(JsonSchema)]
pub(crate) struct ReplayIn {
    since: Time,
    /// Later than `since`.
    until: Option<Time>,
}

/// What was sent since a time.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkReplayIn {
    since: Time,
    /// Later than `since`.
    until: Option<Time>,
    event_types: Option<Vec<EventTypeName>>,
    channel: Option<Channel>,
    tag: Option<Tag>,
    status: Option<Status>,
    /// Of the last send.
    status_code_class: Option<StatusClass>,
}

/// Which dead letters are put back; all of the application unless said otherwise.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLettersReplayIn {
    endpoint_id: Option<Uid>,
    reason: Option<DeadReason>,
    /// In place of `reason`: those given up for any of them.
    #[schemars(length(min = 1))]
    reasons: Option<Vec<DeadReason>>,
    #[schemars(length(min = 1))]
    event_types: Option<Vec<EventTypeName>>,
    /// By the time of death.
    since: Option<Time>,
    /// Later than `since`.
    until: Option<Time>,
    #[schemars(length(min = 1, max = REPLAY_IDS_MAX))]
    ids: Option<Vec<DeadLetterId>>,
    /// Of this run of refusals.
    run_id: Option<RunId>,
    /// Deliveries a second.
    #[schemars(range(min = 1, max = REPLAY_RATE_MAX))]
    rate_per_s: Option<u32>,
    /// Counts them and starts nothing.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
}
