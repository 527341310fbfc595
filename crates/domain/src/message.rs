//! A message: one event as it was accepted, its payload byte for byte.
//!
//! Never: parse, reorder or respell the payload.

use bytes::Bytes;
use resilience::Timestamp;

use crate::ids::{AppKey, MessageKey, PublicId};

/// What a caller posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// The event type's name.
    pub event_type: String,
    /// The caller's own id, unique in the application.
    pub event_id: Option<String>,
    /// Channels, none for all endpoints without channels.
    pub channels: Vec<String>,
    /// What is signed and sent, as it came in.
    pub payload: Bytes,
    /// The media type it is sent with.
    pub content_type: ContentType,
    /// Days the payload is kept, 5 to 90, if the message named it.
    pub retention_days: Option<u8>,
}

/// The `content-type` of a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContentType {
    /// `application/json`
    #[default]
    Json,
    /// Given with the message.
    Other(String),
}

impl ContentType {
    /// The header value.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Json => "application/json",
            Self::Other(text) => text,
        }
    }
}

/// A message as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Inner key; its order is the order of acceptance.
    pub key: MessageKey,
    /// Public id, `msg_…`.
    pub id: PublicId,
    /// The application it was posted to.
    pub app: AppKey,
    /// What was posted; the payload is empty once it is gone.
    pub spec: MessageSpec,
    /// Whether the payload was deleted or ran out of its retention.
    pub payload_gone: bool,
    /// When it was committed.
    pub accepted_at: Timestamp,
    /// The public id of the message this one was edited from.
    pub edited_from: Option<PublicId>,
}

/// What a send needs of a message.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Public id.
    pub id: PublicId,
    /// The bytes to send.
    pub payload: Bytes,
    /// The media type.
    pub content_type: ContentType,
}
