//! Figures as they are kept: rows by owner, minute and what was counted; and the window of
//! committed rows that is being rolled up, with the mark that says how far that has come.
//!
//! A window is a range of keys whose rows cannot change any more. Its figures are added in order of
//! their places, a few in each batch; the mark that is written with them says which are in, so that
//! a window which a crash cut off is read again, gives the very same figures, and goes on behind
//! the mark.
//! Never: SQL; or a figure that is added twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::attempt::FailureKind;
use domain::classify::usual_class;
use domain::dead_letter::DeadReason;
use domain::figures::{Counted, NUMBER_BUCKETS, TOOK_BUCKETS, Tally};
use domain::ids::{AppKey, key_time};
use resilience::Timestamp;

use super::codes::Code as _;
use super::fault::unreadable;
use super::numbers::{narrow, span};
use super::pack::{Packer, Unpacker};
use crate::StoreError;

/// Rows of each kind in one window.
pub(crate) const WINDOW_ROWS: usize = 16_384;
/// Rows of figures that are added in one piece; each may add to one more, of the server.
pub(crate) const PIECE_ROWS: usize = 240;
/// Minutes of a day, and of an hour.
pub(crate) const DAY: i64 = 24 * 60;
pub(crate) const HOUR: i64 = 60;
/// Whoever all figures are of.
pub(crate) const SERVER: i64 = 0;

const MINUTE_MICROS: i64 = 60 * 1_000_000;

/// The owner that messages of an application are counted for.
pub(crate) const fn app_owner(app: AppKey) -> i64 {
    -app.0
}

/// The minute since 1970 that a time falls into.
pub(crate) const fn minute_at(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(MINUTE_MICROS)
}

/// The beginning of a minute since 1970.
pub(crate) const fn time_of(minute: i64) -> Timestamp {
    Timestamp::from_micros(minute.saturating_mul(MINUTE_MICROS))
}

/// Where a figure stands. The order is that in which a window is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// An endpoint's key, an application's with its sign changed, or [`SERVER`].
    pub(crate) owner: i64,
    /// Minutes since 1970.
    pub(crate) minute: i64,
    /// The code of what was counted.
    pub(crate) what: i64,
}

impl Place {
    /// The same of the server.
    pub(crate) const fn of_server(self) -> Self {
        Self { owner: SERVER, ..self }
    }
}

/// How far rolling up has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Every row up to this key is in the figures.
    pub(crate) up_to: i64,
    /// The last key of the window that is being written; `up_to` when there is none.
    pub(crate) writing: i64,
    /// The last place of that window whose figure is in.
    pub(crate) done: Option<Place>,
}

impl Mark {
    /// Up to which key the next window is read, and at most how many rows of each kind.
    pub(crate) fn reach(&self, rows: usize) -> (i64, usize) {
        // One that was cut off is read whole, however many rows were read at once then.
        if self.writing > self.up_to { (self.writing, WINDOW_ROWS + 1) } else { (i64::MAX, rows) }
    }

    /// Whether the figure at `place` that a row with this key counts in has it already.
    pub(crate) fn has(&self, key: i64, place: Place) -> bool {
        key <= self.up_to || (key <= self.writing && self.done.is_some_and(|done| place <= done))
    }
}

/// A row that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Sent { endpoint: i64, status: u16, failure: Option<FailureKind>, took: i64, number: i64 },
    Dead { endpoint: i64, reason: DeadReason },
    Accepted { app: i64 },
}

impl Fact {
    /// Where it counts, and as what.
    pub(crate) fn place(&self, key: i64) -> (Place, Counted) {
        let (owner, what) = match *self {
            Self::Sent { endpoint, status, failure, .. } => {
                (endpoint, Counted::Sent(usual_class(status, failure)))
            }
            Self::Dead { endpoint, reason } => (endpoint, Counted::Dead(reason)),
            Self::Accepted { app } => (app_owner(AppKey(app)), Counted::Accepted),
        };
        let minute = minute_at(key_time(key.cast_unsigned()));
        (Place { owner, minute, what: what.code() }, what)
    }

    /// Counts it.
    pub(crate) fn count(&self, tally: &mut Tally) -> Result<(), StoreError> {
        match *self {
            Self::Sent { took, number, .. } => tally.send(span(took), narrow(number)?),
            Self::Dead { .. } | Self::Accepted { .. } => tally.add(&Tally::one()),
        }
        Ok(())
    }
}

/// A range of committed rows, and the figures that they come to.
#[derive(Debug)]
pub(crate) struct Window {
    /// The mark as the next piece must find it.
    pub(crate) mark: Mark,
    /// The last key of the window.
    end: i64,
    figures: Vec<(Place, Tally)>,
    next: usize,
}

/// The window that is being rolled up, between two pieces.
pub(crate) type Rolling = Arc<Mutex<Option<Window>>>;

impl Window {
    /// What a range of rows comes to: those with keys beyond `mark.up_to`, at most `limit` of each
    /// kind, each kind in order of its keys. A window that was cut off is the range up to
    /// `mark.writing`; a new one ends where the first kind of which there may be more does.
    pub(crate) fn of(
        mark: Mark,
        kinds: [Vec<(i64, Fact)>; 3],
        limit: usize,
    ) -> Result<Self, StoreError> {
        let cut_off = mark.writing > mark.up_to;
        let last = |rows: &Vec<(i64, Fact)>| rows.last().map_or(mark.up_to, |(key, _)| *key);
        let ends = kinds.iter().filter(|rows| rows.len() >= limit).map(last).min();
        let newest = || kinds.iter().map(last).max().unwrap_or(mark.up_to);
        let writing = if cut_off { mark.writing } else { ends.unwrap_or_else(newest) };
        let mut figures = BTreeMap::<Place, Tally>::new();
        for (key, fact) in kinds.into_iter().flatten().filter(|(key, _)| *key <= writing) {
            let (place, _) = fact.place(key);
            fact.count(figures.entry(place).or_default())?;
        }
        let figures: Vec<_> = figures.into_iter().collect();
        let next = mark.done.map_or(0, |done| figures.partition_point(|(at, _)| *at <= done));
        Ok(Self { mark, end: writing, figures, next })
    }

    /// Whether there is nothing in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.end == self.mark.up_to
    }

    /// The next figures to add, in order; a piece may stop anywhere.
    pub(crate) fn rest(&self) -> &[(Place, Tally)] {
        &self.figures[self.next..]
    }

    /// So many of the rest were added: the mark to write with them.
    pub(crate) fn added(&mut self, figures: usize) -> Mark {
        self.next += figures;
        let last = self.next.checked_sub(1).and_then(|last| self.figures.get(last));
        self.mark = if self.next == self.figures.len() {
            Mark { up_to: self.end, writing: self.end, done: None }
        } else {
            let done = last.map(|(place, _)| *place);
            Mark { up_to: self.mark.up_to, writing: self.end, done }
        };
        self.mark
    }
}

/// The distributions of a figure; `None` for one that is not of sends.
pub(crate) fn spread(tally: &Tally) -> Option<Vec<u8>> {
    if tally.took.iter().all(|count| *count == 0) {
        return None;
    }
    let mut packer = Packer::default();
    for counts in [&tally.took[..], &tally.numbers[..]] {
        let filled: Vec<(u64, u64)> =
            (0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect();
        packer.list(&filled, |packer, (bucket, count)| {
            packer.number(*bucket).number(*count);
        });
    }
    Some(packer.done())
}

/// Reads a figure.
pub(crate) fn tally(count: i64, spread: Option<&[u8]>) -> Result<Tally, StoreError> {
    let mut tally = Tally { count: count.cast_unsigned(), ..Tally::default() };
    let Some(bytes) = spread else { return Ok(tally) };
    let mut packed = Unpacker::new(bytes);
    fill(&mut packed, &mut tally.took)?;
    fill(&mut packed, &mut tally.numbers)?;
    Ok(tally)
}

fn fill(packed: &mut Unpacker<'_>, counts: &mut [u64]) -> Result<(), StoreError> {
    let filled = packed.list(|packed| Ok((packed.small::<usize>()?, packed.number()?)))?;
    for (bucket, count) in filled {
        *counts.get_mut(bucket).ok_or_else(unreadable)? = count;
    }
    Ok(())
}

const _: () = assert!(TOOK_BUCKETS < 128 && NUMBER_BUCKETS < 128, "a bucket is packed in a byte");

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::ids::key_floor;

    use super::*;

    const BEGIN: Timestamp = Timestamp::from_secs(1_790_000_000);

    /// Keys of a row a second.
    fn key(number: u64) -> i64 {
        key_floor(BEGIN.plus(Duration::from_secs(number))).cast_signed()
    }

    fn sent(endpoint: i64, number: u64) -> (i64, Fact) {
        let fact = Fact::Sent { endpoint, status: 200, failure: None, took: 900, number: 1 };
        (key(number), fact)
    }

    fn dead(endpoint: i64, number: u64) -> (i64, Fact) {
        (key(number), Fact::Dead { endpoint, reason: DeadReason::Gone })
    }

    #[test]
    fn a_window_that_was_cut_off_goes_on_behind_the_mark_with_the_same_figures() {
        let to = |number: u64| i64::try_from(number % 7).unwrap();
        let sends: Vec<_> = (1..400).map(|number| sent(to(number), number)).collect();
        let letters = vec![dead(3, 500)];
        let whole =
            Window::of(Mark::default(), [sends.clone(), letters.clone(), vec![]], 9_999).unwrap();
        assert_eq!((whole.mark, whole.end), (Mark::default(), key(500)), "all that there is");
        for cut in 1..whole.rest().len() {
            let mut first =
                Window::of(Mark::default(), [sends.clone(), letters.clone(), vec![]], 9_999);
            let mark = first.as_mut().unwrap().added(cut);
            assert_eq!((mark.up_to, mark.writing), (0, key(500)));
            // Meanwhile there is more.
            let more =
                [sends.clone(), letters.clone(), vec![(key(600), Fact::Accepted { app: 1 })]];
            let mut again = Window::of(mark, more, 9_999).unwrap();
            assert_eq!(again.rest(), &whole.rest()[cut..]);
            let rest = again.rest().len();
            let done = again.added(rest);
            assert_eq!(done, Mark { up_to: key(500), writing: key(500), done: None });
        }
    }

    #[test]
    fn a_window_ends_where_there_may_be_more_of_a_kind() {
        let many: Vec<_> = (1..101).map(|number| sent(1, number)).collect();
        let last = many.last().unwrap().0;
        let window =
            Window::of(Mark::default(), [many, vec![dead(1, 1_000_000)], vec![]], 100).unwrap();
        assert_eq!(window.end, last);
        assert!(window.rest().iter().all(|(place, _)| place.what == 1), "the letter is beyond");
        let nothing =
            Window::of(Mark { up_to: 5, writing: 5, done: None }, Default::default(), 100);
        assert!(nothing.unwrap().is_empty());
    }

    #[test]
    fn a_mark_tells_what_is_in() {
        let place = |owner| Place { owner, minute: 1, what: 1 };
        let mark = Mark { up_to: 10, writing: 20, done: Some(place(5)) };
        assert!(mark.has(10, place(9)) && mark.has(20, place(5)) && mark.has(15, place(-1)));
        assert!(!mark.has(20, place(6)) && !mark.has(21, place(1)));
    }

    #[test]
    fn a_figure_comes_out_as_it_went_in() {
        let mut figure = Tally::default();
        for number in 1..=1_000 {
            figure.send(Duration::from_millis(u64::from(number) * 40), number % 30 + 1);
        }
        let packed = spread(&figure).unwrap();
        assert_eq!(tally(1_000, Some(&packed)), Ok(figure));
        assert_eq!((spread(&Tally::one()), tally(1, None)), (None, Ok(Tally::one())));
        assert!(tally(1, Some(&[1, 99, 1, 0])).is_err(), "there is no such bucket");
    }
}
