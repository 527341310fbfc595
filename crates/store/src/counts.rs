//! Exact counters: sends by class with their distributions, dead letters by reason, messages
//! accepted; by minute and endpoint, the server as a whole beside it.
//!
//! What is counted are the keys of committed rows: a row counts in the minute that its key was
//! drawn in, which is the minute of its commit. Rows up to a mark are rolled up, in the
//! transaction that moves the mark; what lies beyond is counted when it is read. So figures are
//! equal to a recount at any moment, though nothing is counted where messages are accepted or
//! results recorded, and they outlive the rows that they were counted from.
//! Never: count a row twice or not at all, on whatever way the process ends.

use std::time::Duration;

use domain::figures::Figures;
use domain::ids::{AppKey, EndpointKey, PublicId};
use domain::limits::{FIGURES_HOUR_DAYS, FIGURES_MINUTE_DAYS, FIGURES_STEPS_MAX};
use resilience::Timestamp;

use crate::Reply;

/// A minute, in microseconds.
const MINUTE: i64 = 60 * 1_000_000;
/// A day, in microseconds.
const DAY: i64 = 24 * 60 * MINUTE;

/// Whose figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The server's.
    All,
    /// An organisation's.
    Org(PublicId),
    /// An application's.
    App(AppKey),
    /// An endpoint's; messages are not counted by endpoint.
    Endpoint(EndpointKey),
}

/// A span of time that is divided into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// From the step that it falls into.
    pub from: Timestamp,
    /// Up to the minute before it.
    pub until: Timestamp,
    /// Whole minutes; steps begin at multiples of it since 1970.
    pub step: Duration,
}

/// What was counted in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFigures {
    /// Its beginning.
    pub at: Timestamp,
    /// What was counted.
    pub figures: Figures,
}

/// What one piece of rolling up came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rolled {
    /// Rows of figures that were written or removed.
    pub rows: usize,
    /// Whether there is more to do now.
    pub more: bool,
}

/// Keeps and reads figures.
pub trait Counts: Send + Sync {
    /// Rolls up one piece of what was committed since the last one: at most 500 rows of figures are
    /// written.
    fn roll_up(&self) -> Reply<'static, Rolled>;

    /// One piece of retention as of `now`, from the oldest on, at most 500 rows: minutes of days
    /// that ended [`FIGURES_MINUTE_DAYS`] ago become hours, hours of days that ended
    /// [`FIGURES_HOUR_DAYS`] ago go.
    fn thin(&self, now: Timestamp) -> Reply<'static, Rolled>;

    /// Figures step by step, oldest first; steps in which nothing was counted are left out. Where
    /// minutes have become hours, an hour counts in its first minute. At most
    /// [`FIGURES_STEPS_MAX`] steps, the first ones.
    fn read(&self, of: Of, steps: Steps) -> Reply<'_, Vec<StepFigures>>;

    /// Figures of the server over the last `minutes` whole minutes and the one that runs: what
    /// rules for alerts ask. It reads a few rows a minute and what was committed since the last
    /// piece was rolled up.
    fn recent(&self, now: Timestamp, minutes: u32) -> Reply<'_, Figures>;
}

impl Steps {
    /// By the minute, the last so many whole ones and the one that runs.
    pub fn recent(now: Timestamp, minutes: u32) -> Self {
        let span = Duration::from_secs(60 * u64::from(minutes));
        let step = Duration::from_secs(60);
        Self { from: now.minus(span), until: now.plus(step), step }
    }

    /// The beginning of the first step.
    pub fn begin(&self) -> Timestamp {
        self.step_of(self.from)
    }

    /// The beginning of the step that a time falls into.
    pub fn step_of(&self, at: Timestamp) -> Timestamp {
        let step = i64::try_from(self.step.as_micros()).unwrap_or(DAY).max(MINUTE);
        floor(at, step)
    }

    /// Whether what happened at a time is asked for.
    pub fn has(&self, at: Timestamp) -> bool {
        at >= self.begin() && at < self.end()
    }

    /// The end: the first minute that is not in it.
    pub fn end(&self) -> Timestamp {
        let begin = floor(self.until, MINUTE);
        if begin < self.until { begin.plus(Duration::from_secs(60)) } else { begin }
    }
}

/// The minute that a time falls into.
pub(crate) fn minute_of(at: Timestamp) -> Timestamp {
    floor(at, MINUTE)
}

/// Minutes before this are kept as hours, as of `now`.
pub(crate) fn minutes_from(now: Timestamp) -> Timestamp {
    days_before(now, FIGURES_MINUTE_DAYS)
}

/// Hours before this are gone, as of `now`.
pub(crate) fn hours_from(now: Timestamp) -> Timestamp {
    days_before(now, FIGURES_HOUR_DAYS)
}

/// The beginning of the first day that has not ended so many days before.
fn days_before(now: Timestamp, days: u16) -> Timestamp {
    floor(Timestamp::from_micros(now.as_micros() - i64::from(days) * DAY), DAY)
}

fn floor(at: Timestamp, step: i64) -> Timestamp {
    Timestamp::from_micros(at.as_micros().div_euclid(step) * step)
}

/// Puts what is found together, step by step.
#[derive(Debug, Default)]
pub(crate) struct Collected(std::collections::BTreeMap<Timestamp, Figures>);

impl Collected {
    /// The figures of the step that `at` falls into.
    pub(crate) fn at(&mut self, steps: &Steps, at: Timestamp) -> &mut Figures {
        self.0.entry(steps.step_of(at)).or_default()
    }

    /// All of it together.
    pub(crate) fn sum(self) -> Figures {
        let mut sum = Figures::default();
        self.0.values().for_each(|figures| sum.add_all(figures));
        sum
    }

    /// The steps, as far as they are answered.
    pub(crate) fn done(self) -> Vec<StepFigures> {
        let most = usize::try_from(FIGURES_STEPS_MAX).unwrap_or(usize::MAX);
        let steps = self.0.into_iter().map(|(at, figures)| StepFigures { at, figures });
        steps.take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(i64::try_from(secs).unwrap())
    }

    #[test]
    fn a_span_begins_with_a_step_and_ends_with_a_minute() {
        let steps = Steps { from: at(7_300), until: at(10_801), step: Duration::from_secs(3_600) };
        assert_eq!((steps.begin(), steps.end()), (at(7_200), at(10_860)));
        assert_eq!(steps.step_of(at(10_799)), at(7_200));
        let steps = Steps { until: at(10_800), ..steps };
        assert_eq!(steps.end(), at(10_800));
        let recent = Steps::recent(at(10_830), 5);
        assert_eq!((recent.begin(), recent.end()), (at(10_500), at(10_920)));
    }

    #[test]
    fn days_are_kept_whole() {
        let day = 24 * 3_600;
        let now = at(1_000 * day + 5);
        assert_eq!(minutes_from(now), at(910 * day));
        assert_eq!(hours_from(now), at(270 * day));
    }
}
