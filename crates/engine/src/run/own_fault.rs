//! Our own faults: when sending fails for a reason on this side, sending pauses and nobody else is
//! blamed.
//!
//! An internal fault doubles a pause of the whole dispatcher, 100 ms to 5 s. When at least 90 % of
//! the last 50 attempts, over at least 10 hosts, failed before connecting, it is us too: one try
//! every 5 s until one connects.
//! Never: touch a delivery or a breaker.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use resilience::Timestamp;

const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const LAST: usize = 50;
const HOSTS_MIN: usize = 10;

/// What this side knows of its own health.
#[derive(Debug)]
pub(super) struct OwnFault {
    pause: Duration,
    until: Option<Timestamp>,
    last: VecDeque<(u64, bool)>,
    cut_off: bool,
    hasher: RandomState,
}

impl OwnFault {
    pub(super) fn new() -> Self {
        let last = VecDeque::with_capacity(LAST);
        Self {
            pause: Duration::ZERO,
            until: None,
            last,
            cut_off: false,
            hasher: RandomState::new(),
        }
    }

    /// When the next send may start, if not now.
    pub(super) fn paused_until(&self, now: Timestamp) -> Option<Timestamp> {
        // Never longer than the longest pause, though the clock steps back.
        self.until.filter(|until| *until > now && *until <= now.plus(PAUSE_MAX))
    }

    /// Whether only one send may be out at a time.
    pub(super) const fn one_at_a_time(&self) -> bool {
        self.cut_off || !self.pause.is_zero()
    }

    /// Takes an attempt in; says whether its failure is ours.
    pub(super) fn observe(
        &mut self,
        host: impl Hash,
        before_connection: bool,
        internal: bool,
    ) -> bool {
        if internal {
            return true;
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back((self.hasher.hash_one(host), before_connection));
        self.cut_off = before_connection && (self.cut_off || self.all_unreachable());
        if !self.cut_off {
            // Whatever was wrong here is over: even a refused connection took a descriptor and a
            // resolver.
            self.pause = Duration::ZERO;
            self.until = None;
        }
        self.cut_off
    }

    fn all_unreachable(&self) -> bool {
        let failed = self.last.iter().filter(|(_, failed)| *failed);
        let hosts: HashSet<u64> = failed.clone().map(|(host, _)| *host).collect();
        self.last.len() == LAST && failed.count() * 10 >= LAST * 9 && hosts.len() >= HOSTS_MIN
    }

    /// Pauses after a fault of ours; returns for how long.
    pub(super) fn pause(&mut self, now: Timestamp) -> Duration {
        self.pause =
            if self.cut_off { PAUSE_MAX } else { (self.pause * 2).clamp(PAUSE, PAUSE_MAX) };
        self.until = Some(now.plus(self.pause));
        self.pause
    }

    /// Whether sending is paused or on trial.
    pub(super) const fn is_on_trial(&self) -> bool {
        self.until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rp_03_one_dead_host_is_not_our_fault_but_all_hosts_are() {
        let mut fault = OwnFault::new();
        assert!((0..200).all(|_| !fault.observe("one.example", true, false)));
        let mut fault = OwnFault::new();
        let ours = (0..50).filter(|n| fault.observe(format!("h{n}.example"), true, false)).count();
        assert_eq!(ours, 1, "the fiftieth shows it");
        assert!(fault.observe("x.example", true, false), "and so does every later one");
        assert_eq!(fault.pause(Timestamp::EPOCH), PAUSE_MAX);
        assert!(!fault.observe("y.example", false, false), "one connection ends it");
        assert!(!fault.one_at_a_time() && fault.paused_until(Timestamp::EPOCH).is_none());
    }

    #[test]
    fn internal_faults_double_the_pause_to_its_bound() {
        let mut fault = OwnFault::new();
        assert!(fault.observe("a", false, true));
        let pauses: Vec<_> = (0..8).map(|_| fault.pause(Timestamp::EPOCH).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    }
}
