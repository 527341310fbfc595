//! Recording, in SQLite: a delivered message is one delete and one insert.
//!
//! A result counts if the row it was made for is still there, in the same life (age and budget as
//! they were read); a manual send may have raised its number of sends meanwhile. Attempts are told
//! apart by the chance in their id.
//! Never: decide what follows, or let one delivery have two verdicts.

use domain::attempt::{Attempt, Outcome};
use domain::delivery::{Pending, Trigger};
use domain::endpoint::Disabled;
use domain::ids::{EndpointKey, MessageKey};
use domain::notice::News;
use resilience::{Term, Timestamp};
use rusqlite::params;

use super::SqliteStore;
use super::deliveries::{Ending, scheduled, sends};
use super::rows::{all, maybe_time, message_key, narrow_at, one, outage_at};
use super::tx::Tx;
use crate::ledger::{Before, Follow, LaneState, Ledger, Record, Recorded, Suspect, Told};
use crate::stored::codes::{Code as _, closed};
use crate::stored::fault::corrupt;
use crate::stored::numbers::{micros, retry_after_code};
use crate::{Reply, StoreError};

impl Ledger for SqliteStore {
    fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>> {
        self.shared.door.record(records)
    }

    fn keep_lanes(&self, lanes: Vec<LaneState>) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| lanes.iter().try_for_each(|lane| tx.turn_lane(lane)))
    }

    fn keep_suspects(&self, suspects: Vec<Suspect>) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.put_suspects(&suspects))
    }

    fn suspects(&self) -> Reply<'_, Vec<Suspect>> {
        self.readers.read(|conn| {
            let sql = "SELECT endpoint, message, crashes, sends FROM suspect ORDER BY place";
            all(&mut conn.prepare_cached(sql)?.query([])?, |row| {
                Ok(Suspect {
                    endpoint: EndpointKey(row.get(0)?),
                    message: message_key(row, 1)?,
                    crashes: narrow_at(row, 2)?,
                    sends: narrow_at(row, 3)?,
                })
            })
        })
    }
}

/// An attempt as it was kept.
struct Kept {
    /// Its number, which may have given way to another's.
    number: u32,
    /// It was not there before.
    is_new: bool,
}

impl Tx<'_> {
    /// Records all of them; an error is a fault of the database.
    pub(super) fn record(&mut self, records: Vec<Record>) -> Result<Vec<Recorded>, StoreError> {
        records.into_iter().map(|record| self.record_one(record)).collect()
    }

    fn record_one(&mut self, record: Record) -> Result<Recorded, StoreError> {
        let Record { pending, attempt, random, follow, lane, disable, run, news } = record;
        if !self.remove_pending(&pending)? {
            if let Some(attempt) = attempt
                && self.is_there(pending.message)?
            {
                let kept = self.keep(&pending, &attempt, random, None)?;
                if kept.is_new && is_success(&attempt) {
                    self.settle(pending.message, pending.endpoint)?;
                }
            }
            return Ok(Recorded::Late);
        }
        let next = match &follow {
            Follow::Retry { tried_at, term, .. } => Some((*tried_at, *term)),
            _ => None,
        };
        let failed_at = attempt.as_ref().map(|attempt| attempt.started_at);
        let sends = match attempt {
            Some(attempt) => self.keep(&pending, &attempt, random, next)?.number.max(pending.sends),
            None => pending.sends,
        };
        self.follow(&pending, (follow, run), sends)?;
        if let Some(told) = news.delivery {
            self.note(told, pending.endpoint, Some(pending.message))?;
        }
        if let Some(why) = disable
            && self.disable(pending.endpoint, why)?
        {
            let of_lane = lane.as_ref().and_then(|lane| lane.breaker.failing_since);
            let failing_since = of_lane.or(failed_at);
            let failing_since = failing_since.unwrap_or(self.now);
            let told = News::EndpointDisabled { failing_since };
            self.note(told, pending.endpoint, Some(pending.message))?;
        }
        if let Some(told) = news.breaker {
            self.note(told, pending.endpoint, None)?;
        }
        if let Some(lane) = &lane {
            self.turn_lane(lane)?;
        }
        Ok(Recorded::Applied)
    }

    /// Whether the message has not been pruned.
    fn is_there(&self, message: MessageKey) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM message WHERE key = ?1";
        Ok(self.conn.prepare_cached(sql)?.exists([message.0.cast_signed()])?)
    }

    /// What follows for a delivery whose row was just taken out.
    fn follow(
        &mut self,
        row: &Pending,
        (follow, run): (Follow, Option<Timestamp>),
        sends: u32,
    ) -> Result<(), StoreError> {
        let is_manual = row.trigger.is_extra();
        match follow {
            Follow::Delivered if is_manual => self.settle(row.message, row.endpoint),
            Follow::Delivered => Ok(()),
            Follow::Retry { due_at, budget_used, delay, .. } => {
                let trigger = Trigger::Scheduled;
                let next =
                    Pending { due_at, budget_used, last_delay: delay, sends, trigger, ..*row };
                self.put_pending(next, true).map(drop)
            }
            // A manual send ends nothing but itself.
            Follow::Unchanged | Follow::Dead { .. } | Follow::Cancelled(_) if is_manual => {
                self.raise_sends(row, sends)
            }
            Follow::Unchanged => Ok(()),
            Follow::Dead { reason, error } => {
                let (state, reason) = (closed::DEAD, reason.code());
                self.close(row, Ending { state, reason, error, run }, sends)
            }
            Follow::Cancelled(reason) => self.close(row, Ending::cancelled(reason.code()), sends),
        }
    }

    /// Keeps an attempt once. A number taken by another send of the delivery gives way to the next
    /// free one.
    fn keep(
        &mut self,
        row: &Pending,
        attempt: &Attempt,
        random: [u8; 12],
        next: Option<(Timestamp, Term)>,
    ) -> Result<Kept, StoreError> {
        let mut number = attempt.number;
        while !self.insert_attempt(row, attempt, (number, random), next)? {
            let sql = "SELECT 1 FROM attempt WHERE message = ?1 AND endpoint = ?2 AND random = ?3";
            let message = row.message.0.cast_signed();
            let known =
                self.conn.prepare_cached(sql)?.exists(params![message, row.endpoint.0, random])?;
            if known {
                return Ok(Kept { number, is_new: false });
            }
            number = sends(self.conn, row.message, row.endpoint)?
                .checked_add(1)
                .ok_or_else(|| corrupt("a delivery has too many attempts"))?;
        }
        Ok(Kept { number, is_new: true })
    }

    fn insert_attempt(
        &mut self,
        row: &Pending,
        attempt: &Attempt,
        (number, random): (u32, [u8; 12]),
        next: Option<(Timestamp, Term)>,
    ) -> Result<bool, StoreError> {
        let key = self.draw().cast_signed();
        let (failure, cut, text, body) = match &attempt.outcome {
            Outcome::Answered(answer) => {
                let origin = answer.redirect_origin.as_deref();
                (None, answer.cut.map(|cut| cut.code()), origin, Some(&answer.body[..]))
            }
            Outcome::Failed(failure) => {
                (Some(failure.kind.code()), None, Some(failure.text.as_str()), None)
            }
        };
        let inserted = self.hot.insert_attempt.execute(params![
            key,
            &random[..],
            row.message.0.cast_signed(),
            row.endpoint.0,
            number,
            attempt.started_at.as_micros(),
            micros(attempt.took),
            attempt.trigger.code(),
            attempt.resent,
            attempt.status(),
            failure,
            retry_after_code(attempt.retry_after()),
            cut,
            next.map(|(due_at, _)| due_at.as_micros()),
            next.map(|(_, term)| term.code()),
            text,
            body,
        ])?;
        if inserted == 1 {
            self.batch.rows += 1;
            self.batch.attempts.push((row.endpoint.0, key));
        }
        Ok(inserted == 1)
    }

    /// Delivered: whatever said otherwise goes.
    fn settle(&mut self, message: MessageKey, endpoint: EndpointKey) -> Result<(), StoreError> {
        let sql = "DELETE FROM closed WHERE message = ?1 AND endpoint = ?2";
        let mut delete = self.conn.prepare_cached(sql)?;
        self.batch.rows += delete.execute([message.0.cast_signed(), endpoint.0])?;
        drop(delete);
        if let Some(row) = scheduled(self.conn, message, endpoint)? {
            self.remove_pending(&row)?;
        }
        Ok(())
    }

    /// A manual send was made beside a row that waits: the next send of that one is counted on.
    fn raise_sends(&mut self, manual: &Pending, sends: u32) -> Result<(), StoreError> {
        let Some(row) = scheduled(self.conn, manual.message, manual.endpoint)? else {
            return Ok(());
        };
        let sql = "UPDATE pending SET sends = max(sends, ?4)
                   WHERE endpoint = ?1 AND due_at = ?2 AND message = ?3 AND manual <> 1";
        let mut update = self.conn.prepare_cached(sql)?;
        let message = row.message.0.cast_signed();
        self.batch.rows +=
            update.execute(params![row.endpoint.0, row.due_at.as_micros(), message, sends])?;
        Ok(())
    }

    /// Ends a delivery otherwise than delivered.
    pub(super) fn close(
        &mut self,
        row: &Pending,
        ending: Ending,
        sends: u32,
    ) -> Result<(), StoreError> {
        let place = self.draw().cast_signed();
        let sql = "INSERT INTO closed (place, message, endpoint, app, org, state, reason, at, sends, error, run)
                   SELECT ?1, message.key, ?3, app.key, app.org, ?4, ?5, ?6, ?7, ?8, ?9
                   FROM message JOIN app ON app.key = message.app WHERE message.key = ?2
                   ON CONFLICT DO NOTHING";
        let mut insert = self.conn.prepare_cached(sql)?;
        let ended = insert.execute(params![
            place,
            row.message.0.cast_signed(),
            row.endpoint.0,
            ending.state,
            ending.reason,
            self.now.as_micros(),
            sends,
            ending.error,
            ending.run.map(Timestamp::as_micros),
        ])?;
        drop(insert);
        self.batch.rows += ended;
        if ended > 0 && ending.state == closed::DEAD {
            // Counted later on, though it may be replayed before.
            let sql = "INSERT INTO buried (place, endpoint, reason) VALUES (?1, ?2, ?3)";
            let values = [place, row.endpoint.0, ending.reason];
            self.batch.rows += self.conn.prepare_cached(sql)?.execute(values)?;
        }
        Ok(())
    }

    /// Writes a lane's state, and notes what changes of its suspension and its outage.
    fn turn_lane(&mut self, lane: &LaneState) -> Result<(), StoreError> {
        let sql = "SELECT warned, suspended_since, outage_since, outage_until, rejected_since
                   FROM lane_state WHERE endpoint = ?1";
        let before = one(&mut self.conn.prepare_cached(sql)?.query([lane.endpoint.0])?, |row| {
            let told = Told { warned: row.get(0)?, suspended_since: maybe_time(row, 1)? };
            Ok(Before { told, outage: outage_at(row, 2)?, refused_since: maybe_time(row, 4)? })
        })?;
        let before = before.unwrap_or_default();
        self.put_lane(lane)?;
        if let Some(told) = lane.news_after(before.told) {
            self.note_by_mail(told, lane.endpoint)?;
        }
        for told in lane.runs_after(before.refused_since) {
            self.note(told, lane.endpoint, None)?;
        }
        match lane.turn_after(before.outage) {
            Some(turn) => self.turn_recovery(lane.endpoint, turn),
            None => Ok(()),
        }
    }

    fn put_lane(&mut self, lane: &LaneState) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO lane_state (endpoint, open_until, generation, open_for, failing_since,
                       forced, since, hold_until, throttled_rounds, rejected_until, rejected_for, warned,
                       suspended_since, probe_at, outage_since, outage_until, rejected_since)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
        let time = |at: Option<Timestamp>| at.map(Timestamp::as_micros);
        let breaker = &lane.breaker;
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(params![
            lane.endpoint.0,
            time(breaker.open_until),
            breaker.generation.cast_signed(),
            micros(breaker.open_for),
            time(breaker.failing_since),
            breaker.forced.map(|forced| forced.code()),
            breaker.since.as_micros(),
            time(lane.hold_until),
            lane.throttled_rounds,
            time(lane.rejected_until),
            micros(lane.rejected_for),
            lane.warned,
            time(lane.suspended.map(|it| it.since)),
            time(lane.suspended.map(|it| it.probe_at)),
            time(lane.outage.map(|it| it.since)),
            time(lane.outage.and_then(|it| it.until)),
            time(lane.rejected_since),
        ])?;
        Ok(())
    }

    fn put_suspects(&mut self, suspects: &[Suspect]) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM suspect")?.execute([])?;
        let sql = "INSERT INTO suspect (endpoint, message, crashes, sends) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.conn.prepare_cached(sql)?;
        for suspect in suspects {
            let message = suspect.message.0.cast_signed();
            let Suspect { endpoint, crashes, sends, .. } = suspect;
            insert.execute(params![endpoint.0, message, crashes, sends])?;
        }
        self.batch.rows += suspects.len();
        Ok(())
    }

    /// Switches an endpoint off, unless it is off or gone.
    fn disable(&mut self, endpoint: EndpointKey, why: Disabled) -> Result<bool, StoreError> {
        let sql =
            "SELECT app FROM endpoint WHERE key = ?1 AND disabled IS NULL AND deleted_at IS NULL";
        let app = one(&mut self.conn.prepare_cached(sql)?.query([endpoint.0])?, |row| {
            Ok(domain::ids::AppKey(row.get(0)?))
        })?;
        let Some(app) = app else { return Ok(false) };
        let version = self.raise(app)?;
        let sql = "UPDATE endpoint SET disabled = ?2, version = ?3, updated_at = ?4 WHERE key = ?1";
        let now = self.now.as_micros();
        self.batch.rows += self.conn.prepare_cached(sql)?.execute(params![
            endpoint.0,
            why.code(),
            version,
            now
        ])?;
        self.batch.changed.push((app, Some(endpoint)));
        Ok(true)
    }
}

/// Whether a receiver answered 2xx.
fn is_success(attempt: &Attempt) -> bool {
    (200..300).contains(&attempt.status())
}
