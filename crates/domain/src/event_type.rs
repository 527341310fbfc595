//! Event types: names that endpoints filter on.
//!
//! Never: decide which endpoint wants a message; see `fanout`.

use resilience::Timestamp;

/// An event type of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// Unique in the organisation.
    pub name: String,
    /// For people.
    pub description: String,
    /// Hidden from lists; endpoints may not newly filter on it.
    pub archived: bool,
    /// Shown as outdated.
    pub deprecated: bool,
    /// JSON Schemas by version, as JSON text.
    pub schemas: Option<String>,
    /// Shown only to tokens that carry this flag.
    pub feature_flag: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
