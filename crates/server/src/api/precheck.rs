//! Precheck: whether a message of this type, on these channels, would be sent to anybody.
//!
//! Never: accept anything.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::fanout;
use domain::text;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::inputs::message::MessagePrecheckIn;
use super::once::once;
use super::operation::Operation;
use super::own;
use crate::http::auth::Auth;
use crate::http::extract::{Place, Received};
use crate::http::fields::{Fields, checked, texts};
use crate::http::idempotency::{Done, Made};
use crate::http::problem::Problem;
use crate::state::Shared;

/// Whether a message would be sent to anybody.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MessagePrecheckOut")]
struct PrecheckOut {
    active: bool,
}

pub(super) const ACTIVE: Operation =
    Operation::new("v1.message.precheck", "Says whether anybody would get such a message.")
        .takes::<MessagePrecheckIn>()
        .once()
        .gives::<PrecheckOut>(200);

/// `POST /app/{app}/msg/precheck/active`
pub(super) async fn active(
    State(shared): State<Arc<Shared>>,
    Auth(caller): Auth,
    Place(app): Place<String>,
    received: Received,
) -> Result<Response, Problem> {
    let mut fields = Fields::parse(&received.body)?;
    let event_type = fields.firm("eventType", None, None, checked(text::event_type_name));
    let channels = fields.nullable(&["channels"], None, |name, value| {
        let list = texts(name, value)?;
        // An empty list asks for a message without channels.
        if !list.is_empty() {
            text::channels(name, &list, shared.settings.bounds.channels_per_message)?;
        }
        Ok(list)
    });
    fields.finish()?;
    let (event_type, channels) = (event_type.unwrap_or_default(), channels.unwrap_or_default());
    let app = own::app(&shared, &caller, &app).await?;
    let place = [app.app.key.0.cast_unsigned()];
    let work = async move |_| {
        let mut enabled = app.endpoints.iter().filter(|to| to.spec.disabled.is_none());
        let active = enabled.any(|to| fanout::wants(to, &event_type, &channels));
        Ok(Done::json(StatusCode::OK, &PrecheckOut { active }, Made::Application(app.app.key)))
    };
    once(&shared, (&caller, &received), &place, work).await
}
