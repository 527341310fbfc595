//! What the threads of one store share.
//!
//! Never: a lock; each of them is told what it must know.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use resilience::Clock;

use super::answers::Answers;
use super::door::Door;
use crate::commits::Commits;

/// What the store's threads share.
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) door: Door,
    pub(super) answers: Answers,
    pub(super) commits: OnceLock<Arc<dyn Commits>>,
    /// Somebody sends what goes by e-mail.
    pub(super) keeps_mails: Arc<AtomicBool>,
    /// Writing time of one transaction.
    pub(super) batch_time_max: Duration,
    /// Pending rows.
    pub(super) depth: AtomicI64,
    /// No row that was never moved is due before then, in microseconds.
    pub(super) no_fresh_before: AtomicI64,
    /// Rows written since the start, for the checkpoints.
    pub(super) written: AtomicUsize,
}

impl Shared {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        door: Door,
        depth: i64,
        batch_time_max: Duration,
    ) -> Self {
        Self {
            clock,
            door,
            answers: Answers::new(),
            commits: OnceLock::new(),
            keeps_mails: Arc::default(),
            batch_time_max,
            depth: AtomicI64::new(depth),
            no_fresh_before: AtomicI64::new(i64::MIN),
            written: AtomicUsize::new(0),
        }
    }
}
