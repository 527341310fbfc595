//! What is due by a clock that may have been set back.
//!
//! What was never sent was due when it was accepted. A clock that was set back since would have it
//! wait for as long as that; what waits for a retry, on the other hand, was to wait.
//! Never: read the clock.

use std::time::Duration;

use resilience::Timestamp;

use crate::delivery::Pending;

/// A key tells the time to so much.
const KEY_STEP: Duration = Duration::from_millis(4);
/// The clocks of two nodes are read at different moments.
const SLACK: Duration = Duration::from_secs(1);

/// Which rows are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    now: Timestamp,
    unsent: Timestamp,
}

impl Until {
    /// By a clock that shows `now`, and has never shown more than `latest`.
    pub fn of(now: Timestamp, latest: Timestamp) -> Self {
        let unsent = if latest > now { latest.plus(SLACK) } else { now };
        Self { now, unsent }
    }

    /// The time of what was never sent: `now`, or ahead of it while the clock catches up.
    pub const fn unsent(&self) -> Timestamp {
        self.unsent
    }

    /// Whether a row is due.
    pub fn has(&self, row: &Pending) -> bool {
        let accepted_by = row.message.time().plus(KEY_STEP);
        row.due_at <= self.now || (row.sends == 0 && row.due_at <= self.unsent.min(accepted_by))
    }
}

impl From<Timestamp> for Until {
    fn from(now: Timestamp) -> Self {
        Self { now, unsent: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Trigger;
    use crate::ids::{EndpointKey, MessageKey, key_floor};

    #[test]
    fn tm_01_what_was_never_sent_does_not_wait_for_a_clock_that_was_set_back() {
        let at = |secs: i64| Timestamp::from_secs(1_700_000_000 + secs);
        let row = |accepted, due, sends| Pending {
            endpoint: EndpointKey(1),
            due_at: at(due),
            message: MessageKey(key_floor(at(accepted))),
            age_from: at(accepted),
            sends,
            budget_used: sends,
            last_delay: Duration::ZERO,
            trigger: Trigger::Scheduled,
        };
        let (now, back) = (Until::of(at(600), at(600)), Until::of(at(0), at(600)));
        assert_eq!(Until::from(at(600)), now);
        for (row, by_now, set_back) in [
            (row(0, 0, 0), true, true),
            (row(0, 0, 3), true, true),
            (row(600, 600, 0), true, true),
            // A retry, and what is not to be sent before a time of its own.
            (row(500, 600, 1), true, false),
            (row(500, 600, 0), true, false),
            // By the clock of a node that has not heard of it yet.
            (row(601, 601, 0), false, true),
            (row(700, 700, 0), false, false),
        ] {
            assert_eq!((now.has(&row), back.has(&row)), (by_now, set_back), "{row:?}");
        }
    }
}
