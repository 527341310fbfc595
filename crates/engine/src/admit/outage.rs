//! Outages: from the first failure of an endpoint whose breaker opens, or that is suspended, until
//! it works again.
//!
//! In: breaker and suspension as they stand. Out: the last outage, which the store keeps with the
//! state of the lane.
//! Never: decide when one begins; breaker and suspension do.

use resilience::Timestamp;
use store::ledger::Outage;

use super::Gate;

impl Gate {
    /// Breaker or suspension may have moved.
    pub(super) fn note_outage(&mut self, now: Timestamp) {
        let suspended = self.suspension.on.map(|on| on.since);
        let is_out = self.breaker.snapshot().open_until.is_some() || suspended.is_some();
        match &mut self.outage {
            Some(outage) if outage.until.is_none() => {
                outage.until = (!is_out).then_some(now);
            }
            last => {
                let since = || self.breaker.failing_since().or(suspended).unwrap_or(now);
                if is_out {
                    *last = Some(Outage { since: since(), until: None });
                }
            }
        }
    }
}
