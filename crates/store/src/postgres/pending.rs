//! Pending rows: added and taken out.
//!
//! Never: judge a row; whoever adds or removes one has decided it.

use std::collections::HashSet;
use std::time::Duration;

use domain::delivery::Pending;
use domain::ids::{EndpointKey, MessageKey};

use super::columns::{Columns, Script};
use super::conn::{Conn, all};
use super::fault::Fault;
use super::rows::{At, get, message_key, small};
use super::tx::Tx;
use crate::stored::codes::Code as _;
use crate::stored::numbers::micros;

const PUT_PENDING: &str = "INSERT INTO pending (endpoint, due_at, message, age_from, sends, budget_used, last_delay, manual)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
const REMOVE_PENDING: &str =
    "DELETE FROM pending WHERE endpoint = $1 AND due_at = $2 AND message = $3 AND manual = $4
     AND budget_used = $5 AND age_from = $6";

impl Tx {
    /// Adds a pending row; a second manual send at the very same time is due 1 µs later.
    pub(super) async fn put_pending(&mut self, mut row: Pending) -> Result<Pending, Fault> {
        loop {
            let written = self
                .write(
                    PUT_PENDING,
                    &[
                        &row.endpoint.0,
                        &At(row.due_at),
                        &row.message.0.cast_signed(),
                        &At(row.age_from),
                        &i64::from(row.sends),
                        &i64::from(row.budget_used),
                        &micros(row.last_delay),
                        &small(row.trigger.code()),
                    ],
                )
                .await;
            if written? == 1 {
                self.batch.depth += 1;
                return Ok(row);
            }
            row.due_at = row.due_at.plus(Duration::from_micros(1));
        }
    }

    /// Removes a pending row if it is still as it was read; a number of sends that was raised
    /// meanwhile does not matter.
    pub(super) async fn remove_pending(&mut self, row: &Pending) -> Result<bool, Fault> {
        let removed = self
            .write(
                REMOVE_PENDING,
                &[
                    &row.endpoint.0,
                    &At(row.due_at),
                    &row.message.0.cast_signed(),
                    &small(row.trigger.code()),
                    &i64::from(row.budget_used),
                    &At(row.age_from),
                ],
            )
            .await;
        let removed = removed? == 1;
        self.batch.depth -= i64::from(removed);
        Ok(removed)
    }
}

/// Adds pending rows of different deliveries; those whose place was free.
pub(super) async fn insert_pending(
    conn: &Conn,
    rows: &[Pending],
) -> Result<HashSet<(EndpointKey, MessageKey)>, Fault> {
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let mut script = Script::default();
    let sql = script.insert("pending", columns(rows));
    let sql = format!("{sql} ON CONFLICT DO NOTHING RETURNING endpoint, message");
    let added = all(conn, &sql, &script.values(), |row| {
        Ok((EndpointKey(get(row, 0)?), message_key(row, 1)?))
    })
    .await;
    Ok(added?.into_iter().collect())
}

/// The columns of rows.
pub(super) fn columns<'v>(rows: &[Pending]) -> Columns<'v> {
    let used = rows.iter().map(|row| i64::from(row.budget_used)).collect();
    places(rows)
        .each("age_from", "timestamptz", rows.iter().map(|row| At(row.age_from)).collect())
        .each("sends", "bigint", rows.iter().map(|row| i64::from(row.sends)).collect())
        .each::<i64>("budget_used", "bigint", used)
        .each("last_delay", "bigint", rows.iter().map(|row| micros(row.last_delay)).collect())
}

/// The columns of rows that were never sent.
pub(super) fn new_columns<'v>(rows: &[Pending]) -> Columns<'v> {
    places(rows)
        .each("age_from", "timestamptz", rows.iter().map(|row| At(row.age_from)).collect())
        .same("sends", "bigint", 0_i64)
        .same("budget_used", "bigint", 0_i64)
        .same("last_delay", "bigint", 0_i64)
}

/// Where rows stand.
pub(super) fn places<'v>(rows: &[Pending]) -> Columns<'v> {
    let messages = rows.iter().map(|row| row.message.0.cast_signed()).collect();
    Columns::default()
        .each("endpoint", "bigint", rows.iter().map(|row| row.endpoint.0).collect())
        .each("due_at", "timestamptz", rows.iter().map(|row| At(row.due_at)).collect())
        .each::<i64>("message", "bigint", messages)
        .each("manual", "smallint", rows.iter().map(|row| small(row.trigger.code())).collect())
}
