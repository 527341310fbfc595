//! Rows to values and back: messages, pending work, attempts, lane states.
//!
//! Keys are 64 bits kept as signed numbers, whose order is right until the year 2082. Times beyond
//! what a `timestamptz` holds are its infinities. PostgreSQL's texts have no NUL: in a text that
//! has one, U+FFFD stands for it.
//! Never: text columns for bytes that came from outside.

use std::borrow::Cow;
use std::error::Error;

use bytes::{Bytes, BytesMut};
use domain::attempt::{Answer, Attempt, Failure, Outcome};
use domain::delivery::{Pending, Trigger};
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::message::{ContentType, Message, MessageSpec};
use resilience::{Snapshot, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

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
/// So many are they: what is read besides stands behind them.
pub(super) const PENDING_COLUMNS: usize = 8;
/// The columns that [`message`] reads, payload included.
pub(super) const MESSAGE: &str = "message.key, message.random, app, accepted_at, event_type, event_id, \
     labels, content_type, retention_hours, edited_from, payload IS NULL, payload";
/// The columns that [`message`] reads, without the payload.
pub(super) const MESSAGE_LEAN: &str = "message.key, message.random, app, accepted_at, event_type, event_id, \
     labels, content_type, retention_hours, edited_from, payload IS NULL, NULL::bytea";
/// The columns that [`attempt`] reads from [`ATTEMPT_OF`], the URL last.
pub(super) const ATTEMPT: &str = "attempt.key, attempt.random, attempt.message, attempt.endpoint, n, started_at, took, \
     manual, resent, status, failure, retry_after, cut, next_due, next_term, text, body, message.random, endpoint.id, \
     coalesce((SELECT u.url FROM endpoint_url u WHERE u.endpoint = attempt.endpoint AND u.since < attempt.key
                   AND u.at <= attempt.started_at ORDER BY u.since DESC LIMIT 1),
              (SELECT u.url FROM endpoint_url u WHERE u.endpoint = attempt.endpoint ORDER BY u.since LIMIT 1), '')";
/// Attempts, and what they belong to.
pub(super) const ATTEMPT_OF: &str = "attempt JOIN message ON message.key = attempt.message \
     JOIN endpoint ON endpoint.key = attempt.endpoint";
/// The columns that [`lane`] reads.
pub(super) const LANE: &str = "endpoint, open_until, generation, open_for, failing_since, forced, since, \
     hold_until, throttled_rounds, rejected_until, rejected_for, warned, suspended_since, probe_at, \
     outage_since, outage_until, rejected_since";

/// From 1970, where ours begin, to 2000, where PostgreSQL's do, in microseconds.
const EPOCH: i64 = 946_684_800_000_000;
/// The last moment that is surely within PostgreSQL's calendar: the year 294000.
const LAST: i64 = 9_214_646_400_000_000_000;
/// The first: 4700 before our era.
const FIRST: i64 = -210_000_000_000_000_000;

/// A time in a `timestamptz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(pub(super) Timestamp);

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let micros = match self.0.as_micros() {
            far if far > LAST => i64::MAX,
            far if far < FIRST => i64::MIN,
            micros => micros - EPOCH,
        };
        out.extend_from_slice(&micros.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for At {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let micros = match i64::from_be_bytes(raw.try_into()?) {
            i64::MAX => i64::MAX,
            i64::MIN => i64::MIN,
            micros => micros.saturating_add(EPOCH),
        };
        Ok(Self(Timestamp::from_micros(micros)))
    }

    accepts!(TIMESTAMPTZ);
}

/// A text as PostgreSQL takes it.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same, if there is one.
pub(super) fn maybe_text(of: Option<&str>) -> Option<Cow<'_, str>> {
    of.map(text)
}

/// A code in a `smallint`.
pub(super) fn small(code: i64) -> i16 {
    i16::try_from(code).unwrap_or(-1)
}

/// SQL for a direction.
pub(super) const fn order(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    }
}

/// A bound for SQL.
pub(super) fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A column; one that does not read as its type was not written by us.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|_| unreadable())
}

pub(super) fn time_at(row: &Row, column: usize) -> Result<Timestamp, StoreError> {
    get::<At>(row, column).map(|at| at.0)
}

pub(super) fn maybe_time(row: &Row, column: usize) -> Result<Option<Timestamp>, StoreError> {
    Ok(get::<Option<At>>(row, column)?.map(|at| at.0))
}

pub(super) fn code_at<T: Code>(row: &Row, column: usize) -> Result<T, StoreError> {
    T::of(i64::from(get::<i16>(row, column)?))
}

pub(super) fn maybe_code<T: Code>(row: &Row, column: usize) -> Result<Option<T>, StoreError> {
    get::<Option<i16>>(row, column)?.map(|code| T::of(i64::from(code))).transpose()
}

pub(super) fn narrow_at<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T, StoreError> {
    narrow(get(row, column)?)
}

pub(super) fn maybe_narrow<T: TryFrom<i64>>(
    row: &Row,
    column: usize,
) -> Result<Option<T>, StoreError> {
    get::<Option<i64>>(row, column)?.map(narrow).transpose()
}

/// An HTTP status.
pub(super) fn status_at(row: &Row, column: usize) -> Result<u16, StoreError> {
    narrow(i64::from(get::<i16>(row, column)?))
}

pub(super) fn bytes_at<const N: usize>(row: &Row, column: usize) -> Result<[u8; N], StoreError> {
    get::<&[u8]>(row, column)?.try_into().map_err(|_| unreadable())
}

pub(super) fn id_at(row: &Row, column: usize) -> Result<PublicId, StoreError> {
    bytes_at::<20>(row, column).map(PublicId::from_bytes)
}

pub(super) fn maybe_id(row: &Row, column: usize) -> Result<Option<PublicId>, StoreError> {
    maybe_blob(row, column, |blob| {
        blob.try_into().map(PublicId::from_bytes).map_err(|_| unreadable())
    })
}

/// Reads an optional blob with `read`.
pub(super) fn maybe_blob<T>(
    row: &Row,
    column: usize,
    read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    get::<Option<&[u8]>>(row, column)?.map(read).transpose()
}

fn body_at(row: &Row, column: usize) -> Result<Bytes, StoreError> {
    Ok(maybe_blob(row, column, |blob| Ok(Bytes::copy_from_slice(blob)))?.unwrap_or_default())
}

/// Labels of a message.
pub(super) fn labels_at(row: &Row, column: usize) -> Result<Labels, StoreError> {
    Ok(maybe_blob(row, column, labels::read)?.unwrap_or_default())
}

/// Reads [`PENDING`].
pub(super) fn pending(row: &Row) -> Result<Pending, StoreError> {
    Ok(Pending {
        endpoint: EndpointKey(get(row, 0)?),
        due_at: time_at(row, 1)?,
        message: message_key(row, 2)?,
        age_from: time_at(row, 3)?,
        sends: narrow_at(row, 4)?,
        budget_used: narrow_at(row, 5)?,
        last_delay: span(get(row, 6)?),
        trigger: code_at::<Trigger>(row, 7)?,
    })
}

pub(super) fn message_key(row: &Row, column: usize) -> Result<MessageKey, StoreError> {
    Ok(MessageKey(get::<i64>(row, column)?.cast_unsigned()))
}

/// Reads [`MESSAGE`] or [`MESSAGE_LEAN`].
pub(super) fn message(row: &Row) -> Result<Message, StoreError> {
    let key = message_key(row, 0)?;
    let Labels { channels, tags, deliver_at, trace } = labels_at(row, 6)?;
    Ok(Message {
        key,
        id: PublicId::new(key.0, bytes_at(row, 1)?),
        app: AppKey(get(row, 2)?),
        accepted_at: time_at(row, 3)?,
        spec: MessageSpec {
            event_type: get(row, 4)?,
            event_id: get(row, 5)?,
            channels,
            tags,
            content_type: content_type(row, 7)?,
            retention_hours: maybe_narrow(row, 8)?,
            deliver_at,
            trace,
            payload: body_at(row, 11)?,
        },
        edited_from: maybe_id(row, 9)?,
        payload_gone: get(row, 10)?,
    })
}

pub(super) fn content_type(row: &Row, column: usize) -> Result<ContentType, StoreError> {
    Ok(get::<Option<String>>(row, column)?.map_or(ContentType::Json, ContentType::Other))
}

/// Reads [`ATTEMPT`].
pub(super) fn attempt(row: &Row) -> Result<AttemptRow, StoreError> {
    let key = get::<i64>(row, 0)?.cast_unsigned();
    let text = get::<Option<String>>(row, 15)?;
    let outcome = match maybe_code(row, 10)? {
        Some(kind) => Outcome::Failed(Failure { kind, text: text.unwrap_or_default() }),
        None => Outcome::Answered(Answer {
            status: status_at(row, 9)?,
            retry_after: retry_after(get(row, 11)?),
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
        endpoint: EndpointKey(get(row, 3)?),
        endpoint_id: id_at(row, 18)?,
        url: get(row, 19)?,
        attempt: Attempt {
            number: narrow_at(row, 4)?,
            started_at: time_at(row, 5)?,
            took: span(get(row, 6)?),
            trigger: code_at(row, 7)?,
            outcome,
            resent: get(row, 8)?,
        },
        next: maybe_time(row, 13)?.zip(next_term),
    })
}

/// Reads [`LANE`].
pub(super) fn lane(row: &Row) -> Result<LaneState, StoreError> {
    Ok(LaneState {
        endpoint: EndpointKey(get(row, 0)?),
        breaker: Snapshot {
            open_until: maybe_time(row, 1)?,
            generation: get::<i64>(row, 2)?.cast_unsigned(),
            open_for: span(get(row, 3)?),
            failing_since: maybe_time(row, 4)?,
            forced: maybe_code(row, 5)?,
            since: time_at(row, 6)?,
        },
        hold_until: maybe_time(row, 7)?,
        throttled_rounds: narrow_at(row, 8)?,
        rejected_until: maybe_time(row, 9)?,
        rejected_for: span(get(row, 10)?),
        warned: get(row, 11)?,
        suspended: maybe_time(row, 12)?
            .zip(maybe_time(row, 13)?)
            .map(|(since, probe_at)| Suspended { since, probe_at }),
        outage: outage_at(row, 14)?,
        rejected_since: maybe_time(row, 16)?,
    })
}

/// Reads when an outage began, and behind that when it ended.
pub(super) fn outage_at(row: &Row, column: usize) -> Result<Option<Outage>, StoreError> {
    let (since, until) = (maybe_time(row, column)?, maybe_time(row, column + 1)?);
    Ok(since.map(|since| Outage { since, until }))
}
