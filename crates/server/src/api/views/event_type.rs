//! An event type as the API shows it.
//!
//! Never: hide one; who may see it is decided before.

use domain::event_type::EventType;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{stored_json, time};

/// An event type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventTypeOut {
    pub(crate) name: String,
    description: String,
    archived: bool,
    deprecated: bool,
    schemas: Option<Box<RawValue>>,
    feature_flag: Option<String>,
    created_at: String,
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
