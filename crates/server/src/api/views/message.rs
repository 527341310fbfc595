//! A message as the API shows it, its payload byte for byte.
//!
//! SDKs take nothing but an object. A payload that is none is shown as `{"rawPayload":"…"}`, with
//! its text as it is sent; one that is gone as `{"expired":true}`.
//! Never: parse a payload into values and write it anew.

use std::borrow::Cow;

use domain::ids::{Kind, PublicId};
use domain::message::{Message, MessageSpec};
use resilience::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::value::RawValue;

use super::edit::EditOut;
use super::{time, time_or_none};
use crate::api::shapes::{Channel, EventTypeName, MessageId, Object, Tag, Time};

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MessageOut")]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageOut<'a> {
    #[schemars(with = "MessageId")]
    id: String,
    event_id: Option<&'a str>,
    #[schemars(with = "EventTypeName")]
    event_type: &'a str,
    /// As it came; `{}` without content, `{"rawPayload": "…"}` for what is no object,
    /// `{"expired": true}` for what is gone.
    payload: PayloadOut<'a>,
    #[schemars(with = "Option<Vec<Channel>>")]
    channels: Option<&'a [String]>,
    #[schemars(with = "Time")]
    timestamp: String,
    #[schemars(with = "Option<Vec<Tag>>")]
    tags: Option<&'a [String]>,
    #[schemars(with = "Option<Time>")]
    deliver_at: Option<String>,
    /// The message that this one was made of, by replaying a dead letter with another payload.
    #[schemars(with = "MessageId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_from: Option<String>,
    /// Of one that is read by its id.
    #[serde(flatten)]
    edit: Option<EditOut>,
}

/// A payload.
#[derive(Debug, JsonSchema)]
#[schemars(with = "Object", inline)]
pub(crate) enum PayloadOut<'a> {
    /// Not asked for: `{}`.
    LeftOut,
    /// Deleted, or out of its retention.
    Expired,
    /// An object, as it came.
    Object(&'a RawValue),
    /// Anything else, as text.
    Text(Cow<'a, str>),
}

impl Serialize for PayloadOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::LeftOut => serializer.serialize_map(Some(0))?.end(),
            Self::Expired => serializer.collect_map([("expired", true)]),
            Self::Object(raw) => raw.serialize(serializer),
            Self::Text(text) => serializer.collect_map([("rawPayload", text)]),
        }
    }
}

impl<'a> PayloadOut<'a> {
    /// A stored payload.
    pub(crate) fn stored(message: &'a Message, with_content: bool) -> Self {
        if message.payload_gone {
            Self::Expired
        } else if with_content {
            Self::of(&message.spec.payload)
        } else {
            Self::LeftOut
        }
    }

    /// These bytes.
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(raw) if raw.get().starts_with('{') => Self::Object(raw),
            _ => Self::Text(String::from_utf8_lossy(bytes)),
        }
    }
}

impl<'a> MessageOut<'a> {
    /// A message that was just accepted.
    pub(crate) fn new(
        id: PublicId,
        accepted_at: Timestamp,
        spec: &'a MessageSpec,
        payload: PayloadOut<'a>,
    ) -> Self {
        Self {
            id: id.text(Kind::Message),
            event_id: spec.event_id.as_deref(),
            event_type: &spec.event_type,
            payload,
            channels: (!spec.channels.is_empty()).then_some(&spec.channels[..]),
            timestamp: time(accepted_at),
            tags: (!spec.tags.is_empty()).then_some(&spec.tags[..]),
            deliver_at: spec.deliver_at.and_then(time_or_none),
            edited_from: None,
            edit: None,
        }
    }

    /// A stored message.
    pub(crate) fn stored(message: &'a Message, with_content: bool) -> Self {
        let payload = PayloadOut::stored(message, with_content);
        let edited_from = message.edited_from.map(|id| id.text(Kind::Message));
        Self { edited_from, ..Self::new(message.id, message.accepted_at, &message.spec, payload) }
    }

    /// The same with what made it, if that was an edit.
    #[must_use]
    pub(crate) fn with_edit(self, edit: Option<EditOut>) -> Self {
        Self { edit, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_read_back_as_they_were_sent() {
        for text in [
            r#"{"b":1.0e2,"a":"\ud800\u0000","a":2}"#,
            "{ \"é\" : 0 }",
            r#"{"n":123456789012345678901234567890}"#,
        ] {
            let shown = serde_json::to_string(&PayloadOut::of(text.as_bytes())).unwrap();
            assert_eq!(shown, text);
        }
        let shown = |bytes| serde_json::to_string(&PayloadOut::of(bytes)).unwrap();
        assert_eq!(shown(b" {\"a\":1}\n"), r#"{"a":1}"#);
        assert_eq!(shown(b"[1]"), r#"{"rawPayload":"[1]"}"#);
        assert_eq!(shown(b"a=1&b=2"), r#"{"rawPayload":"a=1&b=2"}"#);
        assert_eq!(shown(b""), r#"{"rawPayload":""}"#);
        assert_eq!(shown(b"{\"\xFF\"}"), "{\"rawPayload\":\"{\\\"\u{FFFD}\\\"}\"}");
        assert_eq!(serde_json::to_string(&PayloadOut::LeftOut).unwrap(), "{}");
        assert_eq!(serde_json::to_string(&PayloadOut::Expired).unwrap(), r#"{"expired":true}"#);
    }
}
