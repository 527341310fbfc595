//! What a health check does to a gate: it ends a wait early, and nothing else.
//!
//! In: how breaker and suspension stand, when it was last asked. Out: when to ask next.
//! Never: close a breaker, end a suspension or shorten the next open time; a delivered message
//! does.

use std::time::Duration;

use resilience::{State, Timestamp};

use super::Gate;

/// Nobody is asked more often.
const ASK_EVERY_MIN: Duration = Duration::from_secs(10);

impl Gate {
    /// When to ask whether the receiver is well, `asked` before; `None` while nothing waits for
    /// that: everything is sent, a probe may go or is out, or somebody decided by hand.
    pub fn next_question(&self, asked: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let snapshot = self.breaker.snapshot();
        if snapshot.forced.is_some() {
            return None;
        }
        let since = match self.suspension.on {
            Some(on) if on.probe_at > now => on.since,
            Some(_) => return None,
            None if matches!(self.breaker.state(now), State::Open { .. }) => snapshot.since,
            None => return None,
        };
        let every = self.settings.breaker.open_for.max(ASK_EVERY_MIN);
        // A clock that was set back must not keep it silent.
        let last = asked.filter(|asked| *asked <= now).map_or(since, |asked| asked.max(since));
        Some(last.min(now).plus(every))
    }

    /// It says that it is well: one probe may go now.
    pub fn hear_well(&mut self, now: Timestamp) {
        if self.next_question(None, now).is_some() {
            self.let_probe(now);
        }
    }
}
