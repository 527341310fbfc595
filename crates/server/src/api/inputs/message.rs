//! Messages as callers post them.
//!
//! Never: read anything; `message_in` and its neighbours do.

#![expect(dead_code, reason = "read by their derives only")]

use domain::limits::{
    CHANNELS_PER_MESSAGE_MAX, RETENTION_DAYS_MAX, RETENTION_DAYS_MIN, RETENTION_HOURS_MAX,
    RETENTION_HOURS_MIN, TAGS_PER_MESSAGE_MAX,
};
use schemars::JsonSchema;

use super::application::ApplicationIn;
use crate::api::shapes::{Channel, EventTypeName, Object, Tag, Time, Uid};

/// A message.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageIn {
    /// Need not exist.
    event_type: EventTypeName,
    /// Kept, signed and sent byte for byte; at most 120 levels deep, its numbers of at most 4,000
    /// digits. Also read as `data`.
    payload: Object,
    /// Your own id, unique in the application; not beginning with `msg_`, nor `precheck` or
    /// `expunge-all-contents`.
    event_id: Option<Uid>,
    /// Without channels it goes only to endpoints without.
    #[schemars(length(min = 1, max = CHANNELS_PER_MESSAGE_MAX))]
    channels: Option<Vec<Channel>>,
    /// Lists are filtered by them, endpoints are not.
    #[schemars(length(max = TAGS_PER_MESSAGE_MAX))]
    tags: Option<Vec<Tag>>,
    /// Not before this time, which is at most 24 hours ahead and before the payload goes.
    deliver_at: Option<Time>,
    /// Days until the payload goes. Not beside `payloadRetentionHours`.
    #[schemars(range(min = RETENTION_DAYS_MIN, max = RETENTION_DAYS_MAX))]
    payload_retention_period: Option<u8>,
    /// Hours until the payload goes.
    #[schemars(range(min = RETENTION_HOURS_MIN, max = RETENTION_HOURS_MAX))]
    payload_retention_hours: Option<u16>,
    transformations_params: Option<TransformationsParams>,
    /// Is created if it does not exist; its `uid` must be that of the path.
    application: Option<ApplicationIn>,
}

/// Another body and media type than those of JSON.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransformationsParams {
    /// Is sent in place of the payload, byte for byte.
    raw_payload: Option<String>,
    headers: Option<TransformationsHeaders>,
}

/// Names beside `content-type` are ignored.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TransformationsHeaders {
    /// A media type of 1 to 256 visible ASCII characters.
    #[schemars(length(min = 1, max = 256), regex(pattern = "^[!-~]([ -~]*[!-~])?$"))]
    #[schemars(with = "String")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
}

/// What is asked of the endpoints of an application.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessagePrecheckIn {
    event_type: EventTypeName,
    #[schemars(length(max = CHANNELS_PER_MESSAGE_MAX))]
    channels: Option<Vec<Channel>>,
}

/// What is sent when a dead letter is put back.
#[derive(JsonSchema)]
pub(crate) struct DeadLetterReplayIn {
    /// Is sent to this endpoint in place of the payload, as a new message.
    payload: Option<Object>,
}
