//! What deleted endpoints left behind is cancelled, a piece at a time.
//!
//! The engine comes first: it cancels what it reads.
//! Never: more than 500 rows in one transaction.

use std::time::Duration;

use domain::delivery::CancelReason;
use domain::limits::OPERATION_ROWS_MAX;

use super::conn::{all, value};
use super::deliveries::Ending;
use super::fault::Fault;
use super::ledger::Closing;
use super::rows::{At, PENDING, bound, pending};
use super::tx::Tx;
use crate::stored::codes::Code as _;

/// So long after the deletion.
const SWEEP_AFTER: Duration = Duration::from_secs(60);

impl Tx {
    /// Cancels a piece of what waits for a deleted endpoint; whether there may be more.
    pub(super) async fn sweep(&mut self) -> Result<bool, Fault> {
        let sql = "SELECT key FROM endpoint WHERE deleted_at IS NOT NULL AND NOT swept AND deleted_at <= $1
                   ORDER BY deleted_at LIMIT 1";
        let before = At(self.now.minus(SWEEP_AFTER));
        let Some(endpoint) = value::<i64>(self.conn(), sql, &[&before]).await? else {
            return Ok(false);
        };
        let sql = format!("SELECT {PENDING} FROM pending WHERE endpoint = $1 LIMIT $2");
        // Two rows for each.
        let most = bound(OPERATION_ROWS_MAX / 2);
        let rows = all(self.conn(), &sql, &[&endpoint, &most], pending).await?;
        let mut closing = Vec::new();
        for row in &rows {
            if self.remove_pending(row).await? && !row.trigger.is_extra() {
                let ending = Ending::cancelled(CancelReason::EndpointDeleted.code());
                closing.push(Closing { place: self.draw(), row: *row, ending, sends: row.sends });
            }
        }
        self.close_all(&closing).await?;
        if rows.is_empty() {
            self.write("UPDATE endpoint SET swept = true WHERE key = $1", &[&endpoint]).await?;
            self.write("DELETE FROM lane_state WHERE endpoint = $1", &[&endpoint]).await?;
            self.write("DELETE FROM recovery WHERE endpoint = $1", &[&endpoint]).await?;
        }
        Ok(true)
    }
}
