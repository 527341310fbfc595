//! What follows for deliveries whose row was just taken out.
//!
//! Rows that move and deliveries that end are written together; a manual send ends nothing but
//! itself, and is looked at by itself.
//! Never: a second verdict on a delivery.

use domain::delivery::{Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey};
use resilience::Timestamp;

use super::Drawn;
use crate::ledger::{Follow, Record};
use crate::postgres::columns::{Columns, Script};
use crate::postgres::deliveries::{Ending, scheduled};
use crate::postgres::fault::Fault;
use crate::postgres::pending::insert_pending;
use crate::postgres::rows::{At, small, text};
use crate::postgres::tx::Tx;
use crate::stored::codes::{Code as _, closed};

/// A delivery that ends, with the sends that were made.
pub(in crate::postgres) struct Closing {
    /// Its place in lists, drawn for it.
    pub(in crate::postgres) place: u64,
    pub(in crate::postgres) row: Pending,
    pub(in crate::postgres) ending: Ending,
    pub(in crate::postgres) sends: u32,
}

/// What a result does beyond its own row.
pub(in crate::postgres) enum After {
    Nothing,
    /// The row is due at another time.
    Moves(Pending),
    Ends(Closing),
    /// A manual send was delivered: the delivery is.
    Settles,
    /// A manual send failed; it ends nothing but itself.
    RaisesSends,
}

impl After {
    /// Given the sends of its delivery.
    pub(in crate::postgres) fn of(record: &Record, drawn: Drawn, sends: u32) -> Self {
        let row = record.pending;
        let ending = match &record.follow {
            Follow::Retry { due_at, budget_used, delay, .. } => {
                let (due_at, budget_used, last_delay) = (*due_at, *budget_used, *delay);
                let trigger = Trigger::Scheduled;
                return Self::Moves(Pending {
                    due_at,
                    budget_used,
                    last_delay,
                    sends,
                    trigger,
                    ..row
                });
            }
            Follow::Delivered if row.trigger.is_extra() => return Self::Settles,
            Follow::Delivered => return Self::Nothing,
            _ if row.trigger.is_extra() => return Self::RaisesSends,
            Follow::Unchanged => return Self::Nothing,
            Follow::Dead { reason, error } => {
                let (state, reason) = (closed::DEAD, reason.code());
                Ending { state, reason, error: error.clone(), run: record.run }
            }
            Follow::Cancelled(reason) => Ending::cancelled(reason.code()),
        };
        Self::Ends(Closing { place: drawn.place, row, ending, sends })
    }
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
            let row = record.pending;
            match After::of(record, *drawn, *sends) {
                After::Nothing => {}
                After::Moves(row) => moved.push(row),
                After::Ends(one) => closing.push(one),
                After::Settles => self.settle(row.message, row.endpoint).await?,
                After::RaisesSends => self.raise_sends(&row, *sends).await?,
            }
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
        let mut script = Script::default();
        let parts = close(&mut script, closing, self.now, "true");
        self.write(&format!("WITH {parts} SELECT place FROM ended"), &script.values())
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

/// Parts of a statement that end deliveries, if `when` holds; those that were given up are counted
/// later on, though they may be replayed before.
pub(in crate::postgres) fn close<'c>(
    script: &mut Script<'c>,
    closing: &'c [Closing],
    now: Timestamp,
    when: &str,
) -> String {
    let ending = || closing.iter().map(|one| &one.ending);
    let rows = || closing.iter().map(|one| &one.row);
    let now = script.value("timestamptz", At(now));
    let rows = Columns::default()
        .each("place", "bigint", closing.iter().map(|one| one.place.cast_signed()).collect())
        .each("message", "bigint", rows().map(|row| row.message.0.cast_signed()).collect())
        .each("endpoint", "bigint", rows().map(|row| row.endpoint.0).collect())
        .each("sends", "bigint", closing.iter().map(|one| i64::from(one.sends)).collect())
        .each("state", "smallint", ending().map(|ending| small(ending.state)).collect())
        .each("reason", "smallint", ending().map(|ending| small(ending.reason)).collect())
        .each("error", "text", ending().map(|it| it.error.as_deref().map(text)).collect())
        .each("run", "timestamptz", ending().map(|ending| ending.run.map(At)).collect());
    let rows = script.rows(rows);
    format!(
        "ended AS (
             INSERT INTO closed (place, message, endpoint, app, at, sends, org, state, reason, error, run)
             SELECT r.place, message.key, r.endpoint, app.key, {now}, r.sends, app.org, r.state, r.reason, r.error, r.run
             FROM {rows} JOIN message ON message.key = r.message JOIN app ON app.key = message.app
             WHERE {when} ON CONFLICT DO NOTHING RETURNING place, endpoint, state, reason),
         noted AS (INSERT INTO buried (place, endpoint, reason)
                   SELECT place, endpoint, reason FROM ended WHERE state = 1)"
    )
}
