//! Rows of Svix, as PostgreSQL writes them in JSON.
//!
//! Columns came and went over its versions: one that is absent is read as empty.
//! Never: judged here.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// All that is imported.
#[derive(Debug, Default)]
pub(crate) struct All {
    pub(crate) event_types: Rows<EventType>,
    pub(crate) apps: Rows<App>,
    pub(crate) endpoints: Rows<Endpoint>,
}

/// What a table has.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    pub(crate) read: Vec<T>,
    pub(crate) unread: Vec<Unread>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { read: Vec::new(), unread: Vec::new() }
    }
}

/// A row that holds something else than such rows do.
#[derive(Debug)]
pub(crate) struct Unread {
    /// Its name or its id.
    pub(crate) name: String,
    pub(crate) why: String,
}

/// A row of `eventtype`.
#[derive(Debug, Deserialize)]
pub(crate) struct EventType {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Archived.
    pub(crate) deleted: bool,
    #[serde(default)]
    pub(crate) deprecated: bool,
    #[serde(default)]
    pub(crate) feature_flag: Option<String>,
    #[serde(default)]
    pub(crate) schemas: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) retry_schedule: Option<Value>,
}

/// A row of `application`.
#[derive(Debug, Deserialize)]
pub(crate) struct App {
    pub(crate) id: String,
    pub(crate) uid: Option<String>,
    pub(crate) name: String,
    pub(crate) rate_limit: Option<i64>,
    #[serde(skip)]
    pub(crate) metadata: Option<Value>,
    /// What is said of it once it is taken over.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
}

/// A row of `endpoint`.
#[derive(Debug, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) app_id: String,
    pub(crate) uid: Option<String>,
    pub(crate) url: String,
    pub(crate) description: String,
    pub(crate) version: i64,
    pub(crate) disabled: bool,
    pub(crate) rate_limit: Option<i64>,
    /// `\x` and hexadecimal digits.
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) old_keys: Option<Vec<OldKey>>,
    /// Names, in spite of the column's.
    #[serde(default)]
    pub(crate) event_types_ids: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) channels: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// An expression over payloads.
    #[serde(default)]
    pub(crate) filter: Option<String>,
    #[serde(default)]
    pub(crate) retry_schedule: Option<Value>,
    #[serde(skip)]
    pub(crate) metadata: Option<Value>,
    /// What is said of it once it is taken over.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
}

/// A replaced secret.
#[derive(Debug, Deserialize)]
pub(crate) struct OldKey {
    #[serde(rename = "signingKey")]
    pub(crate) key: String,
    pub(crate) expiration: String,
}

/// The name that stands for a thing in the server: its own, or one made of its old id.
pub(crate) fn uid_of(id: &str, uid: Option<&str>) -> String {
    uid.map_or_else(|| format!("svix-{id}"), str::to_owned)
}
