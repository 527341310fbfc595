//! Calls and failures over the time just past, in a ring of buckets.
//!
//! In: results with their time. Out: sums over the last `span`, to a twelfth of it: the newest
//! bucket is still filling, so what is counted lies between eleven twelfths and the whole. Fixed
//! memory.
//! Never: allocate, go back in time.

use std::time::Duration;

use crate::clock::Timestamp;

const BUCKETS: usize = 12;
const BUCKETS_I64: i64 = 12;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    calls: u32,
    failures: u32,
}

/// The ring. Buckets are numbered from the epoch; `newest` is the highest number seen.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    bucket_micros: i64,
    newest: i64,
    buckets: [Bucket; BUCKETS],
}

impl Recent {
    /// An empty ring over `span`.
    pub(super) fn new(span: Duration, now: Timestamp) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        let bucket_micros = (micros / BUCKETS_I64).max(1);
        let newest = now.as_micros().div_euclid(bucket_micros);
        Self { bucket_micros, newest, buckets: [Bucket::default(); BUCKETS] }
    }

    /// Counts one call.
    pub(super) fn record(&mut self, failed: bool, now: Timestamp) {
        self.advance(now);
        let place = place(self.newest);
        if let Some(bucket) = self.buckets.get_mut(place) {
            bucket.calls = bucket.calls.saturating_add(1);
            bucket.failures = bucket.failures.saturating_add(u32::from(failed));
        }
    }

    /// Calls and failures in the ring as of the last record.
    pub(super) fn sums(&self) -> (u64, u64) {
        self.buckets.iter().fold((0, 0), |(calls, failures), bucket| {
            (calls + u64::from(bucket.calls), failures + u64::from(bucket.failures))
        })
    }

    /// Forgets what has fallen out of the span.
    ///
    /// A clock that steps back a little goes on filling the newest bucket. One that steps back by
    /// more than the span would keep old counts for ever, so it empties the ring.
    fn advance(&mut self, now: Timestamp) {
        let number = now.as_micros().div_euclid(self.bucket_micros);
        let ahead = number.saturating_sub(self.newest);
        if ahead.saturating_abs() >= BUCKETS_I64 {
            self.buckets = [Bucket::default(); BUCKETS];
            self.newest = number;
            return;
        }
        for _ in 0..ahead {
            self.newest += 1;
            if let Some(bucket) = self.buckets.get_mut(place(self.newest)) {
                *bucket = Bucket::default();
            }
        }
    }
}

fn place(number: i64) -> usize {
    usize::try_from(number.rem_euclid(BUCKETS_I64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(60);

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn counts_fall_out_after_the_span() {
        let mut recent = Recent::new(SPAN, at(0));
        recent.record(true, at(0));
        recent.record(false, at(30));
        recent.record(false, at(59));
        assert_eq!(recent.sums(), (3, 1));
        recent.record(false, at(60));
        assert_eq!(recent.sums(), (3, 0), "the first is a whole span old");
        recent.record(true, at(1_000));
        assert_eq!(recent.sums(), (1, 1));
    }

    #[test]
    fn tm_01_a_clock_that_steps_back_does_not_freeze_the_counts() {
        let mut recent = Recent::new(SPAN, at(10_000));
        recent.record(true, at(10_000));
        recent.record(true, at(9_990));
        assert_eq!(recent.sums(), (2, 2), "a small step still counts");
        recent.record(false, at(2_800));
        assert_eq!(recent.sums(), (1, 0));
        recent.record(false, at(2_861));
        assert_eq!(recent.sums(), (1, 0));
    }

    #[test]
    fn the_edges_of_time_and_span_hold() {
        for span in [Duration::ZERO, Duration::MAX] {
            let mut recent = Recent::new(span, Timestamp::MAX);
            recent.record(true, Timestamp::from_micros(i64::MIN));
            recent.record(true, Timestamp::MAX);
            assert!(recent.sums().0 >= 1);
        }
    }
}
