//! What the writer and those who call the store share.
//!
//! Never: a lock.

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock};

use resilience::Clock;

use super::door::Door;
use crate::commits::Commits;

/// What they share.
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) door: Door,
    pub(super) commits: OnceLock<Arc<dyn Commits>>,
    /// Somebody sends what goes by e-mail.
    pub(super) keeps_mails: Arc<AtomicBool>,
    /// Pending rows.
    pub(super) depth: AtomicI64,
}
