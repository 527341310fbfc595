//! Rolling up, on the writer: a piece of a window is added to the figures, and the mark moves with
//! it.
//!
//! It is added only if the mark, which is locked, is where the window was read.
//! Never: read what is counted; a reader has.

use std::collections::BTreeMap;

use domain::figures::Tally;
use domain::limits::OPERATION_ROWS_MAX;

use super::{mark, window};
use crate::counts::Rolled;
use crate::postgres::conn::{Params, all};
use crate::postgres::fault::Fault;
use crate::postgres::rows::{bound, get, small};
use crate::postgres::tx::Tx;
use crate::stored::figures::{DAY, Mark, PIECE_ROWS, Place, Window, spread, tally};

/// A table of figures.
pub(super) struct Table {
    read: &'static str,
    write: &'static str,
}

pub(super) const MINUTES: Table = Table {
    read: "SELECT f.day, f.owner, f.minute, f.what, f.count, f.spread
           FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[]) AS p (day, owner, minute, what)
           JOIN figure_minute f USING (day, owner, minute, what)",
    write: "INSERT INTO figure_minute (day, owner, minute, what, count, spread)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bytea[])
            ON CONFLICT (day, owner, minute, what) DO UPDATE SET count = excluded.count, spread = excluded.spread",
};
pub(super) const HOURS: Table = Table {
    read: "SELECT f.day, f.owner, f.minute, f.what, f.count, f.spread
           FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[]) AS p (day, owner, minute, what)
           JOIN figure_hour f USING (day, owner, minute, what)",
    write: "INSERT INTO figure_hour (day, owner, minute, what, count, spread)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bytea[])
            ON CONFLICT (day, owner, minute, what) DO UPDATE SET count = excluded.count, spread = excluded.spread",
};
const LOCK: &str =
    "SELECT up_to, writing, owner, minute, what FROM figure_mark WHERE one = 1 FOR UPDATE";
const MOVE: &str = "UPDATE figure_mark SET up_to = $1, writing = $2, owner = $3, minute = $4, what = $5 WHERE one = 1";
/// Burials that are counted.
const FORGET: &str = "DELETE FROM buried WHERE place IN
     (SELECT place FROM buried WHERE place <= $1 ORDER BY place LIMIT $2)";

/// The columns of places.
struct Columns {
    days: Vec<i64>,
    owners: Vec<i64>,
    minutes: Vec<i64>,
    whats: Vec<i16>,
}

impl Columns {
    fn of(figures: &BTreeMap<Place, Tally>) -> Self {
        Self {
            days: figures.keys().map(|place| place.minute.div_euclid(DAY)).collect(),
            owners: figures.keys().map(|place| place.owner).collect(),
            minutes: figures.keys().map(|place| place.minute.rem_euclid(DAY)).collect(),
            whats: figures.keys().map(|place| small(place.what)).collect(),
        }
    }
}

impl Tx {
    /// Rolls up a few of the rows that are not yet, for whoever cannot go on before they are.
    pub(in crate::postgres) async fn count_some(&mut self) -> Result<(), Fault> {
        let window = window(self.conn(), OPERATION_ROWS_MAX).await?;
        if !window.is_empty() {
            self.roll_up(window).await?;
        }
        Ok(())
    }

    /// Adds a piece of the window; what is left of it goes into the next one.
    pub(in crate::postgres) async fn roll_up(
        &mut self,
        mut window: Window,
    ) -> Result<(Rolled, Option<Window>), Fault> {
        if mark(self.conn(), LOCK).await? != window.mark {
            return Ok((Rolled { rows: 0, more: true }, None));
        }
        let added = window.rest().len().min(PIECE_ROWS);
        let mut figures = BTreeMap::<Place, Tally>::new();
        for (place, figure) in &window.rest()[..added] {
            figures.entry(*place).or_default().add(figure);
            figures.entry(place.of_server()).or_default().add(figure);
        }
        let rows = figures.len();
        self.add_figures(&MINUTES, figures).await?;
        let moved = window.added(added);
        self.move_mark(&moved).await?;
        let room = bound(OPERATION_ROWS_MAX - 2 * PIECE_ROWS);
        let forgotten = self.write(FORGET, &[&moved.up_to, &room]).await?;
        let left = (!window.rest().is_empty()).then_some(window);
        Ok((Rolled { rows: rows + forgotten, more: true }, left))
    }

    /// Adds to figures.
    pub(super) async fn add_figures(
        &mut self,
        table: &Table,
        mut figures: BTreeMap<Place, Tally>,
    ) -> Result<(), Fault> {
        let Columns { days, owners, minutes, whats } = Columns::of(&figures);
        let places: Params<'_> = &[&days, &owners, &minutes, &whats];
        let there = all(self.conn(), table.read, places, |row| {
            let minute = get::<i64>(row, 0)? * DAY + get::<i64>(row, 2)?;
            let place = Place { owner: get(row, 1)?, minute, what: i64::from(get::<i16>(row, 3)?) };
            Ok((place, tally(get(row, 4)?, get::<Option<&[u8]>>(row, 5)?)?))
        });
        for (place, figure) in there.await? {
            figures.entry(place).or_default().add(&figure);
        }
        let counts: Vec<i64> = figures.values().map(|sum| sum.count.cast_signed()).collect();
        let spreads: Vec<_> = figures.values().map(spread).collect();
        let values: Params<'_> = &[&days, &owners, &minutes, &whats, &counts, &spreads];
        self.write(table.write, values).await.map(drop)
    }

    async fn move_mark(&mut self, mark: &Mark) -> Result<(), Fault> {
        let owner = mark.done.map(|done| done.owner);
        let minute = mark.done.map(|done| done.minute);
        let what = mark.done.map(|done| small(done.what));
        let values: Params<'_> = &[&mark.up_to, &mark.writing, &owner, &minute, &what];
        self.write(MOVE, values).await.map(drop)
    }
}
