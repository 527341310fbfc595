//! Rolling up, on the writer: a piece of a window is added to the figures, and the mark moves with
//! it.
//!
//! A piece ends after some rows or 2 ms of writing. It is added only if the mark is where the
//! window was read.
//! Never: read what is counted; a reader has.

use std::collections::BTreeMap;

use domain::figures::Tally;
use domain::limits::{COUNT_TIME_MAX, OPERATION_ROWS_MAX};
use rusqlite::params;

use super::{mark, window};
use crate::StoreError;
use crate::counts::Rolled;
use crate::sqlite::queue::bound;
use crate::sqlite::rows::one;
use crate::sqlite::stopwatch::started;
use crate::sqlite::tx::Tx;
use crate::stored::fault::unreadable;
use crate::stored::figures::{DAY, Mark, PIECE_ROWS, Place, Window, spread, tally};

/// A table of figures.
pub(super) struct Table {
    read: &'static str,
    write: &'static str,
}

pub(super) const MINUTES: Table = Table {
    read: "SELECT count, spread FROM figure_minute
           WHERE day = ?1 AND owner = ?2 AND minute = ?3 AND what = ?4",
    write: "INSERT OR REPLACE INTO figure_minute (day, owner, minute, what, count, spread)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
};
pub(super) const HOURS: Table = Table {
    read: "SELECT count, spread FROM figure_hour
           WHERE day = ?1 AND owner = ?2 AND minute = ?3 AND what = ?4",
    write: "INSERT OR REPLACE INTO figure_hour (day, owner, minute, what, count, spread)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
};
const MOVE: &str = "UPDATE figure_mark SET up_to = ?1, writing = ?2, owner = ?3, minute = ?4, what = ?5 WHERE one = 1";
/// Burials that are counted.
const FORGET: &str = "DELETE FROM buried WHERE place IN
     (SELECT place FROM buried WHERE place <= ?1 ORDER BY place LIMIT ?2)";

impl Tx<'_> {
    /// Rolls up a few of the rows that are not yet, for whoever cannot go on before they are.
    pub(in crate::sqlite) fn count_some(&mut self) -> Result<(), StoreError> {
        let window = window(self.conn, OPERATION_ROWS_MAX)?;
        if window.is_empty() { Ok(()) } else { self.roll_up(window).map(drop) }
    }

    /// Adds a piece of the window; what is left of it goes into the next one.
    pub(in crate::sqlite) fn roll_up(
        &mut self,
        mut window: Window,
    ) -> Result<(Rolled, Option<Window>), StoreError> {
        if mark(self.conn)? != window.mark {
            return Ok((Rolled { rows: 0, more: true }, None));
        }
        let (begun, mut added) = (started(), 0);
        let mut server = BTreeMap::<Place, Tally>::new();
        for (place, figure) in window.rest() {
            if added == PIECE_ROWS || (added > 0 && begun.elapsed() >= COUNT_TIME_MAX) {
                break;
            }
            self.add_figure(&MINUTES, *place, figure)?;
            server.entry(place.of_server()).or_default().add(figure);
            added += 1;
        }
        for (place, figure) in &server {
            self.add_figure(&MINUTES, *place, figure)?;
        }
        let moved = window.added(added);
        self.move_mark(&moved)?;
        let rows = added + server.len();
        let left = (!window.rest().is_empty()).then_some(window);
        // Those of a window that is not whole are read again after a crash.
        let forgotten = self.forget_buried(moved.up_to)?;
        Ok((Rolled { rows: rows + forgotten, more: true }, left))
    }

    /// Adds to one figure.
    pub(super) fn add_figure(
        &mut self,
        table: &Table,
        place: Place,
        figure: &Tally,
    ) -> Result<(), StoreError> {
        let (day, minute) = (place.minute.div_euclid(DAY), place.minute.rem_euclid(DAY));
        let mut sum = one(
            &mut self.conn.prepare_cached(table.read)?.query([
                day,
                place.owner,
                minute,
                place.what,
            ])?,
            |row| {
                let spread = row.get_ref(1)?.as_blob_or_null().map_err(|_| unreadable())?;
                tally(row.get(0)?, spread)
            },
        )?
        .unwrap_or_default();
        sum.add(figure);
        let values =
            params![day, place.owner, minute, place.what, sum.count.cast_signed(), spread(&sum)];
        self.batch.rows += self.conn.prepare_cached(table.write)?.execute(values)?;
        Ok(())
    }

    fn move_mark(&mut self, mark: &Mark) -> Result<(), StoreError> {
        let (owner, minute, what) = (
            mark.done.map(|done| done.owner),
            mark.done.map(|done| done.minute),
            mark.done.map(|done| done.what),
        );
        let values = params![mark.up_to, mark.writing, owner, minute, what];
        self.batch.rows += self.conn.prepare_cached(MOVE)?.execute(values)?;
        Ok(())
    }

    fn forget_buried(&mut self, up_to: i64) -> Result<usize, StoreError> {
        let values = [up_to, bound(OPERATION_ROWS_MAX - 2 * PIECE_ROWS)];
        let gone = self.conn.prepare_cached(FORGET)?.execute(values)?;
        self.batch.rows += gone;
        Ok(gone)
    }
}
