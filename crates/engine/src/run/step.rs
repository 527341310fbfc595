//! What a lane's turn comes to, and a send that is about to take off.
//!
//! Never: decide either.

use std::sync::Arc;

use domain::endpoint::Endpoint;
use domain::ids::MessageKey;
use domain::message::Envelope;
use resilience::Timestamp;

use crate::deliver::Errand;

/// What a lane's turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It did something and may want more.
    Again,
    /// Nothing to do, or nothing it may do before one of its own results comes in.
    Rest,
    /// Nothing before then.
    Until(Timestamp),
    /// Nothing before others leave room.
    Starved,
}

/// A send that takes off once the in-flight file is written.
pub(super) struct TakeOff {
    pub(super) slot: usize,
    pub(super) message: MessageKey,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) envelope: Option<Arc<Envelope>>,
    pub(super) errand: Errand,
}
