//! Tells observers: in order, without the lock, and past a panic.
//!
//! Never: hold a lock while an observer runs, lose a change.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::observer::{BreakerObserver, StateChange};

/// Everyone who watches.
pub(super) type Observers = Vec<Box<dyn BreakerObserver>>;

/// Tells each observer; one that panics keeps nobody else from hearing.
pub(super) fn each(observers: &Observers, tell: impl Fn(&dyn BreakerObserver)) {
    for observer in observers {
        // What a panicking observer leaves half done is its own; nothing of the breaker is in its
        // reach. The panic hook has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| tell(observer.as_ref())));
    }
}

/// Changes that have happened and are not yet told. Whoever finds some while nobody else tells
/// takes the telling over, so that two tasks never tell in the wrong order.
#[derive(Default)]
pub(super) struct Outbox {
    changes: VecDeque<StateChange>,
    telling: bool,
}

impl Outbox {
    /// A change happened.
    pub(super) fn add(&mut self, change: StateChange) {
        self.changes.push_back(change);
    }

    /// The next change for the task that takes the telling over; none for any other.
    pub(super) fn begin(&mut self) -> Option<StateChange> {
        if self.telling {
            return None;
        }
        self.next()
    }

    /// The next change for the task that tells.
    pub(super) fn next(&mut self) -> Option<StateChange> {
        let next = self.changes.pop_front();
        self.telling = next.is_some();
        next
    }
}
