//! How much of a task may be put into lanes now: a rate over all of them, and in each at most one
//! second's worth that is not done with.
//!
//! Never: read the clock or the store; both tell it.

use std::collections::HashMap;
use std::time::Duration;

use domain::ids::{EndpointKey, MessageKey};
use domain::limits::PAGE_ROWS_MAX;
use resilience::Timestamp;

/// What one send costs: a millionth of a second's worth at a rate of one.
const SEND: u64 = 1_000_000;
/// Sends of one piece at most.
const PIECE_MAX: usize = PAGE_ROWS_MAX;

/// The pace of one task.
pub(super) struct Pace {
    rate: u64,
    saved: u64,
    seen_at: Timestamp,
    out: HashMap<EndpointKey, Vec<MessageKey>>,
}

impl Pace {
    /// At so many sends a second, the first second's worth at once.
    pub(super) fn new(rate_per_s: u32, now: Timestamp) -> Self {
        let rate = u64::from(rate_per_s.max(1));
        Self { rate, saved: rate * SEND, seen_at: now, out: HashMap::new() }
    }

    /// Time has passed.
    pub(super) fn pass(&mut self, now: Timestamp) {
        let passed = now.since(self.seen_at).min(Duration::from_secs(1));
        let micros = u64::try_from(passed.as_micros()).unwrap_or(0);
        self.saved = (self.saved + micros * self.rate).min(self.rate * SEND);
        self.seen_at = now;
    }

    /// How many sends may be put into the lane now.
    pub(super) fn allowed(&self, endpoint: EndpointKey) -> usize {
        let saved = usize::try_from(self.saved / SEND).unwrap_or(usize::MAX);
        saved.min(self.room(endpoint)).min(PIECE_MAX)
    }

    /// Whether only what waits in the lane keeps more from being put there.
    pub(super) fn is_full(&self, endpoint: EndpointKey) -> bool {
        let saved = usize::try_from(self.saved / SEND).unwrap_or(usize::MAX);
        self.room(endpoint) < saved.min(PIECE_MAX)
    }

    /// What was put into the lane, as far as it is not known to be done with.
    pub(super) fn out(&self, endpoint: EndpointKey) -> Vec<MessageKey> {
        self.out.get(&endpoint).cloned().unwrap_or_default()
    }

    /// Only these still wait.
    pub(super) fn still_out(&mut self, endpoint: EndpointKey, waiting: Vec<MessageKey>) {
        self.out.insert(endpoint, waiting);
    }

    /// These were put into the lane.
    pub(super) fn sent(&mut self, endpoint: EndpointKey, sent: Vec<MessageKey>) {
        let count = u64::try_from(sent.len()).unwrap_or(u64::MAX);
        self.saved = self.saved.saturating_sub(count.saturating_mul(SEND));
        self.out.entry(endpoint).or_default().extend(sent);
    }

    fn room(&self, endpoint: EndpointKey) -> usize {
        let out = self.out.get(&endpoint).map_or(0, Vec::len);
        usize::try_from(self.rate).unwrap_or(usize::MAX).saturating_sub(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const LANE: EndpointKey = EndpointKey(1);

    fn at(millis: u64) -> Timestamp {
        NOW.plus(Duration::from_millis(millis))
    }

    fn messages(count: u64) -> Vec<MessageKey> {
        (0..count).map(MessageKey).collect()
    }

    #[test]
    fn the_rate_holds_and_nothing_is_saved_beyond_a_second() {
        let mut pace = Pace::new(10, NOW);
        assert_eq!(pace.allowed(LANE), 10);
        pace.sent(LANE, messages(10));
        pace.still_out(LANE, Vec::new());
        assert_eq!(pace.allowed(LANE), 0);
        pace.pass(at(99));
        assert_eq!(pace.allowed(LANE), 0);
        pace.pass(at(100));
        assert_eq!(pace.allowed(LANE), 1);
        pace.pass(at(60_000));
        assert_eq!(pace.allowed(LANE), 10);
        pace.sent(LANE, messages(10));
        pace.still_out(LANE, Vec::new());
        pace.pass(NOW);
        assert_eq!(pace.allowed(LANE), 0, "the clock stepped back");
        pace.pass(at(500));
        assert_eq!(pace.allowed(LANE), 5);
    }

    #[test]
    fn a_lane_holds_a_seconds_worth_and_no_other_lane_pays_for_it() {
        let mut pace = Pace::new(10, NOW);
        pace.sent(LANE, messages(10));
        pace.pass(at(1_000));
        assert_eq!(pace.allowed(LANE), 0);
        assert!(pace.is_full(LANE) && !pace.is_full(EndpointKey(2)));
        assert_eq!(pace.allowed(EndpointKey(2)), 10);
        pace.still_out(LANE, messages(7));
        assert_eq!((pace.allowed(LANE), pace.out(LANE).len()), (3, 7));
    }

    #[test]
    fn a_piece_has_a_bound() {
        assert_eq!(Pace::new(10_000, NOW).allowed(LANE), PIECE_MAX);
        assert_eq!(Pace::new(0, NOW).allowed(LANE), 1, "never stands still");
    }
}
