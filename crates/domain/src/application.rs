//! An application: one customer of the organisation, with endpoints of its own.
//!
//! Never: know who may see it; the API decides that.

use std::sync::Arc;

use resilience::Timestamp;

use crate::endpoint::Endpoint;
use crate::ids::{AppKey, PublicId};

/// What a caller decides about an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSpec {
    /// Shown to people, 1 character or more.
    pub name: String,
    /// The caller's own name for it, unique in the organisation.
    pub uid: Option<String>,
    /// Messages that may be posted to it per second; `None` for no bound.
    pub throttle_rate: Option<u16>,
    /// A JSON object of texts, as text.
    pub metadata: String,
}

/// An application as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Inner key.
    pub key: AppKey,
    /// Public id, `app_…`.
    pub id: PublicId,
    /// The organisation it belongs to.
    pub org: PublicId,
    /// What the caller decided.
    pub spec: ApplicationSpec,
    /// Raised by every change of its endpoints; a message carries the version it was matched with.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// An application with all its endpoints, at one version.
#[derive(Clone, Debug)]
pub struct AppSnapshot {
    /// The application.
    pub app: Arc<Application>,
    /// Its endpoints, deleted ones left out, in order of creation.
    pub endpoints: Vec<Arc<Endpoint>>,
}
