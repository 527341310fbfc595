//! A dead letter as the API shows it.
//!
//! Its id is `dl_…` over the keys of message and endpoint, so that no table of names is needed.
//! Never: take an id for a right; whose it is, is checked where it is used.

use domain::dead_letter::DeadLetter;
use domain::idempotency::delivery_key;
use domain::ids::{EndpointKey, Kind, MessageKey, PublicId};
use domain::message::Message;
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::attempt::AttemptOut;
use super::edit::EditOut;
use super::message::PayloadOut;
use super::{sent_to, time, time_or_none};
use crate::api::shapes::{
    DeadLetterId, DeadReason, EndpointId, EventTypeName, MessageId, RunId, Time,
};

/// A dead letter: a row of the list, or one with its payload and every attempt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeadLetterOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLetterOut<'a> {
    #[schemars(with = "DeadLetterId")]
    id: String,
    #[schemars(with = "MessageId")]
    msg_id: String,
    event_id: Option<String>,
    /// What the receiver saw.
    idempotency_key: String,
    #[schemars(with = "EventTypeName")]
    event_type: String,
    #[schemars(with = "EndpointId")]
    endpoint_id: String,
    url: String,
    #[schemars(with = "DeadReason")]
    reason: &'static str,
    attempts: Attempts,
    /// 0 for no answer.
    last_status_code: u16,
    last_error: Option<String>,
    #[schemars(with = "Option<Time>")]
    first_attempt_at: Option<String>,
    #[schemars(with = "Option<Time>")]
    last_attempt_at: Option<String>,
    #[schemars(with = "Time")]
    dead_at: String,
    /// The run of refusals that it is of, if the receiver refused it.
    #[schemars(with = "Option<RunId>")]
    run_id: Option<String>,
    /// Of one that is read by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<PayloadOut<'a>>,
    /// The message that its message was edited from; of one that is read by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MessageId")]
    edited_from: Option<String>,
    /// Of one that is read by its id.
    #[serde(flatten)]
    edit: Option<EditOut>,
}

/// How many there were, or all of them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
enum Attempts {
    Count(u32),
    All(Vec<AttemptOut>),
}

impl<'a> DeadLetterOut<'a> {
    /// A row of this organisation; `installation` is part of the key that the receiver saw.
    pub(crate) fn new(letter: DeadLetter, org: PublicId, installation: &[u8; 16]) -> Self {
        Self {
            id: id_of(letter.message, letter.endpoint),
            msg_id: letter.message_id.text(Kind::Message),
            event_id: letter.event_id,
            idempotency_key: delivery_key(installation, &letter.message_id, &letter.endpoint_id),
            event_type: letter.event_type,
            endpoint_id: letter.endpoint_id.text(Kind::Endpoint),
            url: sent_to(letter.url, org),
            reason: letter.reason.name(),
            attempts: Attempts::Count(letter.sends),
            last_status_code: letter.last_status,
            last_error: letter.last_error,
            first_attempt_at: letter.first_attempt_at.and_then(time_or_none),
            last_attempt_at: letter.last_attempt_at.and_then(time_or_none),
            dead_at: time(letter.dead_at),
            run_id: letter.run.map(|since| run_id(letter.endpoint, since)),
            payload: None,
            edited_from: None,
            edit: None,
        }
    }

    /// With its message's payload, every attempt, and what made the message if that was an edit.
    #[must_use]
    pub(crate) fn whole(
        mut self,
        message: &'a Message,
        attempts: Vec<AttemptOut>,
        edit: Option<EditOut>,
    ) -> Self {
        self.payload = Some(PayloadOut::stored(message, true));
        self.edited_from = message.edited_from.map(|id| id.text(Kind::Message));
        self.edit = edit;
        self.attempts = Attempts::All(attempts);
        self
    }
}

/// A place in the list, as an iterator.
pub(crate) fn iterator_of(place: u64) -> String {
    format!("{place:016x}")
}

/// Reads an iterator.
pub(crate) fn place_of(iterator: &str) -> Option<u64> {
    let is_hex = iterator.len() == 16 && iterator.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(iterator, 16).ok()).flatten()
}

/// What is wrong with a text that is none.
pub(crate) const NO_RUN: &str = "must be the id of a run of refusals";

/// The public id of a run of refusals: its endpoint, and when the first one came.
pub(crate) fn run_id(endpoint: EndpointKey, since: Timestamp) -> String {
    let mut rest = [0; 12];
    rest[..8].copy_from_slice(&endpoint.0.to_be_bytes());
    PublicId::new(since.as_micros().cast_unsigned(), rest).text(Kind::Run)
}

/// What is behind the public id of a run.
pub(crate) fn run_of(id: &str) -> Option<(EndpointKey, Timestamp)> {
    let id = PublicId::parse(Kind::Run, id)?;
    let random = id.random();
    let mut endpoint = [0; 8];
    endpoint.copy_from_slice(&random[..8]);
    let since = Timestamp::from_micros(id.key().cast_signed());
    (random[8..] == [0; 4]).then(|| (EndpointKey(i64::from_be_bytes(endpoint)), since))
}

/// The public id.
pub(crate) fn id_of(message: MessageKey, endpoint: EndpointKey) -> String {
    let mut rest = [0; 12];
    rest[..8].copy_from_slice(&endpoint.0.to_be_bytes());
    PublicId::new(message.0, rest).text(Kind::DeadLetter)
}

/// The keys behind a public id.
pub(crate) fn keys_of(id: &str) -> Option<(MessageKey, EndpointKey)> {
    let id = PublicId::parse(Kind::DeadLetter, id)?;
    let random = id.random();
    let mut endpoint = [0; 8];
    endpoint.copy_from_slice(&random[..8]);
    let is_ours = random[8..] == [0; 4];
    is_ours.then(|| (MessageKey(id.key()), EndpointKey(i64::from_be_bytes(endpoint))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_iterators_survive_the_round_trip() {
        for (message, endpoint) in [(0, 0), (u64::MAX, i64::MAX), (7, -1)] {
            let keys = (MessageKey(message), EndpointKey(endpoint));
            let id = id_of(keys.0, keys.1);
            assert!(id.starts_with("dl_") && id.len() == 30, "{id}");
            assert_eq!(keys_of(&id), Some(keys));
        }
        assert_eq!(keys_of("dl_x"), None);
        assert_eq!(keys_of(&PublicId::new(1, [1; 12]).text(Kind::DeadLetter)), None);
        let run = (EndpointKey(7), Timestamp::from_micros(1_800_000_000_000_001));
        assert_eq!(run_of(&run_id(run.0, run.1)), Some(run));
        assert_eq!(run_of(&id_of(MessageKey(1), EndpointKey(7))), None, "of a letter");
        assert_eq!(place_of("00000000000000ff"), Some(255));
        for bad in ["", "ff", "+0000000000000ff", "00000000000000fg", "dl_"] {
            assert_eq!(place_of(bad), None, "{bad}");
        }
    }
}
