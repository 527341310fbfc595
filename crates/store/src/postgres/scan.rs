//! Looks at lists: a range of keys in pieces, until the page is full or others have waited long
//! enough.
//!
//! Each piece is a statement of its own and sees what is committed by then; a row that comes while
//! a list is looked at is neither skipped nor repeated, since a place in it does not move.
//! Never: an offset, or a statement without a bound.

use std::ops::Range;

use domain::ids::AppKey;
use domain::message::Message;
use tokio_postgres::Row;

use super::conn::{Conn, all};
use super::fault::Fault;
use super::rows::{MESSAGE_LEAN, bound, get, labels_at, message, order};
use crate::StoreError;
use crate::history::MessageFilter;
use crate::page::{Direction, LOOK_ROWS_MAX, Looked, PageOf};

/// Rows of one piece when they are filtered.
const PIECE_ROWS: usize = 1_000;

/// A range of keys, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Span {
    /// Keys of this range.
    pub(super) fn within(keys: &Range<u64>) -> Self {
        let low = i64::try_from(keys.start).unwrap_or(i64::MAX);
        let end = i64::try_from(keys.end).unwrap_or(i64::MAX);
        Self { low, high: if keys.end > end.cast_unsigned() { end } else { end.saturating_sub(1) } }
    }
}

/// One look.
pub(super) struct Walk {
    span: Span,
    direction: Direction,
    piece_rows: usize,
    passed: usize,
    last: Option<i64>,
    /// There is nothing beyond.
    over: bool,
}

impl Walk {
    /// What lies beyond the page's beginning, as far as the range goes; `filtered` when not every
    /// row will be wanted.
    pub(super) fn new(page: &PageOf<u64>, keys: &Range<u64>, filtered: bool) -> Self {
        let mut span = Span::within(keys);
        if let Some(beyond) = page.beyond {
            let beyond = i64::try_from(beyond).unwrap_or(i64::MAX);
            match page.direction {
                Direction::Ascending => span.low = span.low.max(beyond.saturating_add(1)),
                Direction::Descending => span.high = span.high.min(beyond - 1),
            }
        }
        let piece_rows = if filtered { PIECE_ROWS } else { page.limit.min(PIECE_ROWS) };
        let over = page.limit == 0;
        Self { span, direction: page.direction, piece_rows, passed: 0, last: None, over }
    }

    /// The next piece and its bound; `None` when the look is at its end.
    pub(super) fn piece(&self) -> Option<(Span, i64)> {
        let done = self.over || self.span.low > self.span.high || self.passed >= LOOK_ROWS_MAX;
        (!done).then(|| (self.span, bound(self.piece_rows)))
    }

    /// A row was looked at.
    pub(super) fn pass(&mut self, key: i64) {
        (self.passed, self.last) = (self.passed + 1, Some(key));
        match self.direction {
            Direction::Ascending => self.span.low = key.saturating_add(1),
            Direction::Descending => self.span.high = key - 1,
        }
    }

    /// A piece of so many rows was read to its end.
    pub(super) fn read(&mut self, rows: usize) {
        self.over = rows < self.piece_rows;
    }

    /// What was found, when the look has come to its end or to that of the page.
    pub(super) fn found<T>(self, rows: Vec<T>) -> Looked<T, u64> {
        let reached = self.last.filter(|_| !self.over).map(i64::cast_unsigned);
        Looked { rows, reached }
    }
}

/// Whether a message is wanted; its event type and labels stand in these columns.
pub(super) fn wanted(
    row: &Row,
    [event_type, labels]: [usize; 2],
    filter: &MessageFilter,
) -> Result<bool, StoreError> {
    if !filter.event_types.is_empty() {
        let name: &str = get(row, event_type)?;
        if !filter.event_types.iter().any(|wanted| wanted == name) {
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

/// Whether a filter takes every message of its time.
pub(super) fn takes_all(filter: &MessageFilter) -> bool {
    filter.event_types.is_empty() && filter.channel.is_none() && filter.tag.is_none()
}

/// A piece of the messages of an application, without payloads: each key, and the message if it is
/// wanted.
pub(super) async fn of_app(
    conn: &Conn,
    (app, filter): (AppKey, &MessageFilter),
    (low, high, most): (i64, i64, i64),
    page: &PageOf<u64>,
) -> Result<Vec<(i64, Option<Message>)>, Fault> {
    let order = order(page.direction);
    let sql = format!(
        "SELECT {MESSAGE_LEAN} FROM message WHERE (app, key) >= ($1, $2) AND (app, key) <= ($1, $3)
         ORDER BY app {order}, key {order} LIMIT $4"
    );
    let read = |row: &Row| {
        let lean = if wanted(row, [4, 6], filter)? { Some(message(row)?) } else { None };
        Ok((get(row, 0)?, lean))
    };
    all(conn, &sql, &[&app.0, &low, &high, &most], read).await
}
