//! Why a delivery is where it is.
//!
//! Never: change one, or decide; everything told is read from the store and from the lane.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::application::AppSnapshot;
use domain::endpoint::Endpoint;
use domain::fanout;
use domain::ids::{AttemptKey, EndpointKey, Kind, MessageKey};
use domain::message::Message;
use http::StatusCode;
use store::directory::IdOrUid;
use store::history::{AttemptFilter, AttemptRow};
use store::page::{Direction, PageOf};

use super::attempted::{Destination, named};
use super::operation::Operation;
use super::own;
use super::views::explain::{ExplainOut, Known};
use crate::http::auth::Auth;
use crate::http::extract::Place;
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::state::Shared;

pub(super) const EXPLAIN: Operation = Operation::new(
    "v1.message.explain-delivery",
    "Says in one sentence why a delivery is where it is, with the terms that set its next time.",
)
.gives::<ExplainOut>(200);

/// `GET /app/{app}/msg/{message}/endpoint/{endpoint}/explain`
pub(super) async fn explain(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message, endpoint)): Place<(String, String, String)>,
) -> Result<Response, Problem> {
    let app = own::app(&shared, &caller, &app).await?;
    let message = own::message_of(&shared, app.app.key, &message).await?;
    let mut to = destination(&shared, &app, &message, &endpoint).await?;
    let key = to.endpoint.key;
    // Before the store is read: a send that ends in between is then read as ended.
    let situation = shared.engine.situation(key, message.key).await;
    let situation = situation.ok_or_else(Problem::overloaded)?;
    let rows = shared.engine.stores().history.deliveries(message.key).await?;
    if let Some(newer) = rows.into_iter().find(|row| row.endpoint == key) {
        to.delivery = newer;
    }
    let last = last_attempt(&shared, message.key, key).await?;
    let letter = shared.engine.stores().dead_letters.dead_letter(message.key, key).await?;
    let behind = match situation.behind {
        // Without its id it is told of all the same.
        Some(first) => own::message_by_key(&shared, app.app.key, first).await.ok(),
        None => None,
    };
    let recovery = shared.engine.stores().recoveries.recovery(key).await?;
    let automatic = to.endpoint.spec.auto_replay.unwrap_or(shared.settings.replay_automatic);
    let known = Known {
        now: shared.now(),
        message: &message,
        endpoint: &to.endpoint,
        deleted: to.deleted,
        delivery: &to.delivery,
        last: last.as_ref(),
        letter: letter.as_ref(),
        recovery: recovery.filter(|_| automatic && !to.deleted),
        retry: to.endpoint.spec.retry.over(&shared.settings.retry),
        situation,
        behind: behind.map(|message| message.id.text(Kind::Message)),
    };
    Ok(Answer::json(StatusCode::OK, &ExplainOut::new(&known)).into_response())
}

/// The delivery of a message to an endpoint, which may be deleted.
async fn destination(
    shared: &Shared,
    app: &AppSnapshot,
    message: &Message,
    endpoint: &str,
) -> Result<Destination, Problem> {
    let rows = shared.engine.stores().history.deliveries(message.key).await?;
    let which = own::id_or_uid(Kind::Endpoint, endpoint);
    let is_it = |to: &Destination| match &which {
        IdOrUid::Id(id) => to.endpoint.id == *id,
        IdOrUid::Uid(uid) => !to.deleted && to.endpoint.spec.uid.as_ref() == Some(uid),
    };
    let all = named(shared, app, rows).await?;
    match all.into_iter().find(is_it) {
        Some(found) => Ok(found),
        None => Err(not_routed(message, &*own::endpoint_of(app, endpoint)?)),
    }
}

/// Why a message has no delivery at an endpoint, as far as that can still be told.
fn not_routed(message: &Message, to: &Endpoint) -> Problem {
    let why = if message.accepted_at < to.created_at {
        "the endpoint was created after it was accepted"
    } else if fanout::wants(to, &message.spec.event_type, &message.spec.channels) {
        "the endpoint's filters let it through only since, or it was meant for another one"
    } else {
        "its event type and channels are not among those that the endpoint takes"
    };
    Problem::not_found(format!("The message was not routed to this endpoint: {why}"))
}

async fn last_attempt(
    shared: &Shared,
    message: MessageKey,
    endpoint: EndpointKey,
) -> Result<Option<AttemptRow>, Problem> {
    let filter = AttemptFilter { endpoint: Some(endpoint), ..AttemptFilter::default() };
    let page = PageOf { beyond: None::<AttemptKey>, direction: Direction::Descending, limit: 1 };
    let found = shared.engine.stores().history.attempts_of(message, filter, page).await?;
    Ok(found.rows.into_iter().next())
}
