//! Applications as callers describe them.
//!
//! Never: read anything; `applications` does.

#![expect(dead_code, reason = "read by their derives only")]

use schemars::JsonSchema;

use crate::api::shapes::{Metadata, Name, PerSecond, Uid};

/// An application: one customer of yours.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationIn {
    /// A name for people.
    name: Name,
    /// Your own id, unique in the organisation; not beginning with `app_`.
    uid: Option<Uid>,
    /// Messages a second that may be posted; more are refused. Also read as `rateLimit`.
    throttle_rate: Option<PerSecond>,
    /// At most 4,096 bytes as JSON.
    metadata: Option<Metadata>,
}
