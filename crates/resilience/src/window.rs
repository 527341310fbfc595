//! How many sends may be out at once: one more for each success, half for each round of trouble.
//!
//! In: the results of sends, each with the stamp it was begun with. Out: a limit in `1..=max`.
//! Never: count the sends that are out, know time, fall to zero.

/// When a send was begun, counted in cuts; give it back with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round(u32);

/// An adaptive limit on sends that are out at once.
#[derive(Clone, Debug)]
pub struct Window {
    limit: u32,
    max: u32,
    round: u32,
    untouched: bool,
}

impl Window {
    /// A window that begins at `start`; both are taken as at least 1, and `start` as at most `max`.
    pub fn new(start: u32, max: u32) -> Self {
        let max = max.max(1);
        Self { limit: start.clamp(1, max), max, round: 0, untouched: true }
    }

    /// How many sends may be out at once.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The stamp for a send begun now.
    pub const fn begin(&self) -> Round {
        Round(self.round)
    }

    /// One more, up to the maximum: a send succeeded.
    pub fn grow(&mut self) {
        self.untouched = false;
        self.limit = self.limit.saturating_add(1).min(self.max);
    }

    /// Halves the window for a send that met trouble; says whether it did.
    ///
    /// Sends that were out together meet the same trouble: the first of them cuts, the rest were
    /// begun before that cut and change nothing.
    pub fn cut(&mut self, begun: Round) -> bool {
        if begun != self.begin() {
            return false;
        }
        self.set(self.limit / 2);
        true
    }

    /// Back to 1, in a new round: the receiver has just come back.
    pub fn restart(&mut self) {
        self.set(1);
    }

    /// Changes the bounds. A window that has seen no result yet takes the new start.
    pub fn retune(&mut self, start: u32, max: u32) {
        self.max = max.max(1);
        let limit = if self.untouched { start } else { self.limit };
        self.limit = limit.clamp(1, self.max);
    }

    fn set(&mut self, limit: u32) {
        self.untouched = false;
        self.limit = limit.max(1);
        self.round = self.round.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grows_by_one_up_to_the_maximum() {
        let mut window = Window::new(4, 6);
        let limits = [(); 4].map(|()| {
            window.grow();
            window.limit()
        });
        assert_eq!(limits, [5, 6, 6, 6]);
    }

    #[test]
    fn sends_that_were_out_together_cut_once() {
        let mut window = Window::new(64, 64);
        let together = [window.begin(); 64];
        let cuts = together.into_iter().filter(|round| window.cut(*round)).count();
        assert_eq!((cuts, window.limit()), (1, 32));
        let next = window.begin();
        assert!(window.cut(next));
        assert_eq!(window.limit(), 16);
    }

    #[test]
    fn never_below_one_and_restart_begins_a_round() {
        let mut window = Window::new(0, 0);
        assert_eq!(window.limit(), 1);
        let round = window.begin();
        assert!(window.cut(round));
        assert_eq!(window.limit(), 1);
        let mut window = Window::new(8, 8);
        let before = window.begin();
        window.restart();
        window.grow();
        assert!(!window.cut(before), "a send from before the restart says nothing about it");
        assert_eq!(window.limit(), 2);
    }

    #[test]
    fn retune_keeps_what_was_learnt() {
        let mut fresh = Window::new(4, 64);
        fresh.retune(8, 64);
        assert_eq!(fresh.limit(), 8);
        fresh.grow();
        fresh.retune(2, 64);
        assert_eq!(fresh.limit(), 9);
        fresh.retune(2, 5);
        assert_eq!(fresh.limit(), 5);
    }

    proptest! {
        #[test]
        fn stays_within_its_bounds(
            start in any::<u32>(),
            max in 0_u32..100,
            ops in prop::collection::vec(0_u8..5, 0..500),
        ) {
            let (mut window, mut max) = (Window::new(start, max), max.max(1));
            let mut begun = window.begin();
            for op in ops {
                let before = window.limit();
                match op {
                    0 => window.grow(),
                    1 => {
                        let current = begun == window.begin();
                        prop_assert_eq!(window.cut(begun), current);
                        prop_assert!(current || window.limit() == before);
                    }
                    2 => begun = window.begin(),
                    3 => window.restart(),
                    _ => {
                        max = (max % 97) + 3;
                        window.retune(start, max);
                    }
                }
                prop_assert!((1..=max).contains(&window.limit()));
            }
        }
    }
}
