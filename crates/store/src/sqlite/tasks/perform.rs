//! A piece of a task, on the writer.
//!
//! What is asked for is looked at again here, in the transaction that does it.
//! Never: move a task by more than was done.

use std::collections::HashMap;

use domain::delivery::{Pending, Trigger};
use domain::ids::{EndpointKey, MessageKey, PublicId};
use domain::limits::OPERATION_ROWS_MAX;

use super::running;
use crate::StoreError;
use crate::dead_letters::Replayed;
use crate::history::Resent;
use crate::sqlite::deliveries::{delivery, sends};
use crate::sqlite::rows::value;
use crate::sqlite::tx::Tx;
use crate::stored::codes::closed;
use crate::tasks::{Act, Moved, Piece};

/// What became of one thing.
enum Outcome {
    Done,
    /// There was nothing to do.
    Passed,
    /// The payload is gone.
    Failed,
    /// Only a part of it fitted.
    Cut,
}

type FreshRows = HashMap<MessageKey, Vec<Pending>>;

impl Tx<'_> {
    pub(super) fn advance_task(
        &mut self,
        id: PublicId,
        piece: &Piece,
        fresh: &FreshRows,
    ) -> Result<Moved, StoreError> {
        let Some(mut task) = running(self.conn, id)? else { return Ok(Moved::Stopped) };
        if task.cursor.get(&piece.endpoint).is_some_and(|at| *at > piece.from) {
            return Ok(Moved::Stopped);
        }
        let end = self.batch.rows + OPERATION_ROWS_MAX;
        let (mut last, mut waiting, mut cut) = (piece.from, Vec::new(), false);
        for (place, message, act) in &piece.acts {
            // Two rows for each delivery, and one for the task.
            let room = end.saturating_sub(self.batch.rows + 1) / 2;
            let place_of = (piece.endpoint, *message);
            let outcome = match act {
                _ if room == 0 => Outcome::Cut,
                Act::Replay => self.replay_older(place_of, id.key())?,
                Act::Return => self.replay_older(place_of, place.saturating_add(1))?,
                Act::Send => self.send_missing(place_of)?,
                Act::Resend => match self.resend(*message, piece.endpoint)? {
                    Resent::Pending => Outcome::Done,
                    Resent::Missing => Outcome::Passed,
                    Resent::PayloadGone => Outcome::Failed,
                },
                Act::Purge => {
                    let fresh = fresh.get(message).map_or(&[][..], Vec::as_slice);
                    self.purge(*message, fresh, room)?
                }
            };
            match outcome {
                Outcome::Done => task.tally.done += 1,
                Outcome::Failed => task.tally.failed += 1,
                Outcome::Passed => {}
                Outcome::Cut => {
                    cut = true;
                    break;
                }
            }
            if matches!(outcome, Outcome::Done) && *act != Act::Purge {
                waiting.push(*message);
            }
            last = *place;
        }
        let reached = if cut { last } else { piece.reached };
        task.cursor.insert(piece.endpoint, reached);
        task.updated_at = self.now;
        self.put_task(&task)?;
        Ok(Moved::On { reached, waiting })
    }

    /// Puts a dead letter back whose place is before this one.
    fn replay_older(
        &mut self,
        (endpoint, message): (EndpointKey, MessageKey),
        before: u64,
    ) -> Result<Outcome, StoreError> {
        let sql = "SELECT place FROM closed WHERE message = ?1 AND endpoint = ?2 AND state = ?3";
        let ids = [message.0.cast_signed(), endpoint.0, closed::DEAD];
        let place: Option<i64> = value(&mut self.conn.prepare_cached(sql)?.query(ids)?)?;
        if place.is_none_or(|place| place.cast_unsigned() >= before) {
            return Ok(Outcome::Passed);
        }
        Ok(match self.replay(message, endpoint)? {
            Replayed::Pending => Outcome::Done,
            Replayed::NotDead | Replayed::NoEndpoint => Outcome::Passed,
            Replayed::PayloadGone => Outcome::Failed,
        })
    }

    /// Makes a delivery of a message that the endpoint never got.
    fn send_missing(
        &mut self,
        (endpoint, message): (EndpointKey, MessageKey),
    ) -> Result<Outcome, StoreError> {
        if delivery(self.conn, message, endpoint)?.is_some()
            || sends(self.conn, message, endpoint)? > 0
        {
            return Ok(Outcome::Passed);
        }
        let sql = "SELECT payload IS NULL FROM message JOIN endpoint ON endpoint.app = message.app
                   WHERE message.key = ?1 AND endpoint.key = ?2 AND endpoint.deleted_at IS NULL";
        let ids = [message.0.cast_signed(), endpoint.0];
        let gone: Option<bool> = value(&mut self.conn.prepare_cached(sql)?.query(ids)?)?;
        match gone {
            None => return Ok(Outcome::Passed),
            Some(true) => return Ok(Outcome::Failed),
            Some(false) => {}
        }
        self.put_due(message, endpoint, (0, Trigger::Asked))?;
        Ok(Outcome::Done)
    }

    /// Deletes a payload with what waits for it; cut while something still waits.
    fn purge(
        &mut self,
        message: MessageKey,
        fresh: &[Pending],
        room: usize,
    ) -> Result<Outcome, StoreError> {
        let sql = "SELECT 1 FROM message WHERE key = ?1 AND payload IS NOT NULL";
        let key = message.0.cast_signed();
        if !self.conn.prepare_cached(sql)?.exists([key])? {
            return Ok(Outcome::Passed);
        }
        if !self.withdraw(message, fresh, room)? {
            return Ok(Outcome::Cut);
        }
        let sql = "UPDATE message SET payload = NULL WHERE key = ?1";
        self.batch.rows += self.conn.prepare_cached(sql)?.execute([key])?;
        Ok(Outcome::Done)
    }
}
