//! An event type as the API shows it.
//!
//! Never: hide one; who may see it is decided before.

use domain::event_type::EventType;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{stored_json, time};
use crate::api::shapes::{EventTypeName, Object, Time};

/// An event type.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventTypeOut {
    #[schemars(with = "EventTypeName")]
    pub(crate) name: String,
    description: String,
    archived: bool,
    deprecated: bool,
    /// JSON Schemas by version, where they are asked for.
    #[schemars(with = "Option<Object>")]
    schemas: Option<Box<RawValue>>,
    feature_flag: Option<String>,
    #[schemars(with = "Time")]
    created_at: String,
    #[schemars(with = "Time")]
    updated_at: String,
}

impl EventTypeOut {
    /// With or without its schemas.
    pub(crate) fn new(event_type: EventType, with_content: bool) -> Self {
        Self {
            schemas: event_type.schemas.filter(|_| with_content).map(|json| stored_json(&json)),
            name: event_type.name,
            description: event_type.description,
            archived: event_type.archived,
            deprecated: event_type.deprecated,
            feature_flag: event_type.feature_flag,
            created_at: time(event_type.created_at),
            updated_at: time(event_type.updated_at),
        }
    }
}
