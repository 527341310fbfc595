//! Calls, failures and slow calls of late: over a time, or over a number of calls.
//!
//! In: results with their time. Out: sums.
//! Never: judge them.

use super::rules::Window;
use crate::clock::Timestamp;
use crate::ring::Ring;

/// How many calls, and how many of them were bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Results counted.
    pub calls: u64,
    /// Failures among them.
    pub failures: u64,
    /// Slow ones among them, failed or not.
    pub slow: u64,
}

/// What is remembered.
#[derive(Clone, Debug)]
pub(super) enum Recent {
    Time(Ring<Tally>),
    Calls(Last),
}

impl Recent {
    /// Nothing yet.
    pub(super) fn new(window: Window, now: Timestamp) -> Self {
        match window {
            Window::Time(span) => Self::Time(Ring::new(span, now)),
            Window::Calls(count) => Self::Calls(Last::new(count)),
        }
    }

    /// Counts one call.
    pub(super) fn record(&mut self, failed: bool, slow: bool, now: Timestamp) {
        match self {
            Self::Time(ring) => {
                if let Some(bucket) = ring.at(now) {
                    bucket.add(failed, slow);
                }
            }
            Self::Calls(last) => last.record(failed, slow),
        }
    }

    /// The sums as of the last record.
    pub(super) fn sums(&self) -> Counts {
        match self {
            Self::Time(ring) => {
                ring.buckets().iter().fold(Counts::default(), |sum, bucket| Counts {
                    calls: sum.calls + u64::from(bucket.calls),
                    failures: sum.failures + u64::from(bucket.failures),
                    slow: sum.slow + u64::from(bucket.slow),
                })
            }
            Self::Calls(last) => last.sums,
        }
    }
}

/// One bucket of a ring: small, since a server keeps a ring for every receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    calls: u32,
    failures: u32,
    slow: u32,
}

impl Tally {
    const fn add(&mut self, failed: bool, slow: bool) {
        self.calls = self.calls.saturating_add(1);
        self.failures = self.failures.saturating_add(failed as u32);
        self.slow = self.slow.saturating_add(slow as u32);
    }
}

/// The last so many calls, with running sums.
#[derive(Clone, Debug)]
pub(super) struct Last {
    /// Whether each failed, and whether it was slow.
    kept: Vec<(bool, bool)>,
    count: usize,
    next: usize,
    sums: Counts,
}

impl Last {
    fn new(count: u32) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        Self { kept: Vec::new(), count, next: 0, sums: Counts::default() }
    }

    fn record(&mut self, failed: bool, slow: bool) {
        self.sums.failures += u64::from(failed);
        self.sums.slow += u64::from(slow);
        if self.kept.len() < self.count {
            self.sums.calls += 1;
            self.kept.push((failed, slow));
            return;
        }
        if let Some(oldest) = self.kept.get_mut(self.next) {
            let (had_failed, was_slow) = std::mem::replace(oldest, (failed, slow));
            self.sums.failures -= u64::from(had_failed);
            self.sums.slow -= u64::from(was_slow);
        }
        self.next += 1;
        if self.next == self.count {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn a_time_window_forgets_by_time() {
        let mut recent = Recent::new(Window::Time(Duration::from_secs(60)), at(0));
        recent.record(true, false, at(0));
        recent.record(false, true, at(30));
        assert_eq!(recent.sums(), Counts { calls: 2, failures: 1, slow: 1 });
        recent.record(false, false, at(60));
        assert_eq!(recent.sums(), Counts { calls: 2, failures: 0, slow: 1 });
    }

    #[test]
    fn a_window_of_calls_forgets_by_number_and_never_by_time() {
        let mut recent = Recent::new(Window::Calls(3), at(0));
        for failed in [true, true, false, false] {
            recent.record(failed, failed, at(0));
        }
        assert_eq!(recent.sums(), Counts { calls: 3, failures: 1, slow: 1 });
        recent.record(false, false, at(1_000_000));
        assert_eq!(recent.sums(), Counts { calls: 3, failures: 0, slow: 0 });
        for _ in 0..100 {
            recent.record(true, false, at(0));
        }
        assert_eq!(recent.sums(), Counts { calls: 3, failures: 3, slow: 0 });
    }
}
