//! What is to be counted of an organisation.
//!
//! Never: read anything; `usage` does.

#![expect(dead_code, reason = "read by their derives only")]

use schemars::JsonSchema;

use crate::api::shapes::{Text, Time};

/// Applications that may be named.
pub(crate) const NAMES_MAX: usize = 1_000;

/// The span of time whose messages are counted, and of which applications.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppUsageStatsIn {
    since: Time,
    /// Exclusive, later than `since` and not in the future.
    until: Time,
    /// Ids or uids, at least one of them of an application; null for all.
    #[schemars(length(min = 1, max = NAMES_MAX))]
    app_ids: Option<Vec<Text>>,
}
