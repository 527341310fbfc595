//! Rows to values and back: messages, pending work, attempts, lane states.
//!
//! Times are microseconds; keys are 64 bits kept as signed numbers, whose order is right until the
//! year 2082.
//! Never: text columns for bytes that came from outside.

use bytes::Bytes;
use domain::attempt::{Answer, Attempt, Failure, Outcome};
use domain::delivery::{Pending, Trigger};
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::message::{ContentType, Message, MessageSpec};
use resilience::{Snapshot, Timestamp};
use rusqlite::Row;
use rusqlite::types::FromSql;

use crate::StoreError;
use crate::history::AttemptRow;
use crate::ledger::{LaneState, Outage, Suspended};
use crate::page::Direction;
use crate::stored::codes::Code;
use crate::stored::fault::unreadable;
use crate::stored::labels::{self, Labels};
use crate::stored::numbers::{narrow, retry_after, span};

/// The columns that [`pending`] reads.
pub(super) const PENDING: &str =
    "endpoint, due_at, message, age_from, sends, budget_used, last_delay, manual";
/// The columns that [`message`] reads, payload included.
pub(super) const MESSAGE: &str = "message.key, message.random, app, accepted_at, event_type, event_id, \
     labels, content_type, retention_hours, edited_from, payload IS NULL, payload";
/// The columns that [`message`] reads, without the payload.
pub(super) const MESSAGE_LEAN: &str = "message.key, message.random, app, accepted_at, event_type, event_id, \
     labels, content_type, retention_hours, edited_from, payload IS NULL, NULL";
/// The columns that [`attempt`] reads from [`ATTEMPT_OF`], the URL aside.
pub(super) const ATTEMPT: &str = "attempt.key, attempt.random, attempt.message, endpoint, n, started_at, took, manual, \
     resent, status, failure, retry_after, cut, next_due, next_term, text, body, message.random, endpoint.id";
/// Attempts, and what they belong to.
pub(super) const ATTEMPT_OF: &str = "attempt JOIN message ON message.key = attempt.message \
     JOIN endpoint ON endpoint.key = attempt.endpoint";
/// The columns that [`lane`] reads.
pub(super) const LANE: &str = "endpoint, open_until, generation, open_for, failing_since, forced, since, \
     hold_until, throttled_rounds, rejected_until, rejected_for, warned, suspended_since, probe_at, \
     outage_since, outage_until, rejected_since";

/// SQL for a direction.
pub(super) const fn order(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    }
}

pub(super) fn time_at(row: &Row<'_>, column: usize) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_micros(row.get(column)?))
}

pub(super) fn maybe_time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

pub(super) fn code_at<T: Code>(row: &Row<'_>, column: usize) -> Result<T, StoreError> {
    T::of(row.get(column)?)
}

pub(super) fn maybe_code<T: Code>(row: &Row<'_>, column: usize) -> Result<Option<T>, StoreError> {
    row.get::<_, Option<i64>>(column)?.map(T::of).transpose()
}

pub(super) fn narrow_at<T: TryFrom<i64>>(row: &Row<'_>, column: usize) -> Result<T, StoreError> {
    narrow(row.get(column)?)
}

pub(super) fn maybe_narrow<T: TryFrom<i64>>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>, StoreError> {
    row.get::<_, Option<i64>>(column)?.map(narrow).transpose()
}

pub(super) fn bytes_at<const N: usize>(
    row: &Row<'_>,
    column: usize,
) -> Result<[u8; N], StoreError> {
    let blob = row.get_ref(column)?.as_blob().map_err(|_| unreadable())?;
    blob.try_into().map_err(|_| unreadable())
}

pub(super) fn id_at(row: &Row<'_>, column: usize) -> Result<PublicId, StoreError> {
    bytes_at::<20>(row, column).map(PublicId::from_bytes)
}

/// Reads an optional blob with `read`.
pub(super) fn maybe_blob<T>(
    row: &Row<'_>,
    column: usize,
    read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let blob = row.get_ref(column)?.as_blob_or_null().map_err(|_| unreadable())?;
    blob.map(read).transpose()
}

fn body_at(row: &Row<'_>, column: usize) -> Result<Bytes, StoreError> {
    Ok(maybe_blob(row, column, |blob| Ok(Bytes::copy_from_slice(blob)))?.unwrap_or_default())
}

/// Labels of a message.
pub(super) fn labels_at(row: &Row<'_>, column: usize) -> Result<Labels, StoreError> {
    let blob = row.get_ref(column)?.as_blob_or_null().map_err(|_| unreadable())?;
    blob.map_or_else(|| Ok(Labels::default()), labels::read)
}

/// The one row of a query, if there is one.
pub(super) fn one<T>(
    rows: &mut rusqlite::Rows<'_>,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    rows.next()?.map(read).transpose()
}

/// The first column of the one row of a query, if there is one.
pub(super) fn value<T: FromSql>(rows: &mut rusqlite::Rows<'_>) -> Result<Option<T>, StoreError> {
    one(rows, |row| Ok(row.get(0)?))
}

/// All rows of a query.
pub(super) fn all<T>(
    rows: &mut rusqlite::Rows<'_>,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut values = Vec::new();
    while let Some(row) = rows.next()? {
        values.push(read(row)?);
    }
    Ok(values)
}

/// Reads [`PENDING`].
pub(super) fn pending(row: &Row<'_>) -> Result<Pending, StoreError> {
    Ok(Pending {
        endpoint: EndpointKey(row.get(0)?),
        due_at: time_at(row, 1)?,
        message: message_key(row, 2)?,
        age_from: time_at(row, 3)?,
        sends: narrow_at(row, 4)?,
        budget_used: narrow_at(row, 5)?,
        last_delay: span(row.get(6)?),
        trigger: code_at::<Trigger>(row, 7)?,
    })
}

pub(super) fn message_key(row: &Row<'_>, column: usize) -> Result<MessageKey, StoreError> {
    Ok(MessageKey(row.get::<_, i64>(column)?.cast_unsigned()))
}

/// Reads [`MESSAGE`] or [`MESSAGE_LEAN`].
pub(super) fn message(row: &Row<'_>) -> Result<Message, StoreError> {
    let key = message_key(row, 0)?;
    let Labels { channels, tags, deliver_at, trace } = labels_at(row, 6)?;
    Ok(Message {
        key,
        id: PublicId::new(key.0, bytes_at(row, 1)?),
        app: AppKey(row.get(2)?),
        accepted_at: time_at(row, 3)?,
        spec: MessageSpec {
            event_type: row.get(4)?,
            event_id: row.get(5)?,
            channels,
            tags,
            content_type: content_type(row, 7)?,
            retention_hours: maybe_narrow(row, 8)?,
            deliver_at,
            trace,
            payload: body_at(row, 11)?,
        },
        edited_from: maybe_blob(row, 9, |blob| {
            blob.try_into().map(PublicId::from_bytes).map_err(|_| unreadable())
        })?,
        payload_gone: row.get(10)?,
    })
}

pub(super) fn content_type(row: &Row<'_>, column: usize) -> Result<ContentType, StoreError> {
    let other = row.get::<_, Option<String>>(column)?;
    Ok(other.map_or(ContentType::Json, ContentType::Other))
}

/// Reads [`ATTEMPT`].
pub(super) fn attempt(row: &Row<'_>, url: String) -> Result<AttemptRow, StoreError> {
    let key = row.get::<_, i64>(0)?.cast_unsigned();
    let text = row.get::<_, Option<String>>(15)?;
    let outcome = match maybe_code(row, 10)? {
        Some(kind) => Outcome::Failed(Failure { kind, text: text.unwrap_or_default() }),
        None => Outcome::Answered(Answer {
            status: narrow_at(row, 9)?,
            retry_after: retry_after(row.get(11)?),
            body: body_at(row, 16)?,
            cut: maybe_code(row, 12)?,
            redirect_origin: text,
        }),
    };
    let next_term = maybe_code(row, 14)?;
    let message = message_key(row, 2)?;
    Ok(AttemptRow {
        key: AttemptKey(key),
        id: PublicId::new(key, bytes_at(row, 1)?),
        message,
        message_id: PublicId::new(message.0, bytes_at(row, 17)?),
        endpoint: EndpointKey(row.get(3)?),
        endpoint_id: id_at(row, 18)?,
        url,
        attempt: Attempt {
            number: narrow_at(row, 4)?,
            started_at: time_at(row, 5)?,
            took: span(row.get(6)?),
            trigger: code_at(row, 7)?,
            outcome,
            resent: row.get(8)?,
        },
        next: maybe_time(row, 13)?.zip(next_term),
    })
}

/// Reads [`LANE`].
pub(super) fn lane(row: &Row<'_>) -> Result<LaneState, StoreError> {
    Ok(LaneState {
        endpoint: EndpointKey(row.get(0)?),
        breaker: Snapshot {
            open_until: maybe_time(row, 1)?,
            generation: row.get::<_, i64>(2)?.cast_unsigned(),
            open_for: span(row.get(3)?),
            failing_since: maybe_time(row, 4)?,
            forced: maybe_code(row, 5)?,
            since: time_at(row, 6)?,
        },
        hold_until: maybe_time(row, 7)?,
        throttled_rounds: narrow_at(row, 8)?,
        rejected_until: maybe_time(row, 9)?,
        rejected_for: span(row.get(10)?),
        warned: row.get(11)?,
        suspended: maybe_time(row, 12)?
            .zip(maybe_time(row, 13)?)
            .map(|(since, probe_at)| Suspended { since, probe_at }),
        outage: outage_at(row, 14)?,
        rejected_since: maybe_time(row, 16)?,
    })
}

/// Reads when an outage began, and behind that when it ended.
pub(super) fn outage_at(row: &Row<'_>, column: usize) -> Result<Option<Outage>, StoreError> {
    let (since, until) = (maybe_time(row, column)?, maybe_time(row, column + 1)?);
    Ok(since.map(|since| Outage { since, until }))
}
