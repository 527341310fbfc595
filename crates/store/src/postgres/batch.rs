//! What a batch has done, for those who are told of it after the commit.
//!
//! Never: outlive its transaction; what is rolled back is cut off again.

use domain::delivery::Pending;
use domain::ids::{AppKey, EndpointKey};

use crate::commits::Fresh;

/// What the running batch has done so far.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) fresh: Vec<Fresh>,
    pub(super) withdrawn: Vec<Pending>,
    pub(super) changed: Vec<(AppKey, Option<EndpointKey>)>,
    /// Notices written.
    pub(super) noted: usize,
    pub(super) rows: usize,
    /// Pending rows added less those removed.
    pub(super) depth: i64,
}

/// Where a batch stood when something began.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    fresh: usize,
    withdrawn: usize,
    changed: usize,
    noted: usize,
    rows: usize,
    depth: i64,
}

impl Batch {
    pub(super) const fn mark(&self) -> Mark {
        Mark {
            fresh: self.fresh.len(),
            withdrawn: self.withdrawn.len(),
            changed: self.changed.len(),
            noted: self.noted,
            rows: self.rows,
            depth: self.depth,
        }
    }

    /// Forgets what was done since the mark.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.fresh.truncate(mark.fresh);
        self.withdrawn.truncate(mark.withdrawn);
        self.changed.truncate(mark.changed);
        (self.rows, self.depth, self.noted) = (mark.rows, mark.depth, mark.noted);
    }
}
