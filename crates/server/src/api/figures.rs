//! Figures of an endpoint or an application, step by step: how many sends ended how and how long
//! they took, dead letters by reason, messages accepted.
//!
//! Never: count anything; the store has.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use domain::limits::{FIGURES_HOUR_DAYS, FIGURES_STEPS_MAX, STATS_SLACK, STATS_WINDOW_MAX};
use http::StatusCode;
use resilience::Timestamp;
use store::counts::{Of, Steps};

use super::inputs::query::FiguresSpan;
use super::operation::Operation;
use super::own::{self, Names};
use super::views::figures::FiguresOut;
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::http::query::{Query, refuse};
use crate::state::Shared;

/// What is told unless a beginning is named.
const USUAL: Duration = Duration::from_secs(24 * 3_600);
/// The names of steps.
pub(super) const STEPS: [(&str, u64); 3] = [("minute", 60), ("hour", 3_600), ("day", 86_400)];

pub(super) const OF_ENDPOINT: Operation = Operation::new(
    "v1.endpoint.figures",
    "Tells how its attempts ended and how long they took, step by step.",
)
.query::<FiguresSpan>()
.gives::<FiguresOut>(200)
.or("invalid_range");

/// `GET /app/{app}/endpoint/{endpoint}/figures`
pub(super) async fn of_endpoint(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
    query: Query,
) -> Result<Response, Problem> {
    let longest = Duration::from_secs(u64::from(FIGURES_HOUR_DAYS) * 86_400);
    let steps = span(&query, shared.now(), longest)?;
    let endpoint = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    answer(&shared, Of::Endpoint(endpoint.key), steps).await
}

pub(super) const OF_APP: Operation = Operation::new(
    "v1.application.figures",
    "Tells how attempts to all its endpoints ended and how long they took, step by step.",
)
.query::<FiguresSpan>()
.gives::<FiguresOut>(200)
.or("invalid_range");

/// `GET /app/{app}/figures`
pub(super) async fn of_app(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    query: Query,
) -> Result<Response, Problem> {
    let steps = span(&query, shared.now(), STATS_WINDOW_MAX)?;
    let app = own::app(&shared, &caller, &app).await?;
    answer(&shared, Of::App(app.app.key), steps).await
}

async fn answer(shared: &Shared, of: Of, steps: Steps) -> Result<Response, Problem> {
    let found = shared.engine.stores().counts.read(of, steps).await?;
    Ok(Answer::json(StatusCode::OK, &FiguresOut::new(&steps, &found)).into_response())
}

/// The span that is asked for, by default the last day by the hour.
fn span(query: &Query, now: Timestamp, longest: Duration) -> Result<Steps, Problem> {
    let step = query.get("step")?.unwrap_or("hour");
    let step = STEPS.iter().find(|(name, _)| *name == step).map(|(_, secs)| *secs);
    let secs = step.ok_or_else(|| refuse("step", "must be minute, hour or day"))?;
    let step = Duration::from_secs(secs);
    let (since, until) = (query.time("since")?, query.time("until")?);
    let until = until.unwrap_or(now);
    let from = since.unwrap_or_else(|| until.minus(USUAL));
    let refuse = |detail: String| Err(Problem::bad_request("invalid_range", detail));
    if until > now.plus(STATS_SLACK) {
        return refuse("`until` must not be in the future".to_owned());
    }
    if from > until {
        return refuse("`since` must not be after `until`".to_owned());
    }
    if until.since(from) > longest + STATS_SLACK {
        let days = longest.as_secs() / 86_400;
        return refuse(format!("`since` must not be more than {days} days before `until`"));
    }
    if until.since(from).as_secs() / secs >= FIGURES_STEPS_MAX {
        return refuse(format!("The span must be shorter than {FIGURES_STEPS_MAX} steps"));
    }
    Ok(Steps { from, until, step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_past_and_of_a_bounded_number_of_steps() {
        // 2027-01-15T08:00:00Z
        let now = Timestamp::from_secs(1_800_000_000);
        let ask = |text: &str| span(&Query::parse(text), now, STATS_WINDOW_MAX);
        let usual = ask("").unwrap();
        assert_eq!((usual.from, usual.until), (now.minus(USUAL), now));
        assert_eq!(usual.step, Duration::from_secs(3_600));
        for good in [
            "step=minute&since=2027-01-14T08:00:00Z",
            "step=day&since=2026-12-18T08:00:00Z",
            "since=2026-12-18T08:00:00Z",
        ] {
            assert!(ask(good).is_ok(), "{good}");
        }
        for bad in [
            "step=minute&since=2027-01-14T06:00:00Z",
            "step=day&since=2026-12-01T08:00:00Z",
            "until=2027-01-15T08:06:00Z",
            "since=2027-01-02T00:00:00Z&until=2027-01-01T00:00:00Z",
        ] {
            let refused = ask(bad).unwrap_err();
            assert_eq!(refused.status().as_u16(), 400, "{bad}");
            assert!(String::from_utf8_lossy(&refused.text()).contains("invalid_range"));
        }
        let refused = ask("step=week").unwrap_err();
        assert_eq!(refused.status().as_u16(), 422);
        assert!(String::from_utf8_lossy(&refused.text()).contains("step"));
    }
}
