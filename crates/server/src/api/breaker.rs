//! The breaker of an endpoint: where it stands, and forcing it.
//!
//! Never: decide whether it opens; the engine does.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::error::Invalid;
use domain::ids::EndpointKey;
use domain::limits::WAITING_COUNTED_MAX;
use engine::{BreakerView, ByHand, Held};
use http::StatusCode;
use resilience::Forced;
use schemars::JsonSchema;
use serde::Serialize;

use super::inputs::endpoint::BreakerIn;
use super::once::once;
use super::operation::Operation;
use super::own::{self, Names};
use super::shapes::{RunId, Time};
use super::views::dead_letter::run_id;
use super::views::{time, time_or_none};
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, text};
use crate::http::idempotency::{Answer, Done, Made};
use crate::http::problem::Problem;
use crate::spelling::one_of;
use crate::state::Shared;

/// Where a breaker stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BreakerOut {
    #[schemars(extend("enum" = ["closed", "open", "halfOpen", "suspended"]))]
    state: &'static str,
    #[schemars(with = "Time")]
    since: String,
    /// When the next probe is let through.
    #[schemars(with = "Option<Time>")]
    open_until: Option<String>,
    consecutive_failures: u32,
    forced: bool,
    /// What else keeps deliveries back.
    hold: Option<HoldOut>,
    /// Counted up to 100,000.
    waiting: u64,
    #[schemars(with = "Time")]
    as_of: String,
}

/// What keeps everything but a probe back beside the breaker.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HoldOut {
    #[schemars(extend("enum" = ["refusals", "retry_after", "head", "gap"]))]
    reason: &'static str,
    /// Null where somebody has to end it.
    #[schemars(with = "Option<Time>")]
    until: Option<String>,
    /// Of refusals: which run, to find its dead letters by.
    #[schemars(with = "RunId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
}

impl HoldOut {
    fn new(endpoint: EndpointKey, held: Held) -> Self {
        Self {
            reason: held.by.name(),
            until: held.until.and_then(time_or_none),
            run_id: held.run.map(|since| run_id(endpoint, since)),
        }
    }
}

pub(super) const READ: Operation =
    Operation::new("v1.endpoint.get-breaker", "Shows the circuit breaker and how much waits.")
        .gives::<BreakerOut>(200);

/// `GET …/breaker`
pub(super) async fn read(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
) -> Result<Response, Problem> {
    let found = own::endpoint(&shared, &caller, (&app, &endpoint)).await?;
    Ok(Answer::json(StatusCode::OK, &shown(&shared, found.key).await?).into_response())
}

pub(super) const FORCE: Operation = Operation::new(
    "v1.endpoint.force-breaker",
    "Forces the circuit breaker, gives it back to itself, or suspends the endpoint.",
)
.takes::<BreakerIn>()
.once()
.gives::<BreakerOut>(200);

/// `POST …/breaker`: what is forced holds until `auto`, a suspension until a probe is delivered.
pub(super) async fn force(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, endpoint)): Place<Names>,
    received: Received,
) -> Result<Response, Problem> {
    let mut fields = Fields::parse(&received.body)?;
    let order = fields.firm("state", None, None, |name, value| match &*text(name, value)? {
        "open" => Ok(ByHand::Forced(Some(Forced::Open))),
        "closed" => Ok(ByHand::Forced(Some(Forced::Closed))),
        "auto" => Ok(ByHand::Forced(None)),
        "suspended" => Ok(ByHand::Suspended),
        _ => Err(Invalid::new(name, one_of(&["open", "closed", "auto", "suspended"]))),
    });
    fields.finish()?;
    // Without a fault above there is one.
    let order = order.unwrap_or(ByHand::Forced(None));
    if order == ByHand::Suspended {
        caller.org_only()?;
    }
    let key = own::endpoint(&shared, &caller, (&app, &endpoint)).await?.key;
    let peyk = Arc::clone(&shared);
    let work = async move |_| {
        peyk.engine.order(key, order).await?;
        Ok(Done::json(StatusCode::OK, &shown(&peyk, key).await?, Made::Nothing))
    };
    once(&shared, (&caller, &received), &[key.0.cast_unsigned()], work).await
}

async fn shown(shared: &Shared, endpoint: EndpointKey) -> Result<BreakerOut, Problem> {
    let view = shared.engine.breaker(endpoint).await.ok_or_else(Problem::overloaded)?;
    let waiting = shared.engine.stores().history.waiting(endpoint, WAITING_COUNTED_MAX).await?;
    let BreakerView { state, since, open_until, consecutive_failures, forced, hold, as_of } = view;
    Ok(BreakerOut {
        state,
        since: time(since),
        open_until: open_until.and_then(time_or_none),
        consecutive_failures,
        forced: forced.is_some(),
        hold: hold.map(|held| HoldOut::new(endpoint, held)),
        waiting,
        as_of: time(as_of),
    })
}
