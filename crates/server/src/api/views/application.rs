//! An application as the API shows it.
//!
//! Never: show the inner key or the organisation.

use domain::application::Application;
use domain::ids::Kind;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{stored_json, time};

/// An application.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationOut {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit: Option<u16>,
    throttle_rate: Option<u16>,
    created_at: String,
    updated_at: String,
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
