//! Dead letters: deliveries that were given up, and why.
//!
//! Never: be dropped silently; each keeps everything needed to send it again.

use resilience::Timestamp;

use crate::ids::{EndpointKey, MessageKey, PublicId};

/// Why a delivery was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeadReason {
    /// The receiver refused this message (3xx or 4xx).
    Rejected,
    /// The receiver answered 410.
    Gone,
    /// The address is not one that may be dialled.
    ForbiddenTarget,
    /// All attempts were used.
    Exhausted,
    /// The age limit passed.
    Expired,
    /// Sending it killed the process again and again.
    Poisonous,
    /// Its payload ran out of retention while it waited.
    PayloadGone,
}

impl DeadReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Rejected,
        Self::Gone,
        Self::ForbiddenTarget,
        Self::Exhausted,
        Self::Expired,
        Self::Poisonous,
        Self::PayloadGone,
    ];

    /// The stable name, as the API and the metrics show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Gone => "gone",
            Self::ForbiddenTarget => "forbidden_target",
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::Poisonous => "poisonous",
            Self::PayloadGone => "payload_gone",
        }
    }

    /// The reason with that stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// A dead letter with everything known about it, the payload aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message.
    pub message: MessageKey,
    /// Its public id.
    pub message_id: PublicId,
    /// The endpoint.
    pub endpoint: EndpointKey,
    /// Its public id.
    pub endpoint_id: PublicId,
    /// The caller's id of the message.
    pub event_id: Option<String>,
    /// The event type's name.
    pub event_type: String,
    /// Where it was to go.
    pub url: String,
    /// Why it was given up.
    pub reason: DeadReason,
    /// Sends made.
    pub sends: u32,
    /// The last answer's status, 0 when there was none.
    pub last_status: u16,
    /// What went wrong last, in words.
    pub last_error: Option<String>,
    /// When the first attempt began.
    pub first_attempt_at: Option<Timestamp>,
    /// When the last attempt began.
    pub last_attempt_at: Option<Timestamp>,
    /// When it was given up.
    pub dead_at: Timestamp,
    /// Place in the list: grows with the time of death.
    pub place: u64,
    /// Of which run of refusals to its endpoint it is: when the first of them came.
    pub run: Option<Timestamp>,
}
