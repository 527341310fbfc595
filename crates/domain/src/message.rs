//! A message: one event as it was accepted, its payload byte for byte.
//!
//! Never: parse, reorder or respell the payload.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use resilience::Timestamp;

use crate::ids::{AppKey, MessageKey, PublicId};
use crate::limits::{DELIVER_AT_LATE_MAX, DELIVER_AT_MAX};
use crate::trace::Given;

/// What a caller posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// The event type's name.
    pub event_type: String,
    /// The caller's own id, unique in the application.
    pub event_id: Option<String>,
    /// Channels, none for all endpoints without channels.
    pub channels: Vec<String>,
    /// Texts that lists are filtered by; no endpoint looks at them.
    pub tags: Vec<String>,
    /// What is signed and sent, as it came in.
    pub payload: Bytes,
    /// The media type it is sent with.
    pub content_type: ContentType,
    /// Hours the payload is kept, if the message named it.
    pub retention_hours: Option<u16>,
    /// Not to be sent before then.
    pub deliver_at: Option<Timestamp>,
    /// The trace that its caller is in.
    pub trace: Option<Arc<Given>>,
}

impl MessageSpec {
    /// When its first sends are due if it is accepted `now`; `None` when it names a time that is
    /// neither now nor near, or at which its payload would be gone.
    pub fn due_at(&self, now: Timestamp) -> Option<Timestamp> {
        let Some(named) = self.deliver_at else { return Some(now) };
        let kept = self.retention_hours.map(hours).unwrap_or(DELIVER_AT_MAX);
        let latest = now.plus(DELIVER_AT_MAX.min(kept));
        let fits = (now.minus(DELIVER_AT_LATE_MAX)..=latest).contains(&named);
        fits.then_some(named.max(now))
    }
}

/// Hours of a message's own period.
pub const fn hours(number: u16) -> Duration {
    Duration::from_secs(number as u64 * 3_600)
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
    /// The trace that its caller is in.
    pub trace: Option<Arc<Given>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_time_is_now_or_within_a_day_and_before_the_payload_goes() {
        let now = Timestamp::from_secs(1_800_000_000);
        let at = |secs: i64| Timestamp::from_secs(now.as_secs() + secs);
        // named, kept for hours, due
        let table = [
            (None, None, Some(0)),
            (Some(-60), None, Some(0)),
            (Some(-61), None, None),
            (Some(90), None, Some(90)),
            (Some(86_400), None, Some(86_400)),
            (Some(86_401), None, None),
            (Some(3_600), Some(1), Some(3_600)),
            (Some(3_601), Some(1), None),
            (Some(86_400), Some(2_160), Some(86_400)),
        ];
        for (named, retention_hours, due) in table {
            let spec = MessageSpec {
                event_type: "a".to_owned(),
                event_id: None,
                channels: Vec::new(),
                tags: Vec::new(),
                payload: Bytes::new(),
                content_type: ContentType::Json,
                retention_hours,
                deliver_at: named.map(at),
                trace: None,
            };
            assert_eq!(spec.due_at(now), due.map(at), "{named:?} {retention_hours:?}");
        }
    }
}
