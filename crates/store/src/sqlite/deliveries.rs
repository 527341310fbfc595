//! Where a delivery stands, read from what there is: a pending row, a closed row, attempts.
//!
//! A row that waits for its policy comes first, then how the delivery was closed, then a 2xx; a row
//! for a manual send counts only when there is nothing else.
//! Never: a table of deliveries.

use std::collections::BTreeMap;

use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, DeliveryState, Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;
use rusqlite::{Connection, params};

use super::rows::{PENDING, all, one, pending, value};
use crate::StoreError;
use crate::history::DeliveryRow;
use crate::stored::codes::{Code as _, closed};
use crate::stored::fault::unreadable;
use crate::stored::numbers::narrow;

/// Attempts of one delivery: the largest number, and whether one succeeded.
pub(super) const SENT_TO: &str = "SELECT max(n), max(status BETWEEN 200 AND 299) FROM attempt
     WHERE message = ?1 AND endpoint = ?2";
/// How one delivery was closed.
pub(super) const CLOSED_TO: &str =
    "SELECT state, reason FROM closed WHERE message = ?1 AND endpoint = ?2";
/// Rows of one delivery that wait: moved, and fresh.
pub(super) const WAIT_FOR: [&str; 2] = [
    "SELECT endpoint, due_at, message, age_from, sends, budget_used, last_delay, manual
     FROM pending INDEXED BY pending_moved WHERE moved = 1 AND message = ?1 AND endpoint = ?2",
    "SELECT endpoint, due_at, message, age_from, sends, budget_used, last_delay, manual
     FROM pending WHERE moved = 0 AND endpoint = ?2 AND message = ?1
     AND due_at = (SELECT accepted_at FROM message WHERE key = ?1)",
];

/// The largest number of an attempt of this delivery, 0 for none.
pub(super) fn sends(
    conn: &Connection,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<u32, StoreError> {
    let sql = "SELECT max(n) FROM attempt WHERE message = ?1 AND endpoint = ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let largest: Option<i64> =
        value(&mut statement.query([message.0.cast_signed(), endpoint.0])?)?.flatten();
    narrow(largest.unwrap_or(0))
}

/// The row of a delivery that waits for its policy: moved, found by its index, or fresh, found by
/// its message's time.
pub(super) fn scheduled(
    conn: &Connection,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<Pending>, StoreError> {
    let moved = format!(
        "SELECT {PENDING} FROM pending INDEXED BY pending_moved WHERE moved = 1 AND message = ?1 AND endpoint = ?2 AND manual <> 1"
    );
    let fresh = format!(
        "SELECT {PENDING} FROM pending WHERE moved = 0 AND endpoint = ?2 AND message = ?1 AND manual <> 1
         AND due_at = (SELECT accepted_at FROM message WHERE key = ?1)"
    );
    for sql in [moved, fresh] {
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query([message.0.cast_signed(), endpoint.0])?;
        if let Some(row) = one(&mut rows, pending)? {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// What is known of one delivery.
#[derive(Default)]
struct Known {
    scheduled: Option<Timestamp>,
    manual: Option<Timestamp>,
    closed: Option<DeliveryState>,
    delivered: bool,
    sends: u32,
}

impl Known {
    fn row(self, endpoint: i64) -> Option<DeliveryRow> {
        let (state, due_at) = match (self.scheduled, self.closed, self.manual) {
            (Some(due_at), _, _) => (DeliveryState::Pending, Some(due_at)),
            (None, Some(state), _) => (state, None),
            (None, None, _) if self.delivered => (DeliveryState::Delivered, None),
            (None, None, Some(due_at)) => (DeliveryState::Pending, Some(due_at)),
            (None, None, None) => return None,
        };
        Some(DeliveryRow { endpoint: EndpointKey(endpoint), state, due_at, sends: self.sends })
    }

    fn wait(&mut self, row: &Pending) {
        let slot = match row.trigger {
            Trigger::Scheduled | Trigger::Replay | Trigger::Asked => &mut self.scheduled,
            Trigger::Manual => &mut self.manual,
        };
        *slot = Some(slot.map_or(row.due_at, |due_at| due_at.min(row.due_at)));
        self.sends = self.sends.max(row.sends);
    }
}

/// Where every delivery of a message stands, in order of endpoint. Reads several times: the caller
/// holds a snapshot.
pub(super) fn deliveries(
    conn: &Connection,
    message: MessageKey,
) -> Result<Vec<DeliveryRow>, StoreError> {
    let key = message.0.cast_signed();
    let mut known: BTreeMap<i64, Known> = BTreeMap::new();
    for (endpoint, sends, delivered) in attempts(conn, key)? {
        let known = known.entry(endpoint).or_default();
        (known.sends, known.delivered) = (sends, delivered);
    }
    let sql = "SELECT endpoint, state, reason FROM closed WHERE message = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([key])?;
    while let Some(row) = rows.next()? {
        known.entry(row.get(0)?).or_default().closed = Some(ending(row.get(1)?, row.get(2)?)?);
    }
    for row in waiting(conn, key)? {
        known.entry(row.endpoint.0).or_default().wait(&row);
    }
    Ok(known.into_iter().filter_map(|(endpoint, known)| known.row(endpoint)).collect())
}

/// Where the delivery of a message to one endpoint stands; `None` when there is none. Reads several
/// times: the caller holds a snapshot.
pub(super) fn delivery(
    conn: &Connection,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<DeliveryRow>, StoreError> {
    let ids = [message.0.cast_signed(), endpoint.0];
    let mut known = Known::default();
    let sent = one(&mut conn.prepare_cached(SENT_TO)?.query(ids)?, |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<bool>>(1)?))
    })?;
    if let Some((Some(sends), delivered)) = sent {
        (known.sends, known.delivered) = (narrow(sends)?, delivered.unwrap_or_default());
    }
    let mut statement = conn.prepare_cached(CLOSED_TO)?;
    known.closed = one(&mut statement.query(ids)?, |row| ending(row.get(0)?, row.get(1)?))?;
    for sql in WAIT_FOR {
        let rows = all(&mut conn.prepare_cached(sql)?.query(ids)?, pending)?;
        rows.iter().for_each(|row| known.wait(row));
    }
    Ok(known.row(endpoint.0))
}

/// Endpoints with attempts: the largest number, and whether one succeeded.
fn attempts(conn: &Connection, message: i64) -> Result<Vec<(i64, u32, bool)>, StoreError> {
    let sql = "SELECT endpoint, max(n), max(status BETWEEN 200 AND 299) FROM attempt
               WHERE message = ?1 GROUP BY endpoint";
    let mut statement = conn.prepare_cached(sql)?;
    all(&mut statement.query([message])?, |row| {
        Ok((row.get(0)?, narrow(row.get(1)?)?, row.get(2)?))
    })
}

/// Rows that wait.
fn waiting(conn: &Connection, message: i64) -> Result<Vec<Pending>, StoreError> {
    let mut found = moved(conn, message)?;
    found.extend(fresh(conn, message)?);
    Ok(found)
}

/// Rows of a message that were moved, by their index.
pub(super) fn moved(conn: &Connection, message: i64) -> Result<Vec<Pending>, StoreError> {
    let sql = format!(
        "SELECT {PENDING} FROM pending INDEXED BY pending_moved WHERE moved = 1 AND message = ?1"
    );
    all(&mut conn.prepare_cached(&sql)?.query(params![message])?, pending)
}

/// Rows of a message that never were, by a look at each endpoint of its application.
pub(super) fn fresh(conn: &Connection, message: i64) -> Result<Vec<Pending>, StoreError> {
    let columns = PENDING.split(", ").map(|name| format!("pending.{name}")).collect::<Vec<_>>();
    let sql = format!(
        "SELECT {} FROM message
         CROSS JOIN endpoint INDEXED BY endpoint_list ON endpoint.app = message.app
         CROSS JOIN pending ON pending.endpoint = endpoint.key AND pending.due_at = message.accepted_at
              AND pending.message = message.key AND pending.manual <> 1 AND pending.moved = 0
         WHERE message.key = ?1",
        columns.join(", ")
    );
    all(&mut conn.prepare_cached(&sql)?.query(params![message])?, pending)
}

/// How a delivery was closed.
pub(super) fn ending(state: i64, reason: i64) -> Result<DeliveryState, StoreError> {
    match state {
        closed::DEAD | closed::DISCARDED => DeadReason::of(reason).map(DeliveryState::Dead),
        closed::CANCELLED => CancelReason::of(reason).map(DeliveryState::Cancelled),
        _ => Err(unreadable()),
    }
}

/// How a delivery ends, if not delivered.
pub(super) struct Ending {
    pub(super) state: i64,
    pub(super) reason: i64,
    pub(super) error: Option<String>,
    /// Of which run of refusals it is.
    pub(super) run: Option<Timestamp>,
}

impl Ending {
    pub(super) const fn cancelled(reason: i64) -> Self {
        Self { state: closed::CANCELLED, reason, error: None, run: None }
    }
}
