//! An application as the API shows it.
//!
//! Never: show the inner key or the organisation.

use domain::application::Application;
use domain::ids::Kind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{stored_json, time};
use crate::api::shapes::{AppId, Metadata, Time};

/// An application.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationOut {
    #[schemars(with = "AppId")]
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    name: String,
    /// The same as `throttleRate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit: Option<u16>,
    throttle_rate: Option<u16>,
    #[schemars(with = "Time")]
    created_at: String,
    #[schemars(with = "Time")]
    updated_at: String,
    #[schemars(with = "Metadata")]
    metadata: Box<RawValue>,
}

impl From<&Application> for ApplicationOut {
    fn from(app: &Application) -> Self {
        let spec = &app.spec;
        Self {
            id: app.id.text(Kind::Application),
            uid: spec.uid.clone(),
            name: spec.name.clone(),
            rate_limit: spec.throttle_rate,
            throttle_rate: spec.throttle_rate,
            created_at: time(app.created_at),
            updated_at: time(app.updated_at),
            metadata: stored_json(&spec.metadata),
        }
    }
}
