//! Successes that found the lock taken: counted aside, and taken in by whoever holds it next.
//!
//! In: the generation of an ordinary call that succeeded. Out: how many of one generation wait.
//! Never: hold more than a number, or mix two generations.

use std::sync::atomic::{AtomicU64, Ordering};

/// The lower half counts; the upper one is the end of the generation.
const COUNT_BITS: u32 = 32;

/// Successes of one generation.
#[derive(Debug, Default)]
pub(super) struct Waiting(AtomicU64);

impl Waiting {
    /// One more. Of an older generation than those that wait it would change nothing any more.
    pub(super) fn add(&self, generation: u64) {
        let own = tag(generation);
        let add = |kept: u64| {
            let (theirs, count) = split(kept);
            match own.wrapping_sub(theirs) {
                0 => Some(joined(own, count.saturating_add(1))),
                newer if count == 0 || newer < u32::MAX / 2 => Some(joined(own, 1)),
                _ => None,
            }
        };
        let _unless_older = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, add);
    }

    /// Takes all out; none if they are of another generation.
    pub(super) fn take(&self, generation: u64) -> u32 {
        if self.0.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let (theirs, count) = split(self.0.swap(0, Ordering::AcqRel));
        if theirs == tag(generation) { count } else { 0 }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the end is enough to tell neighbours apart")]
const fn tag(generation: u64) -> u32 {
    generation as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn split(kept: u64) -> (u32, u32) {
    ((kept >> COUNT_BITS) as u32, kept as u32)
}

const fn joined(tag: u32, count: u32) -> u64 {
    (tag as u64) << COUNT_BITS | count as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_one_generation_are_counted() {
        let waiting = Waiting::default();
        assert_eq!(waiting.take(7), 0);
        for _ in 0..3 {
            waiting.add(7);
        }
        assert_eq!((waiting.take(7), waiting.take(7)), (3, 0));
    }

    #[test]
    fn an_older_generation_never_counts_for_a_newer_one() {
        let waiting = Waiting::default();
        waiting.add(7);
        waiting.add(8);
        waiting.add(7);
        assert_eq!(waiting.take(8), 1);
        waiting.add(7);
        assert_eq!(waiting.take(8), 0, "taken out, and for nothing");
        let last = u64::from(u32::MAX);
        waiting.add(last);
        waiting.add(last + 1);
        assert_eq!(waiting.take(last + 1), 1, "also where the tag begins anew");
    }
}
