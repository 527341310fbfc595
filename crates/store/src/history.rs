//! Reads for the API and the portal: messages, attempts, where a delivery stands.
//!
//! Lists by application and by endpoint are filled in arrears; readers add what is not indexed yet,
//! so that a caller sees every committed row.
//! Never: change anything but the `resend` row, and what goes with an expunged payload or answer.

use std::sync::Arc;

use domain::attempt::Attempt;
use domain::delivery::DeliveryState;
use domain::ids::{AppKey, AttemptKey, EndpointKey, MessageKey, PublicId};
use domain::limits::PAGE_PAYLOAD_BYTES_MAX;
use domain::message::Message;
use resilience::{Term, Timestamp};

use crate::Reply;
use crate::page::{Looked, PageOf};
use crate::recall::Once;

/// A stored attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRow {
    /// Inner key.
    pub key: AttemptKey,
    /// Public id, `atmpt_…`.
    pub id: PublicId,
    /// The message.
    pub message: MessageKey,
    /// Its public id.
    pub message_id: PublicId,
    /// The endpoint.
    pub endpoint: EndpointKey,
    /// Its public id, though it be deleted.
    pub endpoint_id: PublicId,
    /// Where it was sent, as the URL then was.
    pub url: String,
    /// The facts.
    pub attempt: Attempt,
    /// The next attempt's due time that followed from it, and which rule set it.
    pub next: Option<(Timestamp, Term)>,
}

/// Where one delivery of a message stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// The endpoint.
    pub endpoint: EndpointKey,
    /// The state.
    pub state: DeliveryState,
    /// When it is due, while it is pending.
    pub due_at: Option<Timestamp>,
    /// Sends made.
    pub sends: u32,
}

/// What a caller is told of where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A receiver answered 2xx.
    Delivered,
    /// Nothing was sent yet.
    Untried,
    /// Given up.
    Dead,
    /// Something was sent, and it will be tried again.
    Retried,
    /// Never to be sent.
    Cancelled,
}

impl DeliveryRow {
    /// What a caller is told of it.
    pub const fn standing(&self) -> Standing {
        match self.state {
            DeliveryState::Delivered => Standing::Delivered,
            DeliveryState::Pending if self.sends == 0 => Standing::Untried,
            DeliveryState::Pending => Standing::Retried,
            DeliveryState::Dead(_) => Standing::Dead,
            DeliveryState::Cancelled(_) => Standing::Cancelled,
        }
    }
}

/// A message, and where its delivery to one endpoint stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The message.
    pub message: Message,
    /// Its delivery to the endpoint that was asked for.
    pub delivery: DeliveryRow,
}

/// Which messages to an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentFilter {
    /// By message.
    pub message: MessageFilter,
    /// Only deliveries that stand so; empty for all.
    pub standings: Vec<Standing>,
    /// Payloads too; then the look ends with the row that fills the page ([`payloads_fill`]).
    pub payloads: bool,
}

impl SentFilter {
    /// Whether a delivery stands as asked for.
    pub(crate) fn takes(&self, delivery: &DeliveryRow) -> bool {
        self.standings.is_empty() || self.standings.contains(&delivery.standing())
    }
}

/// Attempts, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Answered 2xx.
    pub delivered: u64,
    /// Anything else.
    pub failed: u64,
}

impl AttemptCounts {
    pub(crate) const fn add(&mut self, delivered: bool) {
        let count = if delivered { &mut self.delivered } else { &mut self.failed };
        *count += 1;
    }
}

/// What an answer's body reads once it was deleted.
pub const EXPUNGED: &str = "EXPUNGED";

/// Which messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Only on this channel.
    pub channel: Option<String>,
    /// Only these event types; empty for all.
    pub event_types: Vec<String>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Accepted before then (exclusive), by [`keys_within`](crate::page::keys_within).
    pub before: Option<Timestamp>,
    /// Accepted at or after then.
    pub after: Option<Timestamp>,
}

/// Which attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptFilter {
    /// Only to this endpoint.
    pub endpoint: Option<EndpointKey>,
    /// 0 delivered, 2 failed; others match nothing.
    pub status: Option<u8>,
    /// Hundreds of the status code: 0 (no answer), 100, 200, 300, 400, 500.
    pub status_class: Option<u16>,
    /// By message; its times are about the attempt, which was recorded then.
    pub message: MessageFilter,
}

/// What a resend came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resent {
    /// One extra send is due now.
    Pending,
    /// The payload is gone.
    PayloadGone,
    /// There is no such message or endpoint.
    Missing,
}

/// Whether the payloads of these messages fill a page, however many rows were asked for. A page
/// that they fill may have more behind it.
pub fn payloads_fill<'a>(messages: impl IntoIterator<Item = &'a Message>) -> bool {
    let bytes: usize = messages.into_iter().map(|message| message.spec.payload.len()).sum();
    bytes >= PAGE_PAYLOAD_BYTES_MAX
}

/// Reads of what happened.
pub trait History: Send + Sync {
    /// A message by public id or the caller's event id.
    fn message(
        &self,
        app: AppKey,
        which: crate::directory::IdOrUid,
    ) -> Reply<'_, Option<Arc<Message>>>;
    /// Looks at messages of an application. Payloads only when asked for; then the look ends with
    /// the row that fills the page ([`payloads_fill`]).
    fn messages(
        &self,
        app: AppKey,
        filter: MessageFilter,
        page: PageOf<MessageKey>,
        payloads: bool,
    ) -> Reply<'_, Looked<Message, MessageKey>>;
    /// Looks at attempts of a message by attempt key.
    fn attempts_of(
        &self,
        message: MessageKey,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>>;
    /// Looks at attempts to an endpoint by attempt key.
    fn attempts_to(
        &self,
        endpoint: EndpointKey,
        filter: AttemptFilter,
        page: PageOf<AttemptKey>,
    ) -> Reply<'_, Looked<AttemptRow, AttemptKey>>;
    /// Looks at messages of an application for those with a delivery to this endpoint of it.
    fn messages_to(
        &self,
        app: AppKey,
        endpoint: EndpointKey,
        filter: SentFilter,
        page: PageOf<MessageKey>,
    ) -> Reply<'_, Looked<Sent, MessageKey>>;
    /// Attempts to an endpoint that were recorded from `from` on and before `until`, to the 4 ms of
    /// their keys. Each of them is looked at, in pieces between which other reads have their turn.
    fn count_attempts(
        &self,
        endpoint: EndpointKey,
        from: Timestamp,
        until: Option<Timestamp>,
    ) -> Reply<'_, AttemptCounts>;
    /// One attempt of a message by public id.
    fn attempt(&self, message: MessageKey, id: PublicId) -> Reply<'_, Option<AttemptRow>>;
    /// Puts [`EXPUNGED`] in place of the body that an attempt was answered with;
    /// `Missing("attempt")` when there is none.
    fn expunge_attempt(&self, message: MessageKey, id: PublicId) -> Reply<'static, ()>;
    /// Where each delivery of a message stands, in order of endpoint.
    fn deliveries(&self, message: MessageKey) -> Reply<'_, Vec<DeliveryRow>>;
    /// Pending rows of an endpoint, counted up to `bound`.
    fn waiting(&self, endpoint: EndpointKey, bound: u64) -> Reply<'_, u64>;
    /// Adds a row for one manual send, due now; handed to `Commits::fresh`.
    fn resend(&self, message: MessageKey, endpoint: EndpointKey) -> Reply<'static, Resent> {
        self.resend_once((message, endpoint), None)
    }
    /// The same, and keeps its answer in the same transaction.
    fn resend_once(
        &self,
        delivery: (MessageKey, EndpointKey),
        once: Once<Resent>,
    ) -> Reply<'static, Resent>;
    /// Deletes the payload of a message. Waiting deliveries of it die as `payload_gone` and are
    /// handed to `Commits::withdrawn`; those left by a crash half-way die when next read.
    fn expunge(&self, message: MessageKey) -> Reply<'static, ()>;
}
