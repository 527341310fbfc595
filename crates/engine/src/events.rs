//! What happened, told to whoever watches: live lines, alerts. What organisations are told
//! of is kept by the store: [`announce`](crate::announce).
//!
//! Never: wait for a watcher, or be the proof of anything; the store is.

use std::sync::Arc;
use std::time::Duration;

use domain::classify::Class;
use domain::dead_letter::DeadReason;
use domain::endpoint::Endpoint;
use domain::ids::MessageKey;
use resilience::Timestamp;

/// One thing that happened, after it was committed.
#[derive(Clone, Debug)]
pub enum Event {
    /// A send ended.
    Attempted {
        /// Where.
        endpoint: Arc<Endpoint>,
        /// What.
        message: MessageKey,
        /// Which send of the delivery.
        number: u32,
        /// How it was classified.
        class: Class,
        /// Status code, 0 for none.
        status: u16,
        /// How long it took.
        took: Duration,
        /// When it is tried again, if it is.
        retry_at: Option<Timestamp>,
    },
    /// A delivery was given up.
    Buried {
        /// Where.
        endpoint: Arc<Endpoint>,
        /// What.
        message: MessageKey,
        /// Why.
        reason: DeadReason,
    },
    /// A breaker opened (again).
    BreakerOpened {
        /// Where.
        endpoint: Arc<Endpoint>,
        /// Until then.
        until: Timestamp,
    },
    /// A breaker closed.
    BreakerClosed {
        /// Where.
        endpoint: Arc<Endpoint>,
    },
    /// An endpoint answered 410 and was disabled.
    EndpointGone {
        /// Which.
        endpoint: Arc<Endpoint>,
    },
    /// A run of refusals holds a lane.
    RefusalsHeld {
        /// Where.
        endpoint: Arc<Endpoint>,
        /// Until then.
        until: Timestamp,
        /// Which run: when its first refusal came.
        run: Option<Timestamp>,
    },
    /// An endpoint was suspended.
    EndpointSuspended {
        /// Which.
        endpoint: Arc<Endpoint>,
    },
    /// A delivered probe ended its suspension.
    EndpointResumed {
        /// Which.
        endpoint: Arc<Endpoint>,
    },
    /// Sending is paused because the fault is ours.
    SendingPaused {
        /// For how long.
        pause: Duration,
    },
}

/// Watches events; must return at once.
pub trait Observer: Send + Sync {
    /// One event.
    fn observe(&self, event: &Event);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&self, _: &Event) {}
}
