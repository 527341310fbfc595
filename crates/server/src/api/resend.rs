//! Resend: one extra send of a message to an endpoint, now.
//!
//! It ignores filters, breaker and hold. Each request is one send, however often it is asked for.
//! Never: answer 202 for a send that would not be made.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use store::history::Resent;

use super::once::once;
use super::operation::Operation;
use super::own;
use super::shapes::Object;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::idempotency::{Done, Made, Ticket};
use crate::http::problem::Problem;
use crate::state::Shared;

pub(super) const RESEND: Operation =
    Operation::new("v1.message-attempt.resend", "Sends a message to an endpoint once more.")
        .once()
        .gives::<Object>(202)
        .or("endpoint_disabled")
        .or("in_flight")
        .or("missing_payload");

/// `POST /app/{app}/msg/{message}/endpoint/{endpoint}/resend`
pub(super) async fn resend(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message, endpoint)): Place<(String, String, String)>,
    received: Received,
) -> Result<Response, Problem> {
    let app = own::app(&shared, &caller, &app).await?;
    let endpoint = own::endpoint_of(&app, &endpoint)?;
    let message = own::message_of(&shared, app.app.key, &message).await?.key;
    let (peyk, place) = (Arc::clone(&shared), [message.0, endpoint.key.0.cast_unsigned()]);
    let work = async move |ticket: Ticket| {
        if endpoint.spec.disabled.is_some() {
            return Err(endpoint_disabled());
        }
        if peyk.engine.in_flight(endpoint.key, message).await? {
            let detail = "This message is being sent to this endpoint right now";
            return Err(Problem::conflict("in_flight", detail));
        }
        let done = || Done::json(StatusCode::ACCEPTED, &serde_json::Map::new(), Made::Nothing);
        let once = ticket.tells(move |made| (*made == Resent::Pending).then(done));
        let history = &peyk.engine.stores().history;
        match history.resend_once((message, endpoint.key), once).await? {
            Resent::Pending => Ok(done()),
            Resent::PayloadGone => Err(payload_gone()),
            Resent::Missing => Err(own::missing()),
        }
    };
    once(&shared, (&caller, &received), &place, work).await
}

/// Nothing is sent to it now.
pub(super) fn endpoint_disabled() -> Problem {
    Problem::bad_request("endpoint_disabled", "The endpoint is disabled: enable it first")
}

/// Nothing is left to send.
pub(super) fn payload_gone() -> Problem {
    let detail = "The payload was deleted or ran out of its retention";
    Problem::bad_request("missing_payload", detail)
}
