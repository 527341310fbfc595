//! A breaker whose state others share: what they have made of it.
//!
//! Never: end a probe that is out, open what is forced.

use std::time::Duration;

use super::{Breaker, Change, Forced};
use crate::clock::Timestamp;

impl Breaker {
    /// Takes over what others that share its state have made of it. A probe that is out here still
    /// decides.
    pub(crate) fn adopt(
        &mut self,
        forced: Option<Forced>,
        open_until: Option<Timestamp>,
        now: Timestamp,
    ) {
        if forced != self.forced {
            self.force(forced, now);
        }
        match (self.open_until, open_until) {
            (Some(_), None) if forced.is_none() => {
                self.failing_since = None;
                self.health.end_run();
                self.close(now);
            }
            (None, Some(until)) => self.turn(Some(until), now),
            (Some(_), Some(until)) if !self.trial.has_begun() => self.open_until = Some(until),
            (Some(_), _) | (None, None) => {}
        }
    }

    /// Opens as another one has that shares its state: with the open time that it had come to, of
    /// which so much is left.
    pub(crate) fn open_as(
        &mut self,
        open_for: Duration,
        left: Duration,
        now: Timestamp,
    ) -> Option<Change> {
        if !self.may_open() {
            return None;
        }
        self.open_for = open_for.max(self.rules.open_for.first).min(self.rules.open_for.max);
        let until = now.plus(left.min(self.open_for));
        self.turn(Some(until), now);
        self.health.forget();
        Some(Change::Opened { until })
    }
}
