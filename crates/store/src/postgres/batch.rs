//! What a batch has done, for those who are told of it after the commit.
//!
//! Never: outlive its transaction; what is rolled back is cut off again.

use domain::delivery::Pending;
use domain::ids::{AppKey, EndpointKey};

use crate::commits::Fresh;
use crate::nodes::Order;

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
    /// Background tasks started.
    pub(super) started: usize,
    /// Changes of something else of which other nodes keep copies.
    pub(super) copies: usize,
    /// What is to be done where an endpoint is served.
    pub(super) orders: Vec<(EndpointKey, Order)>,
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
    recovered: usize,
    started: usize,
    copies: usize,
    orders: usize,
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
            recovered: self.recovered,
            started: self.started,
            copies: self.copies,
            orders: self.orders.len(),
            rows: self.rows,
            depth: self.depth,
        }
    }

    /// Forgets what was done since the mark.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.fresh.truncate(mark.fresh);
        self.withdrawn.truncate(mark.withdrawn);
        self.changed.truncate(mark.changed);
        self.orders.truncate(mark.orders);
        (self.rows, self.depth) = (mark.rows, mark.depth);
        (self.noted, self.recovered) = (mark.noted, mark.recovered);
        (self.started, self.copies) = (mark.started, mark.copies);
    }
}
