//! Figures, in SQLite: what is rolled up from its rows, what is not yet from the tables, both in
//! one snapshot.
//!
//! A reader reads the rows of a window and adds them up; the writer adds a piece of what they come
//! to. Whoever wants figures reads days of one owner after the other.
//! Never: read rows of messages or results on the writer.

mod roll;
mod thin;

use std::sync::{Arc, PoisonError};

use domain::attempt::FailureKind;
use domain::dead_letter::DeadReason;
use domain::figures::{Figures, Tally};
use domain::ids::{AppKey, key_floor};
use resilience::Timestamp;
use rusqlite::{Connection, Row};

use super::SqliteStore;
use super::queue::bound;
use super::rows::{all, code_at, maybe_code, narrow_at, one};
use crate::counts::{Collected, Counts, Of, Rolled, StepFigures, Steps};
use crate::stored::fault::unreadable;
use crate::stored::figures::{
    DAY, Fact, Mark, Place, Rolling, SERVER, WINDOW_ROWS, Window, app_owner, minute_at, tally,
    time_of,
};
use crate::{Reply, StoreError};

const MARK: &str = "SELECT up_to, writing, owner, minute, what FROM figure_mark WHERE one = 1";
const SENT: &str = "SELECT key, endpoint, status, failure, took, n FROM attempt
     WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3";
const BURIED: &str = "SELECT place, endpoint, reason FROM buried
     WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3";
const ACCEPTED: &str =
    "SELECT key, app FROM message WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3";
const MINUTES: &str = "SELECT minute, what, count, spread FROM figure_minute
     WHERE day = ?1 AND owner = ?2 AND minute >= ?3 AND minute < ?4";
const HOURS: &str = "SELECT minute, what, count, spread FROM figure_hour
     WHERE day = ?1 AND owner = ?2 AND minute >= ?3 AND minute < ?4";

impl Counts for SqliteStore {
    fn roll_up(&self) -> Reply<'static, Rolled> {
        let rolling = Arc::clone(&self.rolling);
        let shared = Arc::clone(&self.shared);
        let begun = taken(&rolling);
        let read = begun.is_none().then(|| {
            self.readers.read(|conn| {
                let snapshot = conn.unchecked_transaction()?;
                window(&snapshot, WINDOW_ROWS)
            })
        });
        Box::pin(async move {
            let window = match (begun, read) {
                (Some(window), _) => window,
                (None, Some(read)) => read.await?,
                (None, None) => return Ok(Rolled::default()),
            };
            if window.is_empty() {
                return Ok(Rolled::default());
            }
            let (rolled, left) = shared.door.change(move |tx| tx.roll_up(window)).await?;
            *rolling.lock().unwrap_or_else(PoisonError::into_inner) = left;
            Ok(rolled)
        })
    }

    fn thin(&self, now: Timestamp) -> Reply<'static, Rolled> {
        self.shared.door.change(move |tx| tx.thin(now))
    }

    fn read(&self, of: Of, steps: Steps) -> Reply<'_, Vec<StepFigures>> {
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            let mut collected = Collected::default();
            look(&snapshot, of, &steps, &mut collected)?;
            Ok(collected.done())
        })
    }

    fn recent(&self, now: Timestamp, minutes: u32) -> Reply<'_, Figures> {
        self.readers.read(move |conn| {
            let snapshot = conn.unchecked_transaction()?;
            let mut collected = Collected::default();
            look(&snapshot, Of::All, &Steps::recent(now, minutes), &mut collected)?;
            Ok(collected.sum())
        })
    }
}

fn taken(rolling: &Rolling) -> Option<Window> {
    rolling.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// How far rolling up has come.
fn mark(conn: &Connection) -> Result<Mark, StoreError> {
    let found = one(&mut conn.prepare_cached(MARK)?.query([])?, |row| {
        let done = match row.get::<_, Option<i64>>(2)? {
            Some(owner) => Some(Place { owner, minute: row.get(3)?, what: row.get(4)? }),
            None => None,
        };
        Ok(Mark { up_to: row.get(0)?, writing: row.get(1)?, done })
    })?;
    found.ok_or_else(unreadable)
}

/// Up to which key everything is in the figures.
pub(super) fn counted(conn: &Connection) -> Result<i64, StoreError> {
    mark(conn).map(|mark| mark.up_to)
}

/// Reads the window that comes next, of so many rows of each kind at most, or the rest of one that
/// was cut off. The caller holds a snapshot.
fn window(conn: &Connection, rows: usize) -> Result<Window, StoreError> {
    let mark = mark(conn)?;
    let (end, rows) = mark.reach(rows);
    let range = (mark.up_to, end, rows);
    let (sent, buried) = (facts(conn, SENT, range)?, facts(conn, BURIED, range)?);
    Window::of(mark, [sent, buried, facts(conn, ACCEPTED, range)?], rows)
}

/// Rows of a kind with keys in a range, by their keys.
fn facts(
    conn: &Connection,
    sql: &'static str,
    (after, up_to, limit): (i64, i64, usize),
) -> Result<Vec<(i64, Fact)>, StoreError> {
    let mut statement = conn.prepare_cached(sql)?;
    let read = match sql {
        SENT => sent,
        BURIED => dead,
        _ => accepted,
    };
    all(&mut statement.query([after, up_to, bound(limit)])?, |row| Ok((row.get(0)?, read(row)?)))
}

fn sent(row: &Row<'_>) -> Result<Fact, StoreError> {
    Ok(Fact::Sent {
        endpoint: row.get(1)?,
        status: narrow_at(row, 2)?,
        failure: maybe_code::<FailureKind>(row, 3)?,
        took: row.get(4)?,
        number: row.get(5)?,
    })
}

fn dead(row: &Row<'_>) -> Result<Fact, StoreError> {
    Ok(Fact::Dead { endpoint: row.get(1)?, reason: code_at::<DeadReason>(row, 2)? })
}

fn accepted(row: &Row<'_>) -> Result<Fact, StoreError> {
    Ok(Fact::Accepted { app: row.get(1)? })
}

/// Collects what is asked for. The caller holds a snapshot.
fn look(
    conn: &Connection,
    of: Of,
    steps: &Steps,
    collected: &mut Collected,
) -> Result<(), StoreError> {
    let owners = match of {
        Of::All => None,
        Of::Endpoint(endpoint) => Some(vec![endpoint.0]),
        Of::App(app) => Some(owners_of(conn, app)?),
        Of::Org(org) => {
            let sql = "SELECT key FROM app WHERE org = ?1";
            let mut apps = conn.prepare_cached(sql)?;
            let apps: Vec<AppKey> =
                all(&mut apps.query([org.as_bytes()])?, |row| Ok(AppKey(row.get(0)?)))?;
            let owners: Result<Vec<_>, _> =
                apps.into_iter().map(|app| owners_of(conn, app)).collect();
            Some(owners?.concat())
        }
    };
    rolled_up(conn, owners.as_deref(), steps, collected)?;
    tail(conn, owners, steps, collected)
}

/// Whom figures of an application are kept for: itself, and endpoints that it has or had.
fn owners_of(conn: &Connection, app: AppKey) -> Result<Vec<i64>, StoreError> {
    let sql = "SELECT key FROM endpoint INDEXED BY endpoint_list WHERE app = ?1";
    let mut endpoints = conn.prepare_cached(sql)?;
    let mut owners: Vec<i64> = all(&mut endpoints.query([app.0])?, |row| Ok(row.get(0)?))?;
    owners.push(app_owner(app));
    Ok(owners)
}

/// What is rolled up, by minutes and by hours.
fn rolled_up(
    conn: &Connection,
    owners: Option<&[i64]>,
    steps: &Steps,
    collected: &mut Collected,
) -> Result<(), StoreError> {
    let (from, until) = span(conn, steps)?;
    for day in from.div_euclid(DAY)..=(until - 1).div_euclid(DAY) {
        let (low, high) = (from - day * DAY, until - day * DAY);
        for owner in owners.unwrap_or(&[SERVER]) {
            for sql in [MINUTES, HOURS] {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query([day, *owner, low, high])?;
                while let Some(row) = rows.next()? {
                    let at = time_of(day * DAY + row.get::<_, i64>(0)?);
                    let spread = row.get_ref(3)?.as_blob_or_null().map_err(|_| unreadable())?;
                    let figure = tally(row.get(2)?, spread)?;
                    collected.at(steps, at).add(code_at(row, 1)?, &figure);
                }
            }
        }
    }
    Ok(())
}

/// The minutes that are asked for, as far as there may be figures of them.
fn span(conn: &Connection, steps: &Steps) -> Result<(i64, i64), StoreError> {
    // Each end by itself is the first or last row of an index.
    let ends = "SELECT min(first), max(last) FROM
                    (SELECT (SELECT min(day) FROM figure_minute) AS first,
                            (SELECT max(day) FROM figure_minute) AS last
                     UNION ALL
                     SELECT (SELECT min(day) FROM figure_hour), (SELECT max(day) FROM figure_hour))";
    let days = one(&mut conn.prepare_cached(ends)?.query([])?, |row| {
        Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?))
    })?;
    let (first, last) = days.flatten().unwrap_or((0, -1));
    let (from, until) = (minute_at(steps.begin()), minute_at(steps.end()));
    Ok((from.max(first * DAY), until.min((last + 1) * DAY)))
}

/// What is not rolled up yet.
fn tail(
    conn: &Connection,
    owners: Option<Vec<i64>>,
    steps: &Steps,
    collected: &mut Collected,
) -> Result<(), StoreError> {
    let mark = mark(conn)?;
    let owners = owners.map(|mut owners| {
        owners.sort_unstable();
        owners
    });
    let signed = |at| i64::try_from(key_floor(at)).unwrap_or(i64::MAX);
    let after = mark.up_to.max(signed(steps.begin()).saturating_sub(1));
    let range = (after, signed(steps.end()).saturating_sub(1), usize::MAX);
    for sql in [SENT, BURIED, ACCEPTED] {
        for (key, fact) in facts(conn, sql, range)? {
            let (place, what) = fact.place(key);
            let wanted =
                owners.as_ref().is_none_or(|owners| owners.binary_search(&place.owner).is_ok());
            if wanted && !mark.has(key, place) {
                let mut one = Tally::default();
                fact.count(&mut one)?;
                collected.at(steps, time_of(place.minute)).add(what, &one);
            }
        }
    }
    Ok(())
}
