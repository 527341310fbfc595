//! What all steps of an import need.
//!
//! Never: the source; rows are handed over.

use resilience::Timestamp;

use crate::api::Api;

/// What all steps need.
pub(crate) struct Target<'a> {
    pub(crate) api: &'a Api,
    pub(crate) dry_run: bool,
    pub(crate) now: Timestamp,
}
