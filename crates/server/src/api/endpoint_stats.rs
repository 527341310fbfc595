//! How the attempts of an endpoint ended, in a window of time.
//!
//! Never: an estimate; each attempt of the window is looked at.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::limits::{STATS_SLACK, STATS_WINDOW_MAX};
use http::StatusCode;
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::inputs::query::Window;
use super::operation::Operation;
use super::own::{self, Names};
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::state::Shared;

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
    let history = &shared.engine.stores().history;
    let counts = history.count_attempts(endpoint.key, from, until).await?;
    let shown = StatsOut {
        success: counts.delivered,
        pending: 0,
        sending: 0,
        fail: counts.failed,
        canceled: 0,
    };
    Ok(Answer::json(StatusCode::OK, &shown).into_response())
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
