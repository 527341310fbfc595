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
    /// Outages that ended.
    pub(super) recovered: usize,
    pub(super) rows: usize,
    pub(super) bytes: usize,
    /// Pending rows added less those removed.
    pub(super) depth: i64,
    /// New messages as (application, key), for the lists.
    pub(super) messages: Vec<(i64, i64)>,
    /// New attempts as (endpoint, key), for the lists.
    pub(super) attempts: Vec<(i64, i64)>,
}

/// Where a batch stood when something began.
pub(super) struct Mark {
    fresh: usize,
    withdrawn: usize,
    changed: usize,
    noted: usize,
    recovered: usize,
    rows: usize,
    depth: i64,
    messages: usize,
    attempts: usize,
}

impl Batch {
    pub(super) const fn mark(&self) -> Mark {
        Mark {
            fresh: self.fresh.len(),
            withdrawn: self.withdrawn.len(),
            changed: self.changed.len(),
            noted: self.noted,
            recovered: self.recovered,
            rows: self.rows,
            depth: self.depth,
            messages: self.messages.len(),
            attempts: self.attempts.len(),
        }
    }

    /// Forgets what was done since the mark.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.fresh.truncate(mark.fresh);
        self.withdrawn.truncate(mark.withdrawn);
        self.changed.truncate(mark.changed);
        self.messages.truncate(mark.messages);
        self.attempts.truncate(mark.attempts);
        (self.rows, self.depth) = (mark.rows, mark.depth);
        (self.noted, self.recovered) = (mark.noted, mark.recovered);
    }
}
