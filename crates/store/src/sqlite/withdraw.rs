//! Deliveries that wait for a payload which goes: they die with it.
//!
//! In: the message, and its rows that were never moved, as a reader found them; such a row may be
//! gone by now, but none can have come. Moved ones are found here.
//! Never: touch a row of a deleted endpoint, which is cancelled and not sent.

use domain::dead_letter::DeadReason;
use domain::delivery::Pending;
use domain::ids::{EndpointKey, MessageKey};
use domain::notice::News;

use super::deliveries::{Ending, moved};
use super::tx::Tx;
use crate::StoreError;
use crate::prune::PAYLOAD_GONE;
use crate::stored::codes::{Code as _, closed};

impl Tx<'_> {
    /// Ends at most `limit` of the rows that wait for the payload of `message`; whether none is
    /// left.
    pub(super) fn withdraw(
        &mut self,
        message: MessageKey,
        fresh: &[Pending],
        limit: usize,
    ) -> Result<bool, StoreError> {
        let mut rows = moved(self.conn, message.0.cast_signed())?;
        rows.extend_from_slice(fresh);
        rows.sort_by_key(|row| (row.endpoint, row.due_at, row.trigger.is_extra()));
        let mut ended = 0;
        for row in rows {
            if !self.is_live(row.endpoint)? {
                continue;
            }
            if ended == limit {
                return Ok(false);
            }
            if !self.remove_pending(&row)? {
                continue;
            }
            ended += 1;
            if !row.trigger.is_extra() {
                let error = Some(PAYLOAD_GONE.to_owned());
                let reason = DeadReason::PayloadGone.code();
                let ending = Ending { state: closed::DEAD, reason, error, run: None };
                self.close(&row, ending, row.sends)?;
                self.note(News::AttemptExhausted, row.endpoint, Some(message))?;
            }
            self.batch.withdrawn.push(row);
        }
        Ok(true)
    }

    fn is_live(&self, endpoint: EndpointKey) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM endpoint WHERE key = ?1 AND deleted_at IS NULL";
        Ok(self.conn.prepare_cached(sql)?.exists([endpoint.0])?)
    }
}
