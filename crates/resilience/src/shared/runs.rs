//! A row of results, in as much as matters to a count of failures in a row.
//!
//! However many calls it stands for, a store takes it in with one step.
//! Never: grow with the number of calls.

/// Results in their order, boiled down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Failures before the first success.
    pub lead: u32,
    /// The longest run of failures between two successes.
    pub longest: u32,
    /// Failures after the last success.
    pub trail: u32,
    /// Whether there was a success.
    pub succeeded: bool,
}

impl Runs {
    /// One call.
    pub fn one(failed: bool) -> Self {
        let mut runs = Self::default();
        runs.add(failed);
        runs
    }

    /// One call more.
    pub fn add(&mut self, failed: bool) {
        match (failed, self.succeeded) {
            (true, false) => self.lead = self.lead.saturating_add(1),
            (true, true) => self.trail = self.trail.saturating_add(1),
            (false, _) => {
                if self.succeeded {
                    self.longest = self.longest.max(self.trail);
                }
                self.trail = 0;
                self.succeeded = true;
            }
        }
    }

    /// Whether there was no call at all.
    pub const fn is_empty(&self) -> bool {
        self.lead == 0 && !self.succeeded
    }

    /// Whether a call failed.
    pub const fn has_failed(&self) -> bool {
        self.lead > 0 || self.longest > 0 || self.trail > 0
    }

    /// The count after these results, and whether `limit` was reached on the way, if it was at
    /// `before`.
    pub fn apply(&self, before: u32, limit: u32) -> (u32, bool) {
        let first = before.saturating_add(self.lead);
        let last = if self.succeeded { self.trail } else { first };
        let reached = self.lead > 0 && first >= limit
            || self.longest > 0 && self.longest >= limit
            || self.succeeded && self.trail > 0 && self.trail >= limit;
        (last, reached)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_counts_as_one_by_one_does(
            results in prop::collection::vec(any::<bool>(), 0..30),
            before in 0_u32..6,
            limit in 1_u32..6,
        ) {
            let mut runs = Runs::default();
            let (mut count, mut reached) = (before, false);
            for failed in results {
                runs.add(failed);
                count = if failed { count + 1 } else { 0 };
                reached |= failed && count >= limit;
            }
            prop_assert_eq!(runs.apply(before, limit), (count, reached));
        }
    }
}
