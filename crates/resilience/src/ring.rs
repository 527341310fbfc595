//! What happened over the time just past, in a ring of buckets.
//!
//! In: a span and the time of each entry. Out: the bucket that is filling, and all that are still
//! within the span, to a twelfth of it: the newest bucket is still filling, so what is held lies
//! between eleven twelfths and the whole. Fixed memory.
//! Never: allocate, go back in time, know what is counted.

use std::time::Duration;

use crate::clock::Timestamp;

const BUCKETS: usize = 12;
const BUCKETS_I64: i64 = 12;

/// The ring. Buckets are numbered from the epoch; `newest` is the highest number seen.
#[derive(Clone, Debug)]
pub(crate) struct Ring<B> {
    bucket_micros: i64,
    newest: i64,
    buckets: [B; BUCKETS],
}

impl<B: Copy + Default> Ring<B> {
    /// An empty ring over `span`.
    pub(crate) fn new(span: Duration, now: Timestamp) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        let bucket_micros = (micros / BUCKETS_I64).max(1);
        let newest = now.as_micros().div_euclid(bucket_micros);
        Self { bucket_micros, newest, buckets: [B::default(); BUCKETS] }
    }

    /// The bucket that fills at `now`, after what has fallen out of the span is forgotten.
    pub(crate) fn at(&mut self, now: Timestamp) -> Option<&mut B> {
        self.advance(now);
        self.buckets.get_mut(place(self.newest))
    }

    /// All buckets as of the last [`Ring::at`], by age.
    pub(crate) fn oldest_first(&mut self) -> impl Iterator<Item = &mut B> {
        let (newer, older) = self.buckets.split_at_mut(place(self.newest.saturating_add(1)));
        older.iter_mut().chain(newer)
    }

    /// The bucket that filled at `then`, if it is still within the span; moves nothing.
    pub(crate) fn when(&mut self, then: Timestamp) -> Option<&mut B> {
        let number = then.as_micros().div_euclid(self.bucket_micros).min(self.newest);
        let kept = self.newest.saturating_sub(number) < BUCKETS_I64;
        if kept { self.buckets.get_mut(place(number)) } else { None }
    }

    /// All buckets as of the last [`Ring::at`], in no order.
    pub(crate) const fn buckets(&self) -> &[B] {
        &self.buckets
    }

    /// A clock that steps back a little goes on filling the newest bucket. One that steps back by
    /// more than the span would keep old counts for ever, so it empties the ring.
    fn advance(&mut self, now: Timestamp) {
        let number = now.as_micros().div_euclid(self.bucket_micros);
        let ahead = number.saturating_sub(self.newest);
        if ahead.saturating_abs() >= BUCKETS_I64 {
            self.buckets = [B::default(); BUCKETS];
            self.newest = number;
            return;
        }
        for _ in 0..ahead {
            self.newest += 1;
            if let Some(bucket) = self.buckets.get_mut(place(self.newest)) {
                *bucket = B::default();
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

    fn add(ring: &mut Ring<u32>, now: Timestamp) -> u32 {
        *ring.at(now).unwrap() += 1;
        ring.buckets().iter().sum()
    }

    #[test]
    fn entries_fall_out_after_the_span() {
        let mut ring = Ring::new(SPAN, at(0));
        assert_eq!([0, 30, 59].map(|secs| add(&mut ring, at(secs))), [1, 2, 3]);
        assert_eq!(add(&mut ring, at(60)), 3, "the first is a whole span old");
        assert_eq!(add(&mut ring, at(1_000)), 1);
    }

    #[test]
    fn buckets_come_by_age() {
        let mut ring = Ring::new(SPAN, at(0));
        for n in 0..17_u32 {
            *ring.at(at(i64::from(n) * 5)).unwrap() = n;
        }
        assert_eq!(
            ring.oldest_first().map(|n| *n).collect::<Vec<_>>(),
            (5..17).collect::<Vec<_>>()
        );
    }

    #[test]
    fn tm_01_a_clock_that_steps_back_does_not_freeze_the_counts() {
        let mut ring = Ring::new(SPAN, at(10_000));
        assert_eq!(add(&mut ring, at(10_000)), 1);
        assert_eq!(add(&mut ring, at(9_990)), 2, "a small step still counts");
        assert_eq!(add(&mut ring, at(2_800)), 1);
        assert_eq!(add(&mut ring, at(2_861)), 1);
    }

    #[test]
    fn the_edges_of_time_and_span_hold() {
        for span in [Duration::ZERO, Duration::MAX] {
            let mut ring = Ring::new(span, Timestamp::MAX);
            add(&mut ring, Timestamp::from_micros(i64::MIN));
            assert!(add(&mut ring, Timestamp::MAX) >= 1);
        }
    }
}
