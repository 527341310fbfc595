//! Retention of figures, on the writer: minutes become hours, hours go, from the oldest day on.
//!
//! Never: a figure less in the sum, but of hours that are old enough to go.

use std::collections::BTreeMap;

use domain::figures::Tally;
use domain::limits::OPERATION_ROWS_MAX;
use resilience::Timestamp;

use super::roll::HOURS;
use crate::counts::{Rolled, hours_from, minutes_from};
use crate::postgres::conn::all;
use crate::postgres::fault::Fault;
use crate::postgres::rows::{bound, get};
use crate::postgres::tx::Tx;
use crate::stored::figures::{DAY, HOUR, PIECE_ROWS, Place, minute_at, tally};

const TAKE: &str = "DELETE FROM figure_minute WHERE (day, owner, minute, what) IN
     (SELECT day, owner, minute, what FROM figure_minute WHERE day < $1 ORDER BY day, owner, minute, what LIMIT $2)
     RETURNING day, owner, minute, what, count, spread";
const DROP: &str = "DELETE FROM figure_hour WHERE (day, owner, minute, what) IN
     (SELECT day, owner, minute, what FROM figure_hour WHERE day < $1 ORDER BY day, owner, minute, what LIMIT $2)";

impl Tx {
    /// One piece.
    pub(in crate::postgres) async fn thin(&mut self, now: Timestamp) -> Result<Rolled, Fault> {
        let before = minute_at(minutes_from(now)).div_euclid(DAY);
        let taken = all(self.conn(), TAKE, &[&before, &bound(PIECE_ROWS)], |row| {
            let minute = get::<i64>(row, 0)? * DAY + get::<i64>(row, 2)?;
            let place = Place { owner: get(row, 1)?, minute, what: i64::from(get::<i16>(row, 3)?) };
            Ok((place, tally(get(row, 4)?, get::<Option<&[u8]>>(row, 5)?)?))
        })
        .await?;
        let rows = taken.len();
        self.batch.rows += rows;
        let mut hours = BTreeMap::<Place, Tally>::new();
        for (place, figure) in taken {
            let minute = place.minute - place.minute.rem_euclid(HOUR);
            hours.entry(Place { minute, ..place }).or_default().add(&figure);
        }
        if rows > 0 {
            self.add_figures(&HOURS, hours).await?;
            return Ok(Rolled { rows, more: true });
        }
        let before = minute_at(hours_from(now)).div_euclid(DAY);
        let rows = self.write(DROP, &[&before, &bound(OPERATION_ROWS_MAX)]).await?;
        Ok(Rolled { rows, more: rows > 0 })
    }
}
