//! The hold that `Retry-After` on 429 or 503, or 429 alone, puts on a lane, and the wait of an
//! ordered lane's head.
//!
//! When a hold ends one delivery is let through; its success lifts the hold. A success of a send
//! begun before the hold lifts nothing. The head's wait is a due time: it ends by itself.
//! Never: last longer than its bound, not even when the clock steps back.

use std::time::Duration;

use resilience::{Chance, RetryAfter, Timestamp};

use super::decision::Decision;

const STEP: Duration = Duration::from_secs(1);
const STEP_MAX: Duration = Duration::from_secs(60);

/// Held until, and how it came to that.
#[derive(Debug, Default)]
pub(super) struct Hold {
    until: Option<Timestamp>,
    /// When `until` was last set.
    since: Timestamp,
    head: Option<Timestamp>,
    rounds: u32,
    epoch: u64,
    /// The number of the probe that is out.
    probe: Option<u64>,
}

impl Hold {
    pub(super) fn restore(until: Option<Timestamp>, rounds: u32, now: Timestamp) -> Self {
        let epoch = u64::from(until.is_some());
        Self { until, since: now, rounds, epoch, ..Self::default() }
    }

    pub(super) fn decide(&self, now: Timestamp) -> Decision {
        if let Some(head) = self.head.filter(|head| *head > now) {
            return Decision::Wait(Some(head));
        }
        match self.until {
            None => Decision::Go,
            Some(until) if !is_over(until, self.since, now) => Decision::Wait(Some(until)),
            Some(_) if self.probe.is_some() => Decision::Wait(None),
            Some(_) => Decision::Probe,
        }
    }

    /// Probe `number` is out.
    pub(super) const fn probe(&mut self, number: u64) {
        if self.until.is_some() {
            self.probe = Some(number);
        }
    }

    /// Probe `number` is back.
    pub(super) fn unprobe(&mut self, number: u64) {
        self.probe = self.probe.filter(|out| *out != number);
    }

    /// Which hold a send was begun under; a success from an older one lifts nothing.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Until when `Retry-After` or 429 holds it.
    pub(super) const fn of_receiver(&self) -> Option<Timestamp> {
        self.until
    }

    /// The later of hold and head's wait.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.until.max(self.head)
    }

    pub(super) const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// A success of a send begun under `epoch`.
    pub(super) fn lift(&mut self, epoch: u64) -> bool {
        if epoch != self.epoch {
            return false;
        }
        self.rounds = 0;
        self.probe = None;
        self.until.take().is_some()
    }

    /// Lifted by hand; what is out now lifts nothing later.
    pub(super) fn clear(&mut self) {
        *self = Self { epoch: self.epoch + 1, head: self.head, ..Self::default() };
    }

    /// 429: the hint, or a jittered wait that doubles each round.
    pub(super) fn throttle(
        &mut self,
        hint: RetryAfter,
        max: Duration,
        now: Timestamp,
        chance: &mut dyn Chance,
    ) {
        if matches!(hint, RetryAfter::Wait(_)) {
            self.hint(hint, max, now);
            return;
        }
        // Answers that come in while it is held are the same round.
        if self.until.is_some_and(|until| !is_over(until, self.since, now)) {
            return;
        }
        let step = STEP.saturating_mul(1_u32.checked_shl(self.rounds).unwrap_or(u32::MAX));
        let wait = step.min(STEP_MAX);
        self.rounds = self.rounds.saturating_add(1);
        self.set(now.plus(chance.between(wait / 2, wait)), now);
    }

    /// A usable hint: the latest seen, within the bound.
    pub(super) fn hint(&mut self, hint: RetryAfter, max: Duration, now: Timestamp) {
        if let RetryAfter::Wait(wait) = hint {
            self.set(now.plus(wait.clamp(STEP.min(max), max)), now);
        }
    }

    fn set(&mut self, until: Timestamp, now: Timestamp) {
        let known = self.until.filter(|known| !is_over(*known, self.since, now));
        self.epoch += 1;
        self.until = known.max(Some(until));
        self.since = now;
    }

    /// The head of an ordered lane is tried again then; `None`: the lane has another head.
    pub(super) const fn wait_for_head(&mut self, until: Option<Timestamp>) {
        self.head = until;
    }

    /// When the head is tried again, if it failed before.
    pub(super) const fn head(&self) -> Option<Timestamp> {
        self.head
    }
}

/// Whether a wait that began at `since` is over: at its end, or when the clock was set back by more
/// than its length, so that no wait exceeds twice what it was meant to be.
pub(super) fn is_over(until: Timestamp, since: Timestamp, now: Timestamp) -> bool {
    now >= until || now.plus(until.since(since)) < since
}
