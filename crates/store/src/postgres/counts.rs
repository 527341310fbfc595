//! Figures, in PostgreSQL: what is rolled up from its rows, what is not yet from the tables, both
//! in one statement.
//!
//! A reader reads the rows of a window and adds them up; the writer adds a piece of what they come
//! to.
//! Never: read rows of messages or results on the writer.

mod roll;
mod thin;

use std::sync::{Arc, PoisonError};

use domain::attempt::FailureKind;
use domain::dead_letter::DeadReason;
use domain::figures::{Counted, Figures, Tally};
use domain::ids::{AppKey, key_floor};
use resilience::Timestamp;
use tokio_postgres::Row;

use super::PostgresStore;
use super::conn::{Conn, Params, all};
use super::fault::Fault;
use super::rows::{bound, code_at, get, maybe_code, narrow_at, status_at};
use crate::counts::{Collected, Counts, Of, Rolled, StepFigures, Steps};
use crate::stored::fault::unreadable;
use crate::stored::figures::{
    DAY, Fact, Mark, Place, SERVER, WINDOW_ROWS, Window, app_owner, minute_at, tally, time_of,
};
use crate::{Reply, StoreError};

const MARK: &str = "SELECT up_to, writing, owner, minute, what FROM figure_mark WHERE one = 1";
/// Rows of all kinds, each with its number first, as they are seen at one moment. Where several
/// nodes write, none beyond the key below which each of them commits nothing more; but the rest of
/// a window that was begun (`$4`).
const WINDOW: &str = "
    WITH reach AS (SELECT CASE WHEN $4 OR count(*) < 2 THEN $2 ELSE min(coalesce(floor.key, 0)) END AS key
                   FROM node LEFT JOIN floor ON floor.node = node.id)
    (SELECT 1::smallint, key, endpoint, status, took, n, failure FROM attempt
     WHERE key > $1 AND key <= (SELECT key FROM reach) ORDER BY key LIMIT $3)
    UNION ALL
    (SELECT 2::smallint, place, endpoint, reason, 0, 0, NULL FROM buried
     WHERE place > $1 AND place <= (SELECT key FROM reach) ORDER BY place LIMIT $3)
    UNION ALL
    (SELECT 3::smallint, key, app, 0::smallint, 0, 0, NULL FROM message
     WHERE key > $1 AND key <= (SELECT key FROM reach) ORDER BY key LIMIT $3)";
/// The same beyond the mark, with the mark itself as 0 and what is rolled up as 4.
const READ: &str = "
    SELECT 0::smallint, up_to, owner, what, writing, minute, NULL::smallint, NULL::bytea
    FROM figure_mark WHERE one = 1
    UNION ALL
    SELECT 1::smallint, key, endpoint, status, took, n, failure, NULL FROM attempt
    WHERE key > greatest((SELECT up_to FROM figure_mark WHERE one = 1), $1) AND key < $2
        AND ($3::bigint[] IS NULL OR endpoint = ANY($3))
    UNION ALL
    SELECT 2::smallint, place, endpoint, reason, 0, 0, NULL, NULL FROM buried
    WHERE place > greatest((SELECT up_to FROM figure_mark WHERE one = 1), $1) AND place < $2
        AND ($3::bigint[] IS NULL OR endpoint = ANY($3))
    UNION ALL
    SELECT 3::smallint, key, app, 0::smallint, 0, 0, NULL, NULL FROM message
    WHERE key > greatest((SELECT up_to FROM figure_mark WHERE one = 1), $1) AND key < $2
        AND ($3::bigint[] IS NULL OR -app = ANY($3))
    UNION ALL
    SELECT 4::smallint, f.day * 1440 + f.minute, f.owner, f.what, f.count, 0, NULL, f.spread
    FROM (SELECT coalesce(least((SELECT min(day) FROM figure_minute), (SELECT min(day) FROM figure_hour)), 1) AS first,
                 coalesce(greatest((SELECT max(day) FROM figure_minute), (SELECT max(day) FROM figure_hour)), 0) AS last)
             AS held
        CROSS JOIN LATERAL generate_series(greatest(held.first, $4::bigint), least(held.last, $5::bigint)) AS days (day)
        CROSS JOIN unnest($6::bigint[]) AS owners (owner)
        CROSS JOIN LATERAL (
            SELECT * FROM figure_minute WHERE figure_minute.day = days.day AND figure_minute.owner = owners.owner
            UNION ALL
            SELECT * FROM figure_hour WHERE figure_hour.day = days.day AND figure_hour.owner = owners.owner) AS f
    WHERE f.day * 1440 + f.minute >= $7 AND f.day * 1440 + f.minute < $8";
const OWNERS_OF_APP: &str = "SELECT key FROM endpoint WHERE app = $1";
const OWNERS_OF_ORG: &str =
    "SELECT endpoint.key FROM app JOIN endpoint ON endpoint.app = app.key WHERE app.org = $1
     UNION ALL SELECT -key FROM app WHERE org = $1";

impl Counts for PostgresStore {
    fn roll_up(&self) -> Reply<'static, Rolled> {
        let (rolling, shared) = (Arc::clone(&self.rolling), Arc::clone(&self.shared));
        let begun = rolling.lock().unwrap_or_else(PoisonError::into_inner).take();
        let read = self.read(|conn| async move { window(&conn, WINDOW_ROWS).await });
        Box::pin(async move {
            let window = match begun {
                Some(window) => window,
                None => read.await?,
            };
            if window.is_empty() {
                return Ok(Rolled::default());
            }
            let change = shared.door.change(move |tx| Box::pin(tx.roll_up(window)));
            let (rolled, left) = change.await?;
            *rolling.lock().unwrap_or_else(PoisonError::into_inner) = left;
            Ok(rolled)
        })
    }

    fn thin(&self, now: Timestamp) -> Reply<'static, Rolled> {
        self.shared.door.change(move |tx| Box::pin(tx.thin(now)))
    }

    fn read(&self, of: Of, steps: Steps) -> Reply<'_, Vec<StepFigures>> {
        self.read(move |conn| async move { Ok(look(&conn, of, &steps).await?.done()) })
    }

    fn recent(&self, now: Timestamp, minutes: u32) -> Reply<'_, Figures> {
        let steps = Steps::recent(now, minutes);
        self.read(move |conn| async move { Ok(look(&conn, Of::All, &steps).await?.sum()) })
    }
}

/// Reads the window that comes next, of so many rows of each kind at most, or the rest of one that
/// was cut off.
///
/// Keys that one node draws are in the order of its commits: where no other node is seen, none can
/// appear any more below the newest row that is seen, for one that joins draws beyond what it sees.
/// Where there are others, each says below which key it commits nothing more.
async fn window(conn: &Conn, rows: usize) -> Result<Window, Fault> {
    let mark = mark(conn, MARK).await?;
    let (end, rows) = mark.reach(rows);
    let mut kinds: [Vec<(i64, Fact)>; 3] = Default::default();
    let limit = bound(rows);
    let is_begun = mark.writing > mark.up_to;
    let range: Params<'_> = &[&mark.up_to, &end, &limit, &is_begun];
    let found =
        all(conn, WINDOW, range, |row| Ok((get::<i16>(row, 0)?, get::<i64>(row, 1)?, fact(row)?)));
    for (kind, key, fact) in found.await? {
        let kind = usize::try_from(kind - 1).ok().and_then(|kind| kinds.get_mut(kind));
        kind.ok_or_else(unreadable)?.push((key, fact));
    }
    Ok(Window::of(mark, kinds, rows)?)
}

/// How far rolling up has come.
async fn mark(conn: &Conn, sql: &str) -> Result<Mark, Fault> {
    let found = all(conn, sql, &[], |row| {
        let done = place(get(row, 2)?, get(row, 3)?, get(row, 4)?);
        Ok(Mark { up_to: get(row, 0)?, writing: get(row, 1)?, done })
    });
    Ok(found.await?.pop().ok_or_else(unreadable)?)
}

fn place(owner: Option<i64>, minute: Option<i64>, what: Option<i16>) -> Option<Place> {
    Some(Place { owner: owner?, minute: minute?, what: i64::from(what?) })
}

/// A row that is counted, by its kind.
fn fact(row: &Row) -> Result<Fact, StoreError> {
    match get::<i16>(row, 0)? {
        1 => Ok(Fact::Sent {
            endpoint: get(row, 2)?,
            status: status_at(row, 3)?,
            failure: maybe_code::<FailureKind>(row, 6)?,
            took: get(row, 4)?,
            number: narrow_at(row, 5)?,
        }),
        2 => Ok(Fact::Dead { endpoint: get(row, 2)?, reason: code_at::<DeadReason>(row, 3)? }),
        _ => Ok(Fact::Accepted { app: get(row, 2)? }),
    }
}

/// A row of [`READ`].
enum Seen {
    Mark(Mark),
    Fact(i64, Fact),
    Figure(i64, Counted, Box<Tally>),
}

fn seen(row: &Row) -> Result<Seen, StoreError> {
    Ok(match get::<i16>(row, 0)? {
        0 => {
            let done = place(get(row, 2)?, get(row, 5)?, get(row, 3)?);
            Seen::Mark(Mark { up_to: get(row, 1)?, writing: get(row, 4)?, done })
        }
        4 => {
            let figure = tally(get(row, 4)?, get::<Option<&[u8]>>(row, 7)?)?;
            Seen::Figure(get(row, 1)?, code_at(row, 3)?, Box::new(figure))
        }
        _ => Seen::Fact(get(row, 1)?, fact(row)?),
    })
}

/// Collects what is asked for.
async fn look(conn: &Conn, of: Of, steps: &Steps) -> Result<Collected, Fault> {
    let owners = owners_of(conn, of).await?;
    let signed = |at| i64::try_from(key_floor(at)).unwrap_or(i64::MAX);
    let keys = (signed(steps.begin()).saturating_sub(1), signed(steps.end()));
    let (from, until) = (minute_at(steps.begin()), minute_at(steps.end()));
    let days = (from.div_euclid(DAY), (until - 1).div_euclid(DAY));
    let rolled_up = owners.clone().unwrap_or_else(|| vec![SERVER]);
    let values: Params<'_> =
        &[&keys.0, &keys.1, &owners, &days.0, &days.1, &rolled_up, &from, &until];
    let rows = all(conn, READ, values, seen).await?;
    let mark = rows.iter().find_map(|row| match row {
        Seen::Mark(mark) => Some(*mark),
        _ => None,
    });
    let mark = mark.ok_or_else(unreadable)?;
    let mut collected = Collected::default();
    for row in rows {
        match row {
            Seen::Mark(_) => {}
            Seen::Figure(minute, what, figure) => {
                collected.at(steps, time_of(minute)).add(what, &figure);
            }
            Seen::Fact(key, fact) => {
                let (place, what) = fact.place(key);
                if !mark.has(key, place) {
                    let mut one = Tally::default();
                    fact.count(&mut one)?;
                    collected.at(steps, time_of(place.minute)).add(what, &one);
                }
            }
        }
    }
    Ok(collected)
}

/// Whose figures are asked for; `None` for all.
async fn owners_of(conn: &Conn, of: Of) -> Result<Option<Vec<i64>>, Fault> {
    let key = |row: &Row| get::<i64>(row, 0);
    match of {
        Of::All => Ok(None),
        Of::Endpoint(endpoint) => Ok(Some(vec![endpoint.0])),
        Of::App(AppKey(app)) => {
            let mut owners = all(conn, OWNERS_OF_APP, &[&app], key).await?;
            owners.push(app_owner(AppKey(app)));
            Ok(Some(owners))
        }
        Of::Org(org) => Ok(Some(all(conn, OWNERS_OF_ORG, &[&&org.as_bytes()[..]], key).await?)),
    }
}
