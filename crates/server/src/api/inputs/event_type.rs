//! Event types as callers describe them.
//!
//! Never: read anything; `event_types` and `openapi_import` do.

#![expect(dead_code, reason = "read by their derives only")]

use schemars::JsonSchema;
use serde_json::json;

use crate::api::shapes::{Description, EventTypeName, Object};

/// An event type.
#[derive(JsonSchema)]
pub(crate) struct EventTypeIn {
    name: EventTypeName,
    #[serde(flatten)]
    event_type: EventTypeUpdate,
}

/// An event type, its name left out: that stands in the path.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventTypeUpdate {
    /// May be empty.
    description: Description,
    #[schemars(extend("default" = false))]
    archived: Option<bool>,
    #[schemars(extend("default" = false))]
    deprecated: Option<bool>,
    /// JSON Schemas (draft 7) by version; at most 256 KiB.
    #[schemars(extend(
        "additionalProperties" = json!({"type": ["object", "boolean"]}),
        "examples" = json!([{"1": {"type": "object", "examples": [{"invoice": "in_1"}]}}])
    ))]
    schemas: Option<Object>,
    /// Only tokens of applications that carry this flag see the type.
    feature_flag: Option<EventTypeName>,
}

/// An OpenAPI document, in one of two ways.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventTypeImportOpenApiIn {
    /// The document. Either this or `specRaw`.
    spec: Option<Object>,
    /// The document as text, JSON or YAML.
    spec_raw: Option<String>,
    /// Changes nothing and says what it would.
    #[schemars(extend("default" = false))]
    dry_run: Option<bool>,
    /// Archives what is in no webhook of the document.
    #[schemars(extend("default" = false))]
    replace_all: Option<bool>,
}
