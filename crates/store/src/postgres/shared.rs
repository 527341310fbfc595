//! What the writer and those who call the store share.
//!
//! Never: a lock.

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock};

use resilience::Clock;
use tokio::sync::watch;

use super::door::Door;
use super::node::Me;
use crate::commits::Commits;
use crate::common_clock::CommonClock;
use crate::nodes::{Peers, Share};

/// What they share.
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    /// Is told the time of the database.
    pub(super) common: Option<Arc<CommonClock>>,
    pub(super) door: Door,
    pub(super) commits: OnceLock<Arc<dyn Commits>>,
    /// The engine knows what this node owns: from then on that may change.
    pub(super) attached: AtomicBool,
    pub(super) me: Me,
    pub(super) share: Arc<Share>,
    /// The other nodes, as the keeper last read them.
    pub(super) peers: watch::Sender<Arc<Peers>>,
    /// Somebody sends what goes by e-mail.
    pub(super) keeps_mails: Arc<AtomicBool>,
    /// Pending rows.
    pub(super) depth: AtomicI64,
}
