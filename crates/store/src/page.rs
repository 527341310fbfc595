//! Keyset paging: a place to start after, a direction, a bound, and how far one look came.
//!
//! Never: an offset; rows that arrive while a caller pages are neither skipped nor repeated.

use std::ops::Range;

use domain::ids::key_floor;
use resilience::Timestamp;

/// Rows that one look at a list passes, at most, wanted or not.
pub const LOOK_ROWS_MAX: usize = 5_000;

/// Which way a page reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the newest (largest) place down.
    #[default]
    Descending,
    /// From the oldest (smallest) place up.
    Ascending,
}

/// One page of a list ordered by a place `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageOf<P> {
    /// Rows strictly beyond this place, in reading direction; `None` from the start.
    pub beyond: Option<P>,
    /// Reading direction.
    pub direction: Direction,
    /// At most so many rows.
    pub limit: usize,
}

impl<P> PageOf<P> {
    /// The same with another kind of place.
    pub fn at<Q>(self, place: impl FnOnce(P) -> Q) -> PageOf<Q> {
        PageOf { beyond: self.beyond.map(place), direction: self.direction, limit: self.limit }
    }
}

/// What one look at a list found.
///
/// A look ends with the last row that was asked for, with the row whose payload fills the page, or
/// when it has passed so many rows that others have waited long enough: [`LOOK_ROWS_MAX`] at most,
/// and never within the first 1,000. The next one goes on beyond `reached`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked<T, P> {
    /// What was wanted, in reading direction.
    pub rows: Vec<T>,
    /// Up to where was looked, when there may be more beyond; `None` at the end of the list.
    pub reached: Option<P>,
}

impl<T, P> Looked<T, P> {
    /// Nothing, and nothing to go on from.
    pub const fn nothing() -> Self {
        Self { rows: Vec::new(), reached: None }
    }
}

/// Keys that were drawn at or after `after` and before `before`, to the 4 ms that a key holds.
///
/// Lists are in order of their keys, so that a span of time is one range of a list. A key is never
/// earlier than its row; after the clock was set back it is later, until the clock has caught up.
pub fn keys_within(after: Option<Timestamp>, before: Option<Timestamp>) -> Range<u64> {
    after.map_or(0, key_floor)..before.map_or(u64::MAX, key_floor)
}
