//! What is known of the storage: whether results can be written down.
//!
//! In doubt at first and after a batch of results that failed; a write decides.
//! Never: write, or send.

use std::time::Duration;

use resilience::Timestamp;

use super::due::is_due;

/// A write that failed is tried again after this.
const EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing was written yet, which is no fault.
    #[default]
    Untried,
    /// A batch of results failed since the last write.
    InDoubt,
    Writes,
    Fails,
}

/// What is known of the storage.
#[derive(Debug, Default)]
pub(super) struct Storage {
    state: State,
    writing: bool,
    next_at: Timestamp,
}

impl Storage {
    /// Whether nothing may be sent.
    pub(super) fn holds_back(&self) -> bool {
        self.state != State::Writes
    }

    /// Whether that is because of a fault, and not because it was only just started.
    pub(super) const fn is_at_fault(&self) -> bool {
        matches!(self.state, State::InDoubt | State::Fails)
    }

    /// When the next write is due, if one is.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        (self.holds_back() && !self.writing).then_some(self.next_at)
    }

    /// Whether a write is due.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.next_at().is_some_and(|at| is_due(at, EVERY, now))
    }

    /// A write has begun.
    pub(super) const fn begin(&mut self) {
        self.writing = true;
    }

    /// It was done, and another one follows at once.
    pub(super) const fn go_on(&mut self, now: Timestamp) {
        (self.writing, self.next_at) = (false, now);
    }

    /// It is decided; says whether that is news: failing is, and writing after it.
    pub(super) fn decide(&mut self, writes: bool, now: Timestamp) -> bool {
        (self.writing, self.next_at) = (false, now.plus(EVERY));
        let failed = self.state == State::Fails;
        self.state = if writes { State::Writes } else { State::Fails };
        failed == writes
    }

    /// A batch of results failed.
    pub(super) fn doubt(&mut self, now: Timestamp) {
        if self.state == State::Writes {
            self.state = State::InDoubt;
            self.next_at = now;
        }
    }
}
