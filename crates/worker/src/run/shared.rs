//! What all attempts of a worker share.
//!
//! Never: anything that one attempt changes for another.

use std::sync::Arc;

use resilience::{CircuitBreaker, Retry, Seeded};

use crate::builder::{Handler, Limits, Parts};
use crate::dynamic::DynQueue;
use crate::handled::Handled;
use crate::observer::Observers;

/// What all attempts of a worker share.
pub(super) struct Shared {
    pub(super) queue: Arc<dyn DynQueue>,
    pub(super) breaker: Option<CircuitBreaker>,
    pub(super) observers: Observers,
    pub(super) limits: Limits,
    pub(super) handler: Handler<Handled>,
    pub(super) retry: Retry,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> (Self, Seeded) {
        let Parts { queue, handler, retry, breaker, observers, limits, chance } = parts;
        (Self { queue, breaker, observers, limits, handler, retry }, chance)
    }
}
