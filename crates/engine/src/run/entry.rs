//! A result on its way to the ledger.
//!
//! Never: know what becomes of it.

use std::sync::Arc;

use domain::classify::Class;
use domain::endpoint::Endpoint;
use resilience::Timestamp;
use store::ledger::Record;

use crate::admit::Settled;

/// A record on its way, and what is told once it is committed.
pub struct Entry {
    pub(super) record: Record,
    pub(super) endpoint: Option<Arc<Endpoint>>,
    pub(super) class: Option<Class>,
    pub(super) settled: Settled,
    /// When it is tried again.
    pub(super) retry_at: Option<Timestamp>,
    /// The head of an ordered lane, which is tried again in its place.
    pub(super) keeps_place: bool,
}

impl Entry {
    /// A record of a row that was not sent.
    pub(super) fn unsent(record: Record, endpoint: Option<Arc<Endpoint>>) -> Self {
        Self {
            record,
            endpoint,
            class: None,
            settled: Settled::default(),
            retry_at: None,
            keeps_place: false,
        }
    }
}
