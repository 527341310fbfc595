//! What follows for deliveries whose row was just taken out.
//!
//! Rows that move and deliveries that end are written together; a manual send ends nothing but
//! itself, and is looked at by itself.
//! Never: a second verdict on a delivery.

use domain::delivery::{Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey};

use super::Drawn;
use crate::ledger::{Follow, Record};
use crate::postgres::deliveries::{Ending, scheduled};
use crate::postgres::fault::Fault;
use crate::postgres::pending::insert_pending;
use crate::postgres::rows::{At, small, text};
use crate::postgres::tx::Tx;
use crate::stored::codes::{Code as _, closed};

const CLOSE: &str = "INSERT INTO closed (place, message, endpoint, app, at, sends, org, state, reason, error)
     SELECT c.place, message.key, c.endpoint, app.key, $7, c.sends, app.org, c.state, c.reason, c.error
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::smallint[], $8::text[])
         AS c (place, message, endpoint, sends, state, reason, error)
     JOIN message ON message.key = c.message JOIN app ON app.key = message.app
     ON CONFLICT DO NOTHING";

/// A delivery that ends, with the sends that were made.
pub(in crate::postgres) struct Closing {
    /// Its place in lists, drawn for it.
    pub(in crate::postgres) place: u64,
    pub(in crate::postgres) row: Pending,
    pub(in crate::postgres) ending: Ending,
    pub(in crate::postgres) sends: u32,
}

impl Tx {
    /// Does what follows for each, given the sends of its delivery.
    pub(super) async fn follow_all(
        &mut self,
        records: &[(&Record, Drawn)],
        sends: &[u32],
    ) -> Result<(), Fault> {
        let (mut moved, mut closing) = (Vec::new(), Vec::new());
        for ((record, drawn), sends) in records.iter().zip(sends) {
            let (row, sends) = (record.pending, *sends);
            let ending = match &record.follow {
                Follow::Retry { due_at, budget_used, delay, .. } => {
                    let (due_at, budget_used, last_delay) = (*due_at, *budget_used, *delay);
                    let trigger = Trigger::Scheduled;
                    moved.push(Pending { due_at, budget_used, last_delay, sends, trigger, ..row });
                    continue;
                }
                Follow::Delivered if row.trigger.is_extra() => {
                    self.settle(row.message, row.endpoint).await?;
                    continue;
                }
                Follow::Delivered => continue,
                // A manual send ends nothing but itself.
                _ if row.trigger.is_extra() => {
                    self.raise_sends(&row, sends).await?;
                    continue;
                }
                Follow::Unchanged => continue,
                Follow::Dead { reason, error } => {
                    Ending { state: closed::DEAD, reason: reason.code(), error: error.clone() }
                }
                Follow::Cancelled(reason) => Ending::cancelled(reason.code()),
            };
            closing.push(Closing { place: drawn.place, row, ending, sends });
        }
        self.move_all(moved).await?;
        self.close_all(&closing).await
    }

    /// Adds rows that are due at another time.
    async fn move_all(&mut self, rows: Vec<Pending>) -> Result<(), Fault> {
        let added = insert_pending(self.conn(), &rows).await?;
        self.batch.rows += added.len();
        self.batch.depth += i64::try_from(added.len()).unwrap_or(0);
        // A place that was taken hardly ever is.
        let left = rows.into_iter().filter(|row| !added.contains(&(row.endpoint, row.message)));
        for row in left {
            self.put_pending(row).await?;
        }
        Ok(())
    }

    /// Ends deliveries otherwise than delivered.
    pub(in crate::postgres) async fn close_all(
        &mut self,
        closing: &[Closing],
    ) -> Result<(), Fault> {
        if closing.is_empty() {
            return Ok(());
        }
        let places: Vec<i64> = closing.iter().map(|one| one.place.cast_signed()).collect();
        let messages: Vec<i64> =
            closing.iter().map(|one| one.row.message.0.cast_signed()).collect();
        let endpoints: Vec<i64> = closing.iter().map(|one| one.row.endpoint.0).collect();
        let sends: Vec<i64> = closing.iter().map(|one| i64::from(one.sends)).collect();
        let states: Vec<i16> = closing.iter().map(|one| small(one.ending.state)).collect();
        let reasons: Vec<i16> = closing.iter().map(|one| small(one.ending.reason)).collect();
        let errors: Vec<_> =
            closing.iter().map(|one| one.ending.error.as_deref().map(text)).collect();
        let now = At(self.now);
        self.write(
            CLOSE,
            &[&places, &messages, &endpoints, &sends, &states, &reasons, &now, &errors],
        )
        .await
        .map(drop)
    }

    /// Delivered: whatever said otherwise goes.
    pub(super) async fn settle(
        &mut self,
        message: MessageKey,
        endpoint: EndpointKey,
    ) -> Result<(), Fault> {
        let sql = "DELETE FROM closed WHERE message = $1 AND endpoint = $2";
        self.write(sql, &[&message.0.cast_signed(), &endpoint.0]).await?;
        if let Some(row) = scheduled(self.conn(), message, endpoint).await? {
            self.remove_pending(&row).await?;
        }
        Ok(())
    }

    /// A manual send was made beside a row that waits: the next send of that one is counted on.
    async fn raise_sends(&mut self, manual: &Pending, sends: u32) -> Result<(), Fault> {
        let sql = "UPDATE pending SET sends = greatest(sends, $3)
                   WHERE message = $1 AND endpoint = $2 AND manual <> 1";
        let (message, endpoint) = (manual.message.0.cast_signed(), manual.endpoint.0);
        self.write(sql, &[&message, &endpoint, &i64::from(sends)]).await.map(drop)
    }
}
