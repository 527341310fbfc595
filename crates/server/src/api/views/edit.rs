//! An edit of a payload as the API shows it.
//!
//! Never: a value of either payload.

use domain::edit::{Content, Edit};
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::time;
use crate::api::shapes::Time;

/// Who changed the payload before it was sent again, when, and what.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EditOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct EditOut {
    /// The subject of the token that it was done with.
    edited_by: String,
    #[schemars(with = "Time")]
    edited_at: String,
    difference: DifferenceOut,
}

/// Where two payloads differ, without what stands there.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DifferenceOut")]
#[serde(rename_all = "camelCase")]
struct DifferenceOut {
    before: ContentOut,
    after: ContentOut,
    /// The first 100, where both are JSON.
    changes: Vec<ChangeOut>,
    /// So many more there are.
    more: u64,
}

/// A payload without its bytes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ContentOut")]
#[serde(rename_all = "camelCase")]
struct ContentOut {
    bytes: u64,
    /// In hexadecimal.
    sha256: String,
}

/// One difference.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ChangeOut")]
#[serde(rename_all = "camelCase")]
struct ChangeOut {
    /// `added`, `changed` or `removed`.
    kind: &'static str,
    /// A JSON pointer.
    path: String,
}

impl EditOut {
    /// What made a message that was accepted then.
    pub(crate) fn new(edit: Edit, at: Timestamp) -> Self {
        let change = |change: domain::edit::Change| ChangeOut {
            kind: change.kind.name(),
            path: change.place,
        };
        Self {
            edited_by: edit.by,
            edited_at: time(at),
            difference: DifferenceOut {
                before: ContentOut::new(edit.before),
                after: ContentOut::new(edit.after),
                changes: edit.changes.into_iter().map(change).collect(),
                more: edit.more,
            },
        }
    }
}

impl ContentOut {
    fn new(content: Content) -> Self {
        let sha256 = content.hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes: content.bytes, sha256 }
    }
}
