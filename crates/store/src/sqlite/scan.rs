//! Pages of lists that are filled in arrears, and of lists that are filtered while they are read.
//!
//! A list is its index up to where it is filled, and the table itself beyond; one snapshot sees
//! both, so every row is there exactly once. A filter that matches little is read in pieces, each
//! with a snapshot of its own.
//! Never: hold a snapshot for longer than one piece.

use domain::ids::key_floor;
use resilience::Timestamp;
use rusqlite::{Connection, Row};
use std::time::Duration;

use super::arrears::{Kind, listed};
use super::labels::labels_at;
use super::rows::time_at;
use crate::StoreError;
use crate::history::MessageFilter;
use crate::page::{Direction, PageOf};

/// Rows of one piece when they are filtered.
pub(super) const PIECE_ROWS: usize = 1_000;
/// Keys may run ahead of the clock by so much, after it was set back.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

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

    /// Leaves out keys drawn before `after`, as far as they tell.
    pub(super) fn after(self, after: Option<Timestamp>) -> Self {
        let low = after.map_or(0, |at| i64::try_from(key_floor(at)).unwrap_or(i64::MAX));
        Self { low: self.low.max(low), ..self }
    }

    /// Leaves out keys drawn well after `before`.
    pub(super) fn before(self, before: Option<Timestamp>) -> Self {
        let Some(before) = before else { return self };
        let high = i64::try_from(key_floor(before.plus(CLOCK_SLACK))).unwrap_or(i64::MAX);
        Self { high: self.high.min(high), ..self }
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
    /// The page is full.
    Enough,
    /// To the end of the range.
    All,
    /// Up to and including this key; there may be more.
    UpTo(i64),
}

/// Reads `span` piece by piece with `read`, until it has enough or there is no more. Without a list
/// everything is one part.
pub(super) fn walk(
    conn: &Connection,
    list: Option<&Kind>,
    mut span: Span,
    direction: Direction,
    mut read: impl FnMut(&Connection, Part, Span) -> Result<Seen, StoreError>,
) -> Result<(), StoreError> {
    while !span.is_empty() {
        match (pass(conn, list, (span, direction), &mut read)?, direction) {
            (None, _) => return Ok(()),
            (Some(key), Direction::Ascending) => span.low = key.saturating_add(1),
            (Some(key), Direction::Descending) => span.high = key - 1,
        }
    }
    Ok(())
}

/// Reads one piece of `span` in one snapshot; up to which key, if it has not enough and there may
/// be more.
pub(super) fn pass(
    conn: &Connection,
    list: Option<&Kind>,
    (span, direction): (Span, Direction),
    mut read: impl FnMut(&Connection, Part, Span) -> Result<Seen, StoreError>,
) -> Result<Option<i64>, StoreError> {
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
            Seen::Enough => return Ok(None),
            Seen::All => {}
            Seen::UpTo(key) => return Ok(Some(key)),
        }
    }
    Ok(None)
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
            return Ok(Seen::Enough);
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
            return Ok(Seen::Enough);
        }
    }
    let cut = keys.last().filter(|_| keys.len() >= rows_max);
    Ok(cut.map_or(Seen::All, |last| Seen::UpTo(*last)))
}

/// Whether a message is wanted; its time, event type and labels stand in these columns.
pub(super) fn wanted(
    row: &Row<'_>,
    [time, event_type, labels]: [usize; 3],
    filter: &MessageFilter,
) -> Result<bool, StoreError> {
    if filter.before.is_some() || filter.after.is_some() {
        let at = time_at(row, time)?;
        if filter.before.is_some_and(|before| at >= before)
            || filter.after.is_some_and(|after| at < after)
        {
            return Ok(false);
        }
    }
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
