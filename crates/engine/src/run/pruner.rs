//! When pruning begins and from where: each minute on from where the last piece stopped, and once a
//! day anew, for what was passed over because a delivery needed it then.
//!
//! Never: ask the store; `prune` does.

use std::time::Duration;

use resilience::Timestamp;
use store::prune::{Cursor, Pruned};

use super::due::is_due;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(60);
/// How often all of it is looked at again.
const ANEW: Duration = Duration::from_secs(24 * 3_600);

/// How far pruning is.
pub(super) struct Pruner {
    next_at: Timestamp,
    anew_at: Timestamp,
    from: Cursor,
    running: bool,
}

impl Pruner {
    pub(super) fn new(now: Timestamp) -> Self {
        let (next_at, anew_at) = (now.plus(EVERY), now.plus(ANEW));
        Self { next_at, anew_at, from: Cursor::default(), running: false }
    }

    /// Whether it is time for a first piece, which is then under way.
    pub(super) fn begin(&mut self, now: Timestamp) -> bool {
        if self.running || !is_due(self.next_at, EVERY, now) {
            return false;
        }
        self.next_at = now.plus(EVERY);
        if is_due(self.anew_at, ANEW, now) {
            self.anew_at = now.plus(ANEW);
            self.from = Cursor::default();
        }
        self.running = true;
        true
    }

    /// Where the next piece begins.
    pub(super) const fn from(&self) -> Cursor {
        self.from
    }

    /// A piece was done; whether another one follows at once.
    pub(super) const fn done(&mut self, pruned: &Pruned) -> bool {
        self.from = pruned.reached;
        self.running = pruned.more;
        pruned.more
    }

    /// A piece could not be done: it is tried again with the next look.
    pub(super) const fn failed(&mut self) {
        self.running = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn at(secs: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(secs))
    }

    fn piece(messages: u64, more: bool) -> Pruned {
        Pruned { reached: Cursor { messages, ..Cursor::default() }, more, ..Pruned::default() }
    }

    #[test]
    fn a_look_a_minute_goes_on_and_one_a_day_begins_anew() {
        let mut pruner = Pruner::new(NOW);
        assert!(!pruner.begin(at(59)) && pruner.begin(at(60)));
        assert!(!pruner.begin(at(200)), "one at a time");
        assert!(pruner.done(&piece(7, true)) && !pruner.begin(at(200)));
        assert!(!pruner.done(&piece(9, false)));
        assert!(pruner.begin(at(200)));
        assert_eq!(pruner.from(), piece(9, false).reached);
        pruner.failed();
        assert!(!pruner.begin(at(259)) && pruner.begin(at(24 * 3_600)));
        assert_eq!(pruner.from(), Cursor::default());
    }

    #[test]
    fn a_clock_that_steps_back_does_not_stop_it() {
        let mut pruner = Pruner::new(at(1_000_000));
        assert!(pruner.begin(NOW));
    }
}
