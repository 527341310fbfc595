//! Pages of lists that are filled in arrears, and of lists that are filtered while they are read.
//!
//! A list is its index up to where it is filled, and the table itself beyond; one snapshot sees
//! both, so every row is there exactly once. A filter that matches little is read in pieces, each
//! with a snapshot of its own, and no further than one look goes.
//! Never: hold a snapshot for longer than one piece.

use std::ops::Range;

use resilience::Timestamp;
use rusqlite::{Connection, Row};

use super::arrears::{Kind, listed};
use super::rows::labels_at;
use crate::StoreError;
use crate::history::MessageFilter;
use crate::page::{Direction, LOOK_ROWS_MAX, PageOf, keys_within};

/// Rows of one piece when they are filtered.
pub(super) const PIECE_ROWS: usize = 1_000;
/// Pieces of one look.
pub(super) const LOOK_PIECES: usize = LOOK_ROWS_MAX / PIECE_ROWS;

/// A range of keys, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Span {
    /// What lies beyond the page's beginning.
    pub(super) fn of(page: &PageOf<u64>) -> Self {
        let all = Self { low: 0, high: i64::MAX };
        let Some(beyond) = page.beyond else { return all };
        let beyond = i64::try_from(beyond).unwrap_or(i64::MAX);
        match page.direction {
            Direction::Ascending => Self { low: beyond.saturating_add(1), ..all },
            Direction::Descending => Self { high: beyond - 1, ..all },
        }
    }

    /// Leaves out keys drawn before `after`, or not before `before`.
    pub(super) fn within(self, after: Option<Timestamp>, before: Option<Timestamp>) -> Self {
        let signed = |key| i64::try_from(key).unwrap_or(i64::MAX);
        let Range { start, end } = keys_within(after, before);
        Self { low: self.low.max(signed(start)), high: self.high.min(signed(end) - 1) }
    }

    const fn is_empty(self) -> bool {
        self.low > self.high
    }
}

/// Where rows are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The index of the list.
    Listed,
    /// The table, beyond what is listed.
    Tail,
}

/// How far a piece was read.
pub(super) enum Seen {
    /// Up to and including this key, with which the page is full.
    Enough(i64),
    /// To the end of the range.
    All,
    /// Up to and including this key; there may be more.
    UpTo(i64),
}

/// Reads `span` with `read`, in at most so many pieces, until it has enough or there is no more; up
/// to which key, if there may be more. Without a list everything is one part.
pub(super) fn walk(
    conn: &Connection,
    list: Option<&Kind>,
    (mut span, direction): (Span, Direction),
    pieces: usize,
    mut read: impl FnMut(&Connection, Part, Span) -> Result<Seen, StoreError>,
) -> Result<Option<i64>, StoreError> {
    let mut reached = None;
    for _ in 0..pieces {
        let key = match pass(conn, list, (span, direction), &mut read)? {
            Seen::All => return Ok(None),
            Seen::Enough(key) => return Ok(Some(key)),
            Seen::UpTo(key) => key,
        };
        match direction {
            Direction::Ascending => span.low = key.saturating_add(1),
            Direction::Descending => span.high = key - 1,
        }
        reached = Some(key);
    }
    Ok(reached)
}

/// Reads one piece of `span` in one snapshot.
pub(super) fn pass(
    conn: &Connection,
    list: Option<&Kind>,
    (span, direction): (Span, Direction),
    mut read: impl FnMut(&Connection, Part, Span) -> Result<Seen, StoreError>,
) -> Result<Seen, StoreError> {
    if span.is_empty() {
        return Ok(Seen::All);
    }
    let snapshot = conn.unchecked_transaction()?;
    let filled = list.map_or(Ok(i64::MAX), |list| listed(&snapshot, list))?;
    let mut parts = [
        (Part::Listed, Span { high: span.high.min(filled), ..span }),
        (Part::Tail, Span { low: span.low.max(filled.saturating_add(1)), ..span }),
    ];
    if direction == Direction::Descending {
        parts.reverse();
    }
    for (part, span) in parts {
        if span.is_empty() || (list.is_none() && part == Part::Tail) {
            continue;
        }
        match read(&snapshot, part, span)? {
            Seen::All => {}
            seen => return Ok(seen),
        }
    }
    Ok(Seen::All)
}

/// Reads one piece: `take` looks at a row, whose first column is its key, and says whether the page
/// is full.
pub(super) fn piece(
    rows: &mut rusqlite::Rows<'_>,
    rows_max: usize,
    mut take: impl FnMut(&Row<'_>) -> Result<bool, StoreError>,
) -> Result<Seen, StoreError> {
    let (mut seen, mut last) = (0, 0);
    while let Some(row) = rows.next()? {
        (seen, last) = (seen + 1, row.get(0)?);
        if take(row)? {
            return Ok(Seen::Enough(last));
        }
    }
    Ok(if seen < rows_max { Seen::All } else { Seen::UpTo(last) })
}

/// Looks at rows by their keys: `take` says whether the page is full.
pub(super) fn each(
    keys: &[i64],
    rows_max: usize,
    mut take: impl FnMut(i64) -> Result<bool, StoreError>,
) -> Result<Seen, StoreError> {
    for key in keys {
        if take(*key)? {
            return Ok(Seen::Enough(*key));
        }
    }
    let cut = keys.last().filter(|_| keys.len() >= rows_max);
    Ok(cut.map_or(Seen::All, |last| Seen::UpTo(*last)))
}

/// Whether a message is wanted, its time aside; its event type and labels stand in these columns.
pub(super) fn wanted(
    row: &Row<'_>,
    [event_type, labels]: [usize; 2],
    filter: &MessageFilter,
) -> Result<bool, StoreError> {
    if !filter.event_types.is_empty() {
        let name: String = row.get(event_type)?;
        if !filter.event_types.contains(&name) {
            return Ok(false);
        }
    }
    if filter.channel.is_none() && filter.tag.is_none() {
        return Ok(true);
    }
    let labels = labels_at(row, labels)?;
    Ok(filter.channel.as_ref().is_none_or(|channel| labels.channels.contains(channel))
        && filter.tag.as_ref().is_none_or(|tag| labels.tags.contains(tag)))
}
