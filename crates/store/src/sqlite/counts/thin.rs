//! Retention of figures, on the writer: minutes become hours, hours go, from the oldest day on.
//!
//! Never: a figure less in the sum, but of hours that are old enough to go.

use domain::limits::{COUNT_TIME_MAX, OPERATION_ROWS_MAX};
use resilience::Timestamp;

use super::roll::HOURS;
use crate::StoreError;
use crate::counts::{Rolled, hours_from, minutes_from};
use crate::sqlite::queue::bound;
use crate::sqlite::rows::all;
use crate::sqlite::stopwatch::started;
use crate::sqlite::tx::Tx;
use crate::stored::fault::unreadable;
use crate::stored::figures::{DAY, HOUR, PIECE_ROWS, Place, minute_at, tally};

const OLDEST: &str = "SELECT day, owner, minute, what, count, spread FROM figure_minute
     WHERE day < ?1 ORDER BY day, owner, minute, what LIMIT ?2";
const REMOVE: &str =
    "DELETE FROM figure_minute WHERE day = ?1 AND owner = ?2 AND minute = ?3 AND what = ?4";
const DROP: &str = "DELETE FROM figure_hour WHERE (day, owner, minute, what) IN
     (SELECT day, owner, minute, what FROM figure_hour WHERE day < ?1
      ORDER BY day, owner, minute, what LIMIT ?2)";

impl Tx<'_> {
    /// One piece.
    pub(in crate::sqlite) fn thin(&mut self, now: Timestamp) -> Result<Rolled, StoreError> {
        let begun = started();
        let before = minute_at(minutes_from(now)).div_euclid(DAY);
        let oldest = all(
            &mut self.conn.prepare_cached(OLDEST)?.query([before, bound(PIECE_ROWS)])?,
            |row| {
                let spread = row.get_ref(5)?.as_blob_or_null().map_err(|_| unreadable())?;
                let minute = row.get::<_, i64>(0)? * DAY + row.get::<_, i64>(2)?;
                let place = Place { owner: row.get(1)?, minute, what: row.get(3)? };
                Ok((place, tally(row.get(4)?, spread)?))
            },
        )?;
        let mut rows = 0;
        for (place, figure) in oldest {
            if rows > 0 && begun.elapsed() >= COUNT_TIME_MAX {
                break;
            }
            let (day, minute) = (place.minute.div_euclid(DAY), place.minute.rem_euclid(DAY));
            rows += self.conn.prepare_cached(REMOVE)?.execute([
                day,
                place.owner,
                minute,
                place.what,
            ])?;
            let hour = Place { minute: place.minute - minute.rem_euclid(HOUR), ..place };
            self.add_figure(&HOURS, hour, &figure)?;
        }
        self.batch.rows += rows;
        if rows > 0 {
            return Ok(Rolled { rows, more: true });
        }
        let before = minute_at(hours_from(now)).div_euclid(DAY);
        let rows = self.conn.prepare_cached(DROP)?.execute([before, bound(OPERATION_ROWS_MAX)])?;
        self.batch.rows += rows;
        Ok(Rolled { rows, more: rows > 0 })
    }
}
