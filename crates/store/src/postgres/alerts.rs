//! Alerts, in PostgreSQL: a row for each thing that an operator set, each incident, each
//! notification on its way.
//!
//! Never: a list that grows with deliveries; failing endpoints are found by an index of their own.

use domain::alert::evaluate::{Settlement, Telling};
use domain::alert::incident::Incident;
use domain::alert::reading::Failing;
use domain::alert::route::{Route, Silence};
use domain::alert::rule::Rule;
use domain::ids::{AppKey, PublicId};
use resilience::Timestamp;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{all, exists, one};
use super::fault::Fault;
use super::rows::{
    At, bound, code_at, get, id_at, maybe_id, maybe_text, maybe_time, order, small, text, time_at,
};
use super::tx::Tx;
use crate::alerts::{Alerts, Configured, FORGOTTEN_MAX, Kept};
use crate::inbox::{Accepted, NewMessage};
use crate::page::{Direction, PageOf};
use crate::stored::alert as stored;
use crate::stored::codes::Code as _;
use crate::{Reply, StoreError};

const INCIDENT: &str = "id, rule, phase, resolved_at, acknowledged_at, spec";
const FORGET: &str = "DELETE FROM alert_incident WHERE id IN
     (SELECT id FROM alert_incident WHERE resolved_at < $1 ORDER BY resolved_at LIMIT $2)";
const FAILING: &str =
    "SELECT endpoint.id, endpoint.uid, endpoint.url, app.id, app.name, failing_since
     FROM lane_state JOIN endpoint ON endpoint.key = lane_state.endpoint
     JOIN app ON app.key = endpoint.app
     WHERE failing_since <= $1 AND endpoint.deleted_at IS NULL AND endpoint.disabled IS NULL
         AND app.deleted_at IS NULL AND app.key <> $2
     ORDER BY failing_since, lane_state.endpoint LIMIT $3";

impl Alerts for PostgresStore {
    fn configured(&self, resolved_since: Timestamp) -> Reply<'_, Configured> {
        let cipher = self.cipher.clone();
        self.read(move |conn| async move {
            let sql = "SELECT name, spec FROM alert_rule ORDER BY name";
            let rule = |row: &Row| stored::read_rule(get(row, 0)?, get(row, 1)?);
            let rules = all(&conn, sql, &[], rule).await?;
            let sql = "SELECT name, spec FROM alert_route ORDER BY name";
            let route = |row: &Row| stored::read_route(get(row, 0)?, get(row, 1)?, cipher.as_ref());
            let routes = all(&conn, sql, &[], route).await?;
            let sql = "SELECT id, rule, endpoint, from_then, until, comment FROM alert_silence
                       ORDER BY id";
            let silences = all(&conn, sql, &[], silence).await?;
            let sql = format!(
                "SELECT {INCIDENT} FROM alert_incident WHERE resolved_at IS NULL
                 UNION ALL SELECT {INCIDENT} FROM alert_incident WHERE resolved_at >= $1
                 ORDER BY id DESC"
            );
            let recent = all(&conn, &sql, &[&At(resolved_since)], incident).await?;
            Ok(Configured { rules, routes, silences, recent })
        })
    }

    fn put_rule(&self, rule: Rule) -> Reply<'static, ()> {
        let sql = "INSERT INTO alert_rule (name, spec) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET spec = excluded.spec";
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                tx.write(sql, &[&text(&rule.name), &stored::rule(&rule)]).await.map(drop)
            })
        })
    }

    fn delete_rule(&self, name: String) -> Reply<'static, bool> {
        self.delete("DELETE FROM alert_rule WHERE name = $1", name)
    }

    fn put_route(&self, route: Route) -> Reply<'static, ()> {
        let sql = "INSERT INTO alert_route (name, spec) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET spec = excluded.spec";
        let cipher = self.cipher.clone();
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let spec = stored::route(&route, cipher.as_ref())?;
                tx.write(sql, &[&text(&route.name), &spec]).await.map(drop)
            })
        })
    }

    fn delete_route(&self, name: String) -> Reply<'static, bool> {
        self.delete("DELETE FROM alert_route WHERE name = $1", name)
    }

    fn put_silence(&self, silence: Silence) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let now = At(tx.now);
                tx.write("DELETE FROM alert_silence WHERE until <= $1", &[&now]).await?;
                let sql =
                    "INSERT INTO alert_silence (id, rule, endpoint, from_then, until, comment)
                           VALUES ($1, $2, $3, $4, $5, $6)";
                let endpoint = silence.endpoint.as_ref().map(|id| &id.as_bytes()[..]);
                tx.write(
                    sql,
                    &[
                        &&silence.id.as_bytes()[..],
                        &maybe_text(silence.rule.as_deref()),
                        &endpoint,
                        &At(silence.from),
                        &At(silence.until),
                        &text(&silence.comment),
                    ],
                )
                .await
                .map(drop)
            })
        })
    }

    fn delete_silence(&self, id: PublicId) -> Reply<'static, bool> {
        let sql = "DELETE FROM alert_silence WHERE id = $1";
        self.shared.door.change(move |tx| {
            Box::pin(async move { Ok(tx.write(sql, &[&&id.as_bytes()[..]]).await? > 0) })
        })
    }

    fn incidents(&self, page: PageOf<PublicId>) -> Reply<'_, Vec<Incident>> {
        self.read(move |conn| async move {
            // Shorter and longer than any id: before the first, after the last.
            let (than, far) = match page.direction {
                Direction::Ascending => (">", &[][..]),
                Direction::Descending => ("<", &[0xFF; 21][..]),
            };
            let order = order(page.direction);
            let sql = format!(
                "SELECT {INCIDENT} FROM alert_incident WHERE id {than} $1
                 ORDER BY id {order} LIMIT $2"
            );
            let beyond = page.beyond.as_ref().map_or(far, |id| &id.as_bytes()[..]);
            all(&conn, &sql, &[&beyond, &bound(page.limit)], incident).await
        })
    }

    fn incident(&self, id: PublicId) -> Reply<'_, Option<Incident>> {
        self.read(move |conn| async move {
            let sql = format!("SELECT {INCIDENT} FROM alert_incident WHERE id = $1");
            one(&conn, &sql, &[&&id.as_bytes()[..]], incident).await
        })
    }

    fn acknowledge(
        &self,
        id: PublicId,
        at: Timestamp,
        tellings: Vec<Telling>,
    ) -> Reply<'static, bool> {
        let sql = "UPDATE alert_incident SET acknowledged_at = $2
                   WHERE id = $1 AND phase = 1 AND acknowledged_at IS NULL";
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let noted = tx.write(sql, &[&&id.as_bytes()[..], &At(at)]).await? > 0;
                if noted {
                    tx.keep_tellings(&tellings).await?;
                }
                Ok(noted)
            })
        })
    }

    fn settle(&self, settlement: Settlement, forget_before: Timestamp) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| {
            Box::pin(async move { tx.settle_alerts(&settlement, forget_before).await })
        })
    }

    fn tellings(&self, after: u64, limit: usize) -> Reply<'_, Vec<Kept>> {
        self.read(move |conn| async move {
            let sql =
                "SELECT place, spec FROM alert_telling WHERE place > $1 ORDER BY place LIMIT $2";
            all(&conn, sql, &[&after.cast_signed(), &bound(limit)], |row| {
                let telling = stored::read_telling(get(row, 1)?)?;
                Ok(Kept { place: get::<i64>(row, 0)?.cast_unsigned(), telling })
            })
            .await
        })
    }

    fn post_telling(&self, place: u64, message: NewMessage) -> Reply<'static, Option<Accepted>> {
        self.shared.door.change(move |tx| {
            Box::pin(async move {
                let sql = "SELECT 1 FROM alert_telling WHERE place = $1";
                if !exists(tx.conn(), sql, &[&place.cast_signed()]).await? {
                    return Ok(None);
                }
                let accepted = tx.accept_one(&message).await?;
                if !matches!(accepted, Accepted::Stale | Accepted::NoApplication) {
                    tx.forget_telling(place).await?;
                }
                Ok(Some(accepted))
            })
        })
    }

    fn discard_telling(&self, place: u64) -> Reply<'static, ()> {
        self.shared.door.change(move |tx| Box::pin(tx.forget_telling(place)))
    }

    fn failing(
        &self,
        since: Timestamp,
        but_of: Option<AppKey>,
        limit: usize,
    ) -> Reply<'_, Vec<Failing>> {
        self.read(move |conn| async move {
            // No application has this key.
            let but_of = but_of.map_or(i64::MIN, |app| app.0);
            all(&conn, FAILING, &[&At(since), &but_of, &bound(limit)], |row| {
                Ok(Failing {
                    endpoint: id_at(row, 0)?,
                    endpoint_uid: get(row, 1)?,
                    origin: stored::origin(get(row, 2)?),
                    app: id_at(row, 3)?,
                    app_name: get(row, 4)?,
                    since: time_at(row, 5)?,
                })
            })
            .await
        })
    }
}

impl PostgresStore {
    fn delete(&self, sql: &'static str, name: String) -> Reply<'static, bool> {
        self.shared.door.change(move |tx| {
            Box::pin(async move { Ok(tx.write(sql, &[&text(&name)]).await? > 0) })
        })
    }
}

impl Tx {
    async fn settle_alerts(
        &mut self,
        settlement: &Settlement,
        forget_before: Timestamp,
    ) -> Result<(), Fault> {
        let sql = "INSERT INTO alert_incident (id, rule, phase, resolved_at, spec)
                   VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (id) DO UPDATE SET phase = excluded.phase,
                       resolved_at = excluded.resolved_at, spec = excluded.spec";
        for it in &settlement.stand {
            let (resolved_at, spec) = (it.resolved_at.map(At), stored::incident(it));
            let (id, phase) = (&it.id.as_bytes()[..], small(it.phase.code()));
            self.write(sql, &[&id, &text(&it.rule), &phase, &resolved_at, &spec]).await?;
        }
        for id in &settlement.gone {
            let sql = "DELETE FROM alert_incident WHERE id = $1";
            self.write(sql, &[&&id.as_bytes()[..]]).await?;
        }
        self.write(FORGET, &[&At(forget_before), &bound(FORGOTTEN_MAX)]).await?;
        self.keep_tellings(&settlement.tellings).await
    }

    async fn keep_tellings(&mut self, tellings: &[Telling]) -> Result<(), Fault> {
        let sql = "INSERT INTO alert_telling (place, spec) VALUES ($1, $2)";
        for telling in tellings {
            let place = self.draw().cast_signed();
            self.write(sql, &[&place, &stored::telling(telling)]).await?;
            self.batch.noted += 1;
        }
        Ok(())
    }

    async fn forget_telling(&mut self, place: u64) -> Result<(), Fault> {
        let sql = "DELETE FROM alert_telling WHERE place = $1";
        self.write(sql, &[&place.cast_signed()]).await.map(drop)
    }
}

/// Reads [`INCIDENT`].
fn incident(row: &Row) -> Result<Incident, StoreError> {
    let columns = stored::Columns {
        id: id_at(row, 0)?,
        rule: get(row, 1)?,
        phase: code_at(row, 2)?,
        resolved_at: maybe_time(row, 3)?,
        acknowledged_at: maybe_time(row, 4)?,
    };
    stored::read_incident(columns, get(row, 5)?)
}

fn silence(row: &Row) -> Result<Silence, StoreError> {
    Ok(Silence {
        id: id_at(row, 0)?,
        rule: get(row, 1)?,
        endpoint: maybe_id(row, 2)?,
        from: time_at(row, 3)?,
        until: time_at(row, 4)?,
        comment: get(row, 5)?,
    })
}
