//! The time of day that all nodes of a database have in common: the database's, carried on by a
//! clock that is never set.
//!
//! What one node writes as due is read by another, and what two nodes accept for one endpoint is
//! sent in the order of its times. The database says its time to each node every second; between
//! two sayings, and while the database is away, the steady clock carries on from the last one. An
//! answer tells the time to half of what it took to come: the better saying is kept, until it is
//! older than the machine's steady clock is good for or a later one contradicts it.
//! Never: the clock of this machine once the database was heard.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use resilience::{Clock, Timestamp};

/// A steady clock is wrong by at most one part in so many.
const DRIFT: u32 = 5_000;
/// What is worth a line in the log.
const TOLD_FROM: Duration = Duration::from_secs(1);
const UNKNOWN: i64 = i64::MIN;

/// The time of day of the database, once it was heard; until then that of this machine.
pub struct CommonClock {
    own: Arc<dyn Clock>,
    /// Goes on while the machine sleeps, and is never set.
    steady: Arc<dyn Clock>,
    /// How much the database's time is ahead of the steady clock, in microseconds.
    ahead: AtomicI64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// How wrong the saying may be, and when it was heard by the steady clock.
    wrong_by: Duration,
    heard: Timestamp,
    /// That this machine's clock differs is in the log.
    told: bool,
}

impl CommonClock {
    /// Shows the time of this machine until the database is heard.
    pub fn new(own: Arc<dyn Clock>, steady: Arc<dyn Clock>) -> Self {
        Self { own, steady, ahead: AtomicI64::new(UNKNOWN), kept: Mutex::default() }
    }

    /// When the database is asked, by the steady clock.
    pub fn asks(&self) -> Timestamp {
        self.steady.now()
    }

    /// The database, asked then, has said its time; its answer is here now.
    pub fn hears(&self, asked: Timestamp, said: Timestamp) {
        let here = self.steady.now();
        let half = here.since(asked) / 2;
        let ahead = said.as_micros().saturating_sub(asked.plus(half).as_micros());
        let mut kept = self.lock();
        let known = self.ahead.load(Ordering::SeqCst);
        let aged = kept.wrong_by + here.since(kept.heard) / DRIFT;
        let apart = Duration::from_micros(ahead.abs_diff(known));
        if known == UNKNOWN || half <= aged || apart > half + aged {
            self.ahead.store(ahead, Ordering::SeqCst);
            (kept.wrong_by, kept.heard) = (half, here);
        }
        let (common, own) = (self.now(), self.own.now());
        let apart = common.since(own).max(own.since(common));
        let differs = apart >= TOLD_FROM;
        if differs && !kept.told {
            tracing::warn!(
                seconds = apart.as_secs_f64(),
                "the clock of this machine is not that of the database, whose time is used"
            );
        }
        kept.told = differs;
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for CommonClock {
    fn now(&self) -> Timestamp {
        match self.ahead.load(Ordering::SeqCst) {
            UNKNOWN => self.own.now(),
            ahead => Timestamp::from_micros(self.steady.now().as_micros().saturating_add(ahead)),
        }
    }
}

#[cfg(test)]
mod tests {
    use resilience::ManualClock;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct World {
        own: Arc<ManualClock>,
        steady: Arc<ManualClock>,
        clock: CommonClock,
    }

    fn world() -> World {
        let own = Arc::new(ManualClock::new(Timestamp::from_secs(5_000)));
        let steady = Arc::new(ManualClock::new(Timestamp::from_secs(10)));
        let clock = CommonClock::new(Arc::clone(&own) as _, Arc::clone(&steady) as _);
        World { own, steady, clock }
    }

    impl World {
        /// An answer that took so long, in which the time was `said` when `of` of it was over.
        fn hear(&self, took: Duration, said: Timestamp) {
            let asked = self.clock.asks();
            self.steady.advance(took);
            self.clock.hears(asked, said);
        }
    }

    #[test]
    fn it_is_this_machine_s_time_until_the_database_is_heard_and_never_after() {
        let world = world();
        assert_eq!(world.clock.now(), Timestamp::from_secs(5_000));
        let said = Timestamp::from_secs(9_000);
        world.hear(MS * 2, said);
        assert_eq!(world.clock.now(), said.plus(MS));
        for step in [1, 1_000_000] {
            world.own.set(Timestamp::from_secs(step));
            assert_eq!(world.clock.now(), said.plus(MS), "its own clock was set");
        }
        world.steady.advance(MS * 500);
        assert_eq!(world.clock.now(), said.plus(MS * 501), "it goes on without the database");
    }

    #[test]
    fn a_slow_answer_does_not_spoil_what_a_quick_one_said() {
        let world = world();
        let said = Timestamp::from_secs(9_000);
        world.hear(MS * 2, said);
        // Said at once, and 80 ms under way: taken for 40 ms.
        world.hear(MS * 80, said.plus(MS));
        assert_eq!(world.clock.now(), said.plus(MS * 81));
        // As good as the first: taken.
        world.hear(MS * 2, said.plus(MS * 82).plus(MS / 2));
        assert_eq!(world.clock.now(), said.plus(MS * 83).plus(MS / 2));
    }

    #[test]
    fn a_good_answer_is_replaced_once_it_is_too_old() {
        let world = world();
        let said = Timestamp::from_secs(9_000);
        world.hear(MS * 2, said);
        let hour = Duration::from_secs(3_600);
        world.steady.advance(hour);
        let later = said.plus(MS + hour);
        world.hear(MS * 40, later.plus(MS * 30));
        assert_eq!(world.clock.now(), later.plus(MS * 50));
    }

    #[test]
    fn a_database_whose_clock_was_set_is_followed_at_once() {
        let world = world();
        let said = Timestamp::from_secs(9_000);
        world.hear(MS * 2, said);
        for set in [Timestamp::from_secs(12_000), Timestamp::from_secs(100)] {
            world.hear(MS * 80, set);
            assert_eq!(world.clock.now(), set.plus(MS * 40));
        }
    }
}
