//! Recording, in PostgreSQL: all results of a batch at once.
//!
//! A result counts if the row it was made for is still there, in the same life (age and budget as
//! they were read); a manual send may have raised its number of sends meanwhile. Attempts are told
//! apart by the chance in their id.
//! Never: decide what follows, or let one delivery have two verdicts.

pub(super) use follow::Closing;

pub(super) mod follow;
pub(super) mod keep;
mod turn;

use std::collections::HashSet;

use domain::delivery::Pending;
use domain::endpoint::Disabled;
use domain::ids::{AppKey, EndpointKey};
use domain::notice::News;

use super::PostgresStore;
use super::columns::{Columns, Script};
use super::conn::{all, run, value};
use super::fault::Fault;
use super::pending::places;
use super::rows::{At, get, message_key, narrow_at, small};
use super::tx::Tx;
use crate::Reply;
use crate::ledger::{LaneState, Ledger, Record, Recorded, Suspect};
use crate::stored::codes::Code as _;
use crate::stored::numbers::micros;

/// Whether a pending row is the one that a result was made for.
pub(super) const SAME: &str = "pending.endpoint = r.endpoint AND pending.due_at = r.due_at AND pending.message = r.message
         AND pending.manual = r.manual AND pending.budget_used = r.used AND pending.age_from = r.age_from";
const PUT_LANES: &str = "INSERT INTO lane_state (endpoint, open_until, generation, open_for, failing_since, forced, since,
         hold_until, throttled_rounds, rejected_until, rejected_for, warned, suspended_since, probe_at, outage_since,
         outage_until, rejected_since)
     SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::timestamptz[],
         $6::smallint[], $7::timestamptz[], $8::timestamptz[], $9::bigint[], $10::timestamptz[], $11::bigint[],
         $12::boolean[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[],
         $17::timestamptz[])
     ON CONFLICT (endpoint) DO UPDATE SET open_until = excluded.open_until, generation = excluded.generation,
         open_for = excluded.open_for, failing_since = excluded.failing_since, forced = excluded.forced,
         since = excluded.since, hold_until = excluded.hold_until, throttled_rounds = excluded.throttled_rounds,
         rejected_until = excluded.rejected_until, rejected_for = excluded.rejected_for,
         warned = excluded.warned, suspended_since = excluded.suspended_since, probe_at = excluded.probe_at,
         outage_since = excluded.outage_since, outage_until = excluded.outage_until,
         rejected_since = excluded.rejected_since";

impl Ledger for PostgresStore {
    fn record(&self, records: Vec<Record>) -> Reply<'static, Vec<Recorded>> {
        self.shared.door.record(records)
    }

    fn keep_lanes(&self, lanes: Vec<LaneState>) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let all: Vec<&LaneState> = lanes.iter().collect();
                let mut before = tx.before_of(&all).await?;
                tx.put_lanes(&all).await?;
                for lane in all {
                    tx.note_turn(lane, &mut before).await?;
                }
                Ok(())
            })
        })
    }

    fn keep_suspects(&self, suspects: Vec<Suspect>) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| Box::pin(async move { tx.put_suspects(&suspects).await }))
    }

    fn suspects(&self) -> Reply<'_, Vec<Suspect>> {
        self.read(|conn| async move {
            let sql = "SELECT endpoint, message, crashes, sends FROM suspect ORDER BY place";
            all(&conn, sql, &[], |row| {
                Ok(Suspect {
                    endpoint: EndpointKey(get(row, 0)?),
                    message: message_key(row, 1)?,
                    crashes: narrow_at(row, 2)?,
                    sends: narrow_at(row, 3)?,
                })
            })
            .await
        })
    }
}

/// Keys for what a result may make.
#[derive(Clone, Copy)]
pub(super) struct Drawn {
    pub(super) attempt: u64,
    pub(super) place: u64,
}

impl Tx {
    /// Records all of them, in this order; an error is a fault of the database.
    pub(super) async fn record_all(&mut self, records: &[&Record]) -> Result<Vec<Recorded>, Fault> {
        let mut recorded: Vec<Option<Recorded>> = records.iter().map(|_| None).collect();
        // Drawn in the order of the results, whichever are written first.
        let drawn: Vec<Drawn> = records.iter().map(|_| self.draw_for_record()).collect();
        loop {
            let open = (0..records.len()).filter(|place| recorded[*place].is_none());
            let round = firsts(records, open);
            if round.is_empty() {
                return Ok(recorded.into_iter().flatten().collect());
            }
            let taken = self.take(records, &round).await?;
            let (applied, late): (Vec<usize>, Vec<usize>) =
                round.into_iter().partition(|place| taken.contains(place));
            for place in late {
                self.keep_late(records[place], drawn[place]).await?;
                recorded[place] = Some(Recorded::Late);
            }
            let of: Vec<(&Record, Drawn)> =
                applied.iter().map(|place| (records[*place], drawn[*place])).collect();
            let sends = self.keep_all(&of).await?;
            self.follow_all(&of, &sends).await?;
            let lanes: Vec<&LaneState> =
                of.iter().filter_map(|(record, _)| record.lane.as_ref()).collect();
            let mut before = self.before_of(&lanes).await?;
            self.put_lanes(&lanes).await?;
            for (record, _) in &of {
                self.tell(record).await?;
                if let Some(lane) = &record.lane {
                    self.note_turn(lane, &mut before).await?;
                }
            }
            applied.iter().for_each(|place| recorded[*place] = Some(Recorded::Applied));
        }
    }

    pub(super) fn draw_for_record(&mut self) -> Drawn {
        Drawn { attempt: self.draw(), place: self.draw() }
    }

    /// Takes out the rows that results were made for; which of them were there.
    async fn take(
        &mut self,
        records: &[&Record],
        round: &[usize],
    ) -> Result<HashSet<usize>, Fault> {
        let rows: Vec<Pending> = round.iter().map(|place| records[*place].pending).collect();
        let places = round.iter().map(|place| i64::try_from(*place).unwrap_or(-1)).collect();
        let mut script = Script::default();
        let rows = script.rows(lives(&rows).each::<i64>("place", "bigint", places));
        let sql = format!("DELETE FROM pending USING {rows} WHERE {SAME} RETURNING r.place");
        let taken =
            all(self.conn(), &sql, &script.values(), |row| narrow_at::<usize>(row, 0)).await;
        let taken: HashSet<usize> = taken?.into_iter().collect();
        self.batch.rows += taken.len();
        self.batch.depth -= i64::try_from(taken.len()).unwrap_or(0);
        Ok(taken)
    }

    /// What of a result is news, and that it disables its endpoint.
    async fn tell(&mut self, record: &Record) -> Result<(), Fault> {
        let Record { pending, attempt, lane, disable, news, .. } = record;
        if let Some(told) = news.delivery {
            self.note(told, pending.endpoint, Some(pending.message)).await?;
        }
        if let Some(why) = *disable
            && self.disable(pending.endpoint, why).await?
        {
            let failed_at = attempt.as_ref().map(|attempt| attempt.started_at);
            let failing_since = lane.as_ref().and_then(|lane| lane.breaker.failing_since);
            let failing_since = failing_since.or(failed_at).unwrap_or(self.now);
            let told = News::EndpointDisabled { failing_since };
            self.note(told, pending.endpoint, Some(pending.message)).await?;
        }
        if let Some(told) = news.breaker {
            self.note(told, pending.endpoint, None).await?;
        }
        Ok(())
    }

    /// Writes lane states; of several of one lane the last one holds.
    async fn put_lanes(&mut self, lanes: &[&LaneState]) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        let last: Vec<&LaneState> =
            lanes.iter().rev().filter(|lane| seen.insert(lane.endpoint)).copied().collect();
        if last.is_empty() {
            return Ok(());
        }
        let at = |time: Option<_>| time.map(At);
        let lanes = || last.iter();
        let endpoints: Vec<i64> = lanes().map(|lane| lane.endpoint.0).collect();
        let open: Vec<Option<At>> = lanes().map(|lane| at(lane.breaker.open_until)).collect();
        let generations: Vec<i64> =
            lanes().map(|lane| lane.breaker.generation.cast_signed()).collect();
        let open_for: Vec<i64> = lanes().map(|lane| micros(lane.breaker.open_for)).collect();
        let failing: Vec<Option<At>> = lanes().map(|lane| at(lane.breaker.failing_since)).collect();
        let forced: Vec<Option<i16>> =
            lanes().map(|lane| lane.breaker.forced.map(|forced| small(forced.code()))).collect();
        let since: Vec<At> = lanes().map(|lane| At(lane.breaker.since)).collect();
        let hold: Vec<Option<At>> = lanes().map(|lane| at(lane.hold_until)).collect();
        let rounds: Vec<i64> = lanes().map(|lane| i64::from(lane.throttled_rounds)).collect();
        let rejected: Vec<Option<At>> = lanes().map(|lane| at(lane.rejected_until)).collect();
        let rejected_for: Vec<i64> = lanes().map(|lane| micros(lane.rejected_for)).collect();
        let warned: Vec<bool> = lanes().map(|lane| lane.warned).collect();
        let suspended: Vec<Option<At>> =
            lanes().map(|lane| at(lane.suspended.map(|on| on.since))).collect();
        let probes: Vec<Option<At>> =
            lanes().map(|lane| at(lane.suspended.map(|on| on.probe_at))).collect();
        let outages: Vec<Option<At>> =
            lanes().map(|lane| at(lane.outage.map(|outage| outage.since))).collect();
        let ended: Vec<Option<At>> =
            lanes().map(|lane| at(lane.outage.and_then(|outage| outage.until))).collect();
        let runs: Vec<Option<At>> = lanes().map(|lane| at(lane.rejected_since)).collect();
        self.write(
            PUT_LANES,
            &[
                &endpoints,
                &open,
                &generations,
                &open_for,
                &failing,
                &forced,
                &since,
                &hold,
                &rounds,
                &rejected,
                &rejected_for,
                &warned,
                &suspended,
                &probes,
                &outages,
                &ended,
                &runs,
            ],
        )
        .await
        .map(drop)
    }

    async fn put_suspects(&mut self, suspects: &[Suspect]) -> Result<(), Fault> {
        // Those of other nodes' endpoints are theirs to change; places tell nothing but an order.
        let known = all(self.conn(), "SELECT endpoint FROM suspect", &[], |row| {
            Ok(EndpointKey(get(row, 0)?))
        })
        .await?;
        let share = self.share();
        let own = known.into_iter().filter(|endpoint| share.owns(*endpoint));
        let mut own: Vec<i64> = own.map(|endpoint| endpoint.0).collect();
        own.extend(suspects.iter().map(|suspect| suspect.endpoint.0));
        run(self.conn(), "DELETE FROM suspect WHERE endpoint = ANY($1)", &[&own]).await?;
        let sql = "INSERT INTO suspect (place, endpoint, message, crashes, sends)
                   SELECT s.place + (SELECT coalesce(max(place), 0) FROM suspect), s.endpoint, s.message, s.crashes,
                       s.sends
                   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
                       AS s (endpoint, message, crashes, sends, place)";
        let endpoints: Vec<i64> = suspects.iter().map(|suspect| suspect.endpoint.0).collect();
        let messages: Vec<i64> =
            suspects.iter().map(|suspect| suspect.message.0.cast_signed()).collect();
        let crashes: Vec<i64> = suspects.iter().map(|suspect| i64::from(suspect.crashes)).collect();
        let sends: Vec<i64> = suspects.iter().map(|suspect| i64::from(suspect.sends)).collect();
        self.write(sql, &[&endpoints, &messages, &crashes, &sends]).await.map(drop)
    }

    /// Switches an endpoint off, unless it is off or gone.
    async fn disable(&mut self, endpoint: EndpointKey, why: Disabled) -> Result<bool, Fault> {
        let sql =
            "SELECT app FROM endpoint WHERE key = $1 AND disabled IS NULL AND deleted_at IS NULL";
        let Some(app) = value(self.conn(), sql, &[&endpoint.0]).await?.map(AppKey) else {
            return Ok(false);
        };
        let version = self.raise(app).await?;
        // Another node may have changed it before this one came to raise the version.
        if value::<i64>(self.conn(), sql, &[&endpoint.0]).await?.is_none() {
            return Ok(false);
        }
        let sql = "UPDATE endpoint SET disabled = $2, version = $3, updated_at = $4 WHERE key = $1";
        let now = At(self.now);
        self.write(sql, &[&endpoint.0, &small(why.code()), &version, &now]).await?;
        self.batch.changed.push((app, Some(endpoint)));
        Ok(true)
    }
}

/// Rows as results name them, see [`SAME`].
pub(super) fn lives<'v>(rows: &[Pending]) -> Columns<'v> {
    places(rows)
        .each("used", "bigint", rows.iter().map(|row| i64::from(row.budget_used)).collect())
        .each("age_from", "timestamptz", rows.iter().map(|row| At(row.age_from)).collect())
}

/// Of the results that are open, the first of each delivery.
fn firsts(records: &[&Record], open: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut deliveries = HashSet::new();
    open.filter(|place| {
        let row = &records[*place].pending;
        deliveries.insert((row.message, row.endpoint))
    })
    .collect()
}
