//! Where a delivery stands, read from what there is: a pending row, a closed row, attempts.
//!
//! A row that waits for its policy comes first, then how the delivery was closed, then a 2xx; a row
//! for a manual send counts only when there is nothing else. One statement sees all of it at one
//! moment.
//! Never: a table of deliveries.

use std::collections::BTreeMap;

use domain::dead_letter::DeadReason;
use domain::delivery::{CancelReason, DeliveryState, Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;
use tokio_postgres::Row;

use super::conn::{Conn, all, one, value};
use super::fault::Fault;
use super::rows::{PENDING, code_at, get, maybe_narrow, maybe_time, message_key, pending};
use crate::StoreError;
use crate::history::DeliveryRow;
use crate::stored::codes::{Code as _, closed};
use crate::stored::fault::unreadable;
use crate::stored::numbers::narrow;

/// What is known of the deliveries of messages, to one endpoint or all.
const KNOWN: &str = "SELECT 0::smallint, message, endpoint, max(n), bool_or(status BETWEEN 200 AND 299), NULL::timestamptz,
         NULL::smallint, NULL::smallint
     FROM attempt WHERE message = ANY($1) AND ($2::bigint IS NULL OR endpoint = $2) GROUP BY message, endpoint
     UNION ALL SELECT 1::smallint, message, endpoint, NULL, NULL, NULL, state, reason
     FROM closed WHERE message = ANY($1) AND ($2::bigint IS NULL OR endpoint = $2)
     UNION ALL SELECT 2::smallint, message, endpoint, sends, NULL, due_at, manual, NULL
     FROM pending WHERE message = ANY($1) AND ($2::bigint IS NULL OR endpoint = $2)";

/// The largest number of an attempt of this delivery, 0 for none.
pub(super) async fn sends(
    conn: &Conn,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<u32, Fault> {
    let sql = "SELECT max(n) FROM attempt WHERE message = $1 AND endpoint = $2";
    let largest: Option<i64> = value(conn, sql, &[&message.0.cast_signed(), &endpoint.0]).await?;
    Ok(narrow(largest.unwrap_or(0))?)
}

/// The row of a delivery that waits for its policy.
pub(super) async fn scheduled(
    conn: &Conn,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<Pending>, Fault> {
    let sql = format!(
        "SELECT {PENDING} FROM pending WHERE message = $1 AND endpoint = $2 AND manual <> 1"
    );
    one(conn, &sql, &[&message.0.cast_signed(), &endpoint.0], pending).await
}

/// A message to an endpoint.
pub(super) type Delivery = (MessageKey, EndpointKey);

/// What is known of one delivery.
#[derive(Default)]
struct Known {
    scheduled: Option<Timestamp>,
    manual: Option<Timestamp>,
    closed: Option<DeliveryState>,
    delivered: bool,
    sends: u32,
}

/// One row of [`KNOWN`].
enum Fact {
    Sent { sends: u32, delivered: bool },
    Closed(DeliveryState),
    Waits { sends: u32, due_at: Timestamp, trigger: Trigger },
}

fn fact(row: &Row) -> Result<(Delivery, Fact), StoreError> {
    let sends = maybe_narrow(row, 3)?.unwrap_or(0);
    let fact = match get::<i16>(row, 0)? {
        0 => Fact::Sent { sends, delivered: get::<Option<bool>>(row, 4)?.unwrap_or_default() },
        1 => Fact::Closed(ending(i64::from(get::<i16>(row, 6)?), i64::from(get::<i16>(row, 7)?))?),
        _ => {
            let due_at = maybe_time(row, 5)?.ok_or_else(unreadable)?;
            Fact::Waits { sends, due_at, trigger: code_at(row, 6)? }
        }
    };
    Ok(((message_key(row, 1)?, EndpointKey(get(row, 2)?)), fact))
}

impl Known {
    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Sent { sends, delivered } => {
                (self.sends, self.delivered) = (self.sends.max(sends), delivered);
            }
            Fact::Closed(state) => self.closed = Some(state),
            Fact::Waits { sends, due_at, trigger } => {
                let slot = match trigger {
                    Trigger::Scheduled | Trigger::Replay | Trigger::Asked => &mut self.scheduled,
                    Trigger::Manual => &mut self.manual,
                };
                *slot = Some(slot.map_or(due_at, |other| other.min(due_at)));
                self.sends = self.sends.max(sends);
            }
        }
    }

    fn row(self, endpoint: EndpointKey) -> Option<DeliveryRow> {
        let (state, due_at) = match (self.scheduled, self.closed, self.manual) {
            (Some(due_at), _, _) => (DeliveryState::Pending, Some(due_at)),
            (None, Some(state), _) => (state, None),
            (None, None, _) if self.delivered => (DeliveryState::Delivered, None),
            (None, None, Some(due_at)) => (DeliveryState::Pending, Some(due_at)),
            (None, None, None) => return None,
        };
        Some(DeliveryRow { endpoint, state, due_at, sends: self.sends })
    }
}

/// Where every delivery of a message stands, in order of endpoint.
pub(super) async fn deliveries(
    conn: &Conn,
    message: MessageKey,
) -> Result<Vec<DeliveryRow>, Fault> {
    Ok(of_messages(conn, &[message], None).await?.into_values().collect())
}

/// Where the delivery of a message to one endpoint stands; `None` when there is none.
pub(super) async fn delivery(
    conn: &Conn,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<DeliveryRow>, Fault> {
    Ok(of_messages(conn, &[message], Some(endpoint)).await?.into_values().next())
}

/// Where the deliveries of messages stand, those to one endpoint or all.
pub(super) async fn of_messages(
    conn: &Conn,
    messages: &[MessageKey],
    endpoint: Option<EndpointKey>,
) -> Result<BTreeMap<Delivery, DeliveryRow>, Fault> {
    let messages: Vec<i64> = messages.iter().map(|message| message.0.cast_signed()).collect();
    let endpoint = endpoint.map(|key| key.0);
    let facts = all(conn, KNOWN, &[&messages, &endpoint], fact).await?;
    let mut known: BTreeMap<Delivery, Known> = BTreeMap::new();
    for (delivery, fact) in facts {
        known.entry(delivery).or_default().learn(fact);
    }
    let stands = known.into_iter().filter_map(|(of, known)| Some((of, known.row(of.1)?)));
    Ok(stands.collect())
}

/// How a delivery was closed.
fn ending(state: i64, reason: i64) -> Result<DeliveryState, StoreError> {
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
