//! What went where, as the API shows it: a message or an endpoint, and how its delivery stands.
//!
//! Never: call a delivery sending that nobody will send, or name a time before which its lane is
//! held.

use domain::endpoint::Endpoint;
use domain::ids::PublicId;
use engine::NextSend;
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use store::history::{DeliveryRow, Sent, Standing};

use super::endpoint::EndpointOut;
use super::message::MessageOut;
use super::time_or_none;
use crate::api::shapes::{Status, StatusText, Time};

/// How a delivery stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StandingOut {
    #[schemars(with = "Status")]
    status: u8,
    #[schemars(with = "StatusText")]
    status_text: &'static str,
    /// While something will be sent.
    #[schemars(with = "Time")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt: Option<String>,
}

/// A message to an endpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndpointMessageOut")]
pub(crate) struct SentOut<'a> {
    #[serde(flatten)]
    message: MessageOut<'a>,
    #[serde(flatten)]
    standing: StandingOut,
}

/// An endpoint that a message goes to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageEndpointOut")]
pub(crate) struct DestinationOut {
    #[serde(flatten)]
    endpoint: EndpointOut,
    #[serde(flatten)]
    standing: StandingOut,
}

/// The number and the name of a status. Callers that do not know of `canceled` are told `fail`:
/// nothing was delivered.
pub(crate) const fn status(standing: Standing, expanded: bool) -> (u8, &'static str) {
    match standing {
        Standing::Delivered => (0, "success"),
        Standing::Untried => (1, "pending"),
        Standing::Retried => (3, "sending"),
        Standing::Cancelled if expanded => (4, "canceled"),
        Standing::Dead | Standing::Cancelled => (2, "fail"),
    }
}

impl StandingOut {
    fn new(standing: Standing, due_at: Option<Timestamp>, expanded: bool) -> Self {
        let (status, status_text) = status(standing, expanded);
        Self { status, status_text, next_attempt: due_at.and_then(time_or_none) }
    }
}

impl<'a> SentOut<'a> {
    /// A message to this endpoint.
    pub(crate) fn new(
        sent: &'a Sent,
        (to, next, now): (&Endpoint, NextSend, Timestamp),
        (with_content, expanded): (bool, bool),
    ) -> Self {
        let Sent { message, delivery } = sent;
        let due_at = delivery.due_at.filter(|_| to.spec.disabled.is_none());
        let due_at = due_at.and_then(|due| next.of(due, now));
        Self {
            message: MessageOut::stored(message, with_content),
            standing: StandingOut::new(delivery.standing(), due_at, expanded),
        }
    }
}

impl DestinationOut {
    /// An endpoint, perhaps a deleted one: what waits for that is cancelled when it is next read.
    pub(crate) fn new(
        (endpoint, org, next, now): (&Endpoint, PublicId, NextSend, Timestamp),
        delivery: &DeliveryRow,
        (deleted, expanded): (bool, bool),
    ) -> Self {
        let standing = match delivery.standing() {
            Standing::Untried | Standing::Retried if deleted => Standing::Cancelled,
            standing => standing,
        };
        let is_sent_to = !deleted && endpoint.spec.disabled.is_none();
        let due_at = delivery.due_at.filter(|_| is_sent_to).and_then(|due| next.of(due, now));
        Self {
            endpoint: EndpointOut::shown(endpoint, org),
            standing: StandingOut::new(standing, due_at, expanded),
        }
    }
}
