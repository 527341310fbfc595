//! How the attempts of an endpoint ended, in a window of time.
//!
//! Whole minutes are read from the exact counters, with what is not rolled up yet counted beside;
//! the parts of a minute at both ends of a window, and minutes that are kept as hours by now, are
//! counted attempt by attempt.
//! Never: an estimate.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use domain::classify::Class;
use domain::ids::EndpointKey;
use domain::limits::{FIGURES_MINUTE_DAYS, STATS_SLACK, STATS_WINDOW_MAX};
use http::StatusCode;
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use store::StoreError;
use store::counts::{Of, Steps};
use store::history::AttemptCounts;

use super::inputs::query::Window;
use super::operation::Operation;
use super::own::{self, Names};
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::Shared;

const MINUTE: u64 = 60;
const DAY: u64 = 86_400;

/// Attempts by status. One that is stored has ended, so that three of them are always 0.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EndpointStats")]
struct StatsOut {
    success: u64,
    pending: u64,
    sending: u64,
    fail: u64,
    canceled: u64,
}

pub(super) const READ: Operation =
    Operation::new("v1.endpoint.get-stats", "Counts how its attempts ended, in a window of time.")
        .query::<Window>()
        .gives::<StatsOut>(200)
        .or("invalid_range");

/// `GET /app/{app}/endpoint/{endpoint}/stats`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
    query: Query,
) -> Result<Response, Problem> {
    let (from, until) = window(&query, shared.now())?;
    let endpoint = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    let counts = counted(&shared, endpoint.key, parts(from, until, shared.now())).await?;
    let shown = StatsOut {
        success: counts.delivered,
        pending: 0,
        sending: 0,
        fail: counts.failed,
        canceled: 0,
    };
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
}

/// A part of a window, and where it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Attempt by attempt; without an end up to now.
    Rows(Timestamp, Option<Timestamp>),
    /// From the counters: whole minutes.
    Minutes(Steps),
}

/// The parts of a window, each of as few steps of counters as one answer holds.
fn parts(from: Timestamp, until: Option<Timestamp>, now: Timestamp) -> Vec<Part> {
    let oldest = now.minus(Duration::from_secs(u64::from(FIGURES_MINUTE_DAYS - 1) * DAY));
    let (begin, end) = match until {
        Some(until) => (up(from, MINUTE), down(until, MINUTE)),
        // Nothing is in a minute to come.
        None => (up(from, MINUTE), up(now, MINUTE).plus(Duration::from_secs(MINUTE))),
    };
    if from < oldest || begin >= end {
        return vec![Part::Rows(from, until)];
    }
    let minutes = |from, until, step| {
        let step = Duration::from_secs(step);
        (from < until).then_some(Part::Minutes(Steps { from, until, step }))
    };
    let (first, last) = (up(begin, DAY).min(end), down(end, DAY).max(begin));
    let mut parts = Vec::new();
    parts.extend((from < begin).then_some(Part::Rows(from, Some(begin))));
    parts.extend(minutes(begin, first.min(end), MINUTE));
    parts.extend(minutes(first, last, DAY));
    parts.extend(minutes(last.max(first), end, MINUTE));
    parts.extend(until.filter(|until| end < *until).map(|until| Part::Rows(end, Some(until))));
    parts
}

fn down(at: Timestamp, secs: u64) -> Timestamp {
    let step = i64::try_from(secs).unwrap_or(1) * 1_000_000;
    Timestamp::from_micros(at.as_micros().div_euclid(step) * step)
}

fn up(at: Timestamp, secs: u64) -> Timestamp {
    let begin = down(at, secs);
    if begin < at { begin.plus(Duration::from_secs(secs)) } else { begin }
}

async fn counted(
    shared: &Shared,
    endpoint: EndpointKey,
    parts: Vec<Part>,
) -> Result<AttemptCounts, StoreError> {
    let stores = shared.engine.stores();
    let mut sum = AttemptCounts::default();
    for part in parts {
        match part {
            Part::Rows(from, until) => {
                let found = stores.history.count_attempts(endpoint, from, until).await?;
                sum.delivered += found.delivered;
                sum.failed += found.failed;
            }
            Part::Minutes(steps) => {
                for found in stores.counts.read(Of::Endpoint(endpoint), steps).await? {
                    let delivered = found.figures.sent(Class::Success).count;
                    sum.delivered += delivered;
                    sum.failed += found.figures.sends().count - delivered;
                }
            }
        }
    }
    Ok(sum)
}

/// The window that is asked for: of 28 days at most, by default the last.
fn window(query: &Query, now: Timestamp) -> Result<(Timestamp, Option<Timestamp>), Problem> {
    let (since, until) = (query.time("since")?, query.time("until")?);
    let end = until.unwrap_or(now);
    let begin = since.unwrap_or_else(|| end.minus(STATS_WINDOW_MAX));
    let refuse = |detail: &str| Err(Problem::bad_request("invalid_range", detail));
    if end > now.plus(STATS_SLACK) {
        return refuse("`until` must not be in the future");
    }
    if begin > end {
        return refuse("`since` must not be after `until`");
    }
    if end.since(begin) > STATS_WINDOW_MAX + STATS_SLACK {
        return refuse("`since` must not be more than 28 days before `until`");
    }
    Ok((begin, until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_window_are_all_of_it_and_none_twice() {
        let now = Timestamp::from_secs(1_800_000_000);
        let micros = |micros: i64| Timestamp::from_micros(now.as_micros() + micros);
        let hour = 3_600_000_000;
        for (from, until) in [
            (-28 * 24 * hour, -1),
            (-28 * 24 * hour + 7, -3),
            (-60_000_000, 0),
            (-59_000_000, -1_000_000),
            (-50 * hour, -26 * hour),
            (-25 * hour, -hour - 1),
            (-3 * hour, -3 * hour + 5),
            (-100 * 24 * hour, -99 * 24 * hour),
            (0, 0),
        ] {
            let (from, until) = (micros(from), micros(until));
            let mut at = from;
            for part in parts(from, Some(until), now) {
                at = match part {
                    Part::Rows(begin, end) => {
                        assert_eq!(begin, at);
                        end.unwrap()
                    }
                    Part::Minutes(steps) => {
                        assert_eq!((steps.from, steps.begin(), steps.end()), (at, at, steps.until));
                        let count = steps.until.since(steps.from).as_secs() / steps.step.as_secs();
                        assert!((1..=1_440).contains(&count), "{steps:?}");
                        steps.until
                    }
                };
            }
            assert_eq!(at, until);
        }
        // What runs now is counted as far as it has come.
        let open = parts(micros(-hour), None, now);
        assert!(
            matches!(open[..], [Part::Minutes(Steps { until, .. })] if until > now),
            "{open:?}"
        );
        let old = parts(micros(-100 * 24 * hour), None, now);
        assert_eq!(old, [Part::Rows(micros(-100 * 24 * hour), None)]);
    }

    #[test]
    fn a_window_is_past_and_of_28_days_at_most() {
        // 2027-01-15T08:00:00Z
        let now = Timestamp::from_secs(1_800_000_000);
        let ask = |text: &str| window(&Query::parse(text), now);
        assert_eq!(ask("").unwrap(), (now.minus(STATS_WINDOW_MAX), None));
        for good in [
            "since=2026-12-18T07:56:00Z",
            "since=2026-12-01T00:00:00Z&until=2026-12-29T00:00:00Z",
            "until=2027-01-15T08:04:00Z",
            "since=2027-01-15T08:00:00Z",
        ] {
            assert!(ask(good).is_ok(), "{good}");
        }
        for bad in [
            "since=2026-12-18T07:54:00Z",
            "since=2026-12-01T00:00:00Z&until=2026-12-30T00:00:00Z",
            "until=2027-01-15T08:06:00Z",
            "since=2027-01-02T00:00:00Z&until=2027-01-01T00:00:00Z",
            "since=2027-01-15T09:00:00Z",
        ] {
            let refused = ask(bad).unwrap_err();
            assert_eq!(refused.status().as_u16(), 400, "{bad}");
            assert!(String::from_utf8_lossy(&refused.text()).contains("invalid_range"));
        }
        assert_eq!(ask("since=x").unwrap_err().status().as_u16(), 422);
    }
}
