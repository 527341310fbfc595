//! Deliveries that wait for a payload which goes: they die with it.
//!
//! Never: touch a row of a deleted endpoint, which is cancelled and not sent.

use domain::dead_letter::DeadReason;
use domain::ids::MessageKey;
use domain::notice::News;

use super::conn::all;
use super::deliveries::Ending;
use super::fault::Fault;
use super::ledger::Closing;
use super::rows::{PENDING, bound, pending};
use super::tx::Tx;
use crate::prune::PAYLOAD_GONE;
use crate::stored::codes::{Code as _, closed};

impl Tx {
    /// Ends at most `limit` of the rows that wait for the payload of `message`; whether none is
    /// left.
    pub(super) async fn withdraw(
        &mut self,
        message: MessageKey,
        limit: usize,
    ) -> Result<bool, Fault> {
        let columns = PENDING.split(", ").map(|name| format!("pending.{name}"));
        let sql = format!(
            "SELECT {} FROM pending JOIN endpoint ON endpoint.key = pending.endpoint
             WHERE pending.message = $1 AND endpoint.deleted_at IS NULL
             ORDER BY pending.endpoint, pending.due_at, pending.manual = 1 LIMIT $2",
            columns.collect::<Vec<_>>().join(", ")
        );
        let values = (message.0.cast_signed(), bound(limit.saturating_add(1)));
        let mut rows = all(self.conn(), &sql, &[&values.0, &values.1], pending).await?;
        let alone = rows.len() <= limit;
        rows.truncate(limit);
        for row in rows {
            if !self.remove_pending(&row).await? {
                continue;
            }
            if !row.trigger.is_extra() {
                let place = self.draw();
                let (state, reason) = (closed::DEAD, DeadReason::PayloadGone.code());
                let error = Some(PAYLOAD_GONE.to_owned());
                let ending = Ending { state, reason, error, run: None };
                self.close_all(&[Closing { place, row, ending, sends: row.sends }]).await?;
                self.note(News::AttemptExhausted, row.endpoint, Some(message)).await?;
            }
            self.batch.withdrawn.push(row);
        }
        Ok(alone)
    }
}
