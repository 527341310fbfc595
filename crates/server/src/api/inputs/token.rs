//! What is asked of tokens of applications.
//!
//! Never: read anything; `access` does.

#![expect(dead_code, reason = "read by their derives only")]

use domain::limits::{APP_TOKEN_MAX, APP_TOKEN_MIN};
use schemars::JsonSchema;

use super::application::ApplicationIn;
use crate::http::capabilities::Capability;

/// What the token may do.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppPortalAccessIn {
    /// Event types with these flags are seen.
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    feature_flags: Option<Vec<String>>,
    /// Is created if it does not exist; its `uid` must be that of the path.
    application: Option<ApplicationIn>,
    /// Seconds; 7 days unless given.
    #[schemars(range(min = APP_TOKEN_MIN.as_secs(), max = APP_TOKEN_MAX.as_secs()))]
    expiry: Option<u64>,
    /// A name under which tokens are ended together.
    #[schemars(length(min = 1, max = 256))]
    session_id: Option<String>,
    /// Only reads, and no secrets.
    read_only: Option<bool>,
    /// What it may do beside reading; all that a token of an application may, unless given.
    #[schemars(length(min = 1))]
    capabilities: Option<Vec<Capability>>,
}

/// Which tokens end.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationTokenExpireIn {
    /// Seconds from now; at once unless given.
    #[schemars(range(min = 0, max = APP_TOKEN_MAX.as_secs()))]
    expiry: Option<u64>,
    /// Those of these sessions only.
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    session_ids: Option<Vec<String>>,
}
