//! Resend: one extra send of a message to an endpoint, now.
//!
//! It ignores filters, breaker and hold. Each request is one send, however often it is asked for.
//! Never: answer 202 for a send that would not be made.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use store::history::Resent;

use super::own;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::idempotency::Answer;
use crate::http::problem::Problem;
use crate::state::Shared;

/// `POST /app/{app}/msg/{message}/endpoint/{endpoint}/resend`
pub(super) async fn resend(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place((app, message, endpoint)): Place<(String, String, String)>,
    received: Received,
) -> Result<Response, Problem> {
    let key = received.ingest_key(&caller, None)?;
    let (peyk, now) = (Arc::clone(&shared), shared.now());
    let work = async move {
        let app = own::app(&peyk, &caller, &app).await?;
        let endpoint = own::endpoint_of(&app, &endpoint)?;
        let message = own::message_of(&peyk, app.app.key, &message).await?;
        if endpoint.spec.disabled.is_some() {
            let detail = "The endpoint is disabled: enable it first";
            return Err(Problem::bad_request("endpoint_disabled", detail));
        }
        if peyk.engine.in_flight(endpoint.key, message.key).await? {
            let detail = "This message is being sent to this endpoint right now";
            return Err(Problem::conflict("in_flight", detail));
        }
        match peyk.engine.stores().history.resend(message.key, endpoint.key).await? {
            Resent::Pending => Ok(Answer::json(StatusCode::ACCEPTED, &serde_json::Map::new())),
            Resent::PayloadGone => Err(payload_gone()),
            Resent::Missing => Err(own::missing()),
        }
    };
    shared.answers.once(key, now, work).await
}

/// Nothing is left to send.
pub(super) fn payload_gone() -> Problem {
    let detail = "The payload was deleted or ran out of its retention";
    Problem::bad_request("missing_payload", detail)
}
