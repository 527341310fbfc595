//! Alerts, in SQLite: a row for each thing that an operator set, each incident, each notification
//! on its way.
//!
//! Never: a list that grows with deliveries; failing endpoints are found by an index of their own.

use domain::alert::evaluate::{Settlement, Telling};
use domain::alert::incident::Incident;
use domain::alert::reading::Failing;
use domain::alert::route::{Route, Silence};
use domain::alert::rule::Rule;
use domain::ids::{AppKey, PublicId};
use resilience::Timestamp;
use rusqlite::{Row, ToSql, params};

use super::SqliteStore;
use super::queue::bound;
use super::rows::{all, code_at, id_at, maybe_blob, maybe_time, one, time_at};
use super::tx::Tx;
use crate::alerts::{Alerts, Configured, FORGOTTEN_MAX, Kept};
use crate::inbox::{Accepted, NewMessage};
use crate::page::{Direction, PageOf};
use crate::stored::alert as stored;
use crate::stored::codes::Code as _;
use crate::stored::fault::unreadable;
use crate::{Reply, StoreError};

/// The columns that [`incident`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, rule, phase, resolved_at, acknowledged_at, spec FROM alert_incident ",
            $rest
        )
    };
}

const OPEN: &str = select!("INDEXED BY alert_open WHERE resolved_at IS NULL");
const RESOLVED: &str = select!("INDEXED BY alert_resolved WHERE resolved_at >= ?1");
const ONE: &str = select!("WHERE id = ?1");
const PAGE: [&str; 2] = [
    select!("WHERE id > ?1 ORDER BY id ASC LIMIT ?2"),
    select!("WHERE id < ?1 ORDER BY id DESC LIMIT ?2"),
];
const FORGET: &str = "DELETE FROM alert_incident WHERE id IN
     (SELECT id FROM alert_incident INDEXED BY alert_resolved
      WHERE resolved_at < ?1 ORDER BY resolved_at LIMIT ?2)";
const FAILING: &str =
    "SELECT endpoint.id, endpoint.uid, endpoint.url, app.id, app.name, failing_since
     FROM lane_state INDEXED BY lane_failing
     JOIN endpoint ON endpoint.key = lane_state.endpoint JOIN app ON app.key = endpoint.app
     WHERE failing_since <= ?1 AND endpoint.deleted_at IS NULL AND endpoint.disabled IS NULL
         AND app.deleted_at IS NULL AND app.key <> ?2
     ORDER BY failing_since, lane_state.endpoint LIMIT ?3";

impl Alerts for SqliteStore {
    fn configured(&self, resolved_since: Timestamp) -> Reply<'_, Configured> {
        let cipher = self.cipher.clone();
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            let sql = "SELECT name, spec FROM alert_rule ORDER BY name";
            let rules = all(&mut snapshot.prepare_cached(sql)?.query([])?, |row| {
                stored::read_rule(row.get(0)?, &row.get::<_, Vec<u8>>(1)?)
            })?;
            let sql = "SELECT name, spec FROM alert_route ORDER BY name";
            let routes = all(&mut snapshot.prepare_cached(sql)?.query([])?, |row| {
                stored::read_route(row.get(0)?, &row.get::<_, Vec<u8>>(1)?, cipher.as_ref())
            })?;
            let sql = "SELECT id, rule, endpoint, from_then, until, comment FROM alert_silence
                       ORDER BY id";
            let silences = all(&mut snapshot.prepare_cached(sql)?.query([])?, silence)?;
            let mut recent = all(&mut snapshot.prepare_cached(OPEN)?.query([])?, incident)?;
            let since = [resolved_since.as_micros()];
            recent.extend(all(&mut snapshot.prepare_cached(RESOLVED)?.query(since)?, incident)?);
            recent.sort_by_key(|it| std::cmp::Reverse(it.id));
            Ok(Configured { rules, routes, silences, recent })
        })
    }

    fn put_rule(&self, rule: Rule) -> Reply<'static, ()> {
        let sql = "INSERT INTO alert_rule (name, spec) VALUES (?1, ?2)
                   ON CONFLICT DO UPDATE SET spec = excluded.spec";
        self.shared
            .door
            .change(move |tx| tx.run(sql, params![rule.name, stored::rule(&rule)]).map(drop))
    }

    fn delete_rule(&self, name: String) -> Reply<'static, bool> {
        let sql = "DELETE FROM alert_rule WHERE name = ?1";
        self.shared.door.change(move |tx| Ok(tx.run(sql, params![name])? > 0))
    }

    fn put_route(&self, route: Route) -> Reply<'static, ()> {
        let sql = "INSERT INTO alert_route (name, spec) VALUES (?1, ?2)
                   ON CONFLICT DO UPDATE SET spec = excluded.spec";
        let cipher = self.cipher.clone();
        self.shared.door.change(move |tx| {
            let spec = stored::route(&route, cipher.as_ref())?;
            tx.run(sql, params![route.name, spec]).map(drop)
        })
    }

    fn delete_route(&self, name: String) -> Reply<'static, bool> {
        let sql = "DELETE FROM alert_route WHERE name = ?1";
        self.shared.door.change(move |tx| Ok(tx.run(sql, params![name])? > 0))
    }

    fn put_silence(&self, silence: Silence) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            let now = tx.now.as_micros();
            tx.run("DELETE FROM alert_silence WHERE until <= ?1", params![now])?;
            let sql = "INSERT INTO alert_silence (id, rule, endpoint, from_then, until, comment)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let values = params![
                silence.id.as_bytes(),
                silence.rule,
                silence.endpoint.as_ref().map(PublicId::as_bytes),
                silence.from.as_micros(),
                silence.until.as_micros(),
                silence.comment,
            ];
            tx.run(sql, values).map(drop)
        })
    }

    fn delete_silence(&self, id: PublicId) -> Reply<'static, bool> {
        let sql = "DELETE FROM alert_silence WHERE id = ?1";
        self.shared.door.change(move |tx| Ok(tx.run(sql, params![id.as_bytes()])? > 0))
    }

    fn incidents(&self, page: PageOf<PublicId>) -> Reply<'_, Vec<Incident>> {
        self.readers.read(move |conn| {
            // Shorter and longer than any id: before the first, after the last.
            let (sql, far) = match page.direction {
                Direction::Ascending => (PAGE[0], &[][..]),
                Direction::Descending => (PAGE[1], &[0xFF; 21][..]),
            };
            let beyond = page.beyond.as_ref().map_or(far, |id| &id.as_bytes()[..]);
            let values = params![beyond, bound(page.limit)];
            all(&mut conn.prepare_cached(sql)?.query(values)?, incident)
        })
    }

    fn incident(&self, id: PublicId) -> Reply<'_, Option<Incident>> {
        self.readers
            .read(move |conn| one(&mut conn.prepare_cached(ONE)?.query([id.as_bytes()])?, incident))
    }

    fn acknowledge(
        &self,
        id: PublicId,
        at: Timestamp,
        tellings: Vec<Telling>,
    ) -> Reply<'static, bool> {
        let sql = "UPDATE alert_incident SET acknowledged_at = ?2
                   WHERE id = ?1 AND phase = 1 AND acknowledged_at IS NULL";
        self.shared.door.change(move |tx| {
            let noted = tx.run(sql, params![id.as_bytes(), at.as_micros()])? > 0;
            if noted {
                tx.keep_tellings(&tellings)?;
            }
            Ok(noted)
        })
    }

    fn settle(&self, settlement: Settlement, forget_before: Timestamp) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.settle_alerts(&settlement, forget_before))
    }

    fn tellings(&self, after: u64, limit: usize) -> Reply<'_, Vec<Kept>> {
        self.readers.read(move |conn| {
            let sql =
                "SELECT place, spec FROM alert_telling WHERE place > ?1 ORDER BY place LIMIT ?2";
            let values = params![after.cast_signed(), bound(limit)];
            all(&mut conn.prepare_cached(sql)?.query(values)?, |row| {
                let telling = stored::read_telling(&row.get::<_, Vec<u8>>(1)?)?;
                Ok(Kept { place: row.get::<_, i64>(0)?.cast_unsigned(), telling })
            })
        })
    }

    fn post_telling(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>> {
        self.shared.door.change(move |tx| {
            let sql = "SELECT 1 FROM alert_telling WHERE place = ?1";
            if !tx.conn.prepare_cached(sql)?.exists([place.cast_signed()])? {
                return Ok(None);
            }
            let accepted = tx.accept(message)?;
            if !matches!(accepted, Accepted::Stale | Accepted::NoApplication) {
                tx.forget_telling(place)?;
            }
            Ok(Some(accepted))
        })
    }

    fn discard_telling(&self, place: u64) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| tx.forget_telling(place))
    }

    fn failing(
        &self,
        since: Timestamp,
        but_of: Option<AppKey>,
        limit: usize,
    ) -> Reply<'_, Vec<Failing>> {
        self.readers.read(move |conn| {
            // No application has this key.
            let but_of = but_of.map_or(i64::MIN, |app| app.0);
            let values = params![since.as_micros(), but_of, bound(limit)];
            all(&mut conn.prepare_cached(FAILING)?.query(values)?, |row| {
                Ok(Failing {
                    endpoint: id_at(row, 0)?,
                    endpoint_uid: row.get(1)?,
                    origin: stored::origin(&row.get::<_, String>(2)?),
                    app: id_at(row, 3)?,
                    app_name: row.get(4)?,
                    since: time_at(row, 5)?,
                })
            })
        })
    }
}

impl Tx<'_> {
    fn run(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        let written = self.conn.prepare_cached(sql)?.execute(values)?;
        self.batch.rows += written;
        Ok(written)
    }

    fn settle_alerts(
        &mut self,
        settlement: &Settlement,
        forget_before: Timestamp,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO alert_incident (id, rule, phase, resolved_at, spec)
                   VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO UPDATE SET phase = excluded.phase,
                       resolved_at = excluded.resolved_at, spec = excluded.spec";
        for it in &settlement.stand {
            let resolved_at = it.resolved_at.map(Timestamp::as_micros);
            let spec = stored::incident(it);
            self.run(sql, params![it.id.as_bytes(), it.rule, it.phase.code(), resolved_at, spec])?;
        }
        for id in &settlement.gone {
            self.run("DELETE FROM alert_incident WHERE id = ?1", params![id.as_bytes()])?;
        }
        self.run(FORGET, params![forget_before.as_micros(), bound(FORGOTTEN_MAX)])?;
        self.keep_tellings(&settlement.tellings)
    }

    fn keep_tellings(&mut self, tellings: &[Telling]) -> Result<(), StoreError> {
        let sql = "INSERT INTO alert_telling (place, spec) VALUES (?1, ?2)";
        for telling in tellings {
            let place = self.draw().cast_signed();
            self.run(sql, params![place, stored::telling(telling)])?;
            self.batch.noted += 1;
        }
        Ok(())
    }

    fn forget_telling(&mut self, place: u64) -> Result<(), StoreError> {
        let sql = "DELETE FROM alert_telling WHERE place = ?1";
        self.run(sql, params![place.cast_signed()]).map(drop)
    }
}

/// Reads what `select` names.
fn incident(row: &Row<'_>) -> Result<Incident, StoreError> {
    let columns = stored::Columns {
        id: id_at(row, 0)?,
        rule: row.get(1)?,
        phase: code_at(row, 2)?,
        resolved_at: maybe_time(row, 3)?,
        acknowledged_at: maybe_time(row, 4)?,
    };
    stored::read_incident(columns, &row.get::<_, Vec<u8>>(5)?)
}

fn silence(row: &Row<'_>) -> Result<Silence, StoreError> {
    let id = |blob: &[u8]| blob.try_into().map(PublicId::from_bytes).map_err(|_| unreadable());
    Ok(Silence {
        id: id_at(row, 0)?,
        rule: row.get(1)?,
        endpoint: maybe_blob(row, 2, id)?,
        from: time_at(row, 3)?,
        until: time_at(row, 4)?,
        comment: row.get(5)?,
    })
}
