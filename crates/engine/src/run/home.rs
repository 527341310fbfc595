//! Which endpoints are served here, where several nodes share a store.
//!
//! Never: move anything; `moves` does.

use std::collections::BTreeMap;

use domain::ids::EndpointKey;
use domain::nodes::{Partition, Partitions};
use store::nodes::Share;

/// Whether an endpoint is served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// By this node.
    Here,
    /// By this node, once what must be known of its lane was read.
    Coming,
    /// By another node, or by nobody.
    Elsewhere,
}

/// What is served here.
#[derive(Default)]
pub(super) struct Homes {
    pub(super) mine: Partitions,
    /// Acquisitions whose lanes are being read, by number.
    pub(super) arriving: BTreeMap<u64, Partitions>,
    pub(super) round: u64,
    pub(super) leaving: Partitions,
    pub(super) looking: bool,
    /// The lease was not renewed in time, and what was in flight was broken off.
    pub(super) cut_off: bool,
}

impl Homes {
    pub(super) fn new(share: &Share) -> Self {
        let mine = if share.is_shared() { Partitions::default() } else { Partitions::ALL };
        Self { mine, ..Self::default() }
    }

    pub(super) fn of(&self, endpoint: EndpointKey) -> Home {
        let partition = Partition::of(endpoint);
        if !self.mine.contains(partition) {
            Home::Elsewhere
        } else if self.arriving.values().any(|coming| coming.contains(partition)) {
            Home::Coming
        } else {
            Home::Here
        }
    }

    pub(super) fn serves(&self, endpoint: EndpointKey) -> bool {
        self.of(endpoint) == Home::Here
    }

    /// Whether sends to it are broken off though nobody is to blame.
    pub(super) fn breaks_off(&self, endpoint: EndpointKey) -> bool {
        self.cut_off || self.leaving.has(endpoint)
    }
}
