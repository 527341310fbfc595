//! What somebody who forces the breaker does to a gate, and what is delivered meanwhile.
//!
//! Never: decide whether a result counts; its permit says so.

use resilience::{Change, Forced, State, Timestamp};

use super::{Gate, Pass};

impl Gate {
    /// Forces the breaker, or gives it back to itself. Whoever does has looked at the receiver:
    /// what it refused before is forgotten, and a suspension is over unless nothing is to be sent.
    pub fn force(&mut self, forced: Option<Forced>, now: Timestamp) {
        if forced != Some(Forced::Open) {
            self.resume(now);
        }
        self.breaker.force(forced, now);
        if forced == Some(Forced::Closed) {
            self.hold.clear();
            self.window.restart();
        }
        self.trust();
    }

    /// A send was delivered. While everything may go because somebody says so, that also ends the
    /// break that the breaker's own rules still keep beneath.
    pub(super) fn delivered(&mut self, pass: &Pass, now: Timestamp) -> Option<Change> {
        let is_late = self.breaker.is_late(pass.permit);
        if let Some(change) = self.breaker.success(pass.permit, now) {
            return Some(change);
        }
        let before = self.breaker.snapshot();
        let is_closed = matches!(self.breaker.state(now), State::Closed);
        if is_late || before.open_until.is_none() || !is_closed {
            return None;
        }
        self.breaker.reset(now);
        self.breaker.force(before.forced, before.since);
        Some(Change::Closed)
    }
}
