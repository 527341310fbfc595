//! Pending rows: added and taken out.
//!
//! Never: judge a row; whoever adds or removes one has decided it.

use std::collections::HashSet;
use std::time::Duration;

use domain::delivery::Pending;
use domain::ids::{EndpointKey, MessageKey};

use super::conn::{Conn, all};
use super::fault::Fault;
use super::rows::{At, get, message_key, small};
use super::tx::Tx;
use crate::stored::codes::Code as _;
use crate::stored::numbers::micros;

const INSERT_PENDING: &str = "INSERT INTO pending (endpoint, due_at, message, age_from, sends, budget_used, last_delay, manual)
     SELECT p.endpoint, p.due_at, p.message, p.age_from, p.sends, p.used, p.delay, p.manual
     FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::timestamptz[], $5::bigint[], $6::bigint[],
         $7::bigint[], $8::smallint[]) AS p (endpoint, due_at, message, age_from, sends, used, delay, manual)
     ON CONFLICT DO NOTHING RETURNING endpoint, message";
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
    let endpoints: Vec<i64> = rows.iter().map(|row| row.endpoint.0).collect();
    let due: Vec<At> = rows.iter().map(|row| At(row.due_at)).collect();
    let messages: Vec<i64> = rows.iter().map(|row| row.message.0.cast_signed()).collect();
    let ages: Vec<At> = rows.iter().map(|row| At(row.age_from)).collect();
    let sends: Vec<i64> = rows.iter().map(|row| i64::from(row.sends)).collect();
    let used: Vec<i64> = rows.iter().map(|row| i64::from(row.budget_used)).collect();
    let delays: Vec<i64> = rows.iter().map(|row| micros(row.last_delay)).collect();
    let manual: Vec<i16> = rows.iter().map(|row| small(row.trigger.code())).collect();
    let added = all(
        conn,
        INSERT_PENDING,
        &[&endpoints, &due, &messages, &ages, &sends, &used, &delays, &manual],
        |row| Ok((EndpointKey(get(row, 0)?), message_key(row, 1)?)),
    )
    .await;
    Ok(added?.into_iter().collect())
}
