//! Keyset paging: a place to start after, a direction, a bound.
//!
//! Never: an offset; rows that arrive while a caller pages are neither skipped nor repeated.

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
